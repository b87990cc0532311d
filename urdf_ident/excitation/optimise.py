"""Multi-start local search until the budget or the starts are used up; all iterates are feasible.

The budget is counted in evaluations, each at its cost on a usual core, so that a seed gives the same motion on every machine,
however loaded it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import LimitError
from ..linalg import Array
from ..parallel import one_thread
from .interior import Evaluation, LinearLimits, Schedule, minimise
from .objective import Objective
from .obstacles import Obstacles
from .problem import Problem

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
COSTS = (1.2e-3, 0.8e-7, 4e-7)

#: Number of random starts before the search also starts near its best motion, and the probability of the latter.
FRESH, HOPS = 3, 0.75

QUICK = Schedule((0.1, 0.03), (8.0, 16.0), 25, 0.05)
FINE = Schedule((0.01, 3e-3, 1e-3, 3e-4), (16.0, 32.0, 32.0, 64.0), 40, 0.02)
POLISH = Schedule((1e-3, 3e-4, 1e-4), (64.0, 128.0, 256.0), 40, 0.02)


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
        starts: Number of random starts; None: limited by the budget.
        progress: Called at every improvement with the budget spent [s] and the best value.

    Raises:
        LimitError: No motion was found; the message gives the cause.
    """
    search = Search(problem, np.random.SeedSequence(seed).spawn(1)[0], budget, progress)
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


@dataclass(frozen=True, eq=False)
class FoundMotion:
    """A motion found by the search: its value at the finest resolution in use, and its unknowns, shape (d, n).

    Attributes:
        spent: The part of the budget used until then [s of a usual core].
    """

    value: float
    X: Array = field(repr=False)
    spent: float = 0.0


class Search:
    """A search by random starts and local optimisation.

    Args:
        problem: The problem.
        seed: Of the random starts.
        budget: Of evaluations [s of a usual core].
        progress: Called at every improvement with the budget spent [s] and the best value.

    Attributes:
        best: The best motion so far.
        improvements: Every motion that was the best at its time.
        improved: Whether a local search has run at least one step.
    """

    def __init__(
        self,
        problem: Problem,
        seed: int | np.random.SeedSequence,
        budget: float,
        progress: Callable[[float, float], None] | None = None,
    ) -> None:
        self.problem, self.budget, self.spent, self.starts = problem, budget, 0.0, 0
        self.progress = progress
        self.rng = np.random.default_rng(seed)
        family, limits = problem.family, problem.limits
        self.obstacles = None if problem.collisions is None else Obstacles(problem.collisions, family, limits)
        count = 32 * family.harmonics
        self.limits = LinearLimits.build(family.limit_grid(count), limits, FILL / (1.0 + family.overshoot(count)))
        if family.start is not None:  # keep poses close to a limit strictly feasible
            for pose in (family.start, family.start if family.end is None else family.end):
                self.limits.upper[0] = np.maximum(self.limits.upper[0], 0.5 * (pose + limits.upper))
                self.limits.lower[0] = np.minimum(self.limits.lower[0], 0.5 * (pose + limits.lower))
        self.samples = family.samples
        self.objective = self._counted(self.samples)
        self.best = FoundMotion(np.inf, np.zeros(0))
        self.improvements: list[FoundMotion] = []
        self.improved = False
        self.notes: list[str] = []
        self._levels: list[float] = []

    def cost(self, samples: int) -> float:
        """Returns the cost of an evaluation on a number of instants [s of a usual core]."""
        whole, entry, pair = COSTS
        rows = self.problem.rows
        pairs = 0 if self.obstacles is None else len(self.obstacles.collisions.pairs) * len(self.obstacles.grid.time)
        return whole + entry * samples * rows.model.n * len(rows.base) + pair * pairs

    def _counted(self, samples: int) -> Callable[..., Evaluation]:
        """The objective on a number of instants, which adds its cost to :attr:`spent`."""
        problem, family, cost = self.problem, self.problem.family, self.cost(samples)
        grid, extra = family.criterion_grid(samples), 0
        if family.has_ramps:
            ramp, extra = (np.arange(OF_A_RAMP) + 0.5) / OF_A_RAMP * family.ramp, 2 * OF_A_RAMP
            grid = family.grid(np.concatenate([grid.time, ramp, family.ramp + family.period + ramp]))
        torque = TORQUE_FILL * problem.limits.torque
        objective = Objective(problem.criterion, problem.rows, grid, extra, torque, self.obstacles)

        def evaluate(X: Array, barrier: float, sharpness: float = np.inf) -> Evaluation:
            self.spent += cost
            return objective(X, barrier, sharpness)

        return evaluate

    @property
    def exhausted(self) -> bool:
        """Whether the budget is used up."""
        return self.spent >= self.budget

    @property
    def history(self) -> tuple[tuple[float, float], ...]:
        """Budget spent [s] and value of every motion that was better than all before."""
        out: list[tuple[float, float]] = []
        for motion in self.improvements:
            if not out or motion.value < out[-1][1]:
                out.append((motion.spent, motion.value))
        return tuple(out)

    def run(self, starts: int | None) -> None:
        """Searches until the budget is used up, or until the starts are done.

        Args:
            starts: Number of starts; None: limited by the budget. At least one motion is sought in any case.

        Raises:
            LimitError: No motion was found; the message gives the cause.
        """
        while starts is None or self.starts < starts:
            hop = self.starts >= FRESH and self.rng.random() < HOPS
            try:
                X = self._hop() if hop else self.start()
            except LimitError:
                if not self.improvements:
                    raise
                X = self.best.X  # continue from the best motion
            self.starts += 1
            if self.exhausted:
                return
            X = self.improve(X, QUICK)
            if self.exhausted or not (hop or self._promising(self._value(X))):
                continue
            before = self.best.value
            X = self.improve(X, FINE)
            if not self.exhausted and self.best.value < before:
                self._refine(self.improve(X, POLISH))
            if self.exhausted:
                return

    def _promising(self, level: float) -> bool:
        """Whether a start is among the best third so far, which get the fine search."""
        self._levels.append(level)
        return bool(level <= np.sort(self._levels)[(len(self._levels) - 1) // 3])

    def _hop(self) -> Array:
        """Returns a motion between the best and a random one; linear limits are convex, so it is inside them."""
        best = self.best.X
        for part in (self.rng.uniform(0.1, 0.4), 0.1, 0.03):
            X = best + part * (self.random() - best)
            if np.isfinite(self._value(X)):
                return np.asarray(X)
        return best

    def start(self) -> Array:
        """Returns the best of several random motions, shape (d, n)."""
        level, X = np.inf, np.zeros(0)
        for _ in range(CANDIDATES):
            candidate = self.random()
            value = self._value(candidate)
            if not X.size or value < level:
                level, X = value, candidate
                self._offer(X, value)
            if self.exhausted:
                break
        return X

    def improve(self, X: Array, schedule: Schedule) -> Array:
        """Returns the result of a local search from a feasible motion, shape (d, n)."""
        passed: list[Array] = []

        def on_iterate(X: Array) -> bool:
            self.improved = True
            passed.append(X)
            if self.exhausted or self.obstacles is None or len(passed) % LOOKED_AT:
                return self.exhausted
            clear = self._is_clear(X)
            if clear:
                self._offer(X, self._value(X))
            return not clear

        fallback = X
        for _ in range(ROUNDS):
            passed[:] = [X]
            X = minimise(self.objective, self.limits, X, schedule, on_iterate)
            for _ in range(CHECKED_BACK if self.exhausted else 1):
                if self._is_clear(X):
                    self._offer(X, self._value(X))
                    return X
                # The grid now covers the violation between instants: restart from the last motion that satisfies it.
                kept = next((earlier for earlier in reversed(passed) if np.isfinite(self._value(earlier))), None)
                if kept is None:
                    return self.best.X if self.improvements else fallback
                X = kept
            if self.exhausted:
                break
        return self.best.X if self.improvements else fallback

    def _refine(self, X: Array) -> None:
        """Doubles the instants, also for later searches, if the criterion still depends on their number."""
        for _ in range(3):
            finer = self._counted(2 * self.samples)
            value = finer(X, 0.0).value
            if abs(value - self._value(X)) < RESOLUTION or self.exhausted:
                return
            for size in (0.98, 0.95, 0.9):  # a torque peak between the old instants
                if np.isfinite(value):
                    break
                X = self.problem.family.scaled(X, size)
                value = finer(X, 0.0).value
            else:
                return
            self.samples, self.objective = 2 * self.samples, finer
            if self.improvements:
                self.best = replace(self.best, value=self._value(self.best.X))
            X = self.improve(X, FINE)

    def _value(self, X: Array) -> float:
        return self.objective(X, 0.0).value

    def _is_clear(self, X: Array) -> bool:
        if self.obstacles is None:
            return True
        self.spent += self.cost(self.samples)
        return self.obstacles.is_clear(X)

    def _offer(self, X: Array, value: float) -> None:
        """Takes a motion if it is better than the best one and its distances are certified."""
        if value < self.best.value and self._is_clear(X):
            self.best = FoundMotion(value, X.copy(), self.spent)
            self.improvements.append(self.best)
            if self.progress is not None:
                self.progress(self.spent, min(motion.value for motion in self.improvements))

    def random(self) -> Array:
        """Returns a random motion about a pose, as large as joint and torque limits allow.

        Returns:
            Its unknowns, shape (d, n).

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
        rows, limits, still = self.problem.rows, self.problem.limits, np.zeros((1, len(pose)))
        tau = np.abs(rows.torque(rows.evaluate(pose[None], still, still)[1])[0])
        share = tau / (0.95 * TORQUE_FILL * limits.torque)
        j = int(np.argmax(share))
        return float(share[j]), f"{tau[j]:.4g} of {limits.torque[j]:.4g} by joint '{limits.joints[j]}'"
