"""Parameters of a model that may differ between logs."""

from __future__ import annotations

from dataclasses import dataclass

from ..friction import Law
from ..model.dynamic_model import DynamicModel


@dataclass(frozen=True)
class Varying:
    """A parameter that may differ between logs.

    Attributes:
        name: Name of its first entry of theta.
        axis: Index of the joint (or motor) that it belongs to.
        kind: "dry", "viscous" or "load"; "body" for inertial ones.
        columns: Indices into theta of the entries that change together.
        size: Order of magnitude of a difference, if it does not follow from the estimate.
    """

    name: str
    axis: int
    kind: str
    columns: tuple[int, ...]
    size: float = 0.0


def varying(model: DynamicModel) -> tuple[Varying, ...]:
    """Returns the friction parameters that change with temperature and wear: per axis, side and kind those of the first law.

    Returns:
        The parameters, in the order of theta.
    """
    found: dict[tuple[int, str, str], Varying] = {}
    for item, places in model.placed_terms:
        if isinstance(item.term, Law):
            own: dict[str, list[int]] = {}
            for k, symbol in enumerate(item.term.symbols, places.start):
                if symbol in item.term.changing:
                    own.setdefault(item.term.changing[symbol], []).append(k)
            for kind, columns in own.items():
                entry = Varying(model.names[columns[0]], item.axis, kind, tuple(columns))
                found.setdefault((item.axis, item.side, kind), entry)
    return tuple(sorted(found.values(), key=lambda entry: entry.columns))
