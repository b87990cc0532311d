"""The ``compensation`` section of a project file."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from .section import Section

Input = Literal["deformation", "deformation_rate", "position", "velocity", "acceleration"]


class CompensationSection(Section):
    """Prediction of the residual of the rigid model from two encoders."""

    residual: Literal["none", "rbf", "gmr", "auto"] = Field(
        "none", description="model of the residual; auto: the one that predicts held-out motions best, or none"
    )
    inputs: tuple[Input, ...] = Field(
        ("deformation", "deformation_rate"), min_length=1, description="inputs of the residual model; others over-fit"
    )
    rounds: int = Field(20, ge=1, description="maximum number of iterations over friction, links and residual")
    seed: int = Field(0, ge=0, description="random seed of the Gaussian mixture")

    @field_validator("inputs")
    @classmethod
    def _once(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(value)) != len(value):
            raise ValueError("each input once")
        return value

    def options(self) -> dict[str, Any]:
        """Keyword arguments of :func:`..result.compensated.compensate`."""
        return {"kind": self.residual, "use": self.inputs, "rounds": self.rounds, "seed": self.seed}
