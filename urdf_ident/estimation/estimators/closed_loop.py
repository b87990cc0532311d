"""Closed-loop simulation of the robot along the logs, which gives the motion without noise.

It needs the reference that the controller followed, in the log, and the controller, in the project file. A motion under
feedback hardly depends on the parameters of the robot, so that a rough first estimate already gives good instruments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import EstimationError, SimulationError
from ...linalg import Array, positive, rms
from ...logs.recording import Recording
from ...model.dynamic_model import DynamicModel
from ...model.elasticity import ElasticModel
from ...motion.trajectory import sampled
from ...signals.prepare import PreparedLog
from ...simulation.elastic.log import elastic_plant, motor_law, simulate_elastic
from ...simulation.elastic.plant import ElasticPlant
from ...simulation.plant import RigidPlant
from ...simulation.settings import SimulationSection
from ...simulation.simulate import simulate
from ...simulation.truth import rotors_and_friction

#: Largest difference between simulated and measured motion, root mean square over the motion's standard deviation.
FAITHFUL = 0.2
#: Longest step with springs [s]: Gauss collocation with one step per sample is accurate enough for instruments.
LONGEST = 5e-3


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """Simulates the robot along the references of some logs.

    Attributes:
        model: The dynamic model, its load-dependent terms fixed.
        logs: Prepared logs with ``position_target``.
        plausible: Returns the parameters theta, shape (p,), of a physically consistent robot for base parameters, shape (b,).
    """

    model: DynamicModel
    logs: Sequence[PreparedLog]
    settings: SimulationSection
    plausible: Callable[[Array], Array]

    def __post_init__(self) -> None:
        for log in self.logs:
            if log.report.recording.position_target is None:
                raise EstimationError(
                    "there is no reference to simulate",
                    where=log.name,
                    got="no position_target_<joint> columns",
                    expected="the positions that were commanded to the controller",
                    remedy="log them and name them in log.columns.position_target, describe the controller in "
                    "simulation.controller, or use method wls",
                )

            if any(segment.external is not None for segment in log.segments):
                raise EstimationError(
                    "a log with known external torques or a payload cannot be simulated",
                    where=log.name,
                    remedy="leave it out, or use method wls",
                )

    def __call__(self, params: Array) -> list[Recording]:
        """Simulates all logs.

        Args:
            params: Base parameters of the robot, shape (b,).

        Returns:
            One recording per log: the noise-free motion, evenly sampled.

        Raises:
            EstimationError: The controller diverges, or the simulated motion differs from that of the log.
        """
        model, theta = self.model, self.plausible(params)
        if isinstance(model, ElasticModel):
            try:
                plant: RigidPlant | ElasticPlant = elastic_plant(model, theta)
            except SimulationError as error:
                raise EstimationError(
                    "the identified robot cannot be simulated",
                    where=error.where,
                    got=f"{error.what}: {error.got}",
                    remedy="list the joint in elastic: {rigid: [...]}, record more acceleration, or use method wls",
                ) from error
        else:
            rotor, friction = rotors_and_friction(model, theta)
            plant = RigidPlant.create(model.robot, theta=theta[: model.n_inertial], rotor_inertia=rotor, friction=friction)
        return [self._simulated(plant, log) for log in self.logs]

    def _simulated(self, plant: RigidPlant | ElasticPlant, log: PreparedLog) -> Recording:
        robot, recording, rate, settings = self.model.robot, log.report.recording, log.conditioned.rate, self.settings
        time = recording.time - recording.time[0]
        target = np.asarray(recording.position_target)
        speed = np.gradient(target, time, axis=0)
        reference = sampled(robot.joints, time, target, speed, np.gradient(speed, time, axis=0))
        try:
            if isinstance(plant, ElasticPlant):  # starts on the reference, as measured noise would excite its springs
                law = motor_law(settings.controller, plant, robot, reference)
                step = max(settings.step, min(1.0 / rate, LONGEST))
                clean = simulate_elastic(plant, law, reference, rate=rate, step=step).truth
            else:
                clean = simulate(
                    plant,
                    settings.controller.build(robot, np.diag(plant.rotor).copy()),
                    reference,
                    rate=rate,
                    substeps=max(1, int(np.ceil(1.0 / (rate * settings.step) - 1e-9))),
                    control_rate=settings.controller.rate,
                    start=(recording.position[0], reference.evaluate([0.0])[1][0]),
                ).truth
        except SimulationError as error:
            raise EstimationError(
                "the controller does not keep the simulated robot on the log's reference",
                where=log.name,
                got=f"{error.what} ({error.where})",
                remedy="check simulation.controller: type, bandwidth [Hz] or kp and kd, rate",
            ) from error
        at = recording.time[0] + clean.time
        measured = np.vstack([segment.q for segment in log.segments])
        instants = np.concatenate([segment.time for segment in log.segments])
        apart = measured - np.column_stack([np.interp(instants, at, column) for column in clean.q.T])
        share = rms(apart, 0) / positive(measured.std(axis=0))
        moving = measured.std(axis=0) > 1e-3 * measured.std(axis=0).max()
        worst = int(np.argmax(np.where(moving, share, 0.0)))
        if moving[worst] and share[worst] > FAITHFUL:
            raise EstimationError(
                "the simulated motion is not that of the log",
                where=f"{log.name}, {robot.joints[worst]}",
                got=f"{100 * share[worst]:.3g} % of the motion apart",
                expected=f"at most {100 * FAITHFUL:g} %",
                remedy="check log.columns.position_target and simulation.controller (bandwidth, or kp and kd)",
            )
        seen = Recording(log.name, robot.joints, at, clean.q, velocity=clean.v, acceleration=clean.a)
        return replace(seen, motor_position=clean.qm, motor_velocity=clean.vm)
