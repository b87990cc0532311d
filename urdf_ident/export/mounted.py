"""A URDF with one more body: a link without geometry, fixed to another."""

from __future__ import annotations

import re

from ..errors import UrdfError, nearest
from ..linalg import Array
from ..model.inertia import to_com
from ..model.urdf import parse_urdf
from .urdf import number

_INERTIA = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))


def mounted_urdf(text: str, link: str, theta: Array, name: str = "payload", *, where: str = "URDF") -> tuple[str, str]:
    """Fixes a body to a link; nothing else of the text changes, not a byte.

    Args:
        text: The URDF.
        link: The link that carries it.
        theta: Ten parameters in that link's frame, shape (10,) [kg, kg·m, kg·m²], of a physically consistent body.
        name: Of the new link; a number is added where the URDF has one of that name.
        where: File name for messages.

    Returns:
        The new text, and the name that the link has.

    Raises:
        UrdfError: No such link, or the text has no end.
    """
    known = parse_urdf(text, where)
    if link not in known.links:
        raise UrdfError(f"no link is called '{link}'", where=where, remedy=nearest(link, known.links))
    taken = {*known.links, *known.joints}
    free = next(f"{name}{k}" for k in ("", *(f"_{i}" for i in range(2, 1000))) if f"{name}{k}" not in taken)
    ends = list(re.finditer(r"</robot\s*>", text))
    if not ends:
        raise UrdfError("the URDF has no </robot>", where=where)
    mass, com, inertia = to_com(theta)
    entries = " ".join(f'{key}="{number(inertia[row, column])}"' for key, row, column in _INERTIA)
    end = "\r\n" if "\r\n" in text else "\n"
    lines = [
        f'  <link name="{free}">',
        "    <inertial>",
        f'      <origin xyz="{" ".join(map(number, com))}" rpy="0 0 0"/>',
        f'      <mass value="{number(mass)}"/>',
        f"      <inertia {entries}/>",
        "    </inertial>",
        "  </link>",
        f'  <joint name="{free}_mount" type="fixed">',
        f'    <parent link="{link}"/>',
        f'    <child link="{free}"/>',
        '    <origin xyz="0 0 0" rpy="0 0 0"/>',
        "  </joint>",
        "",
    ]
    at = ends[-1].start()
    lead = "" if text[:at].endswith("\n") else end
    return text[:at] + lead + end.join(lines) + text[at:], free
