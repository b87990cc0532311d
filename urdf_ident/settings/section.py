"""The base of every section of a project file; each room describes its own section, the project puts them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class Section(BaseModel):
    """A section of the file: unknown keys are errors, values cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, data: Any) -> Any:
        """A key whose lines are all commented out (``drive:``) is as good as none."""
        return {key: value for key, value in data.items() if value is not None} if isinstance(data, Mapping) else data
