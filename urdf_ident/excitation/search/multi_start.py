"""Multi-start local search until the budget or the starts are used up; all iterates are feasible.

The budget is counted in evaluations, each at its cost on a usual core, so that a seed gives the same motion on every machine,
however loaded it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import LimitError
from ...linalg import Array
from ...motion.limits import Limits
from ...parallel import one_thread
from ..family import Family
from .global_start import UNUSABLE, Encoding, evolve
from .interior import LinearLimits, Options, Push, minimise
from .objective import Criterion, Objective
from .obstacles import ObjectiveWithObstacles, Obstacles

#: Number of random motions, the best of which starts a local search.
CANDIDATES = 6
#: Number of poses tried before the torque limits are reported as infeasible.
POSES = 400
#: Number of random motions tried before the limits are reported as infeasible.
TRIES = 40
#: Amplitude factors tried for an individual of a global search until torques and distances are feasible.
SIZES = (1.0, 0.75, 0.5, 0.3)
#: Largest number of restarts of a local search after a clearance violation between instants; number of its motions that are
#: checked when the budget is used up, from the last one back.
ROUNDS, CHECKED_BACK = 6, 3
#: Interval, in steps of a local search, of clearance checks between instants.
LOOKED_AT = 20
#: Fraction of the torque limits that is used: torque is checked at instants and may peak in between.
TORQUE_FILL = 0.98
#: Fraction of the other limits that is used, in addition to the exact allowance between instants.
FILL = 0.999
#: Largest change of the criterion when its instants are doubled.
RESOLUTION = 0.02

#: Seconds of a usual core that an evaluation takes, in all, per entry of its rows, and per pair of solids and instant.
COSTS = (1.2e-3, 0.8e-7, 4e-7)

#: Number of random starts before the search also starts near its best motion, and the probability of the latter.
FRESH, HOPS = 3, 0.75

#: Number of best motions kept for the final verification.
KEPT = 6

QUICK = Options((0.1, 0.03), (8.0, 16.0), 25, 0.05)
FINE = Options((0.01, 3e-3, 1e-3, 3e-4), (16.0, 32.0, 32.0, 64.0), 40, 0.02)
POLISH = Options((1e-3, 3e-4, 1e-4), (64.0, 128.0, 256.0), 40, 0.02)


@dataclass(frozen=True, eq=False)
class Problem:
    """The optimisation problem of a design.

    Attributes:
        limits: Limits of the joints, finite for positions and velocities.
        obstacles: The barrier on distances, or None.
        global_start: Method for the starts, one of :data:`.global_start.GLOBAL_STARTS`.
    """

    criterion: Criterion
    family: Family
    limits: Limits
    obstacles: Obstacles | None = None
    global_start: str = "none"

    def objective(self, samples: int) -> Objective | ObjectiveWithObstacles:
        """Returns the objective on a number of instants per period."""
        family, extra = self.family, 0
        grid = family.criterion_grid(samples)
        if family.has_ramps:
            ramp = (np.arange(10) + 0.5) / 10 * family.ramp
            moments = np.concatenate([ramp, family.ramp + family.period + ramp])
            extra, grid = len(moments), family.grid(np.concatenate([grid.time, moments]))
        inside = Objective(self.criterion, grid, extra, TORQUE_FILL * self.limits.torque)
        return inside if self.obstacles is None else ObjectiveWithObstacles(inside, self.obstacles)

    def cost(self, samples: int) -> float:
        """Returns the cost of an evaluation on a number of instants [s of a usual core]."""
        rows = self.criterion.rows
        whole, entry, pair = COSTS
        pairs = 0 if self.obstacles is None else len(self.obstacles.collisions.pairs) * len(self.obstacles.grid.time)
        return whole + entry * samples * rows.model.n * len(rows.base) + pair * pairs

    def samples(self) -> int:
        """Returns the initial number of instants per period: the motion and its sines have few harmonics."""
        return max(60, 24 * self.family.harmonics)

    def linear_limits(self) -> LinearLimits:
        """Returns limits on q, v and a, tightened by the allowance between instants."""
        count, start = 32 * self.family.harmonics, self.family.start
        out = LinearLimits.build(self.family.limit_grid(count), self.limits, FILL / (1.0 + self.family.overshoot(count)))
        if start is None:
            return out
        # keep a start pose close to a limit strictly feasible
        for pose in (start, start if self.family.end is None else self.family.end):
            out.upper[0] = np.maximum(out.upper[0], 0.5 * (pose + self.limits.upper))
            out.lower[0] = np.minimum(out.lower[0], 0.5 * (pose + self.limits.lower))
        return out


@dataclass(frozen=True, eq=False)
class FoundMotion:
    """A motion found by the search: its value at the finest resolution in use, and its unknowns, shape (d, n).

    Attributes:
        spent: The part of the budget used until then [s of a usual core].
    """

    value: float
    X: Array = field(repr=False)
    starts: int = 0
    spent: float = 0.0


Found = Callable[[FoundMotion], None]


class Search:
    """A search by random starts and local optimisation.

    Args:
        problem: The problem.
        seed: Of the random starts.
        budget: Of evaluations [s of a usual core].
    """

    def __init__(self, problem: Problem, seed: int | np.random.SeedSequence, budget: float) -> None:
        self.problem, self.budget, self.spent = problem, budget, 0.0
        self.rng = np.random.default_rng(seed)
        self.limits = problem.linear_limits()
        self.samples = problem.samples()
        self.objective = self._counted(self.samples)
        self.best = FoundMotion(np.inf, np.zeros(0))
        self.starts = 0
        self._levels: list[float] = []
        #: Whether a local search has run at least one step.
        self.improved = False

    def _counted(self, samples: int) -> Callable[..., tuple[float, Array]]:
        """The objective on a number of instants, which adds its cost to :attr:`spent`."""
        objective, cost = self.problem.objective(samples), self.problem.cost(samples)

        def evaluate(X: Array, barrier: float, sharpness: float = np.inf) -> tuple[float, Array]:
            self.spent += cost
            return objective(X, barrier, sharpness)

        return evaluate

    @property
    def exhausted(self) -> bool:
        """Whether the budget is used up."""
        return self.spent >= self.budget

    def run(self, starts: int | None, found: Found) -> None:
        """Searches until the budget is used up, or until the starts are done.

        Args:
            starts: Number of starts; None: limited by the budget. At least one motion is sought in any case.
            found: Called with every improvement.

        Raises:
            LimitError: No motion was found; the message gives the cause.
        """
        while starts is None or self.starts < starts:
            hop = self.starts >= FRESH and self.rng.random() < HOPS
            try:
                X = self._hop() if hop else self._start(found)
            except LimitError:
                if not self.best.X.size:
                    raise
                X = self.best.X  # continue from the best motion
            self.starts += 1
            if self.exhausted:
                return
            X = self._improve(X, QUICK, found)
            if self.exhausted or not (hop or self._promising(self._value(X))):
                continue
            before = self.best.value
            X = self._improve(X, FINE, found)
            if not self.exhausted and self.best.value < before:
                self._refine(self._improve(X, POLISH, found), found)
            if self.exhausted:
                return

    def _promising(self, level: float) -> bool:
        """Whether a start is among the best third so far, which get the fine search."""
        self._levels.append(level)
        return bool(level <= np.sort(self._levels)[(len(self._levels) - 1) // 3])

    def _hop(self) -> Array:
        """Returns a motion between the best and a random one; linear limits are convex, so it is inside them."""
        for part in (self.rng.uniform(0.1, 0.4), 0.1, 0.03):
            X = self.best.X + part * (self.random() - self.best.X)
            if np.isfinite(self._value(X)):
                return np.asarray(X)
        return self.best.X

    def _start(self, found: Found) -> Array:
        """Returns the best of several random motions, or the result of a global search from it."""
        picked: tuple[float, Array] | None = None
        for _ in range(CANDIDATES):
            X = self.random()
            value = self._value(X)
            if picked is None or value < picked[0]:
                picked = value, X
                self._offer(X, value, found)
            if self.exhausted:
                break
        X = picked[1] if picked is not None else self.random()
        return X if self.problem.global_start == "none" else self._evolved(X, found)

    def _evolved(self, X: Array, found: Found) -> Array:
        """Returns the best motion of a global search from a given one."""
        encoding = Encoding(self.problem.family, self.problem.limits, self.limits)
        best = [(self._value(X), X)]

        def evaluate(z: Array) -> float:
            rest, swing = encoding.decode(z)
            for size in SIZES if self.limits.slack(rest).min() > 0 else ():
                value = self._value(rest + size * swing)
                if np.isfinite(value):
                    if value < best[0][0]:
                        best[0] = value, rest + size * swing
                    return value
            return UNUSABLE

        evolve(self.problem.global_start, evaluate, encoding.encode(X), self.rng, lambda: self.exhausted)
        self._offer(best[0][1], best[0][0], found)
        return best[0][1]

    def _improve(self, X: Array, options: Options, found: Found) -> Array:
        passed: list[Array] = []

        def on_iterate(X: Array) -> bool:
            self.improved = True
            passed.append(X)
            if self.exhausted or self.problem.obstacles is None or len(passed) % LOOKED_AT:
                return self.exhausted
            kept = self._is_clear(X)
            if kept:
                self._offer(X, self._value(X), found)
            return not kept

        start = X
        for _ in range(ROUNDS):
            passed[:] = [X]
            X = minimise(self.objective, self.limits, X, options, on_iterate, self._push)
            for _ in range(CHECKED_BACK if self.exhausted else 1):
                if self._is_clear(X):
                    self._offer(X, self._value(X), found)
                    return X
                # The grid now covers the violation between instants: restart from the last motion that satisfies it.
                kept = next((earlier for earlier in reversed(passed) if np.isfinite(self._value(earlier))), None)
                if kept is None:
                    return self.best.X if self.best.X.size else start
                X = kept
            if self.exhausted:
                break
        return self.best.X if self.best.X.size else start

    def _refine(self, X: Array, found: Found) -> None:
        """Doubles the instants, also for later searches, if the criterion still depends on their number."""
        for _ in range(3):
            finer = self._counted(2 * self.samples)
            value = finer(X, 0.0)[0]
            if abs(value - self._value(X)) < RESOLUTION or self.exhausted:
                return
            for size in (0.98, 0.95, 0.9):  # a torque peak between the old instants
                if np.isfinite(value):
                    break
                X = self.problem.family.scaled(X, size)
                value = finer(X, 0.0)[0]
            else:
                return
            self.samples, self.objective = 2 * self.samples, finer
            if self.best.X.size:
                self.best = replace(self.best, value=self._value(self.best.X))
            X = self._improve(X, FINE, found)

    def _value(self, X: Array) -> float:
        return self.objective(X, 0.0)[0]

    def _push(self) -> Push | None:
        return None if self.problem.obstacles is None else self.problem.obstacles.push

    def _is_clear(self, X: Array) -> bool:
        if self.problem.obstacles is None:
            return True
        self.spent += self.problem.cost(self.samples)
        return self.problem.obstacles.is_clear(X)

    def _offer(self, X: Array, value: float, found: Found) -> None:
        better = value < self.best.value or not self.best.X.size
        if better and self._is_clear(X):
            self.best = FoundMotion(value, X.copy(), self.starts, self.spent)
            found(self.best)

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
                if np.isfinite(self._value(X)) and (self.best.X.size or self._is_clear(X)):
                    return X
            if self.exhausted and self.problem.obstacles is not None and self.problem.obstacles.violation is not None:
                self.problem.obstacles.violation.require()
        raise LimitError(
            "no motion inside the limits shows every parameter",
            got=f"{TRIES} random motions without one",
            remedy="widen the limits, choose another start pose, add harmonics, or leave terms out of the model",
        )

    def _rest(self) -> Array:
        """Returns the unknowns of standing still at a pose where gravity is within the torque limits."""
        family, limits, obstacles = self.problem.family, self.problem.limits, self.problem.obstacles
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
        rows, limits, still = self.problem.criterion.rows, self.problem.limits, np.zeros((1, len(pose)))
        tau = np.abs(rows.torque(rows.evaluate(pose[None], still, still)[1])[0])
        share = tau / (0.95 * TORQUE_FILL * limits.torque)
        j = int(np.argmax(share))
        return float(share[j]), f"{tau[j]:.4g} of {limits.torque[j]:.4g} by joint '{limits.joints[j]}'"


@dataclass
class Outcome:
    """Result of a search: best motions first, improvements over the budget spent, and notes."""

    candidates: list[FoundMotion] = field(default_factory=list)
    starts: int = 0
    history: tuple[tuple[float, float], ...] = ()
    notes: tuple[str, ...] = ()

    def add(self, candidate: FoundMotion) -> None:
        """Adds a motion."""
        if not self.candidates or candidate.value < self.candidates[0].value:
            self.history = (*self.history, (candidate.spent, candidate.value))
        self.candidates = sorted([*self.candidates, candidate], key=lambda motion: motion.value)[:KEPT]


def search(
    problem: Problem,
    *,
    seed: int,
    budget: float,
    starts: int | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> Outcome:
    """Searches until the budget or the starts are used up; Ctrl-C ends it with the best motion so far.

    Args:
        seed: Of the random starts.
        budget: Of evaluations [s of a usual core].
        starts: Number of random starts; None: limited by the budget.
        progress: Called at every improvement with the budget spent [s] and the best value.

    Raises:
        LimitError: No motion was found; the message gives the cause.
    """
    outcome, worker = Outcome(), Search(problem, np.random.SeedSequence(seed).spawn(1)[0], budget)

    def improved(candidate: FoundMotion) -> None:
        outcome.add(candidate)
        if progress is not None:
            progress(worker.spent, outcome.candidates[0].value)

    with one_thread():
        try:
            worker.run(starts, improved)
        except KeyboardInterrupt:
            if not outcome.candidates:
                raise
            outcome.notes = ("interrupted: the best motion so far",)
    outcome.starts = worker.starts
    if worker.exhausted and not worker.improved:
        outcome.notes = (*outcome.notes, "the budget was used up before the first motion was improved: allow more")
    return outcome
