"""The data of a result: standard parameters (from data, physics and prior), also as rows, and the fit they are based on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..compensation.friction_filter import Adaptation
from ..compensation.residual import Residual
from ..consistency.repair import ConsistencyReport, check_consistency
from ..errors import ModelError, check_known, check_shape
from ..estimation.uncertainty.essential import Essential
from ..estimation.uncertainty.identifiability import Identifiability, verdicts
from ..estimation.uncertainty.prediction import HeldOutResidual
from ..files.documents import frame
from ..linalg import Array
from ..logs.refusals import LeftOut
from ..model.dynamic_model import DynamicModel
from ..model.prior import Posterior, Prior
from ..model.terms import Parameter
from ..model.trained import without_joint_terms
from ..project import Project
from ..samples import ReadOnly
from ..signals.prepare import UsedLog
from ..statistics.fit import Fit
from ..statistics.folds import CrossValidation
from ..statistics.log_effects.changes import FrictionChanges
from .evidence import Evidence
from .scores import Traces

if TYPE_CHECKING:
    from ..compensation.online import OnlineModel

_COLUMNS = ("name", "unit", "value", "prior", "std_error", "low", "high", "verdict")


@dataclass(frozen=True, eq=False)
class Record(ReadOnly):
    """The data of a result and quantities derived from it; the public class is :class:`.identification.Identification`.

    Attributes:
        theta: Standard parameters: data + physics + prior, shape (p,).
        factor: Whitened data factor ``[R | rho]``, shape (≤ p + 1, p + 1): ``‖R theta − rho‖²`` is the data's
            misfit in units of noise variance.
        baseline: The URDF with fitted friction, shape (p,); the URDF itself is ``urdf_theta``.
        solver: How theta was chosen: method, status, residuals, notes.
        left_out: Logs that could not be used.
        cross_validation: Held-out error of the fit over folds of its own logs; None if they are too short.
        selection: What ``friction: auto`` tried and what it gained; empty if the laws were given.
        estimation: The estimator, the reason for it, and its intermediate results.
        simpler_models: Held-out errors of the exported parameters beside simpler models; empty if nothing could be held out.
        black_box: What gradient boosting on the held-out residual still explains; empty if not requested.
        essential: The essential base parameters and the rule used; None if not requested.
        prediction: Quantiles of held-out residuals by joint and speed; None if nothing could be held out.
        adaptation: Memory of the adaptation, the joints that benefit, and its held-out error; None if the spread of
            friction is unknown.
        evidence: Measurements of how far the result can be trusted; empty for results assembled by hand.
        validation: Scores on held-out logs, as from :func:`.validate_log`.
        residual: Torque as a function of the deformation of the gears (:mod:`.compensated`), or None.
        compensation: Assessment of residual and sweeps, and the history of the loops; empty without them.
        traces: Short series of torque for plots, stored in ``series.json`` beside the result; none if not available.
        stored_verdicts: The :attr:`verdicts` that a file states, because computing them takes as long as a validation.
    """

    model: DynamicModel
    fit: Fit
    theta: Array
    prior: Prior
    factor: Array
    baseline: Array
    solver: Mapping[str, Any] = field(default_factory=dict)
    signals: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[UsedLog, ...] = ()
    cross_validation: CrossValidation | None = None
    project: Project = field(default_factory=Project)
    validation: tuple[Mapping[str, Any], ...] = ()
    selection: Mapping[str, Any] = field(default_factory=dict)
    essential: Essential | None = None
    simpler_models: Mapping[str, Any] = field(default_factory=dict)
    black_box: Mapping[str, Any] = field(default_factory=dict)
    prediction: HeldOutResidual | None = None
    residual: Residual | None = None
    estimation: Mapping[str, Any] = field(default_factory=dict)
    compensation: Mapping[str, Any] = field(default_factory=dict)
    evidence: Evidence = field(default_factory=Evidence)
    adaptation: Adaptation | None = None
    traces: Traces = field(default_factory=Traces)
    left_out: tuple[LeftOut, ...] = ()
    stored_verdicts: tuple[Identifiability, ...] = ()

    def torque(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        *,
        deformation: ArrayLike | None = None,
        deformation_rate: ArrayLike | None = None,
        rate: float = 0.0,
    ) -> Array:
        """Identified inverse dynamics, friction and rotor inertia included; one sample takes microseconds.

        Not thread-safe for single samples.

        Args:
            q, v, a: Joint motion, shape (N, n) or (n,) [rad, rad/s, rad/s² or m, m/s, m/s²].
            deformation: Motor minus link position after the gear, as measured by the encoders, same shape [rad or m]. If
                given, the residual is added; otherwise the torque is that of links and friction.
            deformation_rate: Its rate, same shape [rad/s or m/s].
            rate: Samples per second of a motion [Hz], for friction that builds up in time; 0 for samples that do not follow
                one another: that of steady sliding.

        Returns:
            Shape as ``q`` [N·m or N].

        Raises:
            ModelError: A deformation is given and the result has no residual, or the residual needs its rate.
            ShapeError: The shapes of the arrays are wrong.
        """
        position, velocity, acceleration = np.asarray(q, float), np.asarray(v, float), np.asarray(a, float)
        apart = None if deformation is None else np.asarray(deformation, dtype=float)
        turning = None if deformation_rate is None else np.asarray(deformation_rate, dtype=float)
        if not velocity.shape == acceleration.shape == position.shape or apart is not None:
            for name, x in (("v", velocity), ("a", acceleration), ("deformation", apart), ("deformation_rate", turning)):
                if x is not None:
                    check_shape(name, x.shape, position.shape)
        if position.ndim == 1 and self.online is not None:
            if len(position) != self.online.n:
                check_shape("q", position.shape, (self.online.n,))
            return self.online(position, velocity, acceleration, apart, turning)
        tau = self.model.torque(self.theta, position, velocity, acceleration, rate=rate)
        if apart is None:
            return tau
        if self.residual is None:
            raise ModelError(
                "a deformation was given, and this result holds no residual", remedy="leave it out, or learn one (compensate)"
            )
        return np.asarray(tau + self.residual.read(position, velocity, apart, turning))

    @property
    def prediction_band(self) -> float:
        """Frequency up to which :meth:`torque_prediction_interval` covers measured torque [Hz]; 0 without one."""
        return 0.0 if self.prediction is None else self.prediction.band

    @property
    def speed(self) -> Array:
        """Typical speed of each joint in the logs, 1 if unknown, shape (n,) [rad/s or m/s]."""
        return np.array(np.broadcast_to(self.signals.get("speed", 1.0), (self.model.n,)), dtype=float)

    @property
    def load(self) -> Array:
        """RMS torque of each joint in the logs, 0 if unknown, shape (n,) [N·m or N]."""
        return np.array(np.broadcast_to(self.signals.get("load", 0.0), (self.model.n,)), dtype=float)

    @property
    def held_out_errors(self) -> Array | None:
        """RMS of each joint's held-out residual over its RMS torque, shape (n,), a fraction.

        Uses the parameters with the prior, as exported: if the data leave much undetermined, base parameters without the
        prior predict far worse (``cross_validation``). None if nothing could be held out.
        """
        return None if self.prediction is None else self.prediction.relative

    @property
    def cross_validated(self) -> float | None:
        """Relative error over folds of the result's own logs, of the exported parameters if known; None without folds."""
        if self.held_out_errors is not None:
            return float(self.held_out_errors.mean())
        return None if self.cross_validation is None else self.cross_validation.relative

    @cached_property
    def online(self) -> OnlineModel | None:
        """The fast model for single samples; None with elastic joints, for which there is none."""
        from ..compensation.online import OnlineModel

        elastic = not self.model.is_rigid
        return None if elastic else OnlineModel(self.model, self.theta, residual=self.residual)

    @cached_property
    def urdf_theta(self) -> Array:
        """Parameters of the original URDF, lumped (and repaired where impossible), without joint terms, shape (p,)."""
        return without_joint_terms(self.model, self.prior.theta0)

    @cached_property
    def fit_theta(self) -> Array:
        """Standard parameters with exactly the fit's base parameters, dependent ones at the prior, shape (p,)."""
        return self.fit.theta(self.prior.theta0)

    @cached_property
    def consistency(self) -> ConsistencyReport:
        """The consistency of the bodies of :attr:`theta`."""
        return check_consistency(self.theta, [body.name for body in self.model.robot.bodies])

    @property
    def friction_changes(self) -> FrictionChanges | None:
        """How friction differs between the logs (mean, spread, each log's deviation); None if not analysed."""
        return self.fit.changes

    @cached_property
    def from_data(self) -> Array:
        """Share of every parameter's value that comes from the data, shape (p,)."""
        return Posterior(self.factor[:, :-1], self.prior, self.prior_weight).from_data

    @property
    def prior_weight(self) -> float:
        """Weight of the prior relative to the data, whose nominal precision is too high by this factor."""
        return float(self.solver.get("weight", 1.0))

    @cached_property
    def posterior_std(self) -> Array:
        """Standard deviation of every standard parameter, data and URDF together, shape (p,); always finite."""
        return Posterior(self.factor[:, :-1], self.prior.without_first_fit, self.prior_weight).std

    def interval(self, alpha: float = 0.05) -> Array:
        """Intervals of the standard parameters, from data and URDF; :attr:`std_error` is from the data alone.

        Args:
            alpha: One minus the level, a fraction.

        Returns:
            Lower and upper ends, shape (p, 2); parameters that cannot be negative, such as friction, are cut at zero.
        """
        reach = NormalDist().inv_cdf(1.0 - alpha / 2.0) * self.posterior_std
        ends = np.column_stack([self.theta - reach, self.theta + reach])
        bounded = np.array([parameter.nonnegative for parameter in self.model.parameters])
        ends[bounded, 0] = np.maximum(ends[bounded, 0], 0.0)
        return ends

    @cached_property
    def std_error(self) -> Array:
        """Standard errors from the data alone, shape (p,); inf where a parameter is not identifiable by itself."""
        errors = np.full(len(self.theta), np.inf)
        single = np.abs(self.fit.base.K).max(axis=1, initial=0.0) < 1e-9
        errors[self.fit.base.independent[single]] = self.fit.bse[single]
        return errors

    @cached_property
    def verdicts(self) -> tuple[Identifiability, ...]:
        """The verdict on every standard parameter, and the motion that would determine it; in the order of theta."""
        if self.stored_verdicts:
            return self.stored_verdicts
        rate = float(self.signals.get("decimate", 100.0))
        return verdicts(self.model, self.fit, self.factor[:, :-1], self.prior.theta0, self.prior.std, rate)

    @cached_property
    def parameters(self) -> Parameters:
        """The standard parameters with units, prior, intervals and verdicts, as rows or pandas frame."""
        interval = self.interval()
        return Parameters(
            ParameterRow(
                **vars(parameter),
                value=float(self.theta[k]),
                prior=float(self.prior.theta0[k]),
                prior_std=float(self.prior.std[k]),
                std_error=float(self.std_error[k]),
                low=float(interval[k, 0]),
                high=float(interval[k, 1]),
                from_data=float(self.from_data[k]),
                verdict=verdict.level,
                advice=verdict.advice,
            )
            for k, (parameter, verdict) in enumerate(zip(self.model.parameters, self.verdicts, strict=True))
        )

    def term_values(self, symbol: str) -> dict[str, float]:
        """Identified values of one kind of joint term.

        Args:
            symbol: ``"Fv"``, ``"Fc"``, ``"offset"``, ``"Ia"``, …

        Returns:
            Joint name → value [SI].
        """
        pairs = zip(self.model.parameters, self.theta, strict=True)
        return {p.owner: float(value) for p, value in pairs if p.symbol == symbol}

    @property
    def bodies(self) -> Array:
        """Inertial parameters of the lumped bodies, shape (n, 10)."""
        return self.theta[: self.model.n_inertial].reshape(-1, 10)

    @property
    def prior_bodies(self) -> Array:
        """:attr:`bodies` before the identification, shape (n, 10)."""
        return self.prior.theta0[: self.model.n_inertial].reshape(-1, 10)

    @property
    def bodies_from_data(self) -> Array:
        """Share of each inertial parameter of :attr:`bodies` that comes from the data, shape (n, 10)."""
        return self.from_data[: self.model.n_inertial].reshape(-1, 10)


AnyRecord = TypeVar("AnyRecord", bound=Record)


def with_note(ident: AnyRecord, note: str) -> AnyRecord:
    """Returns the result with one more note for its summary."""
    return replace(ident, solver={**ident.solver, "notes": [*ident.solver.get("notes", ()), note]})


@dataclass(frozen=True, kw_only=True)
class ParameterRow(Parameter):
    """One standard parameter as identified.

    Attributes:
        value: Estimate from data, physics and prior.
        prior: Mean of the prior.
        prior_std: Standard deviation of the prior.
        std_error: From the data alone; inf if the parameter is not identifiable by itself.
        low, high: 95 % interval from data and URDF.
        from_data: Share of the value that comes from the data, 0 to 1.
        verdict: "identifiable", "weak", "only in combination" or "not identifiable".
        advice: What would make it identifiable; empty if nothing is missing.
    """

    value: float
    prior: float
    prior_std: float
    std_error: float
    low: float
    high: float
    from_data: float
    verdict: str
    advice: str


class Parameters(tuple[ParameterRow, ...]):
    """The standard parameters of a result in the order of theta, by position or by name."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        of_name = {row.name: row for row in self}
        check_known("parameter", key, of_name, ModelError)
        return of_name[key]

    def to_frame(self) -> Any:
        """Returns the parameters as a pandas frame indexed by name, or as a structured array without pandas.

        Returns:
            Columns unit, value, prior, std_error, low, high, verdict [SI].
        """
        return frame({key: [getattr(row, key) for row in self] for key in _COLUMNS})

    def __repr__(self) -> str:
        head = [f"{row.name} = {row.value:.4g} {row.unit} ({row.verdict})" for row in self[:5]]
        return "\n".join([f"<{len(self)} parameters; .to_frame() for all>", *head, *(["…"] if len(self) > 5 else [])])
