"""Friction laws: one class per law, shared by the estimator, the simulated plant, the online model and the files.

A law defines its physics once (:meth:`.law.Law.basis`). The regressor columns, the torque of a simulated plant with
stiction, the torque of one online sample, the formula in joints.yaml and the names in files are derived from it. A new law
is one new class; importing its module registers it by name.
"""

from __future__ import annotations

from .dissipation import FRACTIONS, MOST_FRICTION, SPEEDS, Trained, conditions, dissipation, law_rows, trained_range
from .law import (
    FRICTION,
    SATURATED,
    SIGN_WIDTH,
    AxisMotion,
    AxisScale,
    Friction,
    Law,
    Shape,
    Sliding,
    Term,
    bias_symbols,
    combine_axes,
    smooth_sign,
)
from .laws import (
    Asymmetric,
    Balancer,
    Conservative,
    Coulomb,
    Cubic,
    Dahl,
    LoadCoulomb,
    Offset,
    Presliding,
    Relaxing,
    Spring,
    Stribeck,
    StribeckArctan,
    SubLinear,
    Viscous,
    play,
)
from .specification import (
    DEFAULT_FRICTION,
    MOTOR_FRICTION,
    friction_by_joint,
    friction_from_mapping,
    friction_term,
)

__all__ = [
    "DEFAULT_FRICTION",
    "FRACTIONS",
    "FRICTION",
    "MOST_FRICTION",
    "MOTOR_FRICTION",
    "SATURATED",
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
    "Friction",
    "Law",
    "LoadCoulomb",
    "Offset",
    "Presliding",
    "Relaxing",
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
    "combine_axes",
    "conditions",
    "dissipation",
    "friction_by_joint",
    "friction_from_mapping",
    "friction_term",
    "law_rows",
    "play",
    "smooth_sign",
    "trained_range",
]
