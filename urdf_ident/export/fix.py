"""Repairs a URDF so that every engine accepts it: ``urdf-ident check ROBOT --fix FILE``."""

from __future__ import annotations

from ..consistency.repair import assess_links, repaired_links
from ..errors import UrdfError
from ..model.urdf import parse_urdf
from .strict_urdf import without_violations
from .urdf import corrected_urdf


def fix_urdf(text: str, where: str = "URDF") -> tuple[str, tuple[str, ...]]:
    """Repairs inconsistent inertials, removes elements that strict readers reject (:mod:`.strict_urdf`), and nothing else.

    Args:
        text: The URDF; negative masses are accepted, numbers that are not finite are not.
        where: File name for messages.

    Returns:
        The repaired text, unchanged if nothing was wrong, and a note on each change.

    Raises:
        UrdfError: The URDF is unreadable, or contains something that cannot be repaired.
    """
    text, repairs = without_violations(text, where)
    links, notes = repaired_links(parse_urdf(text, where, allow_negative_mass=True))
    fixed = corrected_urdf(text, links, where=where)
    left = [item.name for item in assess_links(parse_urdf(fixed, where)) if item.level != "ok"]
    if left:
        raise UrdfError("some links could not be repaired", where=where, got=left)
    return fixed, (*notes, *repairs)
