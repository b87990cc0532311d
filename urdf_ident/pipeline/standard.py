"""From a fit to whole parameter vectors, as the project file asks: bodies that can exist, and what the URDF would have been."""

from __future__ import annotations

from ..consistency.demands import demands
from ..consistency.standard import Standard, consistent_parameters, nearest_to_prior
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.prior import Prior
from ..project import Project
from ..statistics.fit import Fit, fit_columns
from ..statistics.statistic import StatisticSet


def standard_parameters(model: DynamicModel, statistics: StatisticSet, fit: Fit, prior: Prior, project: Project) -> Standard:
    """Standard parameters by the project's ``consistency`` section.

    Args:
        model: The dynamic model.
        statistics: The data's factors.
        fit: The base parameters.
        prior: What the parameters stay close to, first fit included.
        project: Its ``consistency`` section counts.

    Returns:
        The parameters and how they were chosen.

    Raises:
        SolverError: The solver failed.
        ModelError: The demands contradict the model.
    """
    wanted = project.consistency
    if wanted.method not in ("auto", "lmi"):
        return nearest_to_prior(wanted.method, fit, prior)
    options, notes = demands(model.robot, prior, **wanted.demands())
    weight = None if wanted.weight == "auto" else float(wanted.weight)
    return consistent_parameters(statistics, fit, prior, model.parameters, options, weight, wanted.point_to_set, notes)


def urdf_with_friction(model: DynamicModel, statistics: StatisticSet, fit: Fit, theta0: Array) -> Array:
    """The best that a user could have had without new bodies: the URDF's, with friction fitted to the data.

    Args:
        model: The dynamic model.
        statistics: The data's factors.
        fit: For its weights.
        theta0: Parameters of the URDF, shape (p,).

    Returns:
        Shape (p,); rotor inertias are zero.
    """
    fixed = theta0.copy()
    fixed[model.n_inertial :] = 0.0
    friction = [k for k in range(model.n_inertial, len(model.parameters)) if not model.parameters[k].symbol.startswith("Ia")]
    return fit_columns(statistics, friction, fixed, fit.weights)
