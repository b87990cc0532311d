"""Checks that identification.json is complete, of this version and plausible before it is used.

A truncated, edited or forged file must not become a model that moves a robot. Redundant entries must agree, values must be
finite and of plausible size, and the seal shows whether the content has changed since it was written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import LogError
from ...linalg import Array
from ...provenance import sha256

#: Upper bound for all parameters of a robot, in SI units; estimates from the data alone may exceed it.
LARGEST = 1e12
#: Allowed asymmetry of a scaled covariance, and its allowed negative eigenvalue per dimension.
_ROUNDING = 1e-8
#: Bound above which squares overflow; and relative residual of a column of the prior's root if the others span it.
_HUGE, _SPANNED = 1e150, 1e-14
_SECTIONS = {
    "robot": dict,
    "inputs": list,
    "joints": list,
    "parameters": dict,
    "covariance": dict,
    "signals": dict,
    "solver": dict,
    "consistency": dict,
    "validation": list,
    "config": dict,
    "model": dict,
    "state": dict,
}
_REMEDY = "restore the file as `urdf-ident identify` wrote it, or identify again"


def seal(data: Mapping[str, Any]) -> str:
    """Returns the hash of a result's content, independent of the order of its keys."""
    content = {key: value for key, value in data.items() if key != "seal"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def check_result(data: Any, schema: str) -> None:
    """Refuses incomplete and impossible results."""
    if not isinstance(data, Mapping):
        raise LogError("not a result", got=type(data).__name__, expected="a mapping", remedy=_REMEDY)
    if (stated := data.get("schema")) != schema:
        family, _, version = schema.rpartition("/")
        other, _, number = str(stated).rpartition("/")
        if isinstance(stated, str) and other == family and number.isdigit():
            newer = int(number[:9]) > int(version)
            what = f"the result is of {'a newer' if newer else 'an older'} version"
            remedy = "update urdf-ident" if newer else "identify again, or read it with the version that wrote it"
            raise LogError(what, where="schema", got=stated, expected=schema, remedy=remedy)
        remedy = "name the file that `urdf-ident identify` wrote"
        raise LogError("not an identification.json", where="schema", got=repr(stated)[:40], expected=schema, remedy=remedy)
    for name, kind in _SECTIONS.items():
        if not isinstance(data.get(name), kind):
            raise _wrong("is missing or of the wrong kind", name, type(data.get(name)).__name__)
    if "seal" in data and data["seal"] != seal(data):
        raise LogError(
            "the content was changed after it was written",
            where="seal",
            remedy="identify again; an intended edit removes the entry 'seal'",
        )
    text, stored = data["robot"].get("urdf"), data["robot"].get("sha256")
    if not isinstance(text, str) or not text.lstrip().startswith("<"):
        raise _wrong("is no URDF", "robot.urdf")
    try:
        digest = sha256(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise _wrong("is no text", "robot.urdf") from error
    if digest != stored:
        raise _wrong("is not the URDF that was identified", "robot.urdf", f"sha256 {digest[:12]}…", str(stored)[:12])
    for name in ("load", "speed"):
        if name in data["signals"]:
            _sized(np.atleast_1d(_numbers(data["signals"][name], f"signals.{name}")), (len(data["joints"]),), f"signals.{name}")
    for where in ("parameters.base", "parameters.standard"):
        entries = data["parameters"].get(where.partition(".")[2])
        if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
            raise _wrong("is no list of parameters", where)
        values = _numbers([entry.get("value") for entry in entries], where)
        if values.shape != (len(entries),):
            raise _wrong("a value is no number", where)
    masses = values[[entry.get("unit") == "kg" and "body" in entry for entry in entries]]
    if data["consistency"].get("consistent") is not False and not (masses > 0).all():
        raise _wrong("a mass is not positive in a result that calls itself consistent", "parameters.standard", masses.min())
    _check_state(data)


def _check_state(data: Mapping[str, Any]) -> None:
    """Checks that the base reduction, the covariance and the data behind them are consistent."""
    state, standard = data["state"], data["parameters"]["standard"]
    base, fit, prior = (_mapping(state, key) for key in ("base", "fit", "prior"))
    p, b = len(standard), len(data["parameters"]["base"])
    for key in ("independent", "dependent", "zero"):
        if not isinstance(base.get(key), list) or not all(type(k) is int for k in base[key]):
            raise _wrong("holds no indices", f"state.base.{key}")
    independent, dependent = base["independent"], base["dependent"]
    if sorted([*independent, *dependent, *base["zero"]]) != list(range(p)) or len(independent) != b:
        raise _wrong("does not name every parameter once", "state.base", f"{b} of {p}")
    if not all(type(k) is int and 0 <= k < p for k in base.get("blurred", ())):
        raise _wrong("holds no indices", "state.base.blurred")
    K = _numbers(base.get("K"), "state.base.K")
    if K.size != b * len(dependent):
        raise _wrong("has the wrong size", "state.base.K", K.size, b * len(dependent))
    # combinations stored as numbers and, for readers, by name agree; the latter lack tiny coefficients
    names = [str(term.get("name")) for term in standard]
    for number, (row, entry) in enumerate(zip(K.reshape(b, len(dependent)), data["parameters"]["base"], strict=True)):
        listed = {str(term["parameter"]): float(term["coefficient"]) for term in entry.get("terms", ())}
        meant = {names[dependent[k]]: float(row[k]) for k in np.flatnonzero(row)} | {names[independent[number]]: 1.0}
        pairs = [(listed.get(key, 0.0), meant.get(key, 0.0)) for key in {*listed, *meant}]
        if any(abs(named - value) > 1.000001e-9 * max(1.0, abs(value)) for named, value in pairs):
            raise _wrong("disagrees with the terms of the base parameters", "state.base.K", f"row {number}")
    covariance, seen = _sized(_mapping(data, "covariance").get("matrix"), (b, b), "covariance.matrix"), fit.get("seen")
    if not isinstance(seen, list) or len(seen) != b or not all(isinstance(flag, bool) for flag in seen):
        raise _wrong("is no list of true and false", "state.fit.seen")
    determined = covariance[np.ix_(seen, seen)] if b else covariance
    if (np.diag(determined) < 0).any():
        raise _wrong("holds a negative variance", "covariance.matrix", np.diag(determined).min())
    size = np.where(np.diag(determined) > 0, np.sqrt(np.diag(determined)), 1.0)
    scaled = determined / size / size[:, None]
    if len(scaled) and not np.allclose(scaled, scaled.T, rtol=0, atol=_ROUNDING):
        raise _wrong("is not symmetric", "covariance.matrix")
    if len(scaled) and np.linalg.eigvalsh(scaled)[0] < -_ROUNDING * len(scaled):
        raise _wrong("has a negative eigenvalue", "covariance.matrix")
    _sized(state.get("factor"), (None, p + 1), "state.factor")
    _sized(state.get("baseline"), (p,), "state.baseline")
    _sized(prior.get("theta0"), (p,), "state.prior.theta0")
    root = _sized(prior.get("root"), (None, p), "state.prior.root")
    size = np.abs(root).max(axis=0, initial=0.0)
    if not ((size > 1 / _HUGE) & (size < _HUGE)).all():
        raise _wrong("holds a column without size, or out of all proportion", "state.prior.root")
    if (np.abs(np.diag(np.linalg.qr(root / size, mode="r"))) < _SPANNED).any() or len(root) < p:
        raise _wrong("does not bound every parameter", "state.prior.root")
    for key in ("rows", "dof"):
        if not float(_numbers(fit.get(key), f"state.fit.{key}")) > 0:
            raise _wrong("is not positive", f"state.fit.{key}", fit.get(key))
    if not all(value > 0 for value in _numbers(list(_mapping(fit, "sigma").values()), "state.fit.sigma")):
        raise _wrong("is not positive", "state.fit.sigma")


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    section = data.get(key)
    if not isinstance(section, Mapping):
        raise _wrong("is missing or no mapping", key)
    return section


def _sized(value: Any, shape: tuple[int | None, ...], where: str) -> Array:
    array = _numbers(value, where)
    if array.ndim != len(shape) or any(want is not None and got != want for got, want in zip(array.shape, shape, strict=True)):
        raise _wrong("has the wrong shape", where, array.shape, shape)
    return array


def _numbers(value: Any, where: str) -> Array:
    """Returns the value as an array of finite numbers of plausible size, of any shape."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise _wrong("holds what is no number", where) from error
    if value is None or not np.isfinite(array).all():
        raise _wrong("holds a number that is not finite", where)
    if where == "parameters.standard" and not (np.abs(array) < LARGEST).all():
        raise _wrong("is out of all proportion", where, f"{np.abs(array).max():.3g}", f"< {LARGEST:g}")
    return array


def _wrong(what: str, where: str, got: object = None, expected: object = None) -> LogError:
    return LogError(f"damaged: {what}", where=where, got=got, expected=expected, remedy=_REMEDY)
