"""Checks that identification.json is complete, of this version and plausible before it is used.

A truncated, edited or forged file must not become a model that moves a robot. Redundant entries must agree, values must be
finite and of plausible size, and the seal shows whether the content has changed since it was written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import LogError, check_shape
from ..estimation.uncertainty.prediction import LEVELS
from ..provenance import sha256
from .evidence import SPEEDS
from .record import Record

#: Upper bound for all parameters of a robot, in SI units; estimates from the data alone may exceed it.
LARGEST = 1e12
#: Allowed asymmetry of a scaled covariance, and its allowed negative eigenvalue per dimension.
_ROUNDING = 1e-8
#: Allowed difference of a coefficient from the listed one, relative to it and to 1; those up to 1e-9 are not listed.
_SAME = 1.000001e-9
#: Bound above which squares overflow.
_HUGE = 1e150
#: Relative residual of a column of the prior's root below which the others span it.
_SPANNED = 1e-14
_SECTIONS = ("robot", "parameters", "covariance", "signals", "consistency", "model", "state")
RESTORE = "restore the file as `urdf-ident identify` wrote it, or identify again"


def seal(data: Mapping[str, Any]) -> str:
    """Returns the hash of a result's content, independent of the order of its keys."""
    content = {key: value for key, value in data.items() if key != "seal"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def check_file(data: Any, schema: str) -> None:
    """Refuses files that are no result, of another version, changed, or with another URDF."""
    if not isinstance(data, Mapping):
        raise LogError("not a result", got=type(data).__name__, expected="a mapping", remedy=RESTORE)
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
    for name in _SECTIONS:
        if not isinstance(data.get(name), Mapping):
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


def check_values(ident: Record, terms: Sequence[Mapping[str, float]], *, consistent: bool) -> None:
    """Refuses impossible values, and indices, shapes and redundant entries that do not fit together.

    Args:
        terms: Parameter → coefficient of every base parameter, as listed for readers, without tiny ones.
        consistent: Whether the file calls its bodies consistent.
    """
    model, fit, base, prior = ident.model, ident.fit, ident.fit.base, ident.prior
    p, b, n = len(model.names), len(base), model.n
    named = np.concatenate([base.independent, base.dependent, base.zero])
    if sorted(named.tolist()) != list(range(p)):
        raise _wrong("does not name every parameter once", "state.base", f"{b} of {p}")
    if not all(0 <= k < p for k in base.ill_conditioned):
        raise _wrong("holds no indices", "state.base.ill_conditioned")
    for where, array, shape in (
        ("parameters.standard", ident.theta, (p,)),
        ("parameters.base", fit.params, (b,)),
        ("covariance.matrix", fit.covariance, (b, b)),
        ("state.base.K", base.K, (b, len(base.dependent))),
        ("state.fit.seen", fit.seen, (b,)),
        ("state.fit.rows", np.array(fit.rows), ()),
        ("state.fit.dof", np.array(fit.dof), ()),
        ("state.factor", ident.factor, ("rows", p + 1)),
        ("state.baseline", ident.baseline, (p,)),
        ("state.prior.theta0", prior.theta0, (p,)),
        ("state.prior.root", prior.root, (p, p)),
        *((f"signals.{name}", np.array(ident.signals[name]), (n,)) for name in ("load", "speed") if name in ident.signals),
    ):
        check_shape(where, array.shape, shape)
        if not np.isfinite(array).all():
            raise _wrong("holds a number that is not finite", where)
    for row, listed in enumerate(terms):
        meant = dict(base.terms(row))
        pairs = [(listed.get(name, 0.0), meant.get(name, 0.0)) for name in {*listed, *meant}]
        if not all(abs(stated - value) <= _SAME * max(1.0, abs(value)) for stated, value in pairs):
            raise _wrong("disagrees with the terms of the base parameters", "state.base.K", f"row {row}")
    for where, held, shapes in _shapes(ident):
        for name, shape in shapes.items():
            if (array := getattr(held, name)) is not None:
                check_shape(f"{where}.{name}", np.shape(array), shape)
    for name, errors in ident.simpler_models.get("rmse", {}).items():
        check_shape(f"simpler_models.rmse.{name}", (len(errors),), (len(ident.simpler_models["groups"]),))
    if ident.essential is not None and (unknown := [name for name in ident.essential.names if name not in base.labels]):
        raise _wrong("is no base parameter", "essential.names", unknown[0])
    if any(len(errors) != len(SPEEDS) for errors in ident.evidence.at_speeds.values()):
        raise _wrong("does not hold an error for each speed", "evidence.at_speeds")
    largest = float(np.abs(ident.theta).max(initial=0.0))
    if not largest < LARGEST:
        raise _wrong("is out of all proportion", "parameters.standard", f"{largest:.3g}", f"< {LARGEST:g}")
    if consistent and not (ident.bodies[:, 0] > 0).all():
        raise _wrong("a mass is not positive in a result that calls itself consistent", "parameters.standard")
    determined = fit.covariance[np.ix_(fit.seen, fit.seen)]
    variances = np.diag(determined)
    if (variances < 0).any():
        raise _wrong("holds a negative variance", "covariance.matrix", variances.min())
    size = np.where(variances > 0, np.sqrt(variances), 1.0)
    scaled = determined / size / size[:, None]
    if not np.allclose(scaled, scaled.T, rtol=0, atol=_ROUNDING):
        raise _wrong("is not symmetric", "covariance.matrix")
    if np.linalg.eigvalsh(scaled).min(initial=0.0) < -_ROUNDING * len(scaled):
        raise _wrong("has a negative eigenvalue", "covariance.matrix")
    size = np.abs(prior.root).max(axis=0, initial=0.0)
    if not ((size > 1 / _HUGE) & (size < _HUGE)).all():
        raise _wrong("holds a column without size, or out of all proportion", "state.prior.root")
    if (np.abs(np.diag(np.linalg.qr(prior.root / size, mode="r"))) < _SPANNED).any():
        raise _wrong("does not bound every parameter", "state.prior.root")
    for where, values in (("rows", [fit.rows]), ("dof", [fit.dof]), ("sigma", list(fit.sigma.values()))):
        if not all(value > 0 for value in values):
            raise _wrong("is not positive", f"state.fit.{where}")


def _shapes(ident: Record) -> Iterator[tuple[str, object, dict[str, tuple[int | str, ...]]]]:
    """Optional records of a result with the shapes of their arrays, None among these excepted."""
    n, prediction, validated, changes = ident.model.n, ident.prediction, ident.cross_validation, ident.fit.changes
    if prediction is not None:
        quantiles = (n, "classes", len(LEVELS))
        of_joints = dict.fromkeys(("top", "variance", "relative", "unlimited"), (n,))
        yield "prediction", prediction, {"edges": (n, "classes"), "quantiles": quantiles, "seen": (n, 2, 2), **of_joints}
    if validated is not None:
        for where, errors in (("", validated), (".exported", validated.exported)):
            if errors is not None:
                folds = (len(errors.folds), len(validated.groups))
                yield f"cross_validation{where}", errors, {"rmse": folds, "effort_rms": folds}
    if changes is not None:
        q, logs = len(changes.parameters), len(changes.logs)
        shapes: dict[str, tuple[int | str, ...]] = dict.fromkeys(("deviation", "deviation_error", "covariate"), (logs, q))
        shapes |= dict.fromkeys(("parts", "parts_error"), (logs, 3, q))
        shapes |= dict.fromkeys(("axes", "kinds", "mean", "mean_error", "spread", "slope", "slope_error", "left"), (q,))
        yield "friction_changes", changes, shapes


def _wrong(what: str, where: str, got: object = None, expected: object = None) -> LogError:
    return LogError(f"damaged: {what}", where=where, got=got, expected=expected, remedy=RESTORE)
