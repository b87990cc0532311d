"""The user's own paths in the commands of summaries and reports."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CommandPaths:
    """Files that commands about a result name; a placeholder stays where the file is unknown.

    Attributes:
        command: The command that is running, as typed; empty in Python.
    """

    robot: str | Path = ""
    result: str | Path = ""
    project: str | Path = ""
    command: str = ""

    def fill(self, text: str) -> str:
        """Text with paths for ROBOT.urdf and OUT/identification.json, for a shell in the folder that they refer to."""
        if self.project:
            text = text.replace("design ROBOT.urdf", f"design ROBOT.urdf -c {shlex.quote(str(self.project))}")
        for placeholder, path in (("ROBOT.urdf", self.robot), ("OUT/identification.json", self.result)):
            text = text.replace(placeholder, shlex.quote(str(path)) if path else placeholder)
        return text

    def fill_in(self, data: Any) -> Any:
        """Replaces the placeholders in all texts of plain data, as :meth:`fill` does."""
        if isinstance(data, str):
            return self.fill(data)
        if isinstance(data, Mapping):
            return {key: self.fill_in(value) for key, value in data.items()}
        return [self.fill_in(value) for value in data] if isinstance(data, list | tuple) else data
