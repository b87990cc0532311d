"""Rotors and friction of a plant from identified parameters."""

from __future__ import annotations

import numpy as np

from ..friction import Law, gather
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from .friction_truth import FrictionTruth


def rotors_and_friction(model: DynamicModel, theta: Array) -> tuple[Array, FrictionTruth]:
    """Rotors and friction of a plant with a model's parameters; springs of elastic joints are not included.

    Args:
        theta: All its parameters, shape (p,).

    Returns:
        Rotor inertia seen from the joints, shape (n, n) [kg·m² or kg], and the friction.
    """
    n, rotor = model.n, np.zeros((model.n, model.n))
    sides: dict[str, list[tuple[int, Law, Array]]] = {"joint": [], "motor": []}
    for item, own in model.placed_terms:
        if item.term.name == "rotor_inertia":
            spread = item.distribution(model.drive.reduction)
            rotor += theta[own.start] * np.outer(spread, spread)
        elif isinstance(item.term, Law):
            sides[item.side].append((item.axis, item.term, np.asarray(theta[own])))
    joint, motor = gather(sides["joint"], n), gather(sides["motor"], n)
    return rotor, FrictionTruth(n, joint, motor, model.drive.reduction if motor else None)
