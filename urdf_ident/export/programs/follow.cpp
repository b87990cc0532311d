// Follows an excitation motion of @ROBOT@ at 1 kHz and writes a log that urdf-ident reads.
// Units: rad, rad/s, N*m, s.
//
//   g++ -std=c++17 -O2 follow.cpp -lfranka -pthread -o follow
//   ./follow ROBOT-IP motion.csv 0.2 dry_run_log.csv     first: a fifth of the speed
//   ./follow ROBOT-IP motion.csv 1.0 log.csv
//
// The robot first drives slowly from where it stands to the first pose, waits, and follows the motion; libfranka's rate
// limiter stays on. tau is tau_J, the measured joint torque with gravity.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <franka/exception.h>
#include <franka/robot.h>

using Pose = std::array<double, 7>;

int main(int argc, char** argv) {
  if (argc != 5) { std::cerr << "usage: follow ROBOT-IP motion.csv SPEED log.csv\n"; return 2; }
  const double speed = std::stod(argv[3]);
  if (!(speed > 0.0 && speed <= 1.0)) { std::cerr << "SPEED is above 0 and at most 1\n"; return 2; }
  std::vector<Pose> motion;  // one row every millisecond
  std::ifstream file(argv[2]);
  std::string line;
  std::getline(file, line);  // header
  while (std::getline(file, line)) {
    std::stringstream cells(line);
    std::string cell;
    Pose q{};
    std::getline(cells, cell, ',');  // time
    for (double& value : q) { std::getline(cells, cell, ','); value = std::stod(cell); }
    motion.push_back(q);
  }
  if (motion.size() < 2) { std::cerr << "no motion in " << argv[2] << "\n"; return 2; }
  const Pose limit = {@APPROACH@};  // rad/s on the way to the first pose
  const double pause = @PAUSE@, length = (motion.size() - 1) * 1e-3 / speed;
  std::vector<std::array<double, 22>> log;
  log.reserve(static_cast<size_t>((length + 120.0) * 1000.0));
  try {
    franka::Robot robot(argv[1]);
    robot.setCollisionBehavior({{40, 40, 40, 40, 30, 30, 30}}, {{60, 60, 60, 60, 50, 40, 40}},
                               {{40, 40, 40, 40, 40, 40}}, {{60, 60, 60, 60, 60, 60}});
    const auto approach_from = [&](const Pose& start) {
      double seconds = 2.0;
      for (size_t j = 0; j < 7; ++j) seconds = std::max(seconds, @PEAK@ * std::abs(motion[0][j] - start[j]) / limit[j]);
      return seconds;
    };
    std::cout << "approach " << approach_from(robot.readOnce().q_d) << " s, motion " << length
              << " s; press Enter to start" << std::endl;
    std::cin.ignore();
    Pose here{};
    double time = 0.0, approach = 0.0;
    robot.control([&](const franka::RobotState& state, franka::Duration period) -> franka::JointPositions {
      if (approach == 0.0) {  // first call: the motion goes on from the pose last commanded, wherever the robot is by now
        here = state.q_d;
        approach = approach_from(here);
      }
      time += period.toSec();
      std::array<double, 22> row{};
      row[0] = time;
      for (size_t j = 0; j < 7; ++j) { row[1 + j] = state.q[j]; row[8 + j] = state.dq[j]; row[15 + j] = state.tau_J[j]; }
      if (log.size() < log.capacity()) log.push_back(row);
      Pose goal{};
      if (time < approach) {
        const double s = time / approach, part = s * s * s * (10.0 - 15.0 * s + 6.0 * s * s);
        for (size_t j = 0; j < 7; ++j) goal[j] = here[j] + part * (motion[0][j] - here[j]);
      } else {
        const double at = std::clamp((time - approach - pause) * speed * 1000.0, 0.0, motion.size() - 1.0);
        const size_t k = std::min(static_cast<size_t>(at), motion.size() - 2);
        for (size_t j = 0; j < 7; ++j) goal[j] = motion[k][j] + (at - k) * (motion[k + 1][j] - motion[k][j]);
      }
      franka::JointPositions out(goal);
      return time > approach + 2.0 * pause + length ? franka::MotionFinished(out) : out;
    });
  } catch (const franka::Exception& error) {
    std::cerr << error.what() << std::endl;
  }
  std::ofstream out(argv[4]);
  out << @HEADER@ << "\n" << std::setprecision(10);
  for (const auto& row : log) { for (size_t k = 0; k < row.size(); ++k) out << (k ? "," : "") << row[k]; out << "\n"; }
  return 0;
}
