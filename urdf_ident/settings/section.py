"""Base class of the sections of a project file; each subpackage defines its own section, the project combines them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class Section(BaseModel):
    """A section of the file: unknown keys are errors, values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, data: Any) -> Any:
        """Ignores keys without a value, such as ``drive:`` with all its lines commented out."""
        return {key: value for key, value in data.items() if value is not None} if isinstance(data, Mapping) else data
