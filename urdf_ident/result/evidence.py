"""Evidence for and against a result: measured once, stored with it, and assessed in :mod:`.verdict`.

Small residuals on the training data are no evidence: a model that is wrong by a factor, or that has absorbed a fault of the
log, fits its own data well. Evidence is the error on other motions, the standard error of the torque over the feasible
states, agreement with the gravity torque of the URDF, and equal residuals in all parts of all logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..friction import FRACTIONS, Viscous
from ..grouping import grouped
from ..linalg import Array, BoolArray, divisors, lstsq, rms
from ..model.dynamic_model import DynamicModel
from ..model.prior import WIDER, Posterior, Prior, common_value, scaled_bodies
from ..model.robot import Robot
from ..model.row_groups import joint_of
from ..model.trained import sliders, without_inertia, without_joint_terms
from ..samples import Segment, columns, fast_speed, moving, one_way
from ..statistics.fit import Fit
from ..statistics.folds import PARTS, TIME_FOLDS
from ..statistics.motions import motions, periodic
from ..statistics.statistic import StatisticSet

#: Random states at which torques are compared: a root mean square of 150 values is known within 6 %.
STATES = 150
#: Fractions of the URDF's velocity limits at which the error to be expected is stated.
SPEEDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
#: Range around zero from which states of joints without position limits are drawn [rad or m].
ENDLESS = {"R": np.pi, "P": 0.5}
#: Factor of a mass relative to the URDF's from which it is reported, if the data need it.
MASS_FACTOR = 6.0
#: Residual of a part of a log over the usual one from which it is reported.
_DEVIATING = 3.0
#: The same residual over the joint's torque below which it is not.
_OF_TORQUE = 0.1
#: Least dry friction of a part of a log, over that of another, for their residuals to be compared.
_AS_MUCH = 0.5
#: Largest change of a weight over all positions for it to be constant, as a fraction of it; and the least weight that counts
#: as one, as a fraction of the robot's.
_CONSTANT = 1e-3
#: Relative singular value of the joint terms' columns below which they are linearly dependent.
_DEPENDENT = 1e-10


@dataclass(frozen=True)
class CommonScale:
    """Factor of all inertial parameters relative to the URDF's.

    A wrong torque constant or unit multiplies all torques, and with them all identified masses and inertias, by one factor. No
    log shows such a factor; only inertial parameters known beforehand do, as far as they are known: if those of the URDF are
    wrong by independent errors, their common factor is still determined by their mean.

    Attributes:
        factor: The factor, positive.
        error: Its standard error relative to the factor; the URDF's bodies have independent errors of the size at which the
            data are most likely, at least the prior's.
    """

    factor: float
    error: float

    def __str__(self) -> str:
        return f"{self.factor:.2f} ± {self.error * abs(self.factor):.2f}"

    @property
    def errors(self) -> float:
        """Distance of the factor from 1 in standard errors, on the logarithmic scale; inf if it is not positive."""
        return abs(float(np.log(self.factor))) / self.error if self.factor > 0 else np.inf


@dataclass(frozen=True)
class DeviatingPart:
    """A part of a log whose residual differs from the rest.

    Attributes:
        joint: The joint, or the row group where drives are coupled.
        part: ``"1/3"`` and so on, in time.
        rmse: Residual there [N·m or N].
        usual: Median residual of the joint over all other parts [N·m or N].
    """

    log: str
    joint: str
    part: str
    rmse: float
    usual: float


@dataclass(frozen=True)
class Evidence:
    """Measurements behind a verdict.

    Attributes:
        uncertainty: Relative standard error of the torque over random feasible states, for every joint (data and URDF
            together); empty for elastic joints.
        gravity: By joint: ratio of the identified gravity torque to the URDF's at the same states (regression
            coefficient); joints without gravity load, or with less than its prior uncertainty, are left out.
        peak: By joint: the largest torque over those states at the URDF's own velocity limits, over the effort limit, or over
            the torque of the URDF's own masses there if that is larger; joints without an effort limit are left out.
        friction: By joint: largest friction up to the trained speed, over the largest measured torque.
        masses: Bodies whose mass differs from the URDF's by more than a factor of six, with that factor; none where the data
            allow less as well.
        departures: Parts of logs whose residual differs from the rest.
        folds_repeat: Whether the folds of the cross-validation repeat one motion.
        placeholders: Whether the URDF's masses are missing, or equal as placeholders are: they do not determine a scale.
        unaided: As ``uncertainty``, with the prior's standard deviations :data:`WIDER` times as large: what the data leave
            undetermined and the URDF fills in.
        reversals: Mean number of reversals of the moving joints, repetitions of a motion counted once.
        one_way: Joints that moved in one direction only.
        lifting: Those of them that slide with a constant weight, a vertical axis of a gantry for instance.
        scales: By joint: standard error of a factor on its efforts, determined from the other joints' efforts and its own
            shape; large where any factor explains the data equally well. Residuals are taken as white noise.
        overdriven: By joint, where larger than 1: that torque of the URDF's own masses, over the effort limit.
        scale: Factor of all inertial parameters relative to the URDF's; None for elastic joints, placeholders in the URDF, or
            data that do not depend on its inertial parameters.
        at_speeds: By joint: relative error of the torque to be expected over random feasible states at each of :data:`SPEEDS`,
            friction that the logs do not cover included, or measured on held-out logs as fast; empty for elastic joints, or
            where nothing could be held out.
        gravity_errors: By joint of ``gravity``: standard deviation of that ratio due to the URDF's errors.
    """

    uncertainty: Mapping[str, float] = field(default_factory=dict)
    gravity: Mapping[str, float] = field(default_factory=dict)
    peak: Mapping[str, float] = field(default_factory=dict)
    friction: Mapping[str, float] = field(default_factory=dict)
    masses: Mapping[str, float] = field(default_factory=dict)
    departures: tuple[DeviatingPart, ...] = ()
    folds_repeat: bool = False
    placeholders: bool = False
    unaided: Mapping[str, float] = field(default_factory=dict)
    reversals: float = np.inf
    one_way: tuple[str, ...] = ()
    lifting: tuple[str, ...] = ()
    scales: Mapping[str, float] = field(default_factory=dict)
    scale: CommonScale | None = None
    overdriven: Mapping[str, float] = field(default_factory=dict)
    at_speeds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    gravity_errors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Range:
    """Range of motion and torque that the logs cover.

    Attributes:
        speed: 95 % quantile of |v| in the logs, shape (n,) [rad/s or m/s].
        acceleration: The same of |a|, shape (n,) [rad/s² or m/s²].
        torque: Largest measured |torque|, shape (n,) [N·m or N].
        load: RMS of the measured torque, shape (n,) [N·m or N].
        one_way: Which joints moved in one direction only, shape (n,), bool.
    """

    speed: Array
    acceleration: Array
    torque: Array
    load: Array
    one_way: BoolArray

    @classmethod
    def of(cls, segments: Sequence[Segment]) -> Range:
        """Returns the range of segments with torques."""
        speed, acceleration, one_direction = (
            np.array([measure(x) for x in columns([getattr(segment, name) for segment in segments])])
            for measure, name in ((fast_speed, "v"), (fast_speed, "a"), (one_way, "v"))
        )
        torque, load = np.array([(np.abs(x).max(), rms(x)) for x in columns([segment.measured for segment in segments])]).T
        return cls(speed, acceleration, torque, load, one_direction)


def measure_evidence(
    model: DynamicModel,
    theta: Array,
    prior: Prior,
    factor: Array,
    weight: float,
    statistics: StatisticSet,
    fit: Fit,
    trained: Range,
    reversals: float,
) -> Evidence:
    """Measures the evidence for a verdict.

    Args:
        theta: Exported parameters, shape (p,).
        factor: Whitened data factor ``[R | rho]``, shape (k, p + 1).
        weight: Weight of the prior relative to the data.
        fit: The unconstrained fit.
        reversals: Mean number of reversals of the moving joints, repetitions of a motion counted once.
    """
    robot, joints = model.robot, model.robot.joints
    one_way = tuple(joints[j] for j in np.flatnonzero(moving(trained.speed, robot.prismatic) & trained.one_way))
    masses = {}
    for i, body in enumerate(robot.bodies):
        before, after = float(prior.theta0[10 * i]), float(theta[10 * i])
        if not prior.guessed[i] and before > 0 and not 1 / MASS_FACTOR < after / before < MASS_FACTOR:
            masses[body.name] = after / before
    fitted = fit.theta(prior.theta0)
    evidence = Evidence(
        masses=masses,
        departures=_deviating_parts(model, statistics, fitted),
        folds_repeat=len(motions(statistics)) == 1 and periodic(statistics, TIME_FOLDS),
        placeholders=_placeholders(robot, prior),
        reversals=reversals,
        one_way=one_way,
    )
    if not model.is_rigid:
        return evidence
    q, v, a = random_states(robot, trained)
    rows = model.torque(np.eye(len(theta)), q, v, a)
    size = divisors(rms(rows @ theta, axis=0))

    def uncertain(prior: Prior, wider: float) -> dict[str, float]:
        """Standard error of each joint's torque over its RMS, with the prior's standard deviations ``wider`` times as large."""
        covariance = wider**2 * Posterior(factor[:, :-1], prior, weight / wider**2).covariance
        square = np.maximum(np.einsum("njp,pr,njr->nj", rows, covariance, rows, optimize=True), 0.0)
        return dict(zip(joints, (np.sqrt(np.mean(square, axis=0)) / size).tolist(), strict=True))

    # a URDF whose own masses need more than its effort limits at its velocity limits has wrong limits: the torque that it
    # needs by itself is then the reference
    velocity, effort = robot.limit("velocity"), robot.limit("effort")
    ratio = np.where(np.isfinite(velocity), velocity / np.maximum(trained.speed, 1e-9), 1.0)
    both = np.column_stack([theta, without_joint_terms(model, prior.theta0)])
    fastest, stated = np.abs(model.torque(both, q, v * np.clip(ratio, 1.0, None), a)).max(axis=0).T
    limited = np.flatnonzero(np.isfinite(effort))
    gravity, gravity_errors, constant = _gravity(model, theta, prior, q)
    # friction and offset up to the trained speed, both directions: the largest may be far below it, as of a Stribeck law
    bare, still, both_ways = without_inertia(model, theta), np.zeros((2, model.n)), np.vstack([trained.speed, -trained.speed])
    rubbing = np.max([np.abs(model.torque(bare, still, share * both_ways, still)) for share in FRACTIONS], axis=(0, 1))
    return replace(
        evidence,
        uncertainty=uncertain(prior.without_first_fit, 1.0),
        gravity=gravity,
        peak={joints[j]: float(fastest[j] / max(effort[j], stated[j])) for j in limited},
        friction=dict(zip(joints, (rubbing / divisors(trained.torque)).tolist(), strict=True)),
        unaided=uncertain(prior, WIDER),
        lifting=tuple(joint for joint in one_way if joint in constant),
        scales=_scales(statistics, fit.weights, factor[:, :-1], fitted, joints),
        scale=None if evidence.placeholders else common_scale(factor, prior, weight, model.n_inertial),
        overdriven={joints[j]: float(stated[j] / effort[j]) for j in limited if stated[j] > effort[j]},
        gravity_errors=gravity_errors,
    )


def _placeholders(robot: Robot, prior: Prior) -> bool:
    """Whether all bodies, or all but one, are guesses, or the masses of all links, or all but one, are equal."""
    masses = [float(link.theta[0]) for link in robot.description.links.values() if link.theta is not None and link.theta[0]]
    return int((~prior.guessed).sum()) <= (1 if robot.n > 2 else 0) or common_value(masses) is not None


def random_states(robot: Robot, trained: Range) -> tuple[Array, Array, Array]:
    """Returns positions within the limits and velocities and accelerations as in the logs, shape (:data:`STATES`, n) each."""
    lower, upper, reach = robot.limit("lower"), robot.limit("upper"), np.where(robot.prismatic, ENDLESS["P"], ENDLESS["R"])
    lower, upper = np.where(np.isfinite(lower), lower, -reach), np.where(np.isfinite(upper), upper, reach)
    draw = np.random.default_rng(0).uniform(-1.0, 1.0, (3, STATES, robot.n))
    return (lower + upper) / 2 + (upper - lower) / 2 * draw[0], trained.speed * draw[1], trained.acceleration * draw[2]


def _gravity(model: DynamicModel, theta: Array, prior: Prior, q: Array) -> tuple[dict[str, float], dict[str, float], set[str]]:
    """Regression of the identified gravity torque on the URDF's, and its standard deviation by the prior, by joint with a load.

    A gravity torque below its own prior uncertainty is none: a balanced body, or a vertical axis that rounded angles tilt. And
    the slides whose gravity force in the URDF is the same in all positions, and not zero.
    """
    still, robot = np.zeros_like(q), model.robot
    known = np.column_stack([theta, prior.theta0, prior.deviations])
    tau = model.torque(without_joint_terms(model, known), q, still, still)
    ours, theirs = tau[..., 0], tau[..., 1]
    size, doubt = rms(theirs, axis=0), rms(np.linalg.norm(tau[..., 2:], axis=-1), axis=0)
    ratios, errors = {}, {}
    for group in (np.flatnonzero(robot.prismatic), np.flatnonzero(~robot.prismatic)):  # forces and torques separately
        for j in [j for j in group if size[j] > max(0.02 * size[group].max(), doubt[j])]:
            along = theirs[:, j] / (theirs[:, j] @ theirs[:, j])
            ratios[robot.joints[j]] = float(along @ ours[:, j])
            errors[robot.joints[j]] = float(np.linalg.norm(along @ tau[:, j, 2:]))
    weight, least = np.abs(theirs.mean(axis=0)), _CONSTANT * prior.theta0[: model.n_inertial : 10].sum()
    constant = robot.prismatic & (weight > least) & (np.ptp(theirs, axis=0) < _CONSTANT * weight)
    return ratios, errors, {robot.joints[j] for j in np.flatnonzero(constant)}


def _scales(
    statistics: StatisticSet, weights: Mapping[str, float], R: Array, theta: Array, joints: Sequence[str]
) -> dict[str, float]:
    """Standard error of a factor on each joint's efforts: one over the norm of the part that no parameters can explain."""
    errors: dict[str, float] = {}
    for layout in statistics.layouts:
        first = len(layout.instruments)
        rows = weights[layout.group] * statistics.factor(layout.group)[:, first : first + len(layout.columns)]
        torque = rows @ theta[layout.columns]
        along = np.zeros(len(theta))
        along[layout.columns] = rows.T @ torque
        projected = lstsq(R.T, along, rcond=1e-10)[0]
        errors[joints[layout.joint]] = float(1 / np.sqrt(max(float(torque @ torque - projected @ projected), 1e-12)))
    return errors


def _deviating_parts(model: DynamicModel, statistics: StatisticSet, theta: Array) -> tuple[DeviatingPart, ...]:
    """Parts of logs whose residual is large relative to the joint's usual residual and torque (:data:`_DEVIATING`).

    Dry friction holds a joint at rest with any torque: what a part shows less of it than the others may be in its residual.
    """
    friction = np.zeros_like(theta)  # of all laws but viscous ones
    for laws in sliders(model).values():
        for start, law in laws:
            if not (law.bias or isinstance(law, Viscous)):
                friction[start : start + len(law.symbols)] = theta[start : start + len(law.symbols)]
    deviating: list[DeviatingPart] = []
    for group, entries in statistics.of_group.items():
        layout = statistics.layout(group)
        first = len(layout.instruments)
        last = first + len(layout.columns)
        measured = np.zeros((layout.width, 3))  # R times this: errors, efforts and dry friction
        measured[first:last, 0], measured[-1, :2] = theta[layout.columns], (-1.0, 1.0)
        measured[first:last, 2] = friction[layout.columns]
        blocks = {log: sorted(set(of_log)) for log, of_log in grouped((e.log, e.block) for e in entries).items()}
        parts = grouped(
            (
                (entry.log, blocks[entry.log].index(entry.block) * PARTS // len(blocks[entry.log])),
                np.append(np.sum((entry.factor @ entry.times(measured)) ** 2, axis=0), entry.rows * entry.repeats),
            )
            for entry in entries
        )  # sums of squares of error, effort and dry friction, and number of rows
        sums = np.array([np.sum(of_part, axis=0) for of_part in parts.values()])
        _, effort, _, count = sums.sum(axis=0)
        least = _OF_TORQUE * np.sqrt(effort / max(count, 1.0))
        mean = sums[:, :3] / np.maximum(sums[:, 3:], 1.0)
        for k in np.flatnonzero(np.sqrt(mean[:, 0]) > least):
            square, _, dry = mean[k]
            others = mean[:, 2] >= _AS_MUCH**2 * dry  # a joint that rests in most parts has a larger residual where it moves
            others[k] = False
            if not others.any():
                continue
            usual, _, usual_dry = np.median(mean[others], axis=0)
            beyond = np.sqrt(max(square - max(usual_dry - dry, 0.0), 0.0))
            if beyond > max(least, _DEVIATING * np.sqrt(usual)):
                (log, part), sizes = list(parts)[k], (float(np.sqrt(square)), float(np.sqrt(usual)))
                deviating.append(DeviatingPart(log, joint_of(group), f"{part + 1}/{PARTS}", *sizes))
    return tuple(deviating)


def common_scale(factor: Array, prior: Prior, weight: float, inertial: int) -> CommonScale | None:
    """Estimates the common scale by generalised least squares; friction and rotor inertia are free.

    Args:
        factor: Whitened data factor ``[R | rho]``, shape (k, p + 1).
        weight: Factor by which the data's nominal precision is too high.
        inertial: Number of inertial parameters, which come first.

    Returns:
        The scale; None if the data do not determine it, as on gantries, where rotors and offsets may stand for all masses, or
        if it is not positive: no unit reverses masses, but a few seconds of friction that the model lacks do.
    """
    R, rho = factor[:, :-1], factor[:, -1]
    left, size, _ = np.linalg.svd(R[:, inertial:])
    free = left[:, int(np.sum(size > _DEPENDENT * size.max(initial=0.0))) :].T  # the part of the data without joint terms
    bodies = free @ R[:, :inertial]
    stated = bodies @ prior.theta0[:inertial]
    if stated @ stated <= weight:  # noise alone leaves the factor open by its own size or more
        return None
    errors = bodies @ prior.deviations[:inertial, :inertial]
    scaled = scaled_bodies(stated, errors, free @ rho, weight)
    return CommonScale(scaled.factor, scaled.error / scaled.factor) if scaled.factor > 0 else None
