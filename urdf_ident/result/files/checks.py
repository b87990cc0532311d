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
from ...judgements.judgement import Judgement
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
#: What an entry of ``inputs`` holds.
_INPUT = {"name": str, "rows": int, "used": int, "sha256": str}
#: Sections that older or smaller results may lack.
_OPTIONAL: dict[str, type | tuple[type, ...]] = {"prediction": dict, "adaptation": (dict, type(None))}
_REMEDY = "restore the file as `urdf-ident identify` wrote it, or identify again"


def seal(data: Mapping[str, Any]) -> str:
    """Returns the hash of a result's content, independent of the order of its keys."""
    content = {key: value for key, value in data.items() if key != "seal"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def check_result(data: Any, schema: str) -> None:
    """Refuses incomplete and impossible results."""
    if not isinstance(data, Mapping):
        raise LogError("not a result", got=type(data).__name__, expected="a mapping", remedy=_REMEDY)
    _check_schema(data.get("schema"), schema)
    for name, kind in _SECTIONS.items():
        if not isinstance(data.get(name), kind):
            raise _wrong("is missing or of the wrong kind", name, type(data.get(name)).__name__)
    for name, kinds in _OPTIONAL.items():
        if name in data and not isinstance(data[name], kinds):
            raise _wrong("is of the wrong kind", name, type(data[name]).__name__)
    if "seal" in data and data["seal"] != seal(data):
        raise LogError(
            "the content was changed after it was written",
            where="seal",
            remedy="identify again; an intended edit removes the entry 'seal'",
        )
    _check_urdf(data["robot"])
    for name in ("inputs", "validation", "left_out"):
        if not all(isinstance(entry, Mapping) for entry in data.get(name, [])):
            raise _wrong("is no list of mappings", name)
    for k, entry in enumerate(data["inputs"]):
        for key, wanted in _INPUT.items():
            if not isinstance(entry.get(key), wanted):
                raise _wrong("is missing or of the wrong kind", f"inputs.{k}.{key}", repr(entry.get(key))[:40], wanted.__name__)
    for name in ("inputs", "left_out"):
        for k, entry in enumerate(data.get(name, [])):
            _check_findings(entry.get("findings", []), f"{name}.{k}.findings")
    for name in ("load", "speed"):
        if name in data["signals"]:
            _sized(np.atleast_1d(_numbers(data["signals"][name], f"signals.{name}")), (len(data["joints"]),), f"signals.{name}")
    masses = _check_parameters(data)
    if data["consistency"].get("consistent") is not False and not (masses > 0).all():
        raise _wrong("a mass is not positive in a result that calls itself consistent", "parameters.standard", masses.min())
    _check_state(data)


def _check_schema(stated: Any, schema: str) -> None:
    if stated == schema:
        return
    family, _, version = schema.rpartition("/")
    other, _, number = str(stated).rpartition("/")
    if isinstance(stated, str) and other == family and number.isdigit():
        newer = int(number[:9]) > int(version)
        raise LogError(
            f"the result is of {'a newer' if newer else 'an older'} version",
            where="schema",
            got=stated,
            expected=schema,
            remedy="update urdf-ident" if newer else "identify again, or read it with the version that wrote it",
        )
    raise LogError(
        "not an identification.json",
        where="schema",
        got=repr(stated)[:40],
        expected=schema,
        remedy="name the file that `urdf-ident identify` wrote",
    )


def _check_urdf(robot: Mapping[str, Any]) -> None:
    text = robot.get("urdf")
    if not isinstance(text, str) or not text.lstrip().startswith("<"):
        raise _wrong("is no URDF", "robot.urdf")
    try:
        digest = sha256(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise _wrong("is no text", "robot.urdf") from error
    if digest != robot.get("sha256"):
        raise _wrong(
            "is not the URDF that was identified", "robot.urdf", f"sha256 {digest[:12]}…", str(robot.get("sha256"))[:12]
        )


def _check_findings(findings: Any, where: str) -> None:
    keys = ("id", "severity", "message")
    if not isinstance(findings, list) or not all(
        isinstance(finding, Mapping) and all(isinstance(finding.get(word), str) for word in keys) for finding in findings
    ):
        raise _wrong("is no list of findings", where, expected=f"mappings with {', '.join(keys)}")
    try:
        for finding in findings:
            Judgement.from_dict(finding)
    except (TypeError, ValueError) as error:
        raise _wrong(f"holds an unknown finding: {error}", where) from error


def _check_parameters(data: Mapping[str, Any]) -> Array:
    """Checks the values of base and standard parameters; returns the masses."""
    parameters = data["parameters"]
    masses = []
    for kind in ("base", "standard"):
        entries = parameters.get(kind)
        if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
            raise _wrong("is no list of parameters", f"parameters.{kind}")
        values = _numbers([entry.get("value") for entry in entries], f"parameters.{kind}")
        if values.shape != (len(entries),):
            raise _wrong("a value is no number", f"parameters.{kind}")
        if kind == "standard":
            masses = [
                value for entry, value in zip(entries, values, strict=True) if entry.get("unit") == "kg" and "body" in entry
            ]
    return np.array(masses)


def _check_state(data: Mapping[str, Any]) -> None:
    """Checks that the base reduction, the covariance and the data behind them are consistent."""
    state = data["state"]
    base, fit, prior = (_mapping(state, key) for key in ("base", "fit", "prior"))
    p, b = len(data["parameters"]["standard"]), len(data["parameters"]["base"])
    independent, dependent, zero = (_indices(base, key) for key in ("independent", "dependent", "zero"))
    if sorted([*independent, *dependent, *zero]) != list(range(p)) or len(independent) != b:
        raise _wrong("does not name every parameter once", "state.base", f"{b} of {p}")
    if not all(type(k) is int and 0 <= k < p for k in base.get("blurred", ())):
        raise _wrong("holds no indices", "state.base.blurred")
    K = _numbers(base.get("K"), "state.base.K")
    if K.size != b * len(dependent):
        raise _wrong("has the wrong size", "state.base.K", K.size, b * len(dependent))
    _check_combinations(data, independent, dependent, K.reshape(b, len(dependent)))
    _check_covariance(_mapping(data, "covariance").get("matrix"), b, fit.get("seen"))
    _sized(state.get("factor"), (None, p + 1), "state.factor")
    _sized(state.get("baseline"), (p,), "state.baseline")
    _sized(prior.get("theta0"), (p,), "state.prior.theta0")
    _check_root(_sized(prior.get("root"), (None, p), "state.prior.root"))
    for key in ("rows", "dof"):
        if not float(_numbers(fit.get(key), f"state.fit.{key}")) > 0:
            raise _wrong("is not positive", f"state.fit.{key}", fit.get(key))
    if not all(value > 0 for value in _numbers(list(_mapping(fit, "sigma").values()), "state.fit.sigma")):
        raise _wrong("is not positive", "state.fit.sigma")


def _check_root(root: Array) -> None:
    """Checks that the prior constrains every parameter and that the squares of its entries are finite."""
    size = np.abs(root).max(axis=0, initial=0.0)
    if not ((size > 1 / _HUGE) & (size < _HUGE)).all():
        raise _wrong("holds a column without size, or out of all proportion", "state.prior.root")
    if (np.abs(np.diag(np.linalg.qr(root / size, mode="r"))) < _SPANNED).any() or len(root) < root.shape[1]:
        raise _wrong("does not bound every parameter", "state.prior.root")


def _check_combinations(data: Mapping[str, Any], independent: list[int], dependent: list[int], K: Array) -> None:
    """Checks that the combinations stored as numbers and, for readers, by name agree; the latter lack tiny coefficients."""
    names = [str(term.get("name")) for term in data["parameters"]["standard"]]
    for row, entry in enumerate(data["parameters"]["base"]):
        listed = {str(term["parameter"]): float(term["coefficient"]) for term in entry.get("terms", ())}
        meant = {names[dependent[k]]: float(K[row, k]) for k in np.flatnonzero(K[row])} | {names[independent[row]]: 1.0}
        pairs = [(listed.get(key, 0.0), meant.get(key, 0.0)) for key in {*listed, *meant}]
        if any(abs(named - value) > 1.000001e-9 * max(1.0, abs(value)) for named, value in pairs):
            raise _wrong("disagrees with the terms of the base parameters", "state.base.K", f"row {row}")


def _check_covariance(matrix: Any, b: int, seen: Any) -> None:
    covariance = _sized(matrix, (b, b), "covariance.matrix")
    if not isinstance(seen, list) or len(seen) != b or not all(isinstance(flag, bool) for flag in seen):
        raise _wrong("is no list of true and false", "state.fit.seen")
    determined = covariance[np.ix_(seen, seen)] if b else covariance
    size = np.sqrt(np.maximum(np.diag(determined), 0.0))
    if (np.diag(determined) < 0).any():
        raise _wrong("holds a negative variance", "covariance.matrix", np.diag(determined).min())
    scaled = determined / np.where(size > 0, size, 1.0) / np.where(size > 0, size, 1.0)[:, None]
    if len(scaled) and not np.allclose(scaled, scaled.T, rtol=0, atol=_ROUNDING):
        raise _wrong("is not symmetric", "covariance.matrix")
    if len(scaled) and np.linalg.eigvalsh(scaled)[0] < -_ROUNDING * len(scaled):
        raise _wrong("has a negative eigenvalue", "covariance.matrix")


def _indices(base: Mapping[str, Any], key: str) -> list[int]:
    indices = base.get(key)
    if not isinstance(indices, list) or not all(type(k) is int for k in indices):
        raise _wrong("holds no indices", f"state.base.{key}")
    return indices


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
