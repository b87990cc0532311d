"""Results for elastic joints: stiffness, damping and rotor inertia with intervals, and what was not observed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...model.elasticity import ElasticModel
from ..record import Record

_WORDS = {"K": "stiffness", "D": "damping", "preload": "preload", "Ia": "rotor_inertia"}


def springs(ident: Record, alpha: float = 0.05) -> dict[str, dict[str, Any]]:
    """Returns the elasticity of every joint, as stored in identification.json and joints.yaml.

    Args:
        alpha: One minus the level of confidence of the intervals, a fraction.

    Returns:
        Joint name → ``stiffness``, ``damping``, ``preload``, ``rotor_inertia`` (all after the gear of its motor) and
        ``rotor_inertia_at_motor`` (Υ), each with value, unit, standard error and interval; and how visible the spring is
        in the logs. Empty without elastic joints.
    """
    model = ident.model
    if not isinstance(model, ElasticModel):
        return {}
    from scipy.special import stdtrit

    reach = float(stdtrit(ident.fit.dof, 1 - alpha / 2))
    seen = {spring["joint"]: spring for spring in ident.solver.get("springs", ())}
    table: dict[str, dict[str, Any]] = {}
    for j, joint in enumerate(model.robot.joints):
        entry: dict[str, Any] = {"seen": joint not in model.rigid, "gear_ratio": float(model.drive.ratio[j])}
        for k in range(model.n_inertial, len(model.parameters)):
            term, geared = model.term_of(k), model.after_gear(k)
            if model.parameters[k].owner != joint or term.symbols[0] not in _WORDS:
                continue
            word = _WORDS[term.symbols[0]]
            value = geared * float(ident.theta[k])
            error = abs(geared) * float(ident.std_error[k]) if word == "rotor_inertia" or entry["seen"] else np.inf
            entry[word] = _number(value, error, reach, term.units(bool(model.robot.prismatic[j]))[0])
            if word == "rotor_inertia":
                square = float(model.drive.ratio[j] ** 2)
                entry["rotor_inertia_at_motor"] = _number(value / square, error / square, reach, "kg·m²")
        table[joint] = {**entry, **{key: value for key, value in seen.get(joint, {}).items() if key != "joint"}}
    return table


def _number(value: float, error: float, reach: float, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "std_error": error, "interval": [value - reach * error, value + reach * error]}
