"""What the program reads of the sections of identification.json that a result holds as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import check_shape
from ..record import Record

#: Section → its entries as in the file, each with its type. An entry with "?" may be missing, a section empty; both may hold
#: more, for readers.
_FORMS: dict[str, Any] = {
    "signals": {
        **dict.fromkeys(("rate", "cutoff", "decimate"), float),
        "why": [str],
        "delay?": {"compensated": float},
        "prediction?": {"scale": float, "scales": [float], "folds": [str], "mean_rmse": [float]},
    },
    "solver": {
        "active?": [str],
        "notes?": [str],
        "weight?": float,
        "springs?": [{"joint": str}],
        "weights_tried?": [{"weight": float, "held_out": float}],
        "folds?": {"count": float, "variance": float},
    },
    "selection": {
        "groups": [str],
        "rmse_simple": [float],
        "rmse_chosen": [float],
        "trials": [{"joint": str, "term": str, "side": str, "gain": float, "std_error": float, "chosen": bool}],
    },
    "essential": {"rule": str, "names": [str], "held_out": float},
    "simpler_models": {"groups": [str], "rmse": {"urdf": [float], "urdf_friction": [float]}, "text": str},
    "black_box": {"text": [str]},
    "adaptation": {"memory": float, "caution": float, "used": [bool]},
}
_JOINT = ("rmse", "relative", "rms_torque", "moving_rmse", "fit_rmse", "urdf_rmse", "urdf_friction_rmse")
#: An entry of ``validation``.
_SCORE = {
    **dict.fromkeys(("relative", "mean_rmse", "fit_mean_rmse", "urdf_mean_rmse", "urdf_friction_mean_rmse"), float),
    "log": str,
    "trained_on": bool,
    "repeats?": str,
    "per_joint": [{"joint": str, "unit": str, "held?": float, **dict.fromkeys(_JOINT, float)}],
    "adapted?": {"mean_rmse": float, "per_joint": [{"joint": str, "rmse": float}]},
}


def check_sections(ident: Record) -> None:
    """Refuses sections from a file that lack an entry (KeyError), or hold one of another type or length."""
    for name, form in _FORMS.items():
        if section := getattr(ident, name):
            _check(form, section, name)
    _check([_SCORE], ident.validation, "validation")
    if models := ident.simpler_models:
        for name, errors in models["rmse"].items():
            check_shape(f"simpler_models.rmse.{name}", (len(errors),), (len(models["groups"]),))


def _check(form: Any, value: Any, where: str) -> None:
    kinds: dict[type, Any] = {dict: Mapping, list: list | tuple}
    kind = kinds.get(type(form), int | float if form is float else form)
    told = form is float and value in ("inf", "-inf", "nan")  # as :func:`.records.plain` writes them
    if not (isinstance(value, kind) or told):
        raise TypeError(f"{where} is {value!r:.40}")
    if isinstance(form, list):
        for k, entry in enumerate(value):
            _check(form[0], entry, f"{where}.{k}")
    for name, of_entry in form.items() if isinstance(form, dict) else ():
        key, optional = name.rstrip("?"), name.endswith("?")
        if key not in value and not optional:
            raise KeyError(f"{where}.{key}")
        if not optional or value.get(key) is not None:
            _check(of_entry, value[key], f"{where}.{key}")
