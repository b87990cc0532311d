"""What small faults and changes add to the torques, as columns of a linear model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...judgements.catalogue import Id
from ...linalg import Array

#: Size of a geometric fault [1, rad or m] above which its effect is not linear.
_FIRST_ORDER = 0.5


@dataclass(frozen=True, eq=False)
class FaultFamily:
    """Faults of one kind and of some joints, in the linear model of the torques.

    Measured efforts exceed those of the robot along the logged motion by ``nuisance · x + columns · c``. The coefficient c
    corrects the robot or the motion; the size says what is wrong with the log, and is ``-unit · c``.

    Attributes:
        columns: Torques per unit of the coefficient, shape (N, n, m) [N·m or N].
        nuisance: What resembles it and is no fault, shape (N, n, k); free in the model without the fault, too.
        unit: Size over coefficient, with the opposite sign: -1 where the coefficient itself is the size.
        impossible_sign: Sign that its coefficient must not have, or 0.
        change: What changes, for one that is tested in windows, single logs, and as a drift; None for a fault of a signal,
            which is tested always and in single logs.
        slope: Growth of a position's error along its travel over the size, at most [1/rad or 1/m].
        only_competes: Whether it is estimated and told elsewhere; here it only competes with the others.
        throughout: Whether it is tested throughout all logs.
        per_log: Whether its columns are those of each log, in which it has another size.
        tries: Number of columns from which these were chosen as the best.
    """

    id: Id
    joints: tuple[int, ...]
    columns: Array
    nuisance: Array = field(default_factory=lambda: np.empty((0, 0, 0)))
    unit: float = 1.0
    impossible_sign: int = 0
    change: Change | None = None
    slope: float = 1.0
    only_competes: bool = False
    throughout: bool = True
    per_log: bool = False
    tries: int = 1

    @property
    def known(self) -> int:
        """Number of the columns of the nuisance."""
        return len(self.nuisance.T)

    @cached_property
    def together(self) -> Array:
        """Columns [nuisance | family], shape (N, n, k + m)."""
        return np.concatenate([self.nuisance, self.columns], axis=2) if self.known else self.columns

    @property
    def of_single_logs(self) -> bool:
        return not (self.id.entry.placement or self.only_competes or self.per_log)

    def is_far(self, size: float) -> bool:
        """Whether the effect of a size, in the unit of the family, is not linear, so that the size is not known."""
        return self.id.entry.geometric and self.slope * abs(size) > _FIRST_ORDER


@dataclass(frozen=True)
class Change:
    """What changes along a log or from log to log, and what to do about it, in words."""

    what: str
    remedy: str
