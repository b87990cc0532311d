"""How close a motion comes to limits and to other things, in words."""

from __future__ import annotations

from ..motion.collision.clearance import ClearanceReport
from ..motion.limits import LimitReport

UNWATCHED = "not watched; excitation.collisions: true keeps links apart, with capsules where geometry is missing"


def _percent(value: float) -> str:
    """Two digits, and no exponent where nearly all is left."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.2g}"


def closest_lines(report: LimitReport, clearance: ClearanceReport | None) -> list[str]:
    """The closest call of each quantity.

    Args:
        report: Room left to the limits.
        clearance: Room left to other things; None where collisions were not asked for.

    Returns:
        Lines of text.
    """
    worst = {m.quantity: m for m in sorted(report.margins, key=lambda m: -m.relative)}
    lines = ["closest to each limit:"]
    for quantity in ("position", "velocity", "acceleration", "torque"):
        m = worst.get(quantity)
        if m is None:
            lines.append(f"  {quantity:12s} no limit known")
            continue
        lines.append(
            f"  {quantity:12s} {m.value:10.4g} of {m.limit:.4g} {m.unit} ({m.joint} at {m.time:.3f} s, "
            f"{_percent(100 * m.relative)} % left)"
        )
    watched = [UNWATCHED] if clearance is None else [str(pair) for pair in clearance.closest]
    return [*lines, *(f"  {'distance':12s} {line}" for line in watched or ["nothing can collide"])]
