"""joints.yaml: joint parameters that a URDF cannot contain, in a readable file that can be read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ..files.documents import FLOAT_WITHOUT_POINT
from ..files.read_write import write_text
from ..friction import Law
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.inertia import BODY_PARAMETERS

_HEADER = """\
# Joint parameters that a URDF cannot hold, in SI units, on the joint side unless said otherwise.
# torque = rigid bodies + the sum of the terms below; tanh(v / width) stands for sign(v) in friction, tau_rigid for the torque
# of the bodies in `load`, without rotors and friction.
# trained: range of speeds in the data, of laws that are alike in both directions that of the faster one. Beyond its edges a
# term is extrapolated along its tangent, value + slope * (v - edge);
# with `straight` only up to that multiple of the edge, then value + slope * edge * (2*sqrt(straight * v/edge) - straight - 1).
# std_error and interval (95 %): uncertainty of the value. Values with the verdict "not identifiable" were not determined by the
# data; they follow from the physical constraints and the prior.
"""
#: Note on the frozen load: its parameters are those of the fit, whose bodies need not be physically consistent.
_LOAD = (
    "load_coulomb multiplies |tau_rigid| of rigid bodies with these inertial parameters about the joints' origins [SI], as the "
    "torque was frozen for the fit; only their torque has a meaning"
)

#: Note on joints that are set apart.
_APART = "the efforts of these joints are not their torques: they determined the terms below alone, and no body"


class _Dumper(yaml.SafeDumper):
    """Quotes names such as ``1e5``, which this package's readers would parse as numbers."""


_Dumper.add_implicit_resolver(*FLOAT_WITHOUT_POINT)


def write_sidecar(
    path: str | Path,
    model: DynamicModel,
    theta: Array,
    *,
    known: Sequence[Mapping[str, Any]] = (),
    elasticity: Mapping[str, Any] | None = None,
) -> Path:
    """Writes the joint terms of a model atomically.

    Args:
        path: The YAML file.
        model: The dynamic model.
        theta: Its parameters, shape (p,).
        known: Uncertainty of each joint term: p - 10·n entries of plain data, written with the values; none if empty.
        elasticity: Springs and rotors of elastic joints, plain data by joint; omitted if empty.

    Raises:
        OutputError: The file cannot be written.
    """
    joints: dict[str, dict[str, Any]] = {name: {} for name in model.robot.joints}
    for k in range(model.n_inertial, len(model.parameters)):
        parameter = model.parameters[k]
        term = model.term_of(k)
        entry = {"value": float(theta[k]), "unit": parameter.unit, **term.as_dict()}
        if isinstance(term, Law):
            entry["formula"] = term.formula
        entry.update(known[k - model.n_inertial] if known else {})
        joints[parameter.owner][parameter.symbol] = entry
    data = {"robot": model.robot.name, "urdf_sha256": model.robot.sha256, "joints": joints, "drive": model.drive.as_dict()}
    if model.apart:
        data["apart"] = {"what": _APART, "joints": [model.robot.joints[j] for j in sorted(model.apart)]}
    if model.reference_theta is not None:
        tens = model.reference_theta.reshape(-1, 10).tolist()
        bodies = {body.name: ten for body, ten in zip(model.robot.bodies, tens, strict=True)}
        data["load"] = {"what": _LOAD, "order": list(BODY_PARAMETERS), "bodies": bodies}
    if elasticity:
        data["elasticity"] = dict(elasticity)
    return write_text(path, _HEADER + yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))
