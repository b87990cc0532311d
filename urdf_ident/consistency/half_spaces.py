"""Demands on the parameters that are linear."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import check_shape
from ..linalg import Array
from ..samples import freeze_arrays


@dataclass(frozen=True, eq=False)
class HalfSpaces:
    """Demands ``rows · theta + limits ≥ 0``.

    Attributes:
        rows: Shape (m, p).
        limits: Shape (m,).
        names: In words, length m: what stands at its limit.
    """

    rows: Array
    limits: Array
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        check_shape("limits", self.limits.shape, (len(self.rows),))
        freeze_arrays(self)
