"""Units: factors against their definitions, spellings, and units of the wrong kind."""

import math

import pytest

from urdf_ident.errors import UnitError
from urdf_ident.units import KINDS, joint_units, parse_unit, percent


@pytest.mark.parametrize(
    ("text", "kind", "value", "si"),
    [
        ("deg", "angle", 180.0, math.pi),
        ("rev", "angle", 0.25, math.pi / 2),
        ("counts(4096)", "angle", 1024, math.pi / 2),
        ("counts(2000.5)", "angle", 2000.5, 2 * math.pi),
        ("mm", "length", 1500, 1.5),
        ("rpm", "angular velocity", 60, 2 * math.pi),
        ("deg/s", "angular velocity", 360, 2 * math.pi),
        ("ms", "time", 250, 0.25),
        ("ns", "time", 1e9, 1.0),
        ("mA", "current", 1500, 1.5),
        ("N·m", "torque", 2, 2),
        ("mNm", "torque", 2000, 2),
        ("kN", "force", 0.5, 500),
        ("%", "fraction", 50, 0.5),
        ("mV", "voltage", 1, 1e-3),
        ("deg/s^2", "angular acceleration", 180, math.pi),
        ("mm/s^2", "linear acceleration", 1, 1e-3),
    ],
)
def test_factor_to_si(text: str, kind: str, value: float, si: float) -> None:
    unit = parse_unit(text)
    assert unit.kind == kind
    assert value * unit.factor == pytest.approx(si, rel=1e-15)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Nm", "N·m"),
        ("N.m", "N·m"),
        (" N*m ", "N·m"),
        ("degrees", "deg"),
        ("°", "deg"),
        ("rad/s²", "rad/s^2"),
        ("rad/s2", "rad/s^2"),
        ("µs", "us"),
    ],
)
def test_spellings(spelling: str, name: str) -> None:
    assert parse_unit(spelling) == parse_unit(name)


@pytest.mark.parametrize(
    ("quantity", "good", "bad"),
    [
        ("position", "mm", "rad/s"),
        ("velocity", "rpm", "rad"),
        ("acceleration", "m/s^2", "m/s"),
        ("effort", "A", "deg"),
        ("time", "ms", "m"),
    ],
)
def test_the_kind_is_checked(quantity: str, good: str, bad: str) -> None:
    assert parse_unit(good, quantity).kind in KINDS[quantity]
    with pytest.raises(UnitError, match=f"not of {quantity}"):
        parse_unit(bad, quantity)


@pytest.mark.parametrize("text", ["radd", "counts(0)", "counts()", "counts(-5)", "", "N·m²", "deg/sec"])
def test_unknown_units_are_refused_and_the_nearest_is_named(text: str) -> None:
    with pytest.raises(UnitError, match="unknown unit.*did you mean 'deg/s'" if text == "deg/sec" else "unknown unit"):
        parse_unit(text, "velocity" if text == "deg/sec" else None)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.034, "0.034"),
        (1.26, "1.3"),
        (12.6, "13"),
        (123.0, "123"),
        (-1234.0, "-1234"),
        (float("inf"), "inf"),
        (0.0003, "0.0003"),
        (6e-5, "0.0001"),
        (-3e-9, "0"),
    ],
)
def test_percentages_have_no_exponent(share: float, text: str) -> None:
    assert percent(share) == text


def test_units_of_joints() -> None:
    assert joint_units(True) == {"position": "m", "velocity": "m/s", "acceleration": "m/s^2", "torque": "N"}
    assert joint_units(False)["torque"] == "N·m"
    for prismatic in (True, False):
        assert all(parse_unit(unit).factor == 1.0 for unit in joint_units(prismatic).values())
