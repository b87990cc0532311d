"""Global search for the start of the local one: CMA-ES, or differential evolution in place of Wu 2012's genetic algorithm.

A motion is encoded as a pose and a direction of motion about it; its amplitude is the largest that the limits on q, v and a
allow, which is exact and cheap. Every individual is therefore inside these limits; only torques and collisions can make one
infeasible: its amplitude is then reduced, and if that does not help, it gets the worst value. The criterion is not smoothed.

It is not the default, because in equal time many short local searches from random motions end lower: by 1-3 % on the UR10e
and a three-axis arm, and by far next to a table and a wall, where evaluations are slow (``scripts/benchmarks/excitation.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erf, erfinv

from ..errors import LimitError, MissingExtraError, check_known
from ..linalg import Array, rms
from ..motion.limits import Limits
from .family import POSE_RANGE, Family
from .interior import LinearLimits

GLOBAL_STARTS = ("none", "cma", "differential_evolution")
#: Number of evaluations before a local search begins, and individuals per generation.
EVALUATIONS, POPULATION = 400, 20
#: Initial spread, in standard deviations of random motions.
SPREAD = 0.4
#: Amplitude of a motion as a fraction of the largest feasible one.
FILL = 0.9
#: Value of an infeasible motion.
UNUSABLE = 1e6


def check_global_start(name: str) -> None:
    """Checks a method's name, one of :data:`GLOBAL_STARTS`, and that its package is installed.

    Raises:
        LimitError: Unknown name; the message suggests the nearest one.
        MissingExtraError: CMA-ES without the package ``cma``.
    """
    check_known("global start", name, GLOBAL_STARTS, LimitError)
    if name == "cma":
        _cma()


@dataclass(frozen=True, eq=False)
class Encoding:
    """Encoding of motions as vectors that are normally distributed for random motions.

    Attributes:
        limits: Finite limits on positions.
        linear: The same limits, and those on velocity and acceleration, on a grid.
    """

    family: Family
    limits: Limits
    linear: LinearLimits

    @property
    def _free(self) -> int:
        """Number of entries that encode the pose."""
        return len(self.limits.joints) if self.family.start is None else 0

    def encode(self, X: Array) -> Array:
        """Encodes unknowns, shape (d, n), as a vector; :meth:`decode` returns the same direction, drawn out to the limits."""
        scale = self.family.swing_scale(len(self.limits.joints))
        where = np.zeros(0)
        if self._free:
            place = (X[0] - self.limits.middle) / (POSE_RANGE * self.limits.half_range)
            where = np.sqrt(2.0) * erfinv(np.clip(place, -0.99, 0.99))
        pose = X[0] if self._free else np.asarray(self.family.start)
        swing = (X - self.family.rest(pose))[scale > 0] / scale[scale > 0]
        size = rms(swing)
        return np.concatenate([where, swing / size if size > 0 else swing])

    def decode(self, z: Array) -> tuple[Array, Array]:
        """Returns the unknowns of the pose at rest, and of the motion about it within limits on q, v and a, shape (d, n)."""
        n = len(self.limits.joints)
        pose = np.asarray(self.family.start)
        if self._free:
            pose = self.limits.middle + POSE_RANGE * self.limits.half_range * erf(z[:n] / np.sqrt(2.0))
        rest, scale = self.family.rest(pose), self.family.swing_scale(n)
        swing = np.zeros_like(scale)
        swing[scale > 0] = z[self._free :] * scale[scale > 0]
        return rest, FILL * self.linear.reach(rest, swing) * swing


def evolve(
    method: str,
    evaluate: Callable[[Array], float],
    start: Array,
    rng: np.random.Generator,
    exhausted: Callable[[], bool],
    evaluations: int = EVALUATIONS,
) -> None:
    """Minimises a function of a vector until evaluations or budget are used up.

    Args:
        method: ``"cma"``: covariance matrix adaptation (Hansen 2016); ``"differential_evolution"`` (Storn and
            Price 1997).
        evaluate: Shape (g,) → the value, finite; the caller stores the best.
        start: Start vector, shape (g,).
        exhausted: Whether the budget is used up; nothing is evaluated then.
        evaluations: Largest number of evaluations; at least one generation unless the budget is used up.

    Raises:
        MissingExtraError: CMA-ES without the package ``cma``.
    """

    def value(z: Array) -> float:
        return UNUSABLE if exhausted() else evaluate(z)

    generations = max(1, evaluations // POPULATION)
    if method == "cma":
        options: dict[str, Any] = {"popsize": POPULATION, "verbose": -9, "seed": np.nan}
        options["randn"] = lambda *shape: rng.standard_normal(shape)
        strategy = _cma().CMAEvolutionStrategy(start, SPREAD, options)
        for _ in range(generations):
            if exhausted() or strategy.stop():
                break
            vectors = strategy.ask()
            strategy.tell(vectors, [value(z) for z in vectors])
        return
    from scipy.optimize import differential_evolution

    first = start + SPREAD * rng.standard_normal((POPULATION, len(start)))
    first[0] = start
    differential_evolution(
        value,
        np.tile([-4.0, 4.0], (len(start), 1)),
        init=np.clip(first, -4.0, 4.0),
        maxiter=generations - 1,
        tol=0.0,
        strategy="currenttobest1bin",
        mutation=(0.4, 0.9),
        recombination=0.9,
        polish=False,
        seed=rng,
        callback=lambda *_: exhausted(),
    )


def _cma() -> Any:
    try:
        import cma
    except ImportError as error:
        raise MissingExtraError(
            "the global start cma needs the package cma",
            remedy="install it: pip install 'urdf-ident[design]', or use differential_evolution",
        ) from error
    return cma
