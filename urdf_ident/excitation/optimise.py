"""Multi-start local search for a motion until the budget or the starts are used up; all iterates are feasible.

1. A *start* is the best of a few random motions; after the first ones mostly a *hop*, which is a motion between the best one
   and a random one.
2. A short local search (:data:`QUICK`) improves it. Hops, and the best third of the others, go on with a longer one
   (:data:`FINE`), and a new best motion with the finest (:data:`POLISH`).
3. The instants of the criterion are doubled for as long as it depends on their number.

Limits on q, v and a hold at any time, torque limits and distances at the instants of the search. A motion counts only if its
distances are certified between instants; a violation there adds instants around it, and the local search is repeated.

The budget is counted in evaluations, each at its cost on a usual core, so that a seed gives the same motion on every machine,
however loaded it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import LimitError
from ..linalg import Array
from ..model.rigid_bodies import gravity_torques
from ..parallel import one_thread
from .criteria import Criterion
from .family import Grid
from .interior import Evaluation, LinearLimits, Obstacles, Schedule, minimise
from .problem import Problem
from .rows import PlannedRows

#: Number of random motions, the best of which starts a local search.
CANDIDATES = 6
#: Number of poses tried before the torque limits are reported as infeasible.
POSES = 400
#: Number of random motions tried before the limits are reported as infeasible.
TRIES = 40
#: Largest number of restarts of a local search after a clearance violation between instants; number of its motions that are
#: checked when the budget is used up, from the last one back.
ROUNDS, CHECKED_BACK = 6, 3
#: Interval, in steps of a local search, of clearance checks between instants.
LOOKED_AT = 20
#: Fraction of the torque limits that is used: torque is checked at instants and may peak in between.
TORQUE_FILL = 0.98
#: Instants at which the torque of each ramp is checked.
OF_A_RAMP = 10
#: Fraction of the other limits that is used, in addition to the exact allowance between instants.
FILL = 0.999
#: Largest change of the criterion when its instants are doubled.
RESOLUTION = 0.02
#: Seconds of a usual core that an evaluation takes, in all, per entry of its rows, and per pair of solids and instant.
COSTS = (1.2e-3, 0.8e-7, 2.5e-7)
#: Number of random starts before the search also starts near its best motion, and the probability of the latter.
FRESH, HOPS = 3, 0.75

QUICK = Schedule((0.1, 0.03), (8.0, 16.0), 25, 0.05)
FINE = Schedule((0.01, 3e-3, 1e-3, 3e-4), (16.0, 32.0, 32.0, 64.0))
POLISH = Schedule((1e-3, 3e-4, 1e-4), (64.0, 128.0, 256.0))


@dataclass(frozen=True, eq=False)
class FoundMotion:
    """A motion found by the search: its value at the finest resolution in use, and its unknowns, shape (d, n).

    Attributes:
        spent: The part of the budget used until then [s of a usual core].
    """

    value: float
    X: Array = field(repr=False)
    spent: float = 0.0


def optimise(
    problem: Problem,
    *,
    seed: int,
    budget: float,
    starts: int | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> Search:
    """Searches until the budget or the starts are used up; Ctrl-C ends the search with the best motion so far.

    Args:
        budget: Of evaluations [s of a usual core].
        starts: Number of starts; None: limited by the budget. At least one motion is sought in any case.
        progress: Called at every improvement with the budget spent [s] and the best value.

    Raises:
        LimitError: No motion was found; the message gives the cause.
    """
    search = Search(problem, seed, budget, progress)
    with one_thread():
        try:
            search.run(starts)
        except KeyboardInterrupt:
            if not search.improvements:
                raise
            search.notes.append("interrupted: the best motion so far")
    if search.exhausted and not search.improved:
        search.notes.append("the budget was used up before the first motion was improved: allow more")
    return search


class Search:
    """The course of :func:`optimise`, with its arguments.

    Attributes:
        best: The best motion so far.
        improvements: Every motion that was the best at its time.
        improved: Whether a local search has run at least one step.
        spent: Budget used so far [s of a usual core].
        starts: Number of starts so far.
    """

    def __init__(
        self, problem: Problem, seed: int, budget: float, progress: Callable[[float, float], None] | None = None
    ) -> None:
        self.problem, self.budget, self.progress = problem, budget, progress
        self.rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
        self.spent, self.starts, self.improved = 0.0, 0, False
        self.best, self.improvements = FoundMotion(np.inf, np.zeros(0)), list[FoundMotion]()
        self.notes: list[str] = []
        self._levels: list[float] = []  # values of the starts after their quick search
        family, limits = problem.family, problem.limits
        count = 32 * family.harmonics
        self.limits = LinearLimits.build(family.limit_grid(count), limits, FILL / (1.0 + family.overshoot(count)))
        for pose in () if family.poses is None else family.poses:  # keep poses close to a limit strictly feasible
            self.limits.upper[0] = np.maximum(self.limits.upper[0], 0.5 * (pose + limits.upper))
            self.limits.lower[0] = np.minimum(self.limits.lower[0], 0.5 * (pose + limits.lower))
        collisions = problem.collisions
        self.obstacles = Obstacles(collisions, family, limits) if collisions is not None and collisions.pairs else None
        self.objective = self._objective(family.samples)

    def _objective(self, samples: int) -> Objective:
        """The objective on a number of instants."""
        problem, family = self.problem, self.problem.family
        grid, extra = family.criterion_grid(samples), 0
        if family.has_ramps:
            ramp, extra = (np.arange(OF_A_RAMP) + 0.5) / OF_A_RAMP * family.ramp, 2 * OF_A_RAMP
            grid = family.grid(np.concatenate([grid.time, ramp, family.ramp + family.period + ramp]))
        torque = TORQUE_FILL * problem.limits.torque
        cost = self._cost(samples)
        return Objective(problem.criterion, problem.rows, grid, extra, torque, self.obstacles, cost)

    def _cost(self, samples: int) -> float:
        """Cost of an evaluation on a number of instants [s of a usual core]."""
        whole, entry, pair = COSTS
        rows = self.problem.rows
        pairs = 0 if self.obstacles is None else len(self.obstacles.collisions.pairs) * len(self.obstacles.grid.time)
        return whole + entry * samples * rows.model.n * len(rows.base) + pair * pairs

    @property
    def exhausted(self) -> bool:
        """Whether the budget is used up."""
        return self.spent >= self.budget

    def run(self, starts: int | None) -> None:
        """Searches; see :func:`optimise`."""
        while not self.exhausted and (starts is None or self.starts < starts):
            hop = self.starts >= FRESH and self.rng.random() < HOPS
            try:
                X = self._hop() if hop else self._start()
            except LimitError:
                if not self.improvements:
                    raise
                X = self.best.X  # continue from the best motion
            self.starts += 1
            if self.exhausted:
                return
            X = self._improve(X, QUICK)
            if self.exhausted or not (hop or self._promising(self._value(X))):
                continue
            before = self.best.value
            X = self._improve(X, FINE)
            if not self.exhausted and self.best.value < before:
                self._refine(self._improve(X, POLISH))

    def _start(self) -> Array:
        """The best of several random motions, shape (d, n)."""
        value, X = np.inf, np.zeros(0)
        for _ in range(CANDIDATES):
            candidate = self.random()
            new = self._value(candidate)
            if not X.size or new < value:
                value, X = new, candidate
                self._take(X, value)
            if self.exhausted:
                break
        return X

    def _hop(self) -> Array:
        """A motion between the best and a random one, shape (d, n); linear limits are convex, so it is inside them."""
        best = self.best.X
        for part in (self.rng.uniform(0.1, 0.4), 0.1, 0.03):
            X = best + part * (self.random() - best)
            if np.isfinite(self._value(X)):
                return np.asarray(X)
        return best

    def _promising(self, value: float) -> bool:
        """Whether a start is among the best third so far."""
        self._levels.append(value)
        return bool(value <= np.sort(self._levels)[(len(self._levels) - 1) // 3])

    def _improve(self, X: Array, schedule: Schedule) -> Array:
        """The result of a local search from a feasible motion, shape (d, n).

        After a violation between instants, where there are more of them now, the search is repeated from its last motion
        that satisfies them.
        """
        begin, passed = X, list[Array]()

        def on_iterate(X: Array) -> bool:
            self.improved = True
            passed.append(X)
            if self.exhausted or self.obstacles is None or len(passed) % LOOKED_AT:
                return self.exhausted
            clear = self._is_clear(X)
            if clear:
                self._take(X, self._value(X))
            return not clear

        for _ in range(ROUNDS):
            passed[:] = [X]
            X = minimise(self._evaluate, self.limits, X, schedule, on_iterate)
            for _ in range(CHECKED_BACK if self.exhausted else 1):
                if self._is_clear(X):
                    self._take(X, self._value(X))
                    return X
                kept = next((earlier for earlier in reversed(passed) if np.isfinite(self._value(earlier))), None)
                if kept is None:
                    return self.best.X if self.improvements else begin
                X = kept
            if self.exhausted:
                break
        return self.best.X if self.improvements else begin

    def _refine(self, X: Array) -> None:
        """Doubles the instants, also for later searches, as long as the criterion depends on their number."""
        for _ in range(3):
            finer = self._objective(2 * self.objective.samples)
            value = self._value(X, finer)
            if abs(value - self._value(X)) < RESOLUTION or self.exhausted:
                return
            for size in (0.98, 0.95, 0.9):  # a torque peak between the old instants
                if np.isfinite(value):
                    break
                X = self.problem.family.scaled(X, size)
                value = self._value(X, finer)
            else:
                return
            self.objective = finer
            if self.improvements:
                self.best = replace(self.best, value=self._value(self.best.X))
            X = self._improve(X, FINE)

    def _evaluate(self, X: Array, barrier: float, sharpness: float) -> Evaluation:
        """The objective, at its cost."""
        self.spent += self.objective.cost
        return self.objective(X, barrier, sharpness)

    def _value(self, X: Array, objective: Objective | None = None) -> float:
        """The criterion of a motion; inf if it violates a limit of torque or distance."""
        objective = objective or self.objective
        self.spent += objective.cost
        return objective(X, 0.0, np.inf).value

    def _is_clear(self, X: Array) -> bool:
        """Whether the distances of a motion are certified."""
        if self.obstacles is None:
            return True
        self.spent += self._cost(self.objective.samples)
        return self.obstacles.is_clear(X)

    def _take(self, X: Array, value: float) -> None:
        """Takes a motion if it is better than the best one and its distances are certified."""
        if value < self.best.value and self._is_clear(X):
            self.best = FoundMotion(value, X.copy(), self.spent)
            self.improvements.append(self.best)
            if self.progress is not None:
                self.progress(self.spent, min(motion.value for motion in self.improvements))

    def random(self) -> Array:
        """Returns a random motion about a pose, as large as joint and torque limits allow, shape (d, n).

        Raises:
            LimitError: There is none; the message gives the cause.
        """
        for _ in range(TRIES):
            rest = self._rest()
            swing = self.problem.family.random_swing(self.rng, len(self.problem.limits.joints))
            swing = 0.85 * self.limits.reach(rest, swing) * swing
            for size in 0.7 ** np.arange(12):
                X = np.asarray(rest + size * swing)
                # The very first motion must be feasible, even if the budget is small.
                if np.isfinite(self._value(X)) and (self.improvements or self._is_clear(X)):
                    return X
            if self.exhausted and self.obstacles is not None and self.obstacles.violation is not None:
                self.obstacles.violation.require()
        raise LimitError(
            "no motion inside the limits shows every parameter",
            got=f"{TRIES} random motions without one",
            remedy="widen the limits, choose another start pose, add harmonics, or leave terms out of the model",
        )

    def _rest(self) -> Array:
        """Returns the unknowns of standing still at a pose where gravity is within the torque limits."""
        family, limits, obstacles = self.problem.family, self.problem.limits, self.obstacles
        blocked, collided = (np.inf, ""), ""
        for _ in range(POSES if family.start is None else 1):
            pose = family.random_pose(self.rng, limits)
            load = self._gravity_load(pose)
            # Poses that gravity rules out are not worth the search for a free one nearby.
            if load[0] < 1.0 and obstacles is not None and family.start is None and not collided:
                pose = obstacles.freed(pose, limits, self.rng)
                load = self._gravity_load(pose)
            X = family.rest(pose)
            if load[0] >= 1.0:
                blocked = min(blocked, load)
            elif self.limits.slack(X).min() > 0:
                collided = "" if obstacles is None else obstacles.violated_pair(pose)
                if not collided:
                    return X
        if collided:
            raise LimitError(
                "no motion without a collision: every pose tried is too close to something",
                got=f"last {collided}",
                remedy="correct the world or the collision geometry, choose a free start pose, lower excitation.clearance, or "
                "set excitation.collisions: false to watch nothing",
            )
        if not blocked[1]:
            raise LimitError(
                "no motion inside the limits: the path from start to end, or the ramps, are too fast",
                remedy="allow a longer duration or longer ramps",
            )
        raise LimitError(
            "no motion inside the limits: gravity alone breaks a torque limit",
            got=blocked[1],
            remedy="check the torque limits and the masses, or choose another start pose",
        )

    def _gravity_load(self, pose: Array) -> tuple[float, str]:
        """The largest share of a usable torque limit that gravity needs at a pose, and its torque in words."""
        limits = self.problem.limits
        tau = np.abs(gravity_torques(self.problem.model.robot, pose[None])[0])
        share = tau / (0.95 * TORQUE_FILL * limits.torque)
        j = int(np.argmax(share))
        return float(share[j]), f"{tau[j]:.4g} of {limits.torque[j]:.4g} by joint '{limits.joints[j]}'"


@dataclass(frozen=True, eq=False)
class Objective:
    """Criterion and barriers as a function of a family's unknowns.

    Attributes:
        grid: Instants of the criterion, followed by ``extra`` ones where only torque is checked.
        torque: Torque limits, shape (n,) [N·m or N]; inf without a limit.
        obstacles: Barrier on distances, or None.
        cost: Of an evaluation [s of a usual core].
    """

    criterion: Criterion
    rows: PlannedRows
    grid: Grid
    extra: int
    torque: Array
    obstacles: Obstacles | None = None
    cost: float = 0.0

    @property
    def samples(self) -> int:
        """Number of instants of the criterion."""
        return len(self.grid.time) - self.extra

    def __call__(self, X: Array, barrier: float, sharpness: float) -> Evaluation:
        """Returns value and gradient.

        Args:
            X: The unknowns, shape (d, n).
            barrier: Weight of the barriers.
            sharpness: See :func:`.criteria.singular_criterion`.

        Returns:
            The value, inf if a torque limit or a distance is violated, and its gradient.
        """
        outside = Evaluation(np.inf, np.zeros_like(X))
        distance, push = (0.0, None) if self.obstacles is None else self.obstacles(X, barrier)
        if not np.isfinite(distance):
            return outside
        inside = self.samples
        q, v, a = self.grid.motion(X)
        motions = self.criterion.motions(q[:inside], v[:inside], a[:inside])
        kept = len(motions[0])
        W, state = self.rows.evaluate(*(np.concatenate([x, y[inside:]]) for x, y in zip(motions, (q, v, a), strict=True)))
        watched = np.r_[0:inside, kept : len(W)]
        tau = self.rows.torque(state)[watched]
        slack = np.stack([self.torque - tau, self.torque + tau])
        if not slack.min() > 0:
            return outside
        value, by_rows = self.criterion.value(W[:kept], sharpness)
        if not np.isfinite(value):
            return outside
        weight = np.concatenate([by_rows, np.zeros((self.extra, *W.shape[1:]))])
        by_torque = None
        limited = np.isfinite(self.torque)
        if limited.any():
            share = barrier / len(self.grid.time)
            value -= share * float(np.log(slack[:, :, limited] / self.torque[limited]).sum())
            by_torque = np.zeros(W.shape[:2])
            by_torque[watched] = share * (1.0 / slack[0] - 1.0 / slack[1])
        bars = self.rows.gradient(weight, state, by_torque)
        folded = self.criterion.fold(*(x[:kept] for x in bars))
        by_motion = (np.concatenate([x, y[kept:]]) for x, y in zip(folded, bars, strict=True))
        gradient = np.asarray(sum(basis.T @ by for basis, by in zip(self.grid.bases, by_motion, strict=True)))
        return Evaluation(value + distance, gradient if push is None else gradient + push.gradient, push)
