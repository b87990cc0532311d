"""The user's own paths in the commands of summaries and reports."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CommandPaths:
    """Files that commands about a result name; a placeholder stays where the file is unknown."""

    robot: str | Path = ""
    result: str | Path = ""
    project: str | Path = ""

    def fill(self, text: str) -> str:
        """Replaces the placeholders ROBOT.urdf and OUT/identification.json.

        Returns:
            Text whose commands can be pasted into a shell in the folder that relative paths refer to.
        """
        if self.project:
            text = text.replace("design ROBOT.urdf", f"design ROBOT.urdf -c {shlex.quote(str(self.project))}")
        for placeholder, path in (("ROBOT.urdf", self.robot), ("OUT/identification.json", self.result)):
            text = text.replace(placeholder, shlex.quote(str(path)) if path else placeholder)
        return text
