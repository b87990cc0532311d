"""Logs of one robot that are examined together, and interpretations of their samples.

Each is evaluated by a fit of one rigid robot with free inertias to all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..grouping import batches, grouped
from ..linalg import Array, BoolArray, positive, rms, unit_columns, white_noise
from ..model.robot import Robot
from ..model.row_groups import Limb, limbs, of_all_joints
from ..samples import TESTING_REVERSALS, distinct_reversals, one_way
from .evidence import MATERIAL, RigidEvidence, gains
from .friction import DISSIPATES, VISCOUS, column_starts
from .interpretation import Interpretation
from .motion_samples import MotionSamples, sampler, travels
from .thinned_logs import Logs, thinned

#: Friction drives the joint if its mean power, over RMS torque times RMS velocity, is materially negative and by this many
#: jackknife standard errors over the folds; a joint's inertia is negative if its torque is, in the same way. Four errors of a
#: normal number are exceeded by chance once in 30 000 joints.
_ERRORS = 4.0
#: Largest memory of the Gram matrices that are kept: hundreds of motions are tried, most of them once [bytes].
_CACHE_BYTES = 2**25
#: Readings of the efforts that are solved for at a time: memory.
_AT_ONCE = 30
#: Penalty for a row whose friction drives it or whose inertia is negative, in the sum of the rows' log relative residuals.
PENALTY = 1.5
#: Minimum number of samples. Each gives one equation per joint, and each joint has about 13 unknowns: a fit to four of five
#: folds then has five times as many equations as unknowns. Whether the motion is long and reverses is asked elsewhere.
_FEWEST = 80
#: Relative deviation from a fixed ratio between the joints' motions below which the ratio counts as fixed.
_ALIKE = 0.02


def clearly_negative(part: Array) -> BoolArray:
    """Whether a part of the torques that physics makes positive is negative beyond the scatter between folds, shape (...).

    Args:
        part: Mean friction power over the product of RMS torque and RMS velocity, or the torque of a joint's inertia at its RMS
            acceleration over its RMS torque, of fits without one fold each, shape (F, ...).
    """
    mean, error = part.mean(axis=0), np.sqrt(len(part) - 1) * part.std(axis=0)
    return np.asarray((mean < -MATERIAL) & (mean < -_ERRORS * error))


class Score(NamedTuple):
    """Held-out residuals of an interpretation, of all joints or those of a limb.

    Attributes:
        left: Relative residual of each row, shape (n,).
        squares: Mean squared errors of each block over the row's squared effort, shape (B, n).
        size: Root mean square of each row's effort, shape (n,) [N·m or N].
        driven: Rows whose friction would drive them, shape (n,).
        reversed: Rows whose inertia would be negative, bodies and rotor together, shape (n,).
        moves: Joints that move, shape (n,).
    """

    left: Array
    squares: Array
    size: Array
    driven: BoolArray
    reversed: BoolArray
    moves: BoolArray

    @property
    def unexplained(self) -> float:
        """RMS relative residual of the joints that move."""
        return rms(self.left[self.moves])

    @property
    def impossible(self) -> BoolArray:
        """Rows that no robot has, whatever its masses: friction drives them or their inertia is negative, shape (n,)."""
        return np.asarray(self.driven | self.reversed)

    @property
    def score(self) -> float:
        """Lower is better."""
        return float(np.log(self.left).sum() + PENALTY * self.impossible.sum())

    def gains(self, corrected: Score) -> Array:
        """Gain of each block by a correction of the efforts, shape (B,); errors are compared over one size of the efforts."""
        return gains(self.squares, corrected.squares * (corrected.size / self.size) ** 2)


@dataclass(eq=False)
class Trials:
    """Samples of the logs of a robot, and their interpretations that were tried, with what several of them share.

    Attributes:
        robot: Kinematics and gravity; its inertias are not used.
        samples: With the efforts as logged, or corrected.
        late: Returns the efforts with a delay [s] removed, shape (N, n) [N·m or N].
    """

    robot: Robot
    samples: MotionSamples
    late: Callable[[float], Array]
    _evidence: dict[tuple[object, ...], RigidEvidence] = field(default_factory=dict)
    _of_limbs: dict[tuple[object, ...], Score] = field(default_factory=dict)
    _scores: dict[Interpretation, Score] = field(default_factory=dict)

    def with_more(self, efforts: Array) -> Trials:
        """Returns trials of the same samples, none made yet, with a correction added to the efforts.

        Args:
            efforts: Shape (N, n) [N·m or N].
        """
        samples = replace(self.samples, tau=self.samples.tau + efforts)
        return Trials(self.robot, samples, lambda delay: self.late(delay) + efforts)

    @cached_property
    def limbs(self) -> tuple[Limb, ...]:
        """The limbs of the robot, which only the clock, gravity and interpretations of their efforts have in common."""
        return limbs(self.robot, self.samples.reduction)

    @cached_property
    def moves(self) -> BoolArray:
        """Joints that travel with varying torque, shape (n,)."""
        return self.samples.moves

    @cached_property
    def moving(self) -> list[int]:
        """The same joints, in order."""
        return [int(j) for j in np.flatnonzero(self.moves)]

    @property
    def reached(self) -> Array:
        """Lowest and highest position of each joint, shape (2, n) [rad or m]."""
        return np.stack([self.samples.q.min(axis=0), self.samples.q.max(axis=0)])

    @cached_property
    def turns(self) -> float:
        """Median number of reversals of the moving joints.

        Repetitions of a motion count once: what a model does not explain is the same in each, and seems to be significant.
        """
        return float(np.median(distinct_reversals(self.samples.q, self.samples.v)[self.moves]))

    @property
    def scarcity(self) -> float:
        """Factor by which few reversals overstate significance: those needed over those there are, 1 if there are enough.

        Each leg between two reversals shows friction and gravity once, however many blocks of time it is cut into.
        """
        return max(1.0, TESTING_REVERSALS / max(self.turns, 1.0))

    @cached_property
    def as_logged(self) -> Score:
        """Score of the log as described."""
        return self.score(Interpretation.as_logged(self.robot.n))

    def testable(self, interpretation: Interpretation) -> bool:
        """Whether joints still travel without the motion of others that their positions would count in.

        Two joints that are moved alike do not: what is left of one explains nothing, and its rows would be no evidence.
        """
        if not interpretation.counted:
            return True
        moved = self._moved(interpretation)
        return bool(travels(moved.q[:, [j for j, _, _ in interpretation.counted]], moved.log).any(axis=0).all())

    def score(self, interpretation: Interpretation) -> Score:
        """Evaluates one interpretation."""
        return self.scores([interpretation])[0]

    def scores(self, interpretations: Sequence[Interpretation]) -> list[Score]:
        """Evaluates interpretations: rows of a limb that they read alike once, those with the same motion together."""
        new = [item for item in dict.fromkeys(interpretations) if item not in self._scores]
        for limb in self.limbs:
            some = {(item.motion(limb.joints), item.efforts(limb.joints)): item for item in new}
            missing = [(motion, item) for (motion, efforts), item in some.items() if (motion, efforts) not in self._of_limbs]
            for group in grouped(missing).values():
                for items in batches(group, _AT_ONCE, lambda _: 1):
                    self._score_motion(limb, items)
        for item in new:
            parts = [self._of_limbs[item.motion(limb.joints), item.efforts(limb.joints)] for limb in self.limbs]
            self._scores[item] = Score._make(of_all_joints(self.limbs, some) for some in zip(*parts, strict=True))
        return [self._scores[item] for item in interpretations]

    def _score_motion(self, limb: Limb, items: list[Interpretation]) -> None:
        """Evaluates readings of the efforts of a limb that have one motion."""
        evidence, joints = self.evidence(items[0], limb), list(limb.joints)
        moves, efforts, regression = self.moves[joints], evidence.read(items), evidence.regression
        size, (x, squares, left) = evidence.size_of(efforts), evidence.fit(efforts)
        # mean friction torque times velocity, and mean torque of the rotor in the direction of the acceleration, of each fit;
        # only the sum of a joint's and its motors' is known
        m, mean = regression.shared, regression.total / regression.count.sum()
        power, rotor = np.zeros_like(x[:, :, 0]), np.zeros_like(x[:, :, 0])
        for k in column_starts(x.shape[2] - m):
            own = slice(m + k + DISSIPATES.start, m + k + DISSIPATES.stop)
            power += np.sum(x[:, :, own] * mean[:, m + k + VISCOUS, own][None, :, :, None], axis=2) / size
            rotor += x[:, :, m + k] * mean[:, m + k, m + k][None, :, None] / size
        driven = clearly_negative(power) & self._separable[joints, None]
        inertia = evidence.inertia @ x[:, 0, :m] / size + rotor
        # smaller than what is unexplained, it may be friction that the laws do not describe
        negative = clearly_negative(inertia) & (inertia.mean(axis=0) < -left) & moves[:, None]
        for k, item in enumerate(items):
            rows, relative = np.where(moves, left[:, k], 1.0), squares[:, :, k] / size[:, k] ** 2
            found = Score(rows, relative, size[:, k], driven[:, k], negative[:, k], moves)
            self._of_limbs[item.motion(limb.joints), item.efforts(limb.joints)] = found

    @cached_property
    def _separable(self) -> BoolArray:
        """Moving joints whose friction is separable from weight, not slides that move one way, shape (n,)."""
        slides = self.robot.prismatic & [one_way(speed) for speed in self.samples.v.T]
        return np.asarray(self.moves & ~slides)

    def in_sample(self, interpretation: Interpretation) -> Array:
        """Relative residuals of the moving rows by a fit to all samples, shape (moving joints,)."""
        every = [self.evidence(interpretation, limb) for limb in self.limbs]
        left = [item.fit(item.read([interpretation]), held_out=False)[2][:, 0] for item in every]
        return of_all_joints(self.limbs, left)[self.moves]

    def fitted(self, interpretation: Interpretation) -> float:
        """Sum of the log relative residuals of the moving rows in the fit to all samples; lower is better."""
        return float(np.log(self.in_sample(interpretation)).sum())

    def evidence(self, interpretation: Interpretation, limb: Limb) -> RigidEvidence:
        """Returns the regression of an interpretation's motion of a limb; the last ones are kept."""
        known, key = self._evidence, interpretation.motion(limb.joints)
        if key not in known:
            gravity = interpretation.gravity
            robot = limb.robot if gravity is None else limb.robot.with_gravity(gravity)
            known[key] = RigidEvidence.of(limb, robot, self._moved(interpretation), interpretation.springs)
        known[key] = known.pop(key)
        while len(known) > 1 and sum(kept.nbytes for kept in known.values()) > _CACHE_BYTES:
            known.pop(next(iter(known)))
        return known[key]

    def _moved(self, interpretation: Interpretation) -> MotionSamples:
        delay = interpretation.delay
        samples = replace(self.samples, tau=self.late(delay)) if delay else self.samples
        order, sign = list(interpretation.position_order), np.array(interpretation.position_factor)
        stretch = interpretation.stretch
        q = samples.q[:, order] * sign + np.array(interpretation.zero)
        v, a, signs = (
            samples.v[:, order] * sign / stretch,
            samples.a[:, order] * sign / stretch**2,
            samples.signs[:, order] * sign[:, None],
        )
        turned = np.eye(len(sign))[order] * sign[:, None]
        for j, i, sense in interpretation.counted:
            for x in (q.T, v.T, a.T, turned):
                x[j] -= sense * x[i]
        whole = replace(samples.whole, turned=turned)
        moved = replace(samples.with_motion(q, v, a, signs), travels=samples.travels[:, order], whole=whole)
        for j, _, _ in interpretation.counted:
            signs[:, j] = moved.signs_along(np.eye(len(sign))[j])
        return moved


@dataclass(frozen=True, eq=False)
class LogGroup:
    """Logs of one robot that are examined together.

    Attributes:
        robot: Kinematics and gravity; its inertias are not used.
        logs: Conditioned motion with measured torque of each log, and the cut-off of its positions [Hz].
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.
    """

    robot: Robot
    logs: Logs
    reduction: Array | None = None

    @property
    def seconds(self) -> float:
        """Duration of the motion in all logs [s]."""
        return sum(part.repeats * len(part) / part.rate for parts, _ in self.logs for part in parts)

    @property
    def noise(self) -> float:
        """White noise of the noisiest effort, over its standard deviation, median over the logs."""
        efforts = [part.tau for parts, _ in self.logs for part in parts if part.tau is not None]
        of_logs = [white_noise(tau) / positive(tau.std(axis=0)) for tau in efforts]
        return float(np.median(of_logs, axis=0).max()) if of_logs else np.inf

    def some(self, indices: Sequence[int]) -> LogGroup:
        """Returns the group of some of the logs, by their positions in this one."""
        return replace(self, logs=[self.logs[k] for k in indices])

    @property
    def usable(self) -> list[int]:
        """Logs that can be sampled alone."""
        found = []
        for k, log in enumerate(self.logs):
            if pieces := thinned([log]):
                q, v, tau = (np.concatenate([getattr(item.part, x)[item.rows] for item in pieces]) for x in ("q", "v", "total"))
                moves = travels(q, np.zeros(len(q), dtype=np.int64)).any(axis=0) & (np.ptp(tau, axis=0) > 0)
                found += [k] if _examinable(v, moves) else []
        return found

    def trials(self) -> Trials | None:
        """Samples the logs; None if there are too few, no joint moves with varying torque, or all joints move alike."""
        sampled = sampler(self.logs, reduction=self.reduction)
        first = None if sampled is None else sampled(0.0)
        if sampled is None or first is None or not _examinable(first.v, first.moves):
            return None
        return Trials(self.robot, first, lambda delay: sampled(delay).tau)


def _examinable(v: Array, moves: BoolArray) -> bool:
    """Whether there are enough samples in which joints move, and not all in a fixed ratio."""
    if len(v) < _FEWEST or not moves.any():
        return False
    spread = np.linalg.svd(unit_columns(v[:, moves]), compute_uv=False)
    return len(spread) == 1 or bool(spread[1] >= _ALIKE * spread[0])
