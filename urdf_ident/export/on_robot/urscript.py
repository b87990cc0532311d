"""Universal Robots: a URScript program, its dry run, and the RTDE recording recipe."""

from __future__ import annotations

from ...quoting import comment
from .plan import DRY_RUN, PAUSE, Plan

#: Set-points per second; `servoj` interpolates between them at the controller's own rate.
_RATE = 125.0

_RECIPE = """\
<?xml version="1.0"?>
<!-- What to record over RTDE, e.g. with `record.py` of ur_rtde's or UR's own RTDE client, at 500 Hz (125 Hz on CB3).
     timestamp [s], actual_q [rad], actual_qd [rad/s], actual_current [A], target_current [A], target_moment [N*m]:
     target moment over target current at rest are the torque constants, which urdf-ident finds by itself. -->
<rtde_config>
  <recipe key="out">
    <field name="timestamp" type="DOUBLE"/>
    <field name="target_q" type="VECTOR6D"/>
    <field name="actual_q" type="VECTOR6D"/>
    <field name="actual_qd" type="VECTOR6D"/>
    <field name="actual_current" type="VECTOR6D"/>
    <field name="target_current" type="VECTOR6D"/>
    <field name="target_moment" type="VECTOR6D"/>
  </recipe>
</rtde_config>
"""

_PROJECT = """\
# Project file for the log that the RTDE client writes with record_configuration.xml (columns with a header).
log:
  columns:
    time: timestamp
    position_target: [target_q_0, target_q_1, target_q_2, target_q_3, target_q_4, target_q_5]
    position: [actual_q_0, actual_q_1, actual_q_2, actual_q_3, actual_q_4, actual_q_5]
    velocity: [actual_qd_0, actual_qd_1, actual_qd_2, actual_qd_3, actual_qd_4, actual_qd_5]
    effort: [actual_current_0, actual_current_1, actual_current_2, actual_current_3, actual_current_4, actual_current_5]
    effort_target: [target_current_0, target_current_1, target_current_2, target_current_3, target_current_4, target_current_5]
    torque_target: [target_moment_0, target_moment_1, target_moment_2, target_moment_3, target_moment_4, target_moment_5]
  units: {effort: A, effort_target: A}
"""


def texts(plan: Plan) -> dict[str, str]:
    """Returns two programs (motion, dry run), an RTDE recipe, and the project file that reads its log."""
    plan.require_joints(6, "URScript drives six joints", "lock what is not of the arm")
    return {
        "motion.script": _program(plan, 1.0, "motion"),
        "dry_run.script": _program(plan, DRY_RUN, "dry run"),
        "record_configuration.xml": _RECIPE,
        "project.yaml": _PROJECT,
    }


def _program(plan: Plan, speed: float, name: str) -> str:
    time, q, _, _ = plan.samples(_RATE if speed == 1.0 else _RATE * 0.4, speed)
    step = time[1] - time[0]
    slow = float(plan.approach.min())
    lines = [
        f"# URScript, {name} of {comment(plan.robot)}: {time[-1]:.1f} s at {100 * speed:.0f} % of its speed.",
        "# Units: rad, rad/s, rad/s^2, s.",
        "# Joints: " + ", ".join(map(comment, plan.order)) + " (base to wrist 3).",
        "# The robot approaches the first pose slowly; the way there is not checked for collisions.",
        "def urdf_ident_motion():",
        f"  first = {_pose(q[0])}",
        f"  movej(first, a={max(slow, 0.05):.4f}, v={slow:.4f})",
        f"  sleep({PAUSE:.1f})",
    ]
    lines += [f"  servoj({_pose(row)}, 0, 0, {step:.6f}, 0.1, 300)" for row in q[1:]]
    return "\n".join([*lines, "  stopj(2.0)", f"  sleep({PAUSE:.1f})", "end", "urdf_ident_motion()", ""])


def _pose(values: object) -> str:
    return "[" + ",".join(f"{value:.6f}" for value in values) + "]"  # type: ignore[attr-defined]
