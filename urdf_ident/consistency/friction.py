"""Dissipative friction, as linear constraints on the parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np
import pinocchio as pin

from ..friction import SPEEDS, Trained, dissipation
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..model.prior import Prior
from ..model.robot import STANDARD_GRAVITY, Robot
from ..model.trained import sliders
from ..samples import Segment
from ..statistics.fit import Fit
from ..statistics.statistic import StatisticSet
from .constraints import HalfSpaces, LmiOptions
from .first_fit import first_fit
from .standard import Standard, prior_with_first_fit

#: Assumed ratio of the peak load to its root mean square.
_PEAK = 3.0
#: Violation that counts as rounding, relative to the sum of absolute contributions of the constraint.
_ROUNDING = 1e-6
#: Number of refinements with speeds between those of the grid.
_REFINED = 3
#: RMS speed in ordinary motion: fraction of the URDF's limit, and upper bound, also without a limit [rad/s, m/s].
_PART, _MOST = 0.25, (1.0, 0.25)
#: Frequency of that motion [Hz]; RMS acceleration is about twice the RMS speed.
_FREQUENCY = 0.3
#: Acceleration of mass in ordinary motion, as a fraction of gravity.
_OF_GRAVITY = 0.1
#: Number of samples, and sampling rate [Hz].
_SAMPLES, _RATE = 200, 60.0


def loads(model: DynamicModel, statistics: StatisticSet) -> Array:
    """Approximate peak torque of each joint in the data.

    Returns:
        Shape (n,) [N·m or N]; with a coupled drive, of the joint's actuator.
    """
    peak = np.zeros(model.n)
    for layout in statistics.layouts:
        rows = max(statistics.rows[layout.group], 1)
        peak[layout.joint] = max(peak[layout.joint], _PEAK * np.sqrt(statistics.effort_squares(layout.group) / rows))
    return peak


def friction_demands(model: DynamicModel, peak: Array, speeds: int = SPEEDS) -> HalfSpaces:
    """Builds the constraints that friction of every joint and motor is dissipative at all speeds.

    Args:
        model: The model; laws without trained speeds are not constrained.
        peak: Largest torque of each joint, shape (n,) [N·m or N].
        speeds: Grid of speeds per direction.

    Returns:
        The constraints; empty where the signs of the parameters are sufficient.
    """
    rows, names = [np.zeros((0, len(model.parameters)))], list[str]()
    for (axis, side), laws in sliders(model).items():
        reach = laws[0][1].trained
        if reach is None:
            continue
        load = float(peak[axis]) / (1.0 if side == "joint" else abs(float(model.drive.reduction[axis, axis])) or 1.0)
        own, words = dissipation([law for _, law in laws], Trained(*reach, load), speeds)
        columns = [column + k for column, law in laws for k in range(len(law.symbols))]
        wide = np.zeros((len(own), len(model.parameters)))
        wide[:, columns] = own
        rows.append(wide)
        owner = model.robot.joints[axis] if side == "joint" else f"motor of {model.robot.joints[axis]}"
        names += [f"{owner}: {word} at 0" for word in words]
    matrix = np.vstack(rows)
    return HalfSpaces(matrix, np.zeros(len(matrix)), tuple(names))


def violated(demands: HalfSpaces, theta: Array) -> HalfSpaces:
    """The constraints that parameters violate.

    Args:
        theta: Shape (p,).

    Returns:
        The constraints violated by more than rounding.
    """
    margin = demands.rows @ theta + demands.limits
    size = np.maximum(np.abs(demands.rows) @ np.abs(theta), 1e-12)
    bad = np.flatnonzero(margin < -_ROUNDING * size)
    return HalfSpaces(demands.rows[bad], demands.limits[bad], tuple(demands.names[k] for k in bad))


def joined(first: HalfSpaces, second: HalfSpaces) -> HalfSpaces:
    """Concatenates two sets of constraints.

    Args:
        first: The first set.
        second: The second set, on the same parameters.

    Returns:
        All constraints.
    """
    return HalfSpaces(
        np.vstack([first.rows, second.rows]),
        np.concatenate([first.limits, second.limits]),
        (*first.names, *second.names),
    )


def completed_prior(
    model: DynamicModel,
    prior: Prior,
    statistics: StatisticSet,
    weights: Mapping[str, float],
    unsupported: Collection[str] = (),
    reversals: float = np.inf,
) -> Prior:
    """The inertial prior with friction and rotor inertia from a bounded first fit with dissipative friction.

    Args:
        prior: Prior of the inertial parameters.
        weights: Row group → weight on its rows [1/unit of torque].
        unsupported: Joints for which held-out data do not support a bias.
        reversals: Mean number of velocity reversals of the moving joints.

    Returns:
        The prior of all parameters.
    """
    physics, ordinary = friction_demands(model, loads(model, statistics)), ordinary_columns(model)
    return prior_with_first_fit(prior, model.parameters, statistics, weights, physics, ordinary, unsupported, reversals)


def dissipating(
    choose: Callable[[LmiOptions, float | None], Standard],
    options: LmiOptions,
    weight: float | None,
    model: DynamicModel,
    statistics: StatisticSet,
) -> Standard:
    """Standard parameters with dissipative friction at all speeds, checked on a grid ten times finer than the constraints'.

    Args:
        choose: Function of options and a weight of the prior (None: to be chosen) that returns the parameters.
        options: The other constraints.
        weight: As for ``choose``.

    Returns:
        The parameters.

    Raises:
        SolverError: Nothing satisfies the constraints.
    """
    peak = loads(model, statistics)
    physics, fine = friction_demands(model, peak), friction_demands(model, peak, 10 * SPEEDS)
    found = choose(replace(options, half_spaces=physics), weight)
    for _ in range(_REFINED):
        broken = violated(fine, found.theta)
        if not broken.names:
            break
        physics = joined(physics, broken)  # speeds between those of the grid
        again = choose(replace(options, half_spaces=physics), float(found.solver["weight"]))
        record = {key: value for key, value in found.solver.items() if key in ("weight_choice", "weights_tried")}
        found = replace(again, solver={**again.solver, **record})
    return found


def urdf_with_friction(model: DynamicModel, statistics: StatisticSet, fit: Fit, theta0: Array) -> Array:
    """Baseline parameters: the URDF's bodies with bounded friction fitted to the data.

    Args:
        fit: The fit, for its weights.
        theta0: Parameters of the URDF, shape (p,).

    Returns:
        Shape (p,); rotor inertias are zero.
    """
    fixed = theta0.copy()
    fixed[model.n_inertial :] = 0.0
    friction = [k for k in range(model.n_inertial, len(model.parameters)) if not model.parameters[k].rotor]
    physics = friction_demands(model, loads(model, statistics))
    first = first_fit(statistics, model.parameters, friction, fixed, fit.weights, physics, ordinary=ordinary_columns(model))
    fixed[friction] = np.where(np.isfinite(first.values), first.values, 0.0)
    return fixed


def ordinary_columns(model: DynamicModel) -> Array:
    """RMS of the columns of joint terms in an ordinary sinusoidal motion of every joint about zero.

    Returns:
        Shape (p,) [unit of the column]; 0 for inertial parameters, springs, load-dependent terms, and with elastic joints.
    """
    found = np.zeros(len(model.parameters))
    if isinstance(model, ElasticModel):
        return found
    speed = np.minimum(_PART * model.robot.limit("velocity"), np.where(model.robot.prismatic, *_MOST[::-1]))
    phase = 2 * np.pi * (_FREQUENCY * np.arange(_SAMPLES)[:, None] / _RATE + np.arange(model.n) / model.n)
    w, size = 2 * np.pi * _FREQUENCY, np.sqrt(2.0) * speed
    motion = Segment("ordinary", 0.0, _RATE, size / w * np.sin(phase), size * np.cos(phase), -size * w * np.sin(phase))
    for item, own in model.placed_terms:
        if not (item.term.loaded or getattr(item.term, "conservative", False)):
            found[own] = np.sqrt(np.mean(model.term_values(motion, [item]) ** 2, axis=0))
    carried = matter_acceleration(model.robot)
    for k, parameter in enumerate(model.parameters):
        if parameter.rotor:
            found[k] = max(found[k], carried[model.robot.joints.index(parameter.owner)])
    return found


def matter_acceleration(robot: Robot) -> Array:
    """Joint acceleration at which a robot's mass accelerates by a small fraction of g, so that it scales with the arm's size.

    Returns:
        Shape (n,) [rad/s² or m/s²]: :data:`_OF_GRAVITY` times g, for revolute joints at the arm's largest radius of gyration.
    """
    model = robot.model
    mass = np.diag(pin.crba(model, model.createData(), pin.neutral(model)))
    carried = np.array([sum(model.inertias[k].mass for k in model.subtrees[j + 1]) for j in range(robot.n)])
    longest = np.sqrt(np.max((mass / np.maximum(carried, 1e-300))[~robot.prismatic], initial=0.0))
    part = _OF_GRAVITY * float(np.linalg.norm(STANDARD_GRAVITY))
    return np.where(robot.prismatic, part, part / longest if longest > 0 else 0.0)
