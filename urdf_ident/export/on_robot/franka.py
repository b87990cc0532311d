"""Franka robots: a libfranka program that reads the motion from a CSV file and writes a log in the default columns."""

from __future__ import annotations

import re

from ...motion.trajectory import table_header, table_text
from ...quoting import comment, cpp_string
from .plan import DRY_RUN, PAUSE, Plan

_RATE = 1000.0

_PROGRAM = r"""// Follows an excitation motion of @ROBOT@ at 1 kHz and writes a log that urdf-ident reads.
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
    const Pose here = robot.readOnce().q;
    double approach = 2.0;
    for (size_t j = 0; j < 7; ++j) approach = std::max(approach, 1.9 * std::abs(motion[0][j] - here[j]) / limit[j]);
    std::cout << "approach " << approach << " s, motion " << length << " s; press Enter to start" << std::endl;
    std::cin.ignore();
    double time = 0.0;
    robot.control([&](const franka::RobotState& state, franka::Duration period) -> franka::JointPositions {
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
"""


_DRY_RUN = f"""\
#!/bin/sh
# ./dry_run.sh ROBOT-IP: the motion at {100 * DRY_RUN:.0f} % of its speed
exec ./follow "$1" motion.csv {DRY_RUN:g} dry_run_log.csv
"""


def texts(plan: Plan) -> dict[str, str]:
    """Returns the motion at 1 kHz, and a program that follows and records it at any fraction of its speed."""
    plan.require_joints(7, "a Franka arm has seven joints", "lock the fingers")
    time, q, _, _ = plan.samples(_RATE)
    fields = {
        "@ROBOT@": comment(plan.robot),
        "@HEADER@": cpp_string(table_header(plan.order, ("q", "v", "tau"))),
        "@APPROACH@": ", ".join(f"{speed:.6f}" for speed in plan.approach),
        "@PAUSE@": f"{PAUSE:.1f}",
    }
    program = re.sub("|".join(fields), lambda field: fields[field[0]], _PROGRAM)  # at once: a name may look like a field
    return {"motion.csv": table_text(plan.order, time, {"q": q}), "follow.cpp": program, "dry_run.sh": _DRY_RUN}
