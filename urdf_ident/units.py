"""Units of logs, converted once when a log is read: everything inside the package is in SI units.

A unit has a *kind* (what it measures) and a factor to SI. Efforts may be torques, forces, currents or
voltages; the latter two are converted to torques by the drive gain, not by a unit.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from .errors import UnitError, nearest


@dataclass(frozen=True)
class Unit:
    """A unit: its name, what it measures and its factor to SI."""

    name: str
    kind: str
    factor: float

    @property
    def si(self) -> str:
        """Name of the SI unit of its kind; of hundredths of a range of motion, which have none, its own."""
        return next((name for name, factor in _TABLE[self.kind].items() if factor == 1.0), self.name)


_TABLE = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    "angle": {"rad": 1.0, "deg": math.pi / 180, "rev": 2 * math.pi, "mrad": 1e-3, "urad": 1e-6, "mdeg": math.pi / 180e3},
    "length": {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "um": 1e-6},
    "angular velocity": {"rad/s": 1.0, "deg/s": math.pi / 180, "rev/s": 2 * math.pi, "rpm": math.pi / 30},
    "linear velocity": {"m/s": 1.0, "mm/s": 1e-3},
    "angular acceleration": {"rad/s^2": 1.0, "deg/s^2": math.pi / 180, "rev/s^2": 2 * math.pi},
    "linear acceleration": {"m/s^2": 1.0, "mm/s^2": 1e-3},
    "torque": {"N·m": 1.0, "mN·m": 1e-3, "kN·m": 1e3, "N·mm": 1e-3, "N·cm": 1e-2},
    "force": {"N": 1.0, "mN": 1e-3, "kN": 1e3},
    "current": {"A": 1.0, "mA": 1e-3},
    "voltage": {"V": 1.0, "mV": 1e-3},
    "fraction": {"1": 1.0, "%": 1e-2},
    "range of motion": {"normalized": 1e-2},
    "temperature": {"K": 1.0, "degC": 1.0},
}
_UNITS = {name: Unit(name, kind, factor) for kind, units in _TABLE.items() for name, factor in units.items()}
_SPELLINGS = {
    "Nm": "N·m",
    "N.m": "N·m",
    "N*m": "N·m",
    "mNm": "mN·m",
    "kNm": "kN·m",
    "Nmm": "N·mm",
    "N.mm": "N·mm",
    "N*mm": "N·mm",
    "Ncm": "N·cm",
    "N.cm": "N·cm",
    "N*cm": "N·cm",
    "percent": "%",
    "fraction": "1",
    "degrees": "deg",
    "radians": "rad",
    "°": "deg",
    "°/s": "deg/s",
    "rad/s²": "rad/s^2",
    "rad/s2": "rad/s^2",
    "deg/s²": "deg/s^2",
    "m/s²": "m/s^2",
    "°C": "degC",
    "µs": "us",
    "µrad": "urad",
    "sec": "s",
    "msec": "ms",
    "usec": "us",
    "µm": "um",
    **dict.fromkeys(("second", "seconds"), "s"),
    **dict.fromkeys(("millisecond", "milliseconds"), "ms"),
    "radian": "rad",
    "degree": "deg",
    **dict.fromkeys(("meter", "meters", "metre", "metres"), "m"),
    **dict.fromkeys(("N m", "newton meter", "newton-meter", "newton metre"), "N·m"),
    **dict.fromkeys(("amp", "amps", "ampere", "amperes"), "A"),
}
_COUNTS = re.compile(r"counts\((\d+(?:\.\d+)?)\)")

#: Kinds of unit that a log column may have, by quantity.
KINDS = {
    "time": ("time",),
    "position": ("angle", "length", "range of motion"),
    "velocity": ("angular velocity", "linear velocity"),
    "acceleration": ("angular acceleration", "linear acceleration"),
    "effort": ("torque", "force", "current", "voltage", "fraction"),
    "temperature": ("temperature",),
}


def parse_unit(text: str, quantity: str | None = None, where: str | None = None) -> Unit:
    """Finds a unit by its name.

    Args:
        text: Name such as ``"deg"``, ``"N·m"`` (or ``"Nm"``), ``"counts(4096)"`` (counts per revolution).
        quantity: Key of :data:`KINDS`; if given, the unit must measure it.
        where: Where the unit was written, for messages.

    Raises:
        UnitError: The unit is unknown or measures something else.
    """
    name = _SPELLINGS.get(text.strip(), text.strip())
    counts = _COUNTS.fullmatch(name)
    if counts and float(counts[1]) > 0:
        unit = Unit(name, "angle", 2 * math.pi / float(counts[1]))
    elif name in _UNITS:
        unit = _UNITS[name]
    else:
        raise UnitError("unknown unit", where=where, got=repr(text), remedy=nearest(name, unit_names(quantity)))
    if quantity is not None and unit.kind not in KINDS[quantity]:
        raise UnitError(
            f"'{text}' is a unit of {unit.kind}, not of {quantity}", where=where, expected=" or ".join(unit_names(quantity))
        )
    return unit


def joint_units(prismatic: bool) -> dict[str, str]:
    """SI units of a joint's signals.

    Args:
        prismatic: True for a prismatic joint, False for a revolute one.

    Returns:
        Units of ``position``, ``velocity``, ``acceleration`` and ``torque``.
    """
    if prismatic:
        return {"position": "m", "velocity": "m/s", "acceleration": "m/s^2", "torque": "N"}
    return {"position": "rad", "velocity": "rad/s", "acceleration": "rad/s^2", "torque": "N·m"}


def fits(unit: Unit, quantity: str, prismatic: bool) -> bool:
    """Whether a unit of position, velocity or acceleration (key of :data:`KINDS`) suits a joint of this type."""
    return unit.kind == KINDS[quantity][prismatic]


def unit_names(quantity: str | None) -> list[str]:
    """Names of the units of a quantity, a key of :data:`KINDS`; all if it is None."""
    return [unit.name for unit in _UNITS.values() if quantity is None or unit.kind in KINDS[quantity]]


def percent(value: float) -> str:
    """Formats a percentage with two digits or as a whole number, without an exponent: with four decimals at most.

    Args:
        value: A share [%].

    Returns:
        The number, without a percent sign.
    """
    return f"{value:.0f}" if abs(value) >= 10.0 else f"{round(value, 4) + 0.0:.2g}"


def with_error(value: float, error: float) -> str:
    """Formats a value with its standard error, both to the second significant digit of the error.

    Args:
        value: Any unit.
        error: In the same unit; a value with an error of 0, inf or nan has four digits and stands alone.

    Returns:
        Such as ``16.4 ± 3.0``, with a typographic minus.
    """
    if not (0 < error < math.inf) or not math.isfinite(value):
        return f"{value:.4g}".replace("-", "−") if math.isfinite(value) else "–"
    places = 1 - math.floor(math.log10(error))
    if -3 <= places <= 6:
        text = f"{round(value, places) + 0.0:.{max(places, 0)}f} ± {round(error, places):.{max(places, 0)}f}"
    else:
        text = f"{value:.{max(1 + math.floor(math.log10(abs(value) or error)) + places, 1)}g} ± {error:.2g}"
    return text.replace("-", "−")
