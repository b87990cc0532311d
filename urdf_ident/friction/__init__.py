"""Friction: one class is one law, used by estimator, simulated plant, online callable and files alike.

A law says its physics once (:meth:`.law.Law.basis`) and everything else follows: the columns of the regressor, the torque of
a plant that really sticks, the torque of one online sample, the formula in joints.yaml, the names in files. A new law is
one class; it is known by its name from the moment its module is imported.
"""

from __future__ import annotations

from .choice import DEFAULT_FRICTION, MOTOR_FRICTION, friction_by_joint, friction_term
from .files import FrictionRead, friction_from_mapping
from .law import FRICTION, SIGN_WIDTH, AxisScale, FormerName, Friction, Law, Sliding, bias_symbols, gather, smooth_sign
from .laws import (
    Asymmetric,
    Coulomb,
    Cubic,
    Dahl,
    LoadCoulomb,
    Offset,
    Presliding,
    Stribeck,
    StribeckArctan,
    SubLinear,
    Viscous,
    play,
)
from .physical import SPEEDS, Trained, dissipation, law_rows, trained_range
from .springs import Balancer, Conservative, Spring
from .term import AxisMotion, Shape, Term

__all__ = [
    "DEFAULT_FRICTION",
    "FRICTION",
    "MOTOR_FRICTION",
    "SIGN_WIDTH",
    "SPEEDS",
    "Asymmetric",
    "AxisMotion",
    "AxisScale",
    "Balancer",
    "Conservative",
    "Coulomb",
    "Cubic",
    "Dahl",
    "FormerName",
    "Friction",
    "FrictionRead",
    "Law",
    "LoadCoulomb",
    "Offset",
    "Presliding",
    "Shape",
    "Sliding",
    "Spring",
    "Stribeck",
    "StribeckArctan",
    "SubLinear",
    "Term",
    "Trained",
    "Viscous",
    "bias_symbols",
    "dissipation",
    "friction_by_joint",
    "friction_from_mapping",
    "friction_term",
    "gather",
    "law_rows",
    "play",
    "smooth_sign",
    "trained_range",
]
