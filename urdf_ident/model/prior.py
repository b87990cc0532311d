"""Prior of the parameters, with value, uncertainty and origin of each, and their posterior.

The metric of the inertial parameters is the Hessian of the entropic divergence between bodies (Lee, Wensing,
Park 2020): a change ``dP`` of a body's pseudo-inertia costs ``tr(P⁻¹ dP P⁻¹ dP) / (4 s²)``. It is invariant to frames and
units, and scaled such that a uniform relative change ``dP = s·P`` is one standard deviation. It is infinitely stiff for
thin or massless bodies; it is therefore evaluated not at the body itself but at its :attr:`Prior.spread`, the same body
with a minimum thickness.

It constrains a mass alone only weakly: mass added at the centre of mass, with constant second moments, costs a quarter of
scaling the whole body. Torques are no more informative (on a real UR10e and a real Panda, masses between a third and three
times the URDF's predicted equally well), although the mass is the most reliable number of a URDF, often weighed. Masses
therefore have a term of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, ModelError, check_shape
from ..grouping import grouped
from ..linalg import Array, BoolArray, block_diagonal, positive, rms, shaped, solve_triangular
from ..samples import HARDLY_REVERSES, freeze_arrays
from .geometry import uniform_bodies
from .inertia import (
    MARGIN,
    PSEUDO_BASIS,
    from_second_moments,
    margins,
    nearest_physical,
    pseudo_inertia,
    second_moments,
    to_com,
)
from .robot import Robot
from .terms import Parameter

#: Default weight unless held-out data contradict it. 1 would be the Bayesian weight if residuals were independent noise; on
#: real arms the nominal standard errors are three to four times too small, and this is the square of that factor.
USUAL_WEIGHT = 10.0
#: Least weight where joints hardly reverse: unmodelled friction then has one sign and is confounded with gravity,
#: acceleration or rotor inertia.
UNTURNED_WEIGHT = 30.0
#: Factor on standard deviations of the prior with which the data alone decide, and a parameter without data stays finite.
WIDER = 10.0
#: Relative standard deviation of a URDF's bodies, in scale and in mass.
RELATIVE_STD = 0.3
#: Error of a URDF, in standard deviations of the prior of its bodies, that is usual.
USUAL_ERROR = 2.0
#: Factor between the masses that efforts need and a URDF's from which no error of its masses explains it: 3.7 standard
#: deviations (0.3 each) of the factor that all bodies have in common, one URDF in 5000.
CONTRADICTION = 3.0
#: A body lighter than this fraction of the heaviest counts as massless: a frame defined as a link.
_MASSLESS = 1e-6
#: Least ratio of principal second moments of a repaired body; least radius of gyration of the bodies of the metric over the
#: link's length; relative standard deviation of massless bodies.
_FLOOR, _THICKNESS, _GUESS_STD = 1e-3, 0.1, 1.0
#: Length below which points coincide [m].
_POINT = 1e-3
#: Density of bodies where neither the URDF nor torques show it [kg/m³]; arms of known masses have 600 to 1000.
_DENSITY = 1000.0
#: Number of links whose inertials, or masses, are equal from which these are placeholders.
_EQUAL = 3


@dataclass(frozen=True, eq=False)
class Prior:
    """Prior of theta: Gaussian around ``theta0`` with the precision ``rootᵀ root``.

    Attributes:
        theta0: Prior values, shape (p,), in the order of theta; every body in it is physically consistent.
        root: Upper-triangular, block-diagonal square root of the precision, shape (p, p) [1/unit].
        origin: Source of each value, length p: ``"urdf"``, ``"repaired"``, ``"first fit"`` or ``"guess"``.
        notes: Descriptions of what was repaired or guessed.
        spread: The body at which each metric is evaluated, shape (n_bodies, 10).
        relative_std: Standard deviation of the scale of each body, shape (n_bodies,), a fraction.
        mass_std: Standard deviation of each mass, in addition to the metric, shape (n_bodies,), a fraction;
            inf if unknown.
    """

    theta0: Array
    root: Array
    origin: tuple[str, ...]
    notes: tuple[str, ...]
    spread: Array
    relative_std: Array
    mass_std: Array

    def __post_init__(self) -> None:
        p = len(self.theta0)
        check_shape("root", self.root.shape, (p, p))
        check_shape("origin", (len(self.origin),), (p,))
        check_shape("spread", self.spread.shape, (len(self.relative_std), 10))
        freeze_arrays(self)

    def __repr__(self) -> str:
        return f"<Prior of {len(self.theta0)} parameters: {', '.join(dict.fromkeys(self.origin))}>"

    @cached_property
    def precision(self) -> Array:
        """Inverse covariance of the prior, block-diagonal, shape (p, p)."""
        return self.root.T @ self.root

    @cached_property
    def deviations(self) -> Array:
        """Independent deviations of theta of one standard deviation each, as columns, shape (p, p): the inverse of ``root``."""
        return np.asarray(np.linalg.inv(self.root))

    @cached_property
    def std(self) -> Array:
        """Prior standard deviation of each parameter, shape (p,)."""
        return np.asarray(np.linalg.norm(self.deviations, axis=1))

    @cached_property
    def guessed(self) -> BoolArray:
        """Which bodies have no inertials in the URDF, or placeholders, so that their values are guesses, shape (n_bodies,)."""
        return np.asarray(np.array(self.origin[: 10 * len(self.relative_std) : 10]) == "guess")

    @cached_property
    def without_first_fit(self) -> Prior:
        """The prior for intervals: standard deviations of joint terms are :data:`WIDER` times as large.

        A URDF says nothing about friction and rotor inertia. Their prior is a first fit to the same data, which must not
        count twice: in slow logs it determines rotor inertias that no sample shows.
        """
        root, n = self.root.copy(), 10 * len(self.relative_std)
        root[n:, n:] /= WIDER
        return replace(self, root=root)

    def distance(self, theta: ArrayLike) -> float:
        """Returns the Mahalanobis distance of a parameter vector from the prior.

        Args:
            theta: Shape (p,).

        Returns:
            ``‖root (theta − theta0)‖``.

        Raises:
            ShapeError: Wrong length.
        """
        return float(np.linalg.norm(self.root @ (shaped("theta", theta, self.theta0.shape) - self.theta0)))


def inertial_prior(
    robot: Robot,
    relative_std: float = RELATIVE_STD,
    *,
    mass_std: float = RELATIVE_STD,
) -> Prior:
    """Builds a prior from the URDF's inertials, with inconsistent bodies repaired.

    Bodies without mass, and those with the same inertials as all others (placeholders), are guessed: their geometry at one
    density, that of the other bodies.

    Args:
        relative_std: Standard deviation of a body's scale in the URDF, a fraction.
        mass_std: The same for its mass; inf for no constraint beyond the scale.

    Returns:
        The prior of the 10·n inertial parameters; ``notes`` names every changed body, and the reason.

    Raises:
        ModelError: A standard deviation is not positive.
    """
    if not (relative_std > 0 and mass_std > 0):
        raise ModelError("a prior's standard deviations must be positive", got=(relative_std, mass_std))
    lumped = robot.inertials
    unknown, why = _unknown(robot, lumped)
    guesses = lumped
    if unknown.any():  # the geometry at the density of the bodies with known masses
        solid, known = uniform_bodies(robot), lumped[~unknown, 0].sum()
        guesses = solid * (known / solid[~unknown, 0].sum() if known > 0 else _DENSITY)
    theta, spread, origin, notes, stds = [], [], [], [], []
    for i, body in enumerate(robot.bodies):
        length = _length(robot, i)
        if unknown[i]:
            source, note = "guess", f"has {why[i]} in the URDF: its geometry at uniform density"
            physical = nearest_physical(guesses[i], _FLOOR)
        elif margins(lumped[i]).relative >= MARGIN:
            source, note, physical = "urdf", "", lumped[i]
        else:
            source, physical = "repaired", nearest_physical(lumped[i], _FLOOR, least_gyration=0.1 * length)
            change = float(np.abs(physical - lumped[i])[4:].max())
            note = f"{_inconsistency(lumped[i])}: principal moments raised, largest change {change:.3g} kg·m²"
        theta.append(physical)
        mass, com, inertia = to_com(physical)
        moments, axes = second_moments(inertia)
        spread.append(from_second_moments(mass, com, np.maximum(moments, mass * (_THICKNESS * length) ** 2), axes))
        origin += [source] * 10
        stds.append(_GUESS_STD if source == "guess" else relative_std)
        notes += [f"body '{body.name}' (joint '{body.joint}') {note}"] if note else []
    masses = np.where(np.array(origin[::10]) == "guess", np.inf, mass_std)
    roots = [metric_root(body, std, mass) for body, std, mass in zip(spread, stds, masses, strict=True)]
    return Prior(
        np.concatenate(theta), block_diagonal(*roots), tuple(origin), tuple(notes), np.array(spread), np.array(stds), masses
    )


def _length(robot: Robot, i: int) -> float:
    """Size of a body [m]: from its joint to the next ones, or to its lumped links."""
    steps = [step for step, parent in zip(robot.offsets, robot.parents, strict=True) if parent == i]
    steps += [np.linalg.norm(link.translation) for link in robot.bodies[i].links]
    if max(steps) < _POINT:  # a wrist with intersecting axes, or a tip: the offset of its own joint
        steps.append(robot.offsets[i])
    typical = 0.5 * float(robot.offsets.mean()) if robot.offsets.max() > _POINT else 0.1
    return float(max(steps)) if max(steps) >= _POINT else typical


def _inconsistency(theta: Array) -> str:
    """Why no rigid body has these parameters."""
    margin = margins(theta)
    if margin.min_eigenvalue < 0:
        return f"has a negative inertia about its centre of mass ({margin.min_eigenvalue:.3g} kg·m²)"
    if margin.triangle < 0:
        return f"breaks the triangle inequality by {-2 * margin.triangle:.3g} kg·m²"
    return "has no thickness (singular inertia)"


def metric_root(theta: ArrayLike, relative_std: float, mass_std: float = np.inf) -> Array:
    """Returns the square root of the entropic metric of one body (Lee, Wensing, Park 2020) plus its mass term.

    Args:
        theta: The body at which the metric is evaluated, shape (10,), physically consistent.
        relative_std: Standard deviation of the body's scale, a fraction.
        mass_std: Additional standard deviation of its mass, a fraction.

    Returns:
        Upper-triangular, shape (10, 10): ``‖root d‖² = tr(P⁻¹ dP P⁻¹ dP) / (4 relative_std²) + (dm/m)² / mass_std²``.

    Raises:
        ModelError: The body is not physically consistent.
    """
    try:
        factor = np.linalg.cholesky(pseudo_inertia(theta))
    except np.linalg.LinAlgError as error:
        raise ModelError("the metric of a non-physical body does not exist", got=np.asarray(theta).tolist()) from error
    half = np.linalg.solve(factor, PSEUDO_BASIS.transpose(1, 0, 2).reshape(4, 40)).reshape(4, 10, 4)
    white = np.linalg.solve(factor, half.transpose(2, 1, 0).reshape(4, 40)).reshape(4, 10, 4)
    mass = np.eye(1, 10) / (mass_std * float(np.asarray(theta)[0]))
    root = np.asarray(
        np.linalg.qr(np.vstack([white.transpose(0, 2, 1).reshape(16, 10) / (2.0 * relative_std), mass]), mode="r")
    )
    return root * np.where(np.diag(root) < 0, -1.0, 1.0)[:, None]


def least_weight(reversals: float) -> float:
    """Returns the least weight of the prior for a motion.

    Args:
        reversals: Mean number of reversals of the moving joints.

    Returns:
        :data:`UNTURNED_WEIGHT` or 0.
    """
    return UNTURNED_WEIGHT if reversals <= HARDLY_REVERSES else 0.0


def with_joint_terms(
    prior: Prior,
    parameters: Sequence[Parameter],
    first_fit: ArrayLike,
    *,
    std: ArrayLike | None = None,
) -> Prior:
    """Adds a prior of friction, rotor inertia etc., which a URDF lacks, from a first fit (Gautier 2013 §V.B).

    Without it the prior would pull them to zero. Only those that the fit cannot identify stay at zero, as in the URDF: the
    rotor inertia of a joint that never moved is unknown. The precision is loose: one standard deviation is the value itself,
    at least a tenth of the RMS of terms of its kind, or all of it for a clipped or unidentified one.

    Args:
        prior: Of the inertial parameters, 10·n of them.
        parameters: All of theta's entries; the first 10·n are the inertial ones.
        first_fit: Values of the k others, shape (k,); unphysical negative ones are clipped to zero. NaN: not
            identifiable.
        std: Standard deviation of each, shape (k,), instead of that rule; entries that are not finite and positive, or
            whose value is NaN, keep the rule.

    Raises:
        ShapeError: The lengths do not fit.
    """
    terms = tuple(parameters)[len(prior.theta0) :]
    values = np.array(first_fit, dtype=float)
    check_shape("first_fit", values.shape, (len(terms),))
    seen = np.isfinite(values)
    values = np.where(seen, values, 0.0)
    clipped = np.array([term.nonnegative for term in terms], dtype=bool) & (values < 0)
    values = np.where(clipped, 0.0, values)
    alike = grouped(((term.symbol, term.unit), value) for term, value, ok in zip(terms, values, seen, strict=True) if ok)
    usual = np.array([rms(np.array(alike.get((term.symbol, term.unit), [0.0]))) or 1.0 for term in terms])
    spread = np.maximum(np.abs(values), np.where(seen & ~clipped, 0.1 * usual, usual))
    given = np.full(len(terms), np.nan) if std is None else np.array(std, dtype=float)
    check_shape("std", given.shape, (len(terms),))
    spread = np.where(seen & np.isfinite(given) & (given > 0), given, spread)
    origin = tuple("first fit" if ok else "guess" for ok in seen)
    unseen = [term.name for term, ok in zip(terms, seen, strict=True) if not ok]
    note = (f"the first fit cannot see {', '.join(unseen)}: zero, as in the URDF",) if unseen else ()
    return replace(
        prior,
        theta0=np.concatenate([prior.theta0, values]),
        root=block_diagonal(prior.root, np.diag(1.0 / spread)),
        origin=prior.origin + origin,
        notes=prior.notes + note,
    )


def common_value(values: Sequence[Hashable]) -> Hashable | None:
    """Returns what all values, or all but one, are, if these are :data:`_EQUAL` or more; otherwise None."""
    value, count = Counter(values).most_common(1)[0] if values else (None, 0)
    return value if count >= max(_EQUAL, len(values) - 1) else None


def _unknown(robot: Robot, lumped: Array) -> tuple[BoolArray, list[str]]:
    """Bodies whose inertials the URDF does not state, shape (n_bodies,), and what it states instead.

    Inertials that are equal on all links with mass, or all but one, are placeholders.
    """
    stated = [link.theta for link in robot.description.links.values() if link.theta is not None and link.theta[0]]
    usual = common_value([tuple(theta) for theta in stated])
    massless = (lumped[:, 0] <= _MASSLESS * lumped[:, 0].max()) | (lumped[:, 0] <= 0)

    def told(name: str) -> bool:
        theta = robot.description.links[name].theta
        return theta is not None and theta[0] != 0 and tuple(theta) != usual

    placeholder = np.array([not any(told(link.name) for link in body.links) for body in robot.bodies])
    why = ["no mass" if none else "the same inertial as all others, a placeholder," for none in massless]
    return massless | placeholder, why


#: Candidate sizes of the URDF's errors in units of the prior's standard deviations. They are at least these: how well the
#: bodies of one robot agree with each other does not show an error that they share.
_SPREADS = np.geomspace(1.0, 10.0, 25)
#: Number of fixed-point steps of the factor for one size; each reduces the error about tenfold.
_STEPS = 6


class ScaledBodies(NamedTuple):
    """The common factor of the bodies.

    Attributes:
        factor: Their factor relative to the URDF's.
        error: Its standard error.
        spread: Size of the URDF's errors in units of the prior's standard deviations.
        cost: Twice the negative log-likelihood, up to a constant.
    """

    factor: float
    error: float
    spread: float
    cost: float


def scaled_bodies(stated: Array, bodies: Array, seen: Array, noise: float) -> ScaledBodies:
    """Estimates the common factor of all bodies relative to the URDF's, whose errors have a size that the data show as well.

    The inertial parameters are ``c (theta0 + s u)`` with ``u`` distributed as the prior. ``u`` is integrated out; ``c`` is
    that of generalised least squares (Aitken 1936) for the ``s`` of maximum likelihood.

    Args:
        stated: Torque of the URDF's bodies, shape (N,).
        bodies: Torques of independent errors of the bodies of one standard deviation of the prior, shape (N, m).
        seen: Measured torque, shape (N,).
        noise: Variance of its noise.
    """
    square, axes = np.linalg.eigh(bodies @ bodies.T)  # the singular values of a few such matrices do not converge
    stated, seen, square = axes.T @ stated, axes.T @ seen, square.clip(0.0)
    factor = np.ones(len(_SPREADS))
    for _ in range(_STEPS):
        variance = noise + ((factor * _SPREADS) ** 2)[:, None] * square
        weighed = stated / variance
        precision = positive(weighed @ stated)
        factor = weighed @ seen / precision
    costs = np.sum(np.log(variance) + (seen - factor[:, None] * stated) ** 2 / variance, axis=1)
    best = int(np.argmin(costs))
    return ScaledBodies(*(float(of_spread[best]) for of_spread in (factor, precision**-0.5, _SPREADS, costs)))


class Posterior:
    """Gaussian posterior of all parameters, from the QR factorisation of ``[R/√w; Λ^½]`` in scaled columns; RᵀR is not formed.

    The precision is ``RᵀR/w + Λ``. The further reduction by physical consistency is neglected. What exports show of it is
    solved by NumPy, as importing SciPy would be most of their time.

    Args:
        R: Data factor, whitened by the noise, shape (k, p) in the order of theta [1/unit].
        prior: Its precision is Λ.
        weight: w > 0, the prior's against the data: factor by which the data's nominal precision is overestimated.

    Raises:
        ShapeError: The number of columns differs.
        EstimationError: The factor is not finite.
    """

    def __init__(self, R: ArrayLike, prior: Prior, weight: float = 1.0) -> None:
        self._prior, self._root_weight = prior, np.sqrt(weight)
        self._data = shaped("R", R, ("k", len(prior.theta0))) / self._root_weight
        self._scale = 1.0 / np.linalg.norm(prior.root, axis=0)  # the results do not depend on the column scaling
        stacked = np.vstack([self._data, prior.root]) * self._scale
        if not np.isfinite(stacked).all():
            raise EstimationError("the data factor is not finite", where="posterior")
        self._orthogonal, self._factor = np.linalg.qr(stacked)

    @property
    def from_data(self) -> Array:
        """Share of every parameter's value that comes from the data, ``diag((RᵀR/w + Λ)⁻¹ RᵀR/w)``, shape (p,), within 0..1."""
        projected = self._orthogonal[: len(self._data)].T @ (self._data * self._scale)
        return np.asarray(np.clip(np.diag(np.linalg.solve(self._factor, projected)), 0.0, 1.0))

    @property
    def std(self) -> Array:
        """Standard deviation of every parameter, shape (p,): at most the prior's, and finite also without data."""
        return np.asarray(self._scale * np.linalg.norm(np.linalg.solve(self._factor, np.eye(len(self._scale))), axis=1))

    @property
    def covariance(self) -> Array:
        """Covariance of all parameters, shape (p, p)."""
        root = self._scale[:, None] * solve_triangular(self._factor, np.eye(len(self._scale)))
        return np.asarray(root @ root.T)

    def variance(self, rows: ArrayLike) -> Array:
        """Returns the variance of linear functions of the parameters, shape (…).

        Args:
            rows: Coefficients of the functions, shape (…, p).
        """
        wide = np.asarray(rows, dtype=float) * self._scale
        white = solve_triangular(self._factor, wide.reshape(-1, wide.shape[-1]).T, transposed=True)
        return np.asarray(np.sum(white**2, axis=0).reshape(wide.shape[:-1]))

    def mean(self, rho: ArrayLike) -> Array:
        """Returns the parameters at which data and prior together are most probable, without constraints, shape (p,).

        Args:
            rho: Right-hand side of the data factor, shape (k,).
        """
        right = np.concatenate(
            [shaped("rho", rho, (len(self._data),)) / self._root_weight, self._prior.root @ self._prior.theta0]
        )
        return np.asarray(self._scale * solve_triangular(self._factor, self._orthogonal.T @ right))
