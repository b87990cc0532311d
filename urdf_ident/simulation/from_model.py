"""From identified parameters to what a plant is made of: rotors and friction."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ModelError
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import SPRING_TERMS
from .friction_terms import friction_from_mapping
from .friction_truth import FrictionTruth

#: Friction laws of a model as laws of a plant: (law, field of the plant's law → symbol or shape of the model's) each.
_LAWS: dict[str, tuple[tuple[str, dict[str, str]], ...]] = {
    "viscous": (("viscous", {"coefficient": "Fv"}),),
    "coulomb": (("coulomb", {"level": "Fc"}),),
    "offset": (("offset", {"level": "offset"}),),
    "cubic": (("cubic", {"coefficient": "F3"}),),
    "sublinear": (("sub_linear", {"coefficient": "Fr"}),),
    "load_coulomb": (("load_coulomb", {"coefficient": "Fl"}),),
    "stribeck": (("stribeck", {"extra": "Fs", "velocity": "velocity"}),),
    "stribeck_arctan": (
        ("arctan", {"stiction": "tau_s", "difference": "tau_sc", "viscous": "tau_v", "sharpness": "sharpness",
                    "stribeck": "stribeck"}),
    ),
    "presliding": (("presliding", {"coulomb": "Fp", "displacement": "width"}),),
    "asymmetric": (
        ("asymmetric_coulomb", {"plus": "Fcp", "minus": "Fcn"}),
        ("asymmetric_polynomial", {"plus_1": "Fv1p", "plus_2": "Fv2p", "plus_3": "Fv3p", "minus_1": "Fv1n",
                                   "minus_2": "Fv2n", "minus_3": "Fv3n", "threshold": "threshold"}),
    ),
}  # fmt: skip


def rotors_and_friction(model: DynamicModel, theta: Array) -> tuple[Array, FrictionTruth]:
    """Rotors and friction of a plant with a model's parameters; springs are left to whoever has some.

    Args:
        model: The model.
        theta: All its parameters, shape (p,).

    Returns:
        Rotor inertia seen from the joints, shape (n, n) [kg·m² or kg], and the friction.

    Raises:
        ModelError: A friction law that no plant has.
    """
    n, rotor = model.n, np.zeros((model.n, model.n))
    tables: dict[str, dict[tuple[str, str], dict[str, Array]]] = {"joint": {}, "motor": {}}
    column = model.n_inertial
    for item in model.terms:
        values = dict(zip(item.term.symbols, theta[column:], strict=False))
        column += len(item.term.symbols)
        if item.term.name == "rotor_inertia":
            spread = item.distribution(model.drive.reduction)
            rotor += values["Ia"] * np.outer(spread, spread)
        elif not isinstance(item.term, SPRING_TERMS):
            _add(tables[item.side], {**item.term.as_dict(), **values}, item.term.symbols, item.axis, n)
    joint, motor = (
        tuple(term for (_, law), fields in tables[side].items() for term in friction_from_mapping({law: fields}))
        for side in ("joint", "motor")
    )
    return rotor, FrictionTruth(n, joint, motor, model.drive.reduction if motor else None)


def _add(
    table: dict[tuple[str, str], dict[str, Array]], term: dict[str, Any], symbols: tuple[str, ...], axis: int, n: int
) -> None:
    """Adds one joint's term to a table of laws; a joint without it has zeros, and ones for its fixed shapes."""
    if term["term"] not in _LAWS:
        raise ModelError(f"friction law '{term['term']}' cannot be simulated", expected=" | ".join(_LAWS))
    for law, sources in _LAWS[term["term"]]:
        fields = table.setdefault(
            (term["term"], law), {key: np.zeros(n) if source in symbols else np.ones(n) for key, source in sources.items()}
        )
        for key, source in sources.items():
            fields[key][axis] = float(term[source])
