"""What a log may really mean: its efforts, positions, clock and gravity read in another way, compared by held-out evidence.

A reading is tried by fitting one rigid robot to all rows at once (:mod:`evidence`). It replaces the log's own description only
if it explains decisively more, in most blocks of time, and if no other cause explains about as much; friction that would have to
drive a joint counts against a reading. Faults are found one after the other, so that several at once are found too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array
from ...model.engine.pinocchio import regressor
from ...model.prior import lumped_inertials
from ...model.robot import Robot
from .evidence import EXACT, Evidence, Motion, gather, held_out, readings, significance, unexplained, usual_parts

#: Gain in the sum of the logarithms of the rows' unexplained parts above which a reading replaces another, above which it is
#: worth saying, and the part of it within which another cause is a rival.
DECISIVE, DOUBTFUL, RIVAL = 0.35, 0.15, 0.3
#: Gain over its standard error between blocks.
SIGNIFICANT = 3.5
#: Mean friction power, over the rms torque times the rms velocity, and its errors, below which friction drives the joint.
DRIVES, DRIVES_ERRORS = -0.05, 5.0
#: What a row whose friction drives it counts, in the same sum.
PENALTY = 1.5
#: By how much the URDF's inertias must explain one of two rivals better to decide between them.
TIE = 0.15
#: A doubt with this gain does not end the search: something is wrong, whichever it is.
GO_ON = 1.0
#: At least one row worse than this makes readings worth trying that sound logs never need.
POOR = 0.25
_ROUNDS = 8
_ZEROS = (-np.pi / 2, -0.4, 0.4, np.pi / 2, np.pi)
_STRETCHES = (0.25, 0.5, 0.8, 1.25, 2.0, 4.0)
_GAINS = (0.1, 0.5, 0.75, 1.33, 2.0, 10.0)
#: Gain below which a delay is not worth a word, and how many joints of one cause are looked at closely.
_LATE, _OF_ONE_KIND = 0.3, 3
_DELAYS = (-0.03, 0.015, 0.03, 0.06)
_SIDES = np.vstack([np.eye(3), -np.eye(3)])
_STANDARD = 9.81


@dataclass(frozen=True)
class Reading:
    """How a log is read.

    Attributes:
        order: ``order[i]``: the effort column of joint i.
        gain: Factors of the efforts, by joint.
        sign: Signs of the positions, by joint.
        places: ``places[i]``: the position column of joint i.
        zero: Added to the positions [rad or m], by joint.
        gravity: Along the base's axes [m/s²]; as described if None.
        stretch: Real seconds for one second of the log.
        delay: Of the efforts against the positions [s].
    """

    order: tuple[int, ...]
    gain: tuple[float, ...]
    sign: tuple[float, ...]
    places: tuple[int, ...]
    zero: tuple[float, ...]
    gravity: tuple[float, float, float] | None = None
    stretch: float = 1.0
    delay: float = 0.0

    @classmethod
    def as_logged(cls, n: int) -> Reading:
        """The log as it is described.

        Args:
            n: Number of joints.

        Returns:
            The reading that changes nothing.
        """
        same, ones = tuple(range(n)), (1.0,) * n
        return cls(same, ones, ones, same, (0.0,) * n)

    def motion(self) -> tuple[object, ...]:
        """What of it changes the regressor or the samples."""
        return (self.sign, self.places, self.zero, self.gravity, self.stretch, self.delay)

    def efforts(self) -> Array:
        """Coefficients of the (row, effort) pairs, shape (n²,)."""
        return readings(len(self.order), self.order, np.array(self.gain))


@dataclass(frozen=True)
class Hypothesis:
    """One cause: its id, joints, size in words' unit, and the reading it leads to."""

    id: str
    joints: tuple[int, ...]
    size: float
    reading: Reading


@dataclass(frozen=True, eq=False)
class Judgement:
    """A reading and what it leaves.

    Attributes:
        left: Unexplained part of each row, shape (n,).
        squares: Its squared errors over the row's effort squared, shape (B, n).
        driven: Rows whose friction would drive them, shape (n,).
        theta: Inertial parameters of each fold, shape (F, m).
        power: Mean friction power of each row, shape (n,).
    """

    left: Array
    squares: Array
    driven: NDArray[np.bool_]
    theta: Array
    power: Array

    @property
    def score(self) -> float:
        """Lower is better."""
        return float(np.log(self.left).sum() + PENALTY * self.driven.sum())


@dataclass(frozen=True, eq=False)
class Step:
    """One fault that was found, or the doubt that ends the search.

    Attributes:
        found: What explains the log best.
        gain: By how much better than the reading before.
        errors: That gain over its standard error between blocks.
        rivals: Other causes that explain about as much, best first.
        before, after: The judgements.
        decided: Whether it is named; otherwise it and its rivals are a doubt.
    """

    found: Hypothesis
    gain: float
    errors: float
    rivals: tuple[Hypothesis, ...]
    before: Judgement
    after: Judgement
    decided: bool

    @property
    def certainty(self) -> float:
        """Share of this cause among itself and its rivals, the log as described among them, by their likelihood."""
        return float(1.0 / (1.0 + len(self.rivals) + np.exp(-4.0 * self.gain)))


@dataclass(eq=False)
class Case:
    """A robot and samples of its logs, with the regressors made so far.

    Attributes:
        robot: Kinematics and gravity.
        sampled: Gives the samples with the efforts' delay [s] taken out.
        moves: Joints that move, shape (n,).
    """

    robot: Robot
    sampled: Callable[[float], Motion]
    moves: NDArray[np.bool_]
    _inertial: dict[tuple[object, ...], Array] = field(default_factory=dict)
    _evidence: dict[tuple[object, ...], tuple[Evidence, Array]] = field(default_factory=dict)
    _judged: dict[Reading, Judgement] = field(default_factory=dict)

    def judge(self, reading: Reading) -> Judgement:
        """Tries one reading.

        Args:
            reading: The reading.

        Returns:
            What it leaves.
        """
        self.judge_all([reading])
        return self._judged[reading]

    def judge_all(self, candidates: list[Reading]) -> list[Judgement]:
        """Tries readings; those of one motion together.

        Args:
            candidates: The readings.

        Returns:
            What they leave, in the same order.
        """
        groups: dict[tuple[object, ...], list[Reading]] = {}
        for item in candidates:
            if item not in self._judged:
                groups.setdefault(item.motion(), []).append(item)
        for group in groups.values():
            found, usual = self._gathered(group[0])
            alike: dict[tuple[object, ...], list[Reading]] = {}
            for item in group:  # what differs only in signs has the same weights, hence one solution
                alike.setdefault((item.order, tuple(abs(g) for g in item.gain)), []).append(item)
            for items in alike.values():
                self._judge_alike(found, usual, items)
        return [self._judged[item] for item in candidates]

    def _judge_alike(self, found: Evidence, usual: Array, items: list[Reading]) -> None:
        R = np.stack([item.efforts() for item in items], axis=1)
        size = np.abs(R).reshape(found.n, found.n, -1).transpose(0, 2, 1) @ found.size
        errors = held_out(found, R, 1.0 / (usual * size[:, 0]) ** 2)
        part = unexplained(found, errors.squares, R)
        mean, spread = errors.power.mean(axis=0), errors.power.std(axis=0)
        driven = (mean < DRIVES) & (mean < -DRIVES_ERRORS * spread / np.sqrt(len(errors.power))) & self.moves[:, None]
        for k, item in enumerate(items):
            squares = errors.squares[:, :, k] / size[:, k] ** 2 / found.count[:, None]
            left = np.where(self.moves, part[:, k], 1.0)
            self._judged[item] = Judgement(left, squares, driven[:, k], errors.theta[:, :, k], mean[:, k])

    def evidence(self, reading: Reading) -> Evidence:
        """Gram matrices of a reading.

        Args:
            reading: How the log is read.

        Returns:
            The evidence.
        """
        return self._gathered(reading)[0]

    def with_urdf(self, reading: Reading) -> float:
        """How well the URDF's own inertias explain the efforts, beside free friction: a tie-breaker, no evidence.

        Args:
            reading: How the log is read.

        Returns:
            Sum of the logarithms of the rows' unexplained parts; lower is better.
        """
        found, _ = self._gathered(reading)
        n, m = found.n, found.inertial
        p = found.gram.shape[2] - n
        theta = (lumped_inertials(self.robot).ravel()[found.active]) * found.scale
        total, efforts, score = found.gram.sum(axis=0), reading.efforts().reshape(n, n), 0.0
        for i in np.flatnonzero(self.moves):
            x = np.concatenate([-theta, np.zeros(p - m), efforts[i]])
            G = total[i]
            x[m:p] = -np.linalg.lstsq(G[m:p, m:p], G[m:p] @ x, rcond=1e-9)[0]
            size = float(np.abs(efforts[i]) @ found.size) ** 2 * float(found.count.sum())
            score += 0.5 * float(np.log(max(float(x @ G @ x) / size, EXACT**2)))
        return score

    def inertial_parameters(self, reading: Reading) -> Array:
        """Mean of the folds' inertial parameters, in the regressor's units.

        Args:
            reading: How the log is read.

        Returns:
            Shape (10 n,); those that never act are zero.
        """
        found, _ = self._gathered(reading)
        theta = np.zeros(len(found.active))
        theta[found.active] = self.judge(reading).theta.mean(axis=0) / found.scale
        return theta

    def _gathered(self, reading: Reading) -> tuple[Evidence, Array]:
        key = reading.motion()
        if key not in self._evidence:
            found = gather(self._moved(reading), self._regressor(reading))
            self._evidence[key] = found, usual_parts(found)
        return self._evidence[key]

    def _moved(self, reading: Reading) -> Motion:
        samples = self.sampled(reading.delay)
        places, sign = list(reading.places), np.array(reading.sign)
        s = reading.stretch
        q = samples.q[:, places] * sign + np.array(reading.zero)
        return samples.with_motion(q, samples.v[:, places] * sign / s, samples.a[:, places] * sign / s**2)

    def _regressor(self, reading: Reading) -> Array:
        """Linear in gravity, and in one over the square of the stretch."""
        base = replace(reading, gravity=None, stretch=1.0, delay=0.0)
        if reading.gravity is None and reading.stretch == 1.0:
            return self._part(base, "all")
        still = self._part(base, "still")
        gravity = still if reading.gravity is None else sum(
            g * self._part(base, f"side {k}") for k, g in enumerate(reading.gravity) if g
        )
        return np.asarray(gravity + (self._part(base, "all") - still) / reading.stretch**2)

    def _part(self, base: Reading, what: str) -> Array:
        key = (*base.motion(), what)
        if key not in self._inertial:
            moved = self._moved(base)
            zero = np.zeros_like(moved.q)
            if what == "all":
                value = regressor(self.robot, moved.q, moved.v, moved.a)
            else:
                robot = self.robot if what == "still" else self.robot.with_gravity(np.eye(3)[int(what[-1])])
                value = regressor(robot, moved.q, zero, zero)
            self._inertial[key] = value
        return self._inertial[key]


def search(case: Case) -> tuple[Reading, list[Step]]:
    """Finds what is wrong with a log, one fault after the other.

    Args:
        case: The robot and the samples.

    Returns:
        The reading that explains the log, and the steps that lead to it; the last one may be a doubt.
    """
    reading, steps = Reading.as_logged(case.robot.n), []
    for _ in range(_ROUNDS):
        step = best_step(case, reading)
        if step is None:
            break
        steps.append(step)
        if not step.decided and step.gain < GO_ON:
            break
        reading = step.found.reading
    return reading, steps


def best_step(case: Case, reading: Reading) -> Step | None:
    """The best single change of a reading.

    Args:
        case: The robot and the samples.
        reading: The present one.

    Returns:
        The step, or None where no other reading is worth a word.
    """
    before = case.judge(reading)
    found = list(candidates(case, reading, poor=bool(before.left.max() > POOR or before.driven.any())))
    judged = case.judge_all([item.reading for item in found])
    tried = sorted(zip(found, judged, strict=True), key=lambda pair: pair[1].score)
    if not tried or before.score - tried[0][1].score < DOUBTFUL:
        return None
    best = sorted((_sharpened(case, *pair) for pair in _different(tried, before.score)), key=lambda pair: pair[1].score)
    (winner, after), others = best[0], best[1:]
    gain, errors = before.score - after.score, _errors(before, after)
    if errors < SIGNIFICANT or (gain < _LATE and winner.id == "effort-delay"):
        return None
    rivals = tuple(item for item, judgement in others if judgement.score < after.score + max(RIVAL * gain, DOUBTFUL))
    if rivals:
        group = (winner, *rivals)
        priors = np.array([case.with_urdf(item.reading) for item in group])
        first, second = np.argsort(priors)[:2]
        if priors[first] < priors[second] - TIE:
            winner, rivals = group[first], ()
            after = case.judge(winner.reading)
    return Step(winner, gain, errors, rivals, before, after, gain > DECISIVE and not rivals)


def _different(tried: list[tuple[Hypothesis, Judgement]], before: float) -> list[tuple[Hypothesis, Judgement]]:
    """The best reading of each cause that explains at least a part of what the best one does."""
    limit = before - 0.3 * (before - tried[0][1].score)
    seen: dict[tuple[str, tuple[int, ...]], tuple[Hypothesis, Judgement]] = {}
    for found, judgement in tried:
        if judgement.score < limit:
            seen.setdefault((found.id, found.joints), (found, judgement))
    kept, count = [], dict[str, int]()
    for pair in seen.values():
        count[pair[0].id] = count.get(pair[0].id, 0) + 1
        if count[pair[0].id] <= _OF_ONE_KIND:
            kept.append(pair)
    return kept


def _errors(before: Judgement, after: Judgement) -> float:
    """Gain between blocks over its standard error; rows that friction would drive count as certain."""
    if before.driven.sum() > after.driven.sum():
        return np.inf
    return significance(before.squares, after.squares)


def _sharpened(case: Case, found: Hypothesis, judged: Judgement) -> tuple[Hypothesis, Judgement]:
    """The size that explains most, by halving steps around the one that was tried."""
    if found.id == "gravity-direction":
        return _sharpened_gravity(case, found, judged)
    vary = _SIZES.get(found.id)
    if vary is None:
        return found, judged
    step = vary.step
    for _ in range(6):
        tries = [vary.make(found, found.size + step), vary.make(found, found.size - step)]
        results = case.judge_all([item.reading for item in tries])
        k = int(np.argmin([item.score for item in results]))
        if results[k].score < judged.score:
            found, judged = tries[k], results[k]
        else:
            step /= 2
    return found, judged


def _sharpened_gravity(case: Case, found: Hypothesis, judged: Judgement) -> tuple[Hypothesis, Judgement]:
    step = 0.2
    while step > 0.005:
        gravity = np.asarray(found.reading.gravity)
        size = float(np.linalg.norm(gravity))
        sides = np.linalg.svd(gravity[None, :])[2][1:]
        tries = [replace(found, reading=replace(found.reading, gravity=_three(np.cos(step) * gravity + np.sin(step) * size * way * side)))
                 for side in sides for way in (-1.0, 1.0)]  # fmt: skip
        results = case.judge_all([item.reading for item in tries])
        k = int(np.argmin([item.score for item in results]))
        if results[k].score < judged.score - 1e-3:
            found, judged = tries[k], results[k]
        else:
            step /= 2
    return found, judged


@dataclass(frozen=True)
class _Size:
    step: float
    make: Callable[[Hypothesis, float], Hypothesis]


def _with_zero(found: Hypothesis, size: float) -> Hypothesis:
    return replace(found, size=size, reading=replace(found.reading, zero=_put(found.reading.zero, found.joints[0], size)))


def _with_stretch(found: Hypothesis, size: float) -> Hypothesis:
    return replace(found, size=size, reading=replace(found.reading, stretch=max(size, 0.02)))


def _with_gain(found: Hypothesis, size: float) -> Hypothesis:
    gain, j = found.reading.gain, found.joints[0]
    return replace(found, size=size, reading=replace(found.reading, gain=_put(gain, j, float(np.sign(gain[j]) * np.exp(size)))))


def _with_delay(found: Hypothesis, size: float) -> Hypothesis:
    return replace(found, size=size, reading=replace(found.reading, delay=size))


_SIZES = {
    "position-zero": _Size(0.2, _with_zero),
    "time-scale": _Size(0.2, _with_stretch),
    "effort-scale": _Size(0.2, _with_gain),
    "effort-delay": _Size(0.01, _with_delay),
}


def _put(values: tuple[float, ...], j: int, value: float) -> tuple[float, ...]:
    return (*values[:j], float(value), *values[j + 1 :])


def _exchange(values: tuple[int, ...], i: int, j: int) -> tuple[int, ...]:
    out = list(values)
    out[i], out[j] = out[j], out[i]
    return tuple(out)


def candidates(case: Case, reading: Reading, *, poor: bool) -> Iterator[Hypothesis]:
    """Single changes of a reading.

    Args:
        case: The robot and the samples.
        reading: The present one.
        poor: Whether to try also what sound logs never need.

    Yields:
        The hypotheses.
    """
    joints = [int(j) for j in np.flatnonzero(case.moves)]
    everyone = tuple(range(case.robot.n))
    yield Hypothesis("effort-sign", everyone, -1.0, replace(reading, gain=tuple(-g for g in reading.gain)))
    for j in joints:
        turned = _put(reading.gain, j, -reading.gain[j])
        mirrored = _put(reading.sign, j, -reading.sign[j])
        yield Hypothesis("effort-sign", (j,), -1.0, replace(reading, gain=turned))
        yield Hypothesis("position-sign", (j,), -1.0, replace(reading, sign=mirrored))
        yield Hypothesis("axis-sign", (j,), -1.0, replace(reading, sign=mirrored, gain=turned))
        for factor in _GAINS:
            scaled = factor * reading.gain[j]
            yield Hypothesis("effort-scale", (j,), float(np.log(abs(scaled))), replace(reading, gain=_put(reading.gain, j, scaled)))
        if _zero_matters(case.robot, j):
            for zero in _ZEROS:
                size = reading.zero[j] + zero
                yield Hypothesis("position-zero", (j,), size, replace(reading, zero=_put(reading.zero, j, size)))
    for i, j in combinations(joints, 2):
        yield Hypothesis("joints-exchanged", (i, j), 0.0, replace(reading, order=_exchange(reading.order, i, j)))
        if (poor or j == i + 1) and case.robot.prismatic[i] == case.robot.prismatic[j]:
            places = _exchange(reading.places, i, j)
            yield Hypothesis("joints-exchanged", (i, j), 1.0, replace(reading, places=places))
            both = replace(reading, places=places, order=_exchange(reading.order, i, j))
            yield Hypothesis("joints-exchanged", (i, j), 2.0, both)
    for stretch in _STRETCHES:
        yield Hypothesis("time-scale", (), reading.stretch * stretch, replace(reading, stretch=reading.stretch * stretch))
    for delay in _DELAYS:
        yield Hypothesis("effort-delay", (), reading.delay + delay, replace(reading, delay=reading.delay + delay))
    yield from _gravities(case, reading)


def _gravities(case: Case, reading: Reading) -> Iterator[Hypothesis]:
    gravity = np.asarray(case.robot.model.gravity.linear if reading.gravity is None else reading.gravity, dtype=float)
    size = float(np.linalg.norm(gravity))
    if size == 0.0:
        for side in _SIDES:
            yield Hypothesis("gravity-direction", (), 0.0, replace(reading, gravity=_three(_STANDARD * side)))
        return
    down = gravity / size
    for side in _SIDES:
        if float(side @ down) < 0.99:
            yield Hypothesis("gravity-direction", (), 0.0, replace(reading, gravity=_three(size * side)))
    for axis in np.linalg.svd(down[None, :])[2][1:]:
        for tilt in (-0.1, 0.1):
            leant = size * (np.cos(tilt) * down + np.sin(tilt) * axis)
            yield Hypothesis("gravity-direction", (), tilt, replace(reading, gravity=_three(leant)))
    yield Hypothesis("effort-without-gravity", (), 0.0, replace(reading, gravity=(0.0, 0.0, 0.0)))


def _zero_matters(robot: Robot, j: int) -> bool:
    """Whether another zero of a joint is more than a rotation of the last body, or of the whole robot about gravity."""
    if robot.prismatic[j] or len(robot.subtrees[j]) == 1:
        return False
    root = int(robot.model.parents[j + 1]) == 0
    axis = robot.model.jointPlacements[j + 1].rotation @ _axis(robot, j)
    gravity = np.asarray(robot.model.gravity.linear)
    return not (root and np.linalg.norm(np.cross(axis, gravity)) < 1e-3 * np.linalg.norm(gravity))


def _axis(robot: Robot, j: int) -> Array:
    """Axis of a joint in its own frame, shape (3,)."""
    import pinocchio as pin

    data = robot.model.createData()
    q = pin.neutral(robot.model)
    pin.computeJointJacobians(robot.model, data, q)
    return np.asarray(pin.getJointJacobian(robot.model, data, j + 1, pin.LOCAL)[3:, robot.model.joints[j + 1].idx_v])


def _three(vector: Array) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in vector + 0.0)
    return x, y, z
