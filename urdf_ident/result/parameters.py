"""Parameters as rows, for tables, plots and a pandas frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..files.records import frame
from .record import Record

_COLUMNS = ("name", "unit", "value", "prior", "std_error", "low", "high", "verdict")


@dataclass(frozen=True)
class ParameterRow:
    """One standard parameter.

    Attributes:
        name: Unique, e.g. ``"Ixx_forearm_link"``.
        symbol: Its symbol, e.g. ``"Ixx"``.
        value: Estimate from data, physics and prior.
        prior: Mean of the prior.
        prior_std: Standard deviation of the prior.
        std_error: From the data alone; inf if the parameter is not identifiable by itself.
        low, high: 95 % interval from data and URDF.
        from_data: Share of the value that comes from the data, 0 to 1.
        verdict: "identifiable", "weak", "only in combination" or "not identifiable".
        advice: What would make it identifiable; empty if nothing is missing.
    """

    name: str
    symbol: str
    owner: str
    unit: str
    value: float
    prior: float
    prior_std: float
    std_error: float
    low: float
    high: float
    from_data: float
    verdict: str
    advice: str


class Parameters:
    """The standard parameters of a result: a sequence of :class:`ParameterRow`, by position or by name.

    Args:
        rows: The parameters, in the order of theta.
    """

    def __init__(self, rows: tuple[ParameterRow, ...]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[ParameterRow]:
        return iter(self._rows)

    def __getitem__(self, key: int | str) -> ParameterRow:
        if isinstance(key, str):
            for row in self._rows:
                if row.name == key:
                    return row
            raise KeyError(key)
        return self._rows[key]

    def to_frame(self) -> Any:
        """Returns the parameters as a pandas frame indexed by name, or as a structured array without pandas.

        Returns:
            Columns unit, value, prior, std_error, low, high, verdict [SI].
        """
        return frame({key: [getattr(row, key) for row in self._rows] for key in _COLUMNS})

    def __repr__(self) -> str:
        head = [f"{row.name} = {row.value:.4g} {row.unit} ({row.verdict})" for row in self._rows[:5]]
        return "\n".join([f"<{len(self)} parameters; .to_frame() for all>", *head, *(["…"] if len(self) > 5 else [])])


def parameters(ident: Record) -> Parameters:
    """Returns the standard parameters of a result."""
    interval, errors, share = ident.interval(), ident.std_error, ident.from_data
    return Parameters(
        tuple(
            ParameterRow(
                name=parameter.name,
                symbol=parameter.symbol,
                owner=parameter.owner,
                unit=parameter.unit,
                value=float(ident.theta[k]),
                prior=float(ident.prior.theta0[k]),
                prior_std=float(ident.prior.std[k]),
                std_error=float(errors[k]),
                low=float(interval[k, 0]),
                high=float(interval[k, 1]),
                from_data=float(share[k]),
                verdict=verdict.level,
                advice=verdict.advice,
            )
            for k, (parameter, verdict) in enumerate(zip(ident.model.parameters, ident.verdicts, strict=True))
        )
    )
