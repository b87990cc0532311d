"""Parameters as rows, for tables, plots and a pandas frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ModelError, check_known
from ..files.records import frame

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


class Parameters(tuple[ParameterRow, ...]):
    """The standard parameters of a result in the order of theta, by position or by name."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        of_name = {row.name: row for row in self}
        check_known("parameter", key, of_name, ModelError)
        return of_name[key]

    def to_frame(self) -> Any:
        """Returns the parameters as a pandas frame indexed by name, or as a structured array without pandas.

        Returns:
            Columns unit, value, prior, std_error, low, high, verdict [SI].
        """
        return frame({key: [getattr(row, key) for row in self] for key in _COLUMNS})

    def __repr__(self) -> str:
        head = [f"{row.name} = {row.value:.4g} {row.unit} ({row.verdict})" for row in self[:5]]
        return "\n".join([f"<{len(self)} parameters; .to_frame() for all>", *head, *(["…"] if len(self) > 5 else [])])
