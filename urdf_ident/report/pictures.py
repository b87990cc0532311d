"""All pictures of the report, each a small SVG that stays readable on a telephone."""

from __future__ import annotations

from typing import Any

from ..result.friction_curves import friction_curves
from ..result.identification import Identification
from ..result.plots.bodies import draw_body
from ..result.plots.changes import draw_changes
from ..result.plots.parameters import draw_parameters, draw_terms
from ..result.plots.residual import draw_errors, draw_memory, draw_spectrum
from ..result.plots.torque import draw_torque
from ..result.traces import LogTrace
from .svg import MARKED, svg

#: Width and margins of every picture [in, fractions of the figure].
_WIDTH, _LEFT, _RIGHT = 3.75, 0.15, 0.98


def torque_pictures(ident: Identification, trace: LogTrace) -> list[str]:
    """Measured against predicted torque, one picture a joint.

    Args:
        ident: The result.
        trace: Series of one log.

    Returns:
        SVG elements.
    """
    found = []
    for j, joint in enumerate(ident.model.robot.joints):

        def draw(figure: Any, j: int = j, joint: str = joint) -> None:
            top, under = figure.subplots(2, 1, height_ratios=[3, 1], gridspec_kw=_margins(2.5, 0.22, hspace=0.08))
            draw_torque(top, trace, j, joint, ident.plot.unit(j), MARKED, residual=under)

        found.append(svg(draw, _WIDTH, 2.5, f"Measured and predicted torque of {joint} on {trace.log}"))
    return found


def friction_pictures(ident: Identification) -> list[str]:
    """Friction curves, one picture a joint that has friction laws.

    Args:
        ident: The result.

    Returns:
        SVG elements.
    """
    found = []
    for curve in friction_curves(ident):

        def draw(figure: Any, curve: Any = curve) -> None:
            ident.plot.draw_friction(figure.subplots(gridspec_kw=_margins(2.3)), curve, MARKED)

        found.append(svg(draw, _WIDTH, 2.3, f"Friction torque of {curve.joint} against its speed"))
    return found


def change_pictures(ident: Identification) -> list[str]:
    """Friction that changes: deviations of each log, one picture a parameter whose spread is not zero.

    Args:
        ident: The result.

    Returns:
        SVG elements.
    """
    changes, found = ident.fit.changes, []
    if changes is None:
        return []
    units = {parameter.name: parameter.unit for parameter in ident.model.parameters}
    for k, name in enumerate(changes.parameters):
        if changes.known and not changes.spread[k] > 0:
            continue

        def draw(figure: Any, k: int = k, name: str = name) -> None:
            draw_changes(figure.subplots(gridspec_kw=_margins(2.0)), changes, k, units[name], MARKED)

        found.append(svg(draw, _WIDTH, 2.0, f"Deviations of {name} from its mean"))
    return found


def parameter_pictures(ident: Identification) -> list[str]:
    """Estimates with intervals, a picture a body and one a kind of joint term.

    Args:
        ident: The result.

    Returns:
        SVG elements.
    """
    bodies, terms = ident.plot.parameter_groups()
    found = []
    for groups, drawing, left in ((bodies, draw_parameters, _LEFT), (terms, draw_terms, 0.36)):
        for title, rows in groups.items():

            def draw(figure: Any, title: str = title, rows: Any = rows, drawing: Any = drawing, left: float = left) -> None:
                drawing(figure.subplots(gridspec_kw={**_margins(2.4), "left": left}), rows, title, MARKED)

            found.append(svg(draw, _WIDTH, 2.4, f"Parameters {title} with their 95 % intervals"))
    return found


def body_pictures(ident: Identification) -> list[str]:
    """Inertia ellipsoids before and after, one picture a body.

    Args:
        ident: The result.

    Returns:
        SVG elements.
    """
    model, found = ident.model, []
    before = ident.prior.theta0[: model.n_inertial].reshape(-1, 10)
    for k, body in enumerate(model.robot.bodies):

        def draw(figure: Any, k: int = k, name: str = body.name) -> None:
            axes = figure.subplots(1, 2, gridspec_kw=_margins(1.9, wspace=0.42))
            draw_body(axes, before[k], ident.bodies[k], name, MARKED)

        found.append(svg(draw, _WIDTH, 1.9, f"Inertia ellipsoid of {body.name} in the URDF and as identified"))
    return found


def residual_pictures(ident: Identification, trace: LogTrace) -> list[str]:
    """Memory and spectrum of the residual.

    Args:
        ident: The result.
        trace: Series of one log.

    Returns:
        SVG elements.
    """
    joints, unit = ident.model.robot.joints, ident.plot.unit(0)

    def memory(figure: Any) -> None:
        draw_memory(figure.subplots(gridspec_kw=_margins(2.6)), trace, joints, MARKED)

    def spectrum(figure: Any) -> None:
        draw_spectrum(figure.subplots(gridspec_kw={**_margins(2.6), "left": 0.19}), trace, joints, unit, MARKED)

    found = [svg(memory, _WIDTH, 2.6, "Autocorrelation of the residual")]
    return [*found, svg(spectrum, _WIDTH, 2.6, "Spectrum of the residual")] if len(trace.frequency) else found


def error_picture(ident: Identification) -> str:
    """Held-out errors per joint beside those of the URDF.

    Args:
        ident: The result, with held-out scores.

    Returns:
        An SVG element.
    """
    height = 0.9 + 0.34 * ident.model.n

    def draw(figure: Any) -> None:
        axis = figure.subplots(gridspec_kw={**_margins(height), "left": 0.36})
        draw_errors(axis, ident.validation, ident.plot.unit(0), MARKED)

    return svg(draw, _WIDTH, height, "Held-out errors per joint")


def _margins(height: float, top: float = 0.26, **more: float) -> dict[str, float]:
    """Margins of fixed size [in], so that labels keep their places."""
    return {"left": _LEFT, "right": _RIGHT, "bottom": 0.42 / height, "top": 1.0 - top / height, **more}
