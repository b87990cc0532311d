"""A global search for where the local one begins: CMA-ES, or differential evolution instead of Wu 2012's genetic algorithm.

A motion is written as a pose and a direction of swinging about it; how far it swings is what the limits on q, v and a allow,
which is exact and costs next to nothing. So every individual is inside these limits, and only torques and collisions can
make one unusable: it is then drawn in, and if that does not help, counts as worst. The criterion itself is not smoothed.

Not the default, because in equal time many short local searches from random motions end lower: by 1-3 % on the UR10e and a
three-axis arm, and by far beside a table and a wall, where an evaluation costs more (``scripts/benchmarks/excitation.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erf, erfinv

from ..errors import LimitError, MissingExtraError, check_known
from ..linalg import Array
from ..motion.limits import Limits
from .family import REST, Family
from .interior import LinearLimits

GLOBAL_STARTS = ("none", "cma", "differential_evolution")
#: What older project files call differential evolution, which is none.
FORMER = "genetic"
#: Motions that are tried before a local search begins.
EVALUATIONS = 400
#: Individuals of a generation.
POPULATION = 20
#: First spread, in standard deviations of random motions.
SPREAD = 0.4
#: Part of the way to the nearest limit that a motion swings.
FILL = 0.9
#: Value of a motion that cannot be used.
UNUSABLE = 1e6


def present_name(name: str) -> tuple[str, tuple[str, ...]]:
    """The present name of a method, for files that have an older one.

    Args:
        name: As written.

    Returns:
        One of :data:`GLOBAL_STARTS`, or what was written, and a note where they differ.
    """
    if name != FORMER:
        return name, ()
    return GLOBAL_STARTS[2], (f"excitation.global_start: {FORMER} is called {GLOBAL_STARTS[2]}, which is what it does",)


def check_global_start(name: str) -> None:
    """Checks a method's name, and that what it needs is installed.

    Args:
        name: One of :data:`GLOBAL_STARTS`.

    Raises:
        LimitError: Unknown; the nearest one is named.
        MissingExtraError: CMA-ES without the package ``cma``.
    """
    check_known("global start", name, GLOBAL_STARTS, LimitError)
    if name == "cma":
        _cma()


@dataclass(frozen=True, eq=False)
class Encoding:
    """Motions as vectors of numbers that are normally distributed when a motion is random.

    Attributes:
        family: The family of motions.
        limits: Finite limits on positions.
        linear: The same limits, and those on velocity and acceleration, on a grid.
    """

    family: Family
    limits: Limits
    linear: LinearLimits

    @property
    def _free(self) -> int:
        """Numbers that say where the motion is."""
        return len(self.limits.joints) if self.family.start is None else 0

    def encode(self, X: Array) -> Array:
        """The vector of a motion.

        Args:
            X: Unknowns, shape (d, n).

        Returns:
            Shape (g,); of a motion that fills the limits, :meth:`decode` gives the same direction back.
        """
        scale = self.family.swing_scale(len(self.limits.joints))
        where = np.zeros(0)
        if self._free:
            middle, half = (self.limits.upper + self.limits.lower) / 2, (self.limits.upper - self.limits.lower) / 2
            where = np.sqrt(2.0) * erfinv(np.clip((X[0] - middle) / (REST * half), -0.99, 0.99))
        pose = X[0] if self._free else np.asarray(self.family.start)
        swing = (X - self.family.rest(pose))[scale > 0] / scale[scale > 0]
        size = float(np.sqrt(np.mean(swing**2)))
        return np.concatenate([where, swing / size if size > 0 else swing])

    def decode(self, z: Array) -> tuple[Array, Array]:
        """The motion of a vector.

        Args:
            z: Shape (g,).

        Returns:
            Unknowns of standing still, and of the swing about it that limits on q, v and a allow, each of shape (d, n).
        """
        n = len(self.limits.joints)
        pose = np.asarray(self.family.start)
        if self._free:
            middle, half = (self.limits.upper + self.limits.lower) / 2, (self.limits.upper - self.limits.lower) / 2
            pose = middle + REST * half * erf(z[:n] / np.sqrt(2.0))
        rest, scale = self.family.rest(pose), self.family.swing_scale(n)
        swing = np.zeros_like(scale)
        swing[scale > 0] = z[self._free :] * scale[scale > 0]
        return rest, FILL * self.linear.reach(rest, swing) * swing


def evolve(
    method: str,
    evaluate: Callable[[Array], float],
    start: Array,
    rng: np.random.Generator,
    late: Callable[[], bool],
    evaluations: int = EVALUATIONS,
) -> None:
    """Lowers a function of a vector until evaluations or time are used up.

    Args:
        method: ``"cma"``: covariance matrix adaptation (Hansen 2016); ``"differential_evolution"`` (Storn and
            Price 1997).
        evaluate: Shape (g,) → the value, finite; the caller keeps the best.
        start: Where to begin, shape (g,).
        rng: Random numbers.
        late: Whether the time is up.
        evaluations: At most so many, and never fewer than a generation unless the time is up.

    Raises:
        MissingExtraError: CMA-ES without the package ``cma``.
    """
    limited = _Counted(evaluate, late)
    if method == "cma":
        _covariance_adaptation(limited, start, rng, evaluations)
    else:
        _differential_evolution(limited, start, rng, evaluations)


@dataclass
class _Counted:
    """A function that costs nothing any more once the time is up."""

    evaluate: Callable[[Array], float]
    late: Callable[[], bool]
    count: int = 0

    def __call__(self, z: Array) -> float:
        if self.late():
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
    while value.count + POPULATION <= max(evaluations, POPULATION) and not value.late() and not strategy.stop():
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
        callback=lambda *_: value.late(),
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
