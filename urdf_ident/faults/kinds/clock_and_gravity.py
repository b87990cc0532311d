"""Faults of the whole log: its clock, the direction of gravity, efforts without gravity, and a spring to the last link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...judgements.catalogue import Id
from ...judgements.judgement import Judgement, Remedy
from ...linalg import Array, positive
from ...model.robot import STANDARD_GRAVITY, Robot
from ...units import percent
from ..interpretation import Interpretation
from ..linearized import LinearizedCase
from ..trials import Score, Trials
from .families import FaultFamily
from .kind import FaultKind, Hypothesis, both, signed

#: Candidate numbers of real seconds per second of the log, and the least one.
STRETCHES, _LEAST_STRETCH = both(1.25, 2.0, 4.0), 0.02
#: Candidate tilts of gravity towards an axis [rad]; the small ones are for a base on an uneven floor.
_TILTS = signed(0.03, 0.1)
#: Shares of gravity that the efforts may hold instead of all.
_SHARES = both(1.25, 2.0)
_SIDES = np.vstack([np.eye(3), -np.eye(3)])
#: Factor between the part of gravity that is missing or added and all of it up to which it may be all.
_WHOLE = 1.25


class TimeScale(FaultKind):
    """The clock is wrong by a factor, or all lengths in the URDF are.

    Size: the true duration of a logged second [s], 1 without the fault.
    """

    id = Id.TIME_SCALE
    tries = STRETCHES
    step = 0.2
    faultless = 1.0

    def hypotheses(self, trials: Trials, at: Interpretation, poor: bool) -> Iterator[Hypothesis]:
        for by in self.tries:
            yield Hypothesis(self.id, (), replace(at, stretch=at.stretch * by), small=True)

    def corrected(self, at: Interpretation, joints: Sequence[int], by: float) -> Interpretation:
        return replace(at, stretch=max(at.stretch + by, _LEAST_STRETCH))

    def size(self, robot: Robot, hypothesis: Hypothesis) -> float:
        return hypothesis.interpretation.stretch

    def shown(self, size: float, unit: str = "rad") -> str:
        return f"{size:.4g}"

    def remedy(self, joints: Sequence[str], size: float | None = None) -> Remedy:
        if not size:
            return super().remedy(joints)
        return Remedy(f"{self.id.entry.remedy}: {{settings}}; {self.rather(size)}", {"log.rate": {"multiply": 1 / size}})

    def rather(self, size: float) -> str:
        """What else a size may be: motion determines only gravity times time squared over length (Froude number)."""
        gravity = f", or the efforts contain only {100 * size**2:.3g} % of the gravity torque" if size < 1 else ""
        return f"if the clock is right, the URDF's lengths are {size**2:.3g} times those of the robot{gravity}"

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        samples = at.samples  # with seconds longer by a part c, velocities are smaller by c of them, accelerations by 2 c
        none = np.zeros(len(samples))
        slower = [at.torque_by(j, none, -samples.v[:, j], -2 * samples.a[:, j]) for j in at.moving]
        yield FaultFamily(self.id, (), np.sum(slower, axis=0)[:, :, None], unit=-1.0, throughout=False)  # else a hypothesis


class GravityDirection(FaultKind):
    """Gravity has another direction than the URDF's base has it.

    Size: the angle between the two [°], positive.
    """

    id = Id.GRAVITY_DIRECTION
    step = 0.2

    def nearby(self, found: Hypothesis, step: float) -> list[Hypothesis]:
        """Tilts by an angle [rad] to four sides."""
        gravity = np.asarray(found.interpretation.gravity)
        tilts = [sign * step * side for side in np.linalg.svd(gravity[None, :])[2][1:] for sign in (-1.0, 1.0)]
        return [self.along(found.interpretation, tilted(gravity, tilt), small=found.small) for tilt in tilts]

    def hypotheses(self, trials: Trials, at: Interpretation, poor: bool) -> Iterator[Hypothesis]:
        gravity = np.asarray(trials.robot.gravity if at.gravity is None else at.gravity, dtype=float)
        size = float(np.linalg.norm(gravity))
        down = gravity / positive(size)
        for side in _SIDES:
            if float(side @ down) < 0.99:  # another side of the base, or any if the robot has no gravity
                yield self.along(at, (size or -STANDARD_GRAVITY[2]) * side)
        for axis in np.linalg.svd(down[None, :])[2][1:] if size else ():
            for tilt in _TILTS:
                yield self.along(at, tilted(gravity, tilt * axis), small=True)

    def along(self, at: Interpretation, gravity: Array, *, small: bool = False) -> Hypothesis:
        """Returns the hypothesis of another gravity, shape (3,) [m/s²]."""
        return Hypothesis(self.id, (), replace(at, gravity=_vector(gravity)), small)

    def size(self, robot: Robot, hypothesis: Hypothesis) -> float:
        new, old = np.asarray(hypothesis.interpretation.gravity), robot.gravity
        cosine = float(new @ old) / positive(float(np.linalg.norm(new) * np.linalg.norm(old)))
        return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))

    def found(self, robot: Robot, hypothesis: Hypothesis, before: Score) -> Judgement:
        gravity = np.asarray(hypothesis.interpretation.gravity)
        shown = f"[{', '.join(f'{value:.4g}' for value in gravity)}]"
        return Judgement(self.id, self.id.entry.message.format(size=shown), mounted(gravity), size=self.size(robot, hypothesis))

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        yield FaultFamily(self.id, (), at.gravities, only_competes=True)


class EffortWithoutGravity(FaultKind):
    """The efforts do not contain gravity, or only a part of it, or a part in addition.

    Size: the missing part of the gravity torque [1], negative if the part is there in addition.
    """

    id = Id.EFFORT_WITHOUT_GRAVITY
    step = 0.2

    def hypotheses(self, trials: Trials, at: Interpretation, poor: bool) -> Iterator[Hypothesis]:
        if np.any(trials.robot.gravity if at.gravity is None else at.gravity):
            yield Hypothesis(self.id, (), replace(at, gravity=(0.0, 0.0, 0.0)))

    def parts(self, robot: Robot, at: Interpretation) -> list[Hypothesis]:
        """Parts of gravity that are missing, or there in addition; free bodies absorb them."""
        return [Hypothesis(self.id, (), replace(at, gravity=_vector(share * robot.gravity)), small=True) for share in _SHARES]

    def nearby(self, found: Hypothesis, step: float) -> list[Hypothesis]:
        """The same with a somewhat larger and smaller part; all of it stays all."""
        gravity = np.asarray(found.interpretation.gravity)
        parts = (1 + step, 1 - step) if found.small else (1.0,)
        return [replace(found, interpretation=replace(found.interpretation, gravity=_vector(part * gravity))) for part in parts]

    def size(self, robot: Robot, hypothesis: Hypothesis) -> float:
        return 1 - float(np.asarray(hypothesis.interpretation.gravity) @ robot.gravity) / float(robot.gravity @ robot.gravity)

    def shown(self, size: float, unit: str = "rad") -> str:
        return f"{percent(100 * (1 - size))} %"

    def found(self, robot: Robot, hypothesis: Hypothesis, before: Score) -> Judgement:
        words = f"{self.id.entry.remedy}; if there is none, {{settings}}"
        return Judgement(self.id, self.id.entry.message.format(size=""), Remedy(words, {"robot.gravity": [0.0, 0.0, 0.0]}))

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        if at.weight.any():
            yield FaultFamily(self.id, (), at.weight[:, :, None])

    def tested(self, robot: Robot, family: FaultFamily, size: float, everywhere: bool) -> Judgement:
        subtract = "log the measured joint torque, or subtract the gravity torque that the controller added"
        action = self.id.entry.remedy if size > 0 else subtract
        whole = 1 / _WHOLE < abs(size) < _WHOLE
        shown = "" if whole else f"about {percent(100 * abs(size))} % of "
        message = self.id.entry.message if size > 0 else "the efforts contain {size}the gravity torque of the URDF in addition"
        alike = "a clock, or lengths of the URDF, wrong by a factor, or another direction of gravity, would look the same"
        return Judgement(
            self.id,
            message.format(size=shown),
            Remedy(action if whole else f"{action}; {alike}"),
            "refused" if whole else "warning",
            size=None if whole else size,
            candidates=() if whole else (Id.TIME_SCALE, Id.GRAVITY_DIRECTION),
        )


class ContactSpring(FaultKind):
    """A spring, a hose or a constant force pulls the last link: several columns, so that its size is not told."""

    id = Id.CONTACT_SPRING

    def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
        yield FaultFamily(self.id, (), at.pulls)


def _vector(gravity: Array) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in gravity + 0.0)  # no negative zeros
    return x, y, z


def mounted(gravity: Array) -> Remedy:
    """Returns the setting of another direction of gravity.

    Args:
        gravity: Shape (3,) [m/s²].
    """
    settings = {"robot.gravity": [float(value) for value in gravity + 0.0]}
    return Remedy("if the robot is mounted that way, set it in the project file: {settings}", settings)


def tilted(gravity: Array, tilt: Array) -> Array:
    """Rotates gravity towards a perpendicular direction.

    Args:
        gravity: Shape (3,) [m/s²].
        tilt: The direction times the angle, shape (3,) [rad].
    """
    angle = float(np.linalg.norm(tilt))
    return np.asarray(np.cos(angle) * gravity + float(np.linalg.norm(gravity)) * np.sinc(angle / np.pi) * tilt)
