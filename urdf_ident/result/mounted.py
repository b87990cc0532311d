"""The identified robot with a payload in the formats that other programs read."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ..errors import EstimationError
from ..export import mjcf
from ..export.mounted import mounted_urdf
from ..files import read_text, write_text
from ..model.inertia import transform
from ..model.payload import moving_link
from ..model.prior import lumped_inertials
from ..model.robot import Robot
from .equivalent import armature, equivalent_friction
from .exports import write_urdf
from .payload import PayloadResult
from .record import Record

#: Largest relative difference of an inertial parameter between what was wanted and what the written URDF says.
_SAME = 1e-6


def write_with_payload(ident: Record, body: PayloadResult, folder: str | Path) -> list[str]:
    """Writes ``<robot>_with_payload.urdf`` and ``.xml`` (MJCF): the identified robot, the body on a fixed link.

    Args:
        ident: The robot.
        body: Its payload.
        folder: Where to.

    Returns:
        Lines that say what was written and done.

    Raises:
        OutputError: A file cannot be written.
        EstimationError: What was written is not the robot with the payload.
    """
    robot, out = ident.model.robot, Path(folder)
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in robot.name)
    with tempfile.TemporaryDirectory() as place:
        notes = write_urdf(ident, Path(place) / "robot.urdf")
        plain = read_text(Path(place) / "robot.urdf", "URDF")
    text, link = mounted_urdf(plain, body.link, body.theta, where=robot.path)
    options = {"joints": robot.order, "lock": robot.locked, "gravity": robot.model.gravity.linear}
    empty, heavy = Robot.from_urdf(plain, **options), Robot.from_urdf(text, **options)
    theta = lumped_inertials(heavy)
    carrier, frame = moving_link(robot, body.link)
    wanted = lumped_inertials(empty)
    wanted[carrier] += transform(body.theta, frame.rotation, frame.translation)
    if not np.allclose(theta, wanted, rtol=_SAME, atol=_SAME * float(np.abs(wanted[carrier]).max())):
        raise EstimationError(
            "the written URDF does not hold the payload",
            where=robot.path,
            got=theta[carrier].tolist(),
            expected=wanted[carrier].tolist(),
        )
    found = equivalent_friction(ident)
    xml, more = mjcf.mjcf_text(
        heavy, theta.ravel(), damping=found.damping, frictionloss=found.friction, armature=armature(ident), repair=True
    )
    files = [write_text(out / f"{name}_with_payload.urdf", text), write_text(out / f"{name}_with_payload.xml", xml)]
    said = dict.fromkeys([*notes, *more])
    return [*said, *(f"wrote {file} (link '{link}' on {body.link})" for file in files)]
