"""A known payload in some of the logs: its torque does not depend on the robot's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ModelError, nearest
from ..linalg import Array, shaped
from ..samples import ReadOnly, Segment
from .inertia import from_com, margins, transform
from .rigid_bodies import rigid_torque
from .robot import LumpedLink, Robot

#: Begin of a remedy where logs do not fit a known payload.
CHECK_PAYLOAD = "check drive.payload (logs, link, mass [kg], com [m]); if it is right, "


def moving_link(robot: Robot, link: str, where: str | None = None) -> tuple[int, LumpedLink]:
    """Finds a link that is moved by a joint.

    Args:
        where: Source of the name, for the message.

    Returns:
        Index of the moving body that it belongs to, and its placement in that body.

    Raises:
        ModelError: There is no such link, or no joint moves it.
    """
    places = {item.name: (k, item) for k, body in enumerate(robot.bodies) for item in body.links}
    if link in places:
        return places[link]
    if link in robot.description.links:
        raise ModelError(
            f"link '{link}' does not move: no joint torque shows a body on it",
            where=where or robot.path,
            expected=f"one of {', '.join(places)}",
        )
    raise ModelError(f"no link is called '{link}'", where=where or robot.path, remedy=nearest(link, places))


@dataclass(frozen=True, eq=False)
class Payload(ReadOnly):
    """A known body fixed to a link.

    Attributes:
        body: Index of the moving body that carries it.
        theta: Ten inertial parameters about the origin of that body's joint frame, shape (10,) [kg, kg·m, kg·m²].
        logs: Names of the logs with the payload; wildcards * and ? are allowed.
    """

    body: int
    theta: Array
    logs: tuple[str, ...]

    @classmethod
    def create(cls, robot: Robot, link: str, mass: float, com: ArrayLike, inertia: ArrayLike, logs: Sequence[str]) -> Payload:
        """Attaches a body to a link.

        Args:
            mass: [kg].
            com: Centre of mass in the link's frame, shape (3,) [m].
            inertia: ixx, ixy, ixz, iyy, iyz, izz about the centre of mass, along the link's axes, shape (6,) [kg·m²].

        Raises:
            ModelError: The link does not move or does not exist, no body has the mass or inertia, or the centre of mass is ten
                times farther away than the robot reaches.
            ShapeError: Mass, centre of mass or inertia do not consist of one, three and six numbers.
        """
        xx, xy, xz, yy, yz, zz = shaped("inertia", inertia, (6,)).tolist()
        mass, com = float(shaped("mass", mass, ())), shaped("com", com, (3,))
        about_com = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        if not 0.0 < mass < np.inf:
            raise ModelError("no body has this mass", where="drive.payload.mass", got=mass, expected="a positive number of kg")
        if not np.isfinite(about_com).all() or margins(from_com(mass, np.zeros(3), about_com)).relative < -1e-9:
            raise ModelError(
                "no body has this inertia",
                where="drive.payload",
                got=[xx, xy, xz, yy, yz, zz],
                expected="moments about the centre of mass that satisfy the triangle inequality",
            )
        body, item = moving_link(robot, link, "drive.payload.link")
        if not (away := float(np.linalg.norm(com))) <= 10 * (longest := robot.reach()):  # also NaN
            raise ModelError(
                "this centre of mass is far outside the robot",
                where="drive.payload.com",
                got=f"{away:.3g} m from '{link}'",
                expected=f"metres; the robot reaches {longest:.3g} m",
            )
        return cls(body, transform(from_com(mass, com, about_com), item.rotation, item.translation), tuple(logs))

    def on(self, log: str) -> bool:
        """Whether a log was recorded with the payload."""
        return any(fnmatchcase(log, pattern) for pattern in self.logs)

    def torque(self, robot: Robot, segment: Segment) -> Array:
        """Returns the joint torque that moves the payload, shape (N, n) [N·m or N]."""
        theta = np.zeros(robot.n_inertial)
        theta[10 * self.body : 10 * self.body + 10] = self.theta
        return rigid_torque(robot, theta, segment.q, segment.v, segment.a)

    def taken_off(self, robot: Robot, log: str, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        """Returns the segments of a log with the payload's torque as an external torque.

        Args:
            log: Name of the log; one without the payload is returned unchanged.

        Returns:
            The segments; the external torque is minus the torque that moves the payload.
        """
        if not self.on(log):
            return tuple(segments)
        made = []
        for segment in segments:
            torque = -self.torque(robot, segment)
            made.append(replace(segment, external=torque if segment.external is None else segment.external + torque))
        return tuple(made)


def default_link(robot: Robot) -> str:
    """Link to which a payload is usually attached.

    Returns:
        ``tool0`` if it moves, otherwise the last link of the body with the most joints before it.
    """
    if "tool0" in [link.name for body in robot.bodies for link in body.links]:
        return "tool0"
    return robot.last_link
