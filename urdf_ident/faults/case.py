"""A robot and samples of its logs, on which interpretations of the logs are evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np

from ..grouping import grouped
from ..linalg import Array, BoolArray, IntArray, lstsq, rms
from ..model.prior import lumped_inertials
from ..model.rigid_bodies import regressor
from ..model.robot import Robot
from ..model.spanning import spanning_anywhere
from ..samples import distinct_reversals, one_way
from .candidates import Interpretation
from .evidence import RigidEvidence, held_out, in_sample, scarcity, unexplained
from .grams import EXACT
from .motion_samples import MotionSamples, travels

T = TypeVar("T")

#: Friction drives the joint if its mean power, over RMS torque times RMS velocity, is below the first value and negative by
#: this many jackknife standard errors over the folds; a joint's inertia is negative if its torque is, in the same way. Four
#: errors of a normal number are exceeded by chance once in 30 000 joints.
NEGATIVE, NEGATIVE_ERRORS = -0.05, 4.0
#: Number of motions whose regressors and Gram matrices are cached: hundreds are tried, most of them once.
_KEPT = 12
#: Ratio of squared residuals without bodies and with free ones above which the torques show bodies.
_BODIES = 2.0
#: Poses at which the inertia of each joint is computed.
_POSES = 12
#: Penalty for a row whose friction drives it or whose inertia is negative, in the sum of the rows' log relative residuals.
PENALTY = 1.5


def clearly_negative(part: Array) -> BoolArray:
    """Whether a part of the torques that physics makes positive is negative beyond the scatter between folds, shape (...).

    Args:
        part: Mean friction power over the product of RMS torque and RMS velocity, or the torque of a joint's inertia at its RMS
            acceleration over its RMS torque, of fits without one fold each, shape (F, ...).
    """
    mean, error = part.mean(axis=0), np.sqrt(len(part) - 1) * part.std(axis=0)
    return np.asarray((mean < NEGATIVE) & (mean < -NEGATIVE_ERRORS * error))


@dataclass(frozen=True, eq=False)
class InterpretationScore:
    """Residuals and score of an interpretation.

    Attributes:
        left: Relative residual of each row, shape (n,).
        squares: Squared errors over the row's squared effort, shape (B, n).
        driven: Rows whose friction would drive them, shape (n,).
        reversed: Rows whose inertia would be negative, bodies and rotor together, shape (n,).
        theta: Inertial parameters of each fold, shape (F, m).
        power: Mean friction power of each row, shape (n,).
        moves: Joints that move, shape (n,).
    """

    left: Array
    squares: Array
    driven: BoolArray
    reversed: BoolArray
    theta: Array
    power: Array
    moves: BoolArray

    @property
    def part(self) -> float:
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


@dataclass(eq=False)
class Case:
    """A robot and samples of its logs, with cached regressors.

    Attributes:
        sampled: Returns the samples with a given delay of the efforts [s] removed.
        moves: Joints that move, shape (n,).
    """

    robot: Robot
    sampled: Callable[[float], MotionSamples]
    moves: BoolArray
    _inertial: dict[tuple[object, ...], Array] = field(default_factory=dict)
    _evidence: dict[tuple[object, ...], RigidEvidence] = field(default_factory=dict)
    _summed: dict[tuple[object, ...], RigidEvidence] = field(default_factory=dict)
    _judged: dict[Interpretation, InterpretationScore] = field(default_factory=dict)

    @cached_property
    def by_motion(self) -> Case:
        """The same case with repetitions of a motion in one block (:meth:`.MotionSamples.by_motion`); itself without any."""
        first = self.sampled(0.0)
        if (apart := first.by_motion()) is first:
            return self
        return Case(self.robot, lambda delay: replace(self.sampled(delay), block=apart.block), self.moves)

    @cached_property
    def reached(self) -> Array:
        """Lowest and highest position of each joint, shape (2, n) [rad or m]."""
        q = self.sampled(0.0).q
        return np.stack([q.min(axis=0), q.max(axis=0)])

    def testable(self, interpretation: Interpretation) -> bool:
        """Whether joints still travel without the motion of others that their positions would count in.

        Two joints that are moved alike do not: what is left of one explains nothing, and its rows would be no evidence.
        """
        if not interpretation.counted:
            return True
        moved = self._moved(interpretation)
        return bool(travels(moved.q[:, [j for j, _, _ in interpretation.counted]], moved.log).any(axis=0).all())

    @cached_property
    def turns(self) -> float:
        """Median number of reversals of the moving joints.

        Repetitions of a motion count once: what a model does not explain is the same in each, and seems to be significant.
        """
        samples = self.sampled(0.0)
        return float(np.median(distinct_reversals(samples.q, samples.v)[self.moves]))

    @property
    def scarcity(self) -> float:
        """Factor by which its few reversals overstate significance (:func:`.evidence.scarcity`)."""
        return scarcity(self.turns)

    @cached_property
    def _signed(self) -> BoolArray:
        """Moving joints with observable friction sign; on a slide moving one way, friction and weight are not separable."""
        swept = [one_way(speed) for speed in self.sampled(0.0).v.T]
        return np.asarray(self.moves & ~(self.robot.prismatic & swept))

    def judge(self, interpretation: Interpretation) -> InterpretationScore:
        """Evaluates one interpretation."""
        self.judge_all([interpretation])
        return self._judged[interpretation]

    def judge_all(self, candidates: list[Interpretation]) -> list[InterpretationScore]:
        """Evaluates interpretations, those with the same motion together.

        Returns:
            Their scores, in the same order.
        """
        for group in grouped((item.motion(), item) for item in candidates if item not in self._judged).values():
            found = self.evidence(group[0])
            # interpretations that differ only in signs have the same weights and share one solution
            for items in grouped(((item.order, tuple(abs(g) for g in item.gain)), item) for item in group).values():
                self._judge_alike(found, items)
        return [self._judged[item] for item in candidates]

    def _judge_alike(self, found: RigidEvidence, items: list[Interpretation]) -> None:
        R = np.stack([item.effort_map() for item in items], axis=1)
        size = found.size_of(R)
        errors = held_out(found, R, 1.0 / (found.usual * size[:, 0]) ** 2)
        part = unexplained(found, errors.squares, R)
        mean = errors.power.mean(axis=0)
        driven = clearly_negative(errors.power) & self._signed[:, None]
        bodies = np.tensordot(errors.theta, self._inertia(items[0], found), axes=(1, 1)).swapaxes(1, 2) / size
        inertia = bodies + errors.rotor
        # smaller than what is unexplained, it may be friction that the laws do not describe
        negative = clearly_negative(inertia) & (inertia.mean(axis=0) < -part) & self.moves[:, None]
        for k, item in enumerate(items):
            squares = errors.squares[:, :, k] / size[:, k] ** 2 / found.count[:, None]
            left = np.where(self.moves, part[:, k], 1.0)
            self._judged[item] = InterpretationScore(
                left, squares, driven[:, k], negative[:, k], errors.theta[:, :, k], mean[:, k], self.moves
            )

    def with_more(self, efforts: Array) -> Case:
        """The case with a correction added to the efforts.

        Args:
            efforts: Shape (N, n) [N·m or N].
        """

        def sampled(delay: float) -> MotionSamples:
            samples = self.sampled(delay)
            return replace(samples, tau=samples.tau + efforts)

        return Case(self.robot, lru_cache(sampled), self.moves)

    def gains_of(self, corrected: Case) -> Array:
        """Gains of a correction in the rows' log relative residuals on held-out blocks.

        Args:
            corrected: The same samples, corrected.

        Returns:
            The gains, shape (n,); negative where the correction explains less, 0 for joints that do not move.
        """
        logged = Interpretation.as_logged(self.robot.n)
        # the residuals' own sizes: a correction changes the efforts that they are relative to
        size = corrected.evidence(logged).size / self.evidence(logged).size
        return np.where(self.moves, np.log(self.judge(logged).left / (corrected.judge(logged).left * size)), 0.0)

    def in_sample(self, interpretation: Interpretation) -> Array:
        """Relative residuals of the moving rows by a fit to all samples, shape (moving joints,)."""
        found = self.evidence(interpretation)
        R = interpretation.effort_map()[:, None]
        size = found.size_of(R)
        squares = in_sample(found, R, 1.0 / (found.usual * size[:, 0]) ** 2)
        return np.asarray(unexplained(found, squares, R)[self.moves, 0])

    def fitted(self, interpretation: Interpretation) -> float:
        """In-sample score of an interpretation.

        Returns:
            Sum of the log relative residuals of the moving rows; lower is better.
        """
        return float(np.log(self.in_sample(interpretation)).sum())

    def evidence(self, interpretation: Interpretation) -> RigidEvidence:
        """Returns the Gram matrices of an interpretation."""

        def make() -> RigidEvidence:
            moved, columns = self._moved(interpretation), self._regressor(interpretation)
            found = RigidEvidence.of(moved, columns, self._kept_columns, self.robot.n_inertial, interpretation.springs)
            self._summed[interpretation.motion()] = found.summed()
            return found

        return _kept(self._evidence, interpretation.motion(), make)

    def with_urdf(self, interpretation: Interpretation) -> float:
        """Score of the URDF's own inertias with free friction and rotors; used as a tie-breaker, not as evidence.

        Returns:
            Sum of the rows' log relative residuals; lower is better.
        """
        return float(0.5 * np.log(self._left_by_urdf(interpretation)[1]).sum())

    def error_of_urdf(self, interpretation: Interpretation) -> float:
        """Relative error of the torques of the URDF's bodies, friction and rotors free.

        Returns:
            RMS of what free bodies explain and the URDF's do not, over that of what bodies explain; infinite if they explain
            hardly anything that friction, rotors and offsets do not.
        """
        without, stated = self._left_by_urdf(interpretation).mean(axis=1)
        free = float(np.mean(self.in_sample(interpretation) ** 2))
        return float(np.sqrt(max(stated - free, 0.0) / (without - free))) if without > _BODIES * free else np.inf

    def with_urdf_alone(self, interpretation: Interpretation) -> float:
        """Relative residual of the efforts with the URDF's own inertias, without friction and rotors.

        Returns:
            Root mean square over the joints that move.
        """
        found = self._whole(interpretation)
        n, m = found.n, found.inertial
        x = np.zeros((n, found.gram.shape[2]))
        x[:, :m] = -self._stated[found.active] * found.scale
        x[:, -n:] = interpretation.effort_map().reshape(n, n)
        size = found.size_of(interpretation.effort_map())
        squares = np.einsum("ip,ipq,iq->i", x, found.total, x) / size**2 / found.count.sum()
        return float(np.sqrt(np.maximum(squares[self.moves], 0.0).mean()))

    def with_scaled_urdf(self, interpretation: Interpretation) -> tuple[float, float]:
        """Score of the URDF's own inertias, times one common factor, with free friction and rotors.

        Returns:
            Sum of the rows' log relative residuals, lower is better; and their root mean square.
        """
        left = self._left_by_inertias(interpretation, np.empty((len(self._stated), 0)))[0]
        return float(0.5 * np.log(left).sum()), float(np.sqrt(left.mean()))

    def with_one_body_changed(self, interpretation: Interpretation) -> float:
        """Relative residual with the URDF's inertias as in :meth:`with_scaled_urdf`, and one parameter of one body changed.

        Returns:
            Root mean square over the joints that move, with the mass or first moment that explains most.
        """
        kept, expansion = spanning_anywhere(self.robot)
        own = lumped_inertials(self.robot)
        changes = np.zeros((len(own), 4, own.size))
        for b, body in enumerate(own):
            changes[b, 0, 10 * b : 10 * b + 10] = body
            changes[b, [1, 2, 3], [10 * b + 1, 10 * b + 2, 10 * b + 3]] = 1.0
        columns = np.zeros((own.size, 4 * len(own)))
        columns[kept] = expansion @ changes.reshape(-1, own.size).T
        return float(np.sqrt(self._left_by_inertias(interpretation, columns).mean(axis=1).min()))

    def _left_by_urdf(self, interpretation: Interpretation) -> Array:
        """Squared relative residuals of the moving rows without inertias and with the URDF's, shape (2, moving joints)."""
        S = self._products(interpretation, np.empty((len(self._stated), 0)))
        return np.maximum([S[:, 1, 1], S[:, 1, 1] - 2 * S[:, 0, 1] + S[:, 0, 0]], EXACT**2)

    def _left_by_inertias(self, interpretation: Interpretation, changes: Array) -> Array:
        """Squared relative residuals of the moving rows with the URDF's scaled inertias, alone and with each of the changes.

        Args:
            changes: Changes of the inertial parameters, each with a free size, shape (10 n, K).

        Returns:
            Shape (1 + K, moving joints).
        """
        S, last, out = self._products(interpretation, changes), changes.shape[1] + 1, []
        for some in ([0], *([0, k] for k in range(1, last))):
            x = lstsq(S[:, some][:, :, some].sum(axis=0), S[:, some, last].sum(axis=0), rcond=1e-9)[0]
            explained = 2 * S[:, last, some] @ x - np.einsum("a,iab,b->i", x, S[:, some][:, :, some], x)
            out.append(np.maximum(S[:, last, last] - explained, EXACT**2))
        return np.array(out)

    def _products(self, interpretation: Interpretation, changes: Array) -> Array:
        """Products of the torques of the URDF's inertias, of changes of these, and of the efforts, orthogonal to the friction.

        Args:
            changes: As for :meth:`_left_by_inertias`.

        Returns:
            Mean products over the square of each moving row's effort, shape (moving joints, 2 + K, 2 + K).
        """
        found = self._whole(interpretation)
        n, m = found.n, found.inertial
        p, last = found.gram.shape[2] - n, changes.shape[1] + 1
        both = np.zeros((p + n, last + 1))
        both[:m, :last] = np.column_stack([self._stated, changes])[found.active] * found.scale[:, None]
        total, efforts, rows = found.total, interpretation.effort_map().reshape(n, n), []
        sizes = found.size_of(interpretation.effort_map())
        for i in np.flatnonzero(self.moves):
            both[p:, last] = efforts[i]
            moments = total[i] @ both
            own = lstsq(total[i][m:p, m:p], moments[m:p], rcond=1e-9)[0]
            size = float(sizes[i]) ** 2 * float(found.count.sum())
            rows.append((both.T @ moments - moments[m:p].T @ own) / size)
        return np.array(rows)

    @cached_property
    def _weightless(self) -> Robot:
        return self.robot.with_gravity(np.zeros(3))

    @property
    def _kept_columns(self) -> IntArray:
        """Independent inertial columns, which span all others."""
        return spanning_anywhere(self.robot)[0]

    @cached_property
    def _stated(self) -> Array:
        """The URDF's inertial parameters, shape (10 n,), mapped to the independent columns; the torque is unchanged."""
        kept, expansion = spanning_anywhere(self.robot)
        out = np.zeros(self.robot.n_inertial)
        out[kept] = expansion @ lumped_inertials(self.robot).ravel()
        return out

    def inertial_parameters(self, interpretation: Interpretation) -> Array:
        """Mean of the folds' inertial parameters, in the regressor's units.

        Returns:
            Shape (10 n,); parameters without effect, or with dependent columns, are zero.
        """
        found = self._whole(interpretation)
        theta = np.zeros(len(found.active))
        theta[found.active] = self.judge(interpretation).theta.mean(axis=0) / found.scale
        return theta

    def _whole(self, interpretation: Interpretation) -> RigidEvidence:
        """The evidence in one block, which is small enough to be cached for all motions."""
        if interpretation.motion() not in self._summed:
            self.evidence(interpretation)
        return self._summed[interpretation.motion()]

    def _moved(self, interpretation: Interpretation) -> MotionSamples:
        samples = self.sampled(interpretation.delay)
        places, sign = list(interpretation.places), np.array(interpretation.sign)
        s = interpretation.stretch
        q = samples.q[:, places] * sign + np.array(interpretation.zero)
        v, a, signs = (
            samples.v[:, places] * sign / s,
            samples.a[:, places] * sign / s**2,
            samples.signs[:, places] * sign[:, None],
        )
        turned = np.eye(len(sign))[places] * sign[:, None]
        for j, i, sense in interpretation.counted:
            for x in (q.T, v.T, a.T, turned):
                x[j] -= sense * x[i]
        whole = None if samples.whole is None else replace(samples.whole, turned=turned)
        moved = replace(samples.with_motion(q, v, a, signs), travels=samples.travels[:, places], whole=whole)
        for j, _, _ in interpretation.counted:
            signs[:, j] = moved.signs_along(np.eye(len(sign))[j])
        return moved

    def _regressor(self, interpretation: Interpretation) -> Array:
        """The regressor of an interpretation; it is linear in gravity and in one over the square of the stretch."""
        base = replace(interpretation, gravity=None, stretch=1.0, delay=0.0, springs=())
        if interpretation.gravity is None and interpretation.stretch == 1.0:
            return self._part(base, "all")
        still = self._part(base, "still")
        gravity = (
            still
            if interpretation.gravity is None
            else sum(g * self._part(base, f"side {k}") for k, g in enumerate(interpretation.gravity) if g)
        )
        return np.asarray(gravity + (self._part(base, "all") - still) / interpretation.stretch**2)

    def _inertia(self, interpretation: Interpretation, found: RigidEvidence) -> Array:
        """Mean torque of each joint by the inertia of the bodies that it moves, at its RMS acceleration, shape (n, m).

        Over the independent columns of the regressor, scaled as in the evidence.
        """
        base = replace(interpretation, gravity=None, stretch=1.0, delay=0.0, springs=())
        torque = self._part(base, "inertia") * rms(self._moved(base).a, 0)[:, None] / interpretation.stretch**2
        return np.asarray(torque[:, found.active[self._kept_columns]] / found.scale)

    def _part(self, base: Interpretation, what: str) -> Array:
        def make() -> Array:
            moved = self._moved(base)
            zero = np.zeros_like(moved.q)
            if what == "all":
                return regressor(self.robot, moved.q, moved.v, moved.a)[:, :, self._kept_columns]
            if what == "inertia":
                n = self.robot.n
                q = np.repeat(moved.q[:: max(1, len(moved.q) // _POSES)], n, axis=0)
                still, unit = np.zeros_like(q), np.tile(np.eye(n), (len(q) // n, 1))
                torque = regressor(self._weightless, q, still, unit)[:, :, self._kept_columns]
                return np.asarray(torque.reshape(-1, n, n, torque.shape[2])[:, range(n), range(n)].mean(axis=0))
            robot = self.robot if what == "still" else self.robot.with_gravity(np.eye(3)[int(what[-1])])
            return regressor(robot, moved.q, zero, zero)[:, :, self._kept_columns]

        return _kept(self._inertial, (*base.motion(), what), make)


def _kept(cache: dict[tuple[object, ...], T], key: tuple[object, ...], make: Callable[[], T]) -> T:
    """Returns the cached value of a key, of the last :data:`_KEPT` keys."""
    cache[key] = cache.pop(key) if key in cache else make()
    while len(cache) > _KEPT:
        cache.pop(next(iter(cache)))
    return cache[key]
