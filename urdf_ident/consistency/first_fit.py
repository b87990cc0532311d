"""Initial estimate of friction and rotor inertia, which a URDF lacks: bounded, physical, and in proportion to the torque.

Plain least squares is unsuitable: nearly collinear friction columns get large estimates of opposite sign, which cancel in
the data but not elsewhere. Each parameter is therefore expected to contribute no more than the bodies' torque residual,
``x ~ N(0, (rms(left)/rms(column))²)``, in the logs and in ordinary motion, and friction must dissipate. The residual of the
URDF's bodies is too large, because it contains their errors; that of bodies fitted near the URDF is too small, because they
absorb friction and rotor torque in a short motion: the geometric mean of the two is used. A bias (amplifier offset) is
expected to be a small part of the torque, and a smaller one where the data cannot separate it from friction: a joint that
never reverses shows only the sum of bias and Coulomb friction, which is then attributed to friction. How small, the biases of
all joints show together: in a few seconds of motion that of one joint is hardly told from weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import EstimationError
from ..friction import SPEEDS, bias_symbols
from ..grouping import grouped
from ..linalg import Array, BoolArray, block_diagonal, lstsq, orthogonal_part, positive, rms, standard_errors
from ..model.dynamic_model import DynamicModel
from ..model.prior import USUAL_ERROR, Prior, least_weight, scaled_bodies, with_joint_terms
from ..model.rigid_bodies import mass_matrices
from ..model.robot import STANDARD_GRAVITY
from ..model.terms import SPRING_SYMBOLS, Parameter
from ..samples import Segment
from ..statistics.fit import SIGMA_FLOOR, Fit, usual_weight
from ..statistics.folds import folds_of
from ..statistics.least_squares import LEVEL, constrained_least_squares, solve
from ..statistics.motions import motions
from ..statistics.statistic import StatisticSet
from .constraints import friction_constraints, loads

#: Least excitation of a joint's column relative to the most excited joint's: below it residual and column are both noise,
#: and their ratio would make any value plausible.
_LEAST_NORM = 0.3
#: Expected bias as a fraction of the torque: where it is collinear with friction, and where it is separable.
BIAS, SEPARABLE_BIAS = 0.03, 0.1
#: Factors on that, the same for the biases of all joints, of which the data choose one.
_SCALES = np.geomspace(0.01, 1.0, 25)
#: A column is collinear with others that leave at most this fraction of its square: a bias with bodies and rotors, bodies with
#: friction, rotors and biases.
_SAME = 1e-12
#: Fraction of the acceleration in ordinary motion from which the data would show rotors.
_SHOWN = 0.1
#: Lower bound of a row group's residual, as a fraction of its torque: no model is more accurate.
_BEST = 1e-3
#: Prior standard deviation of a joint parameter, in units of the value with which it alone would explain the bodies' residual.
SPREAD = 0.3
#: RMS speed in ordinary motion: fraction of the URDF's limit, and upper bound, also without a limit [rad/s, m/s].
_PART, _MOST = 0.25, (1.0, 0.25)
#: Frequency of that motion [Hz]; RMS acceleration is about twice the RMS speed.
_FREQUENCY = 0.3
#: Acceleration of mass in ordinary motion, as a fraction of gravity.
_OF_GRAVITY = 0.1
#: Number of samples, and sampling rate [Hz].
_SAMPLES, _RATE = 200, 60.0


def completed_prior(
    model: DynamicModel,
    prior: Prior,
    statistics: StatisticSet,
    fit: Fit,
    reversals: float = np.inf,
    searched: Sequence[int] = (),
) -> Prior:
    """Completes the inertial prior with friction and rotor inertia, which a URDF lacks, from a first fit (Gautier 2013 §V.B).

    Bodies whose inertials the URDF does not state get the one density that the torques show (:func:`_weighed`).
    The inertials stay close to their prior in this fit: a rotor inertia adds to a link's and cannot be separated otherwise.
    The standard deviation of each parameter is :data:`SPREAD` times the value with which it alone would be as large as the
    bodies' torque residual, whatever its estimate.

    Laws that a search found beside the simple ones are the largest of many estimates, and too large on average. Their prior
    mean is zero, as before the search, and their standard deviation is the estimate itself (empirical Bayes, Efron & Morris
    1973): laws that the data determine hardly change, and others are reduced by half or more.

    Args:
        reversals: Mean number of velocity reversals of the moving joints.
        searched: Indices into theta of the parameters of such laws.
    """
    n, p, prior = len(prior.theta0), len(model.parameters), _weighed(prior, statistics, fit)
    fixed = np.concatenate([prior.theta0, np.zeros(p - n)])
    values, size = first_fit(model, statistics, fit, range(n, p), fixed, prior=prior, reversals=reversals)
    std, chosen = SPREAD * size, np.asarray(searched, dtype=np.intp) - n
    values[chosen], std[chosen] = 0.0 * values[chosen], np.abs(values[chosen])  # parameters without data stay NaN
    return with_joint_terms(prior, model.parameters, values, std=std)


def _weighed(prior: Prior, statistics: StatisticSet, fit: Fit) -> Prior:
    """Scales guessed bodies by the one density of largest marginal likelihood, with friction, rotors and offsets free.

    Gravity torques mainly determine it. Where they show none, as on a gantry whose rotors may be as heavy as its bodies, or
    contradict the geometry at any density, that of the guess remains.
    """
    if not prior.guessed.any():
        return prior
    n, guessed = len(prior.theta0), np.repeat(prior.guessed, 10)
    factor = statistics.stacked(fit.weights)
    bodies, stated = factor[:, :n] @ np.where(guessed, prior.theta0, 0.0), np.where(guessed, 0.0, prior.theta0)
    torques = np.column_stack([bodies, factor[:, -1] - factor[:, :n] @ stated, factor[:, :n] @ prior.deviations])
    torques = orthogonal_part(torques, factor[:, n:-1])
    scaled = scaled_bodies(torques[:, 0], torques[:, 2:], torques[:, 1], usual_weight(statistics, fit))
    density, shown = scaled.factor, torques[:, 0] @ torques[:, 0] > _SAME * (bodies @ bodies)
    if not shown or density <= 0 or scaled.spread > USUAL_ERROR:
        note = "the torques do not show the density of the bodies that the URDF does not state: their masses are guesses"
        return replace(prior, notes=(*prior.notes, note))
    scale = np.where(prior.guessed, density, 1.0)
    theta = prior.theta0 * np.repeat(scale, 10)
    blocks = [prior.root[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] / size for i, size in enumerate(scale)]
    total = float(theta[::10][prior.guessed].sum())
    note = f"bodies that the URDF does not state: about {total:.3g} kg together, at the one density that the torques show"
    return replace(
        prior, theta0=theta, root=block_diagonal(*blocks), spread=prior.spread * scale[:, None], notes=(*prior.notes, note)
    )


def urdf_with_friction(model: DynamicModel, statistics: StatisticSet, fit: Fit, theta0: Array) -> Array:
    """Baseline parameters: the URDF's bodies with bounded friction fitted to the data, shape (p,); rotor inertias are zero.

    Args:
        theta0: Parameters of the URDF, shape (p,).
    """
    fixed = theta0.copy()
    fixed[model.n_inertial :] = 0.0
    friction = [k for k in range(model.n_inertial, len(model.parameters)) if not model.parameters[k].rotor]
    values, _ = first_fit(model, statistics, fit, friction, fixed)
    fixed[friction] = np.where(np.isfinite(values), values, 0.0)
    return fixed


def first_fit(
    model: DynamicModel,
    statistics: StatisticSet,
    fit: Fit,
    columns: Sequence[int],
    fixed: Array,
    *,
    prior: Prior | None = None,
    reversals: float = np.inf,
) -> tuple[Array, Array]:
    """Estimates joint terms with the bodies fixed, or estimated with their prior.

    Rotor inertias are zero unless they gain significantly together: torques measured behind the gears contain none, and in a
    faster motion the torque of those that are only chance grows with the square of the speed.

    Args:
        columns: Indices into theta of the joint terms to estimate, length k.
        fixed: Values of all parameters, shape (p,); those of ``columns`` are ignored.
        prior: Prior of the inertial parameters, which are then estimated too. None: they are fixed.
        reversals: Mean number of velocity reversals of the moving joints.

    Returns:
        The estimate of ``columns``, shape (k,), NaN where a parameter is not excited; and the value with which each alone would
        be as large as the bodies' torque residual (a bias: as 3 to 10 % of the torque), shape (k,), inf where not excited, and
        for the springs of elastic joints, whose torque and preload may exceed the measured torque.
    """
    chosen = np.asarray(columns, dtype=np.intp)
    terms, others = [model.parameters[k] for k in chosen], np.array(fixed, dtype=float)
    others[chosen] = 0.0
    m, factor = 0 if prior is None else model.n_inertial, usual_weight(statistics, fit)
    groups, factors = [layout.group for layout in statistics.layouts], statistics.weighted(fit.weights)
    weights, counts = (np.array([float(each[group]) for group in groups]) for each in (fit.weights, statistics.rows))
    efforts = weights * np.sqrt([statistics.effort_squares(group) for group in groups])  # norms of the weighted torques
    unknown = [F[:, np.concatenate([np.arange(m), chosen])] for F in factors]
    rights = [F[:, -1] - F[:, :-1] @ others for F in factors]
    lengths = np.array([np.linalg.norm(block[:, m:], axis=0) for block in unknown])
    acts, length = lengths > 0, np.linalg.norm(lengths, axis=0)
    # as long as in that many rows of ordinary motion, at least
    least = ordinary_columns(model)[chosen] * np.sqrt((np.square(weights) * counts) @ acts)
    biased = np.array([term.symbol in bias_symbols() for term in terms], dtype=bool)
    torque = np.sqrt(
        np.sum(acts * np.where(biased, efforts[:, None], _body_residuals(unknown, rights, efforts, prior, factor)) ** 2, axis=0)
    )
    torque *= _shares(terms, np.vstack(unknown), biased)
    unweighted = np.linalg.norm(lengths / weights[:, None], axis=0)
    alike = grouped(((term.symbol, term.unit), norm) for term, norm in zip(terms, unweighted.tolist(), strict=True))
    excited = unweighted / positive([max(alike[term.symbol, term.unit]) for term in terms])
    seen = length > 0
    plausible = np.maximum(length * np.maximum(1.0, _LEAST_NORM / np.where(seen, excited, 1.0)), least)
    size = np.where(seen, torque / np.where(seen, plausible, 1.0), np.inf)

    usable = seen & (size > 0)
    # springs of elastic joints are not bounded, because their torques balance each other
    springs = np.array([term.symbol in SPRING_SYMBOLS for term in terms], dtype=bool)
    values = np.where(seen & ~usable, 0.0, np.nan)
    if usable.any():
        # where joints hardly reverse, gravity of a tool missing in the URDF correlates with acceleration
        rotors = np.array([term.rotor for term in terms])
        weight = np.where(rotors, max(factor, least_weight(reversals)), factor)
        ridge = np.diag(np.where(springs, 0.0, np.sqrt(weight))[usable] / size[usable])
        prior_rows = ridge if prior is None else block_diagonal(np.sqrt(factor) * prior.root, ridge)
        dissipates = [one.row for one in friction_constraints(model, loads(model, statistics), SPEEDS)]
        inside = [row[chosen] for row in dissipates if not np.delete(row, chosen).any()]
        signs = np.vstack([np.eye(len(chosen))[[term.nonnegative for term in terms]], *inside])
        signs = np.hstack([np.zeros((len(signs), m)), signs[:, usable]])
        doubted = np.append(np.zeros(m, dtype=bool), (rotors & (length > _SHOWN * least))[usable])
        blocks = [block[:, np.append(np.ones(m, dtype=bool), usable)] for block in unknown]

        def weighed(noise: Array) -> tuple[Array, Array]:
            A = np.vstack([*(block / s for block, s in zip(blocks, noise, strict=True)), prior_rows])
            b = np.concatenate([*(right / s for right, s in zip(rights, noise, strict=True)), np.zeros(len(prior_rows))])
            return A, b

        def solved(kept: BoolArray, noise: Array) -> tuple[Array, float]:
            A, b = weighed(noise)
            x = np.zeros(len(kept))
            x[kept] = constrained_least_squares(A[:, kept], b, signs[:, kept])
            return x, float(np.sum((A @ x - b) ** 2))

        every = np.ones(len(doubted), dtype=bool)
        x, _ = solved(every, np.ones(len(blocks)))
        # the groups are weighted by their own residual noise
        residual = [np.linalg.norm(right - block @ x) for right, block in zip(rights, blocks, strict=True)]
        noise = np.maximum(residual, _BEST * efforts)
        idle = noise <= SIGMA_FLOOR * efforts.max()  # joints without effort
        noise = np.where(idle, 1.0, noise / np.sqrt(np.maximum(counts, 1.0)))
        if prior is not None and biased[usable].any():
            is_bias = np.append(np.zeros(m, dtype=bool), biased[usable])
            A, b = weighed(noise)
            kept = np.append(np.ones(len(A) - len(is_bias), dtype=bool), ~is_bias)  # rows but those that expect biases
            A, b = A[kept], b[kept]
            scale = size_factor(A[:, is_bias] * size[usable & biased], A[:, ~is_bias], b, factor)
            size[usable & biased] *= scale
            prior_rows[:, is_bias] /= scale
        x, squares = solved(every, noise)
        if doubted.any():
            without, more = solved(~doubted, noise)
            x = without if chi_bar_square_tail((more - squares) / factor, int(doubted.sum())) > LEVEL else x
        values[usable] = x[m:]
    return values, np.where(springs, np.inf, size)


def size_factor(expected: Array, others: Array, seen: Array, noise: float) -> float:
    """Returns the factor on the expected sizes of parameters with the largest marginal likelihood; others are free.

    Args:
        expected: Torques of the parameters at their expected sizes, shape (N, k).
        others: Columns of all other parameters and their priors, shape (N, m).
        seen: Measured torque, shape (N,).
        noise: Variance of its noise.
    """
    apart = orthogonal_part(np.column_stack([expected, seen]), others)
    axes, sizes, _ = np.linalg.svd(apart[:, :-1], full_matrices=False)
    variances = noise + (_SCALES[:, None] * sizes) ** 2
    costs = np.sum(np.log(variances) + (axes.T @ apart[:, -1]) ** 2 / variances, axis=1)
    return float(_SCALES[int(np.argmin(costs))])


def _body_residuals(blocks: list[Array], rights: list[Array], efforts: Array, prior: Prior | None, factor: float) -> Array:
    """Norm of the bodies' torque residual in each row group, for each joint term, shape (g, k).

    The lower value is the residual of bodies near the URDF's, divided by the fraction of the column that they cannot explain.
    """
    # excludes the weight an axis carries
    most = np.minimum([np.linalg.norm(right) for right in rights], efforts)[:, None]
    if prior is None:
        return np.repeat(most, blocks[0].shape[1], axis=1)
    m, every = len(prior.theta0), np.hstack([np.vstack(blocks), np.concatenate(rights)[:, None]])
    held = np.vstack([every[:, :m], np.sqrt(factor) * prior.root])
    by_bodies = lstsq(held, np.vstack([every[:, m:], np.zeros((m, every.shape[1] - m))]), rcond=None)[0]
    residual = np.split(every[:, m:] - every[:, :m] @ by_bodies, np.cumsum([len(block) for block in blocks])[:-1])
    beyond = np.array([np.linalg.norm(block, axis=0) for block in residual])
    whole = np.array([np.linalg.norm(block[:, m:], axis=0) for block in blocks])
    least = beyond[:, -1:] * whole / np.maximum(beyond[:, :-1], positive(1e-9 * whole))
    return np.asarray(np.sqrt(most * np.minimum(most, least)))


def _shares(terms: Sequence[Parameter], rows: Array, biased: BoolArray) -> Array:
    """Fraction of the torque that each parameter may explain alone, shape (k,); for a bias by its separability from friction.

    A bias that bodies and rotor explain exactly is collinear with the weight on a vertical prismatic joint, and is
    attributed to the weight.
    """
    bodies, columns = np.split(rows, [rows.shape[1] - len(terms)], axis=1)
    shares, owners = np.ones(len(terms)), np.array([term.owner for term in terms])
    dissipates = np.array([term.nonnegative for term in terms], dtype=bool)

    def separable(k: int, others: Array) -> float:
        """Fraction of a column's square that is orthogonal to the others."""
        remainder = orthogonal_part(columns[:, k], others)
        return float(remainder @ remainder) / positive(float(columns[:, k] @ columns[:, k]))

    for k in np.flatnonzero(biased).tolist():
        same = (owners == owners[k]) & (np.arange(len(terms)) != k)
        if separable(k, np.hstack([bodies, columns[:, same]])) <= _SAME:
            shares[k] = BIAS
            continue
        shares[k] = BIAS + (SEPARABLE_BIAS - BIAS) * separable(k, columns[:, dissipates & same])
    return shares


def ordinary_columns(model: DynamicModel) -> Array:
    """RMS of the columns of joint terms in an ordinary sinusoidal motion of every joint about zero.

    Returns:
        Shape (p,) [unit of the column]; 0 for inertial parameters, springs, load-dependent terms, and with elastic joints.
    """
    columns = np.zeros(len(model.parameters))
    if not model.is_rigid:
        return columns
    speed = np.minimum(_PART * model.robot.limit("velocity"), np.where(model.robot.prismatic, *_MOST[::-1]))
    phase = 2 * np.pi * (_FREQUENCY * np.arange(_SAMPLES)[:, None] / _RATE + np.arange(model.n) / model.n)
    w, size = 2 * np.pi * _FREQUENCY, np.sqrt(2.0) * speed
    motion = Segment("ordinary", 0.0, _RATE, size / w * np.sin(phase), size * np.cos(phase), -size * w * np.sin(phase))
    for applied, span in model.placed_terms:
        if not (applied.term.loaded or getattr(applied.term, "conservative", False)):
            columns[span] = rms(model.term_values(motion, [applied]), 0)
    # the acceleration at which a robot's mass accelerates by a small fraction of g, so that it scales with the arm's size: for
    # revolute joints at the arm's largest radius of gyration
    robot = model.robot
    mass = np.diag(mass_matrices(robot, np.zeros((1, robot.n)))[0])
    carried = np.array([sum(robot.model.inertias[k + 1].mass for k in bodies) for bodies in robot.subtrees])
    longest = np.sqrt(np.max((mass / positive(carried))[~robot.prismatic], initial=0.0))
    of_mass = _OF_GRAVITY * float(np.linalg.norm(STANDARD_GRAVITY))
    for k, parameter in enumerate(model.parameters):
        if parameter.rotor:
            slides = robot.prismatic[robot.joints.index(parameter.owner)]
            columns[k] = max(columns[k], of_mass if slides else of_mass / longest if longest > 0 else 0.0)
    return columns


def chi_bar_square_tail(value: float, count: int) -> float:
    """Probability that parameters that cannot be negative gain more by chance (Kudô 1963, for uncorrelated ones).

    Args:
        value: Reduction of the squared residual, in variances.
    """
    from scipy.special import chdtrc

    return float(sum(math.comb(count, k) * chdtrc(k, value) for k in range(1, count + 1)) / 2**count)


#: Distance of a rotor inertia in the data from its prior, in standard errors of both, from which the data contradict it.
_CONTRADICTED = 6.0


def reconciled_prior(model: DynamicModel, prior: Prior, statistics: StatisticSet, fit: Fit) -> Prior:
    """Widens the prior of rotor inertias that the data contradict to the distance between both (empirical Bayes).

    The prior expects that a rotor takes no more torque in ordinary motion than the bodies leave unexplained. A finger or
    another slide of short stroke never moves in this way: its true rotor inertia may be a hundred times larger.

    The data must contradict the prior without any one of the motions, too (of a single motion, any part in time): friction that
    the model lacks stays the same along a log, and looks like rotor inertia where a joint moves in that log only.

    Args:
        fit: The fit; only rotor inertias that are base parameters by themselves are compared.

    Returns:
        The prior, with a note for each rotor inertia.
    """
    rotor = np.array([parameter.rotor for parameter in model.parameters], dtype=bool)[fit.base.independent]
    alone = np.flatnonzero(rotor & (np.abs(fit.base.K).max(axis=1, initial=0.0) < 1e-9))
    columns = fit.base.independent[alone]

    def contradicted(value: Array, error: Array) -> BoolArray:
        far = np.abs(value - prior.theta0[columns]) > _CONTRADICTED * np.hypot(prior.std[columns], error)
        return np.asarray((value > 0) & far)

    doubted = contradicted(fit.params[alone], fit.bse[alone])
    if not doubted.any():
        return prior
    without = [statistics.without(logs) for logs in motions(statistics)]
    if len(without) == 1:
        try:
            split = folds_of(statistics)
        except EstimationError:  # too short to be divided
            return prior
        without = [split.left_out(fold) for fold in split.logs]
    factors = [rows.stacked(fit.weights, fit.base.independent) for rows in (statistics, *without)]
    nominal, *errors = (standard_errors(factor[:, :-1]) for factor in factors)
    larger, known = np.ones(len(nominal)), fit.seen & np.isfinite(nominal)  # the fit's errors over nominal ones
    larger[known] = fit.bse[known] / positive(nominal[known])
    for factor, error in zip(factors[1:], errors, strict=True):
        doubted &= contradicted(solve(factor, fit.rows, fit.params).estimate[alone], (larger * error)[alone])
    if not doubted.any():
        return prior
    root, freed = prior.root.copy(), columns[doubted]
    root[freed, freed] = 1.0 / np.abs(fit.params[alone] - prior.theta0[columns])[doubted]
    joints = ", ".join(model.parameters[k].owner for k in freed)
    note = f"rotor inertia of {joints}: far above or below what the bodies suggest, taken from the data alone"
    return replace(prior, root=root, notes=(*prior.notes, note))
