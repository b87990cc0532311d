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

from ...errors import LimitError, MissingExtraError, check_known
from ...linalg import Array, rms
from ...motion.limits import Limits
from ..family import POSE_RANGE, Family
from .interior import LinearLimits

GLOBAL_STARTS = ("none", "cma", "differential_evolution")
#: Number of evaluations before a local search begins.
EVALUATIONS = 400
#: Individuals per generation.
POPULATION = 20
#: Initial spread, in standard deviations of random motions.
SPREAD = 0.4
#: Amplitude of a motion as a fraction of the largest feasible one.
FILL = 0.9
#: Value of an infeasible motion.
UNUSABLE = 1e6


def check_global_start(name: str) -> None:
    """Checks a method's name and that its package is installed.

    Args:
        name: One of :data:`GLOBAL_STARTS`.

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
        """Encodes a motion as a vector.

        Args:
            X: Unknowns, shape (d, n).

        Returns:
            Shape (g,); for a motion that fills the limits, :meth:`decode` returns the same direction.
        """
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
        """Decodes a vector to a motion.

        Args:
            z: Shape (g,).

        Returns:
            Unknowns of the pose at rest, and of the motion about it within limits on q, v and a, shape (d, n) each.
        """
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
        exhausted: Whether the budget is used up.
        evaluations: Largest number of evaluations; at least one generation unless the budget is used up.

    Raises:
        MissingExtraError: CMA-ES without the package ``cma``.
    """
    limited = _Counted(evaluate, exhausted)
    if method == "cma":
        _covariance_adaptation(limited, start, rng, evaluations)
    else:
        _differential_evolution(limited, start, rng, evaluations)


@dataclass
class _Counted:
    """A function that is no longer evaluated once the budget is used up."""

    evaluate: Callable[[Array], float]
    exhausted: Callable[[], bool]
    count: int = 0

    def __call__(self, z: Array) -> float:
        if self.exhausted():
            return UNUSABLE
        self.count += 1
        return self.evaluate(z)


def _covariance_adaptation(value: _Counted, start: Array, rng: np.random.Generator, evaluations: int) -> None:
    options: dict[str, Any] = {
        "popsize": POPULATION,
        "verbose": -9,
        "seed": np.nan,
        "randn": lambda *shape: rng.standard_normal(shape),
    }
    strategy = _cma().CMAEvolutionStrategy(start, SPREAD, options)
    while value.count + POPULATION <= max(evaluations, POPULATION) and not value.exhausted() and not strategy.stop():
        vectors = strategy.ask()
        strategy.tell(vectors, [value(z) for z in vectors])


def _differential_evolution(value: _Counted, start: Array, rng: np.random.Generator, evaluations: int) -> None:
    from scipy.optimize import differential_evolution

    first = start + SPREAD * rng.standard_normal((POPULATION, len(start)))
    first[0] = start
    bounds = np.tile([-4.0, 4.0], (len(start), 1))
    differential_evolution(
        value,
        bounds,
        init=np.clip(first, -4.0, 4.0),
        maxiter=max(0, evaluations // POPULATION - 1),
        tol=0.0,
        strategy="currenttobest1bin",
        mutation=(0.4, 0.9),
        recombination=0.9,
        polish=False,
        seed=rng,
        callback=lambda *_: value.exhausted(),
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
