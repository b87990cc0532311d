"""The ``estimation`` section of a project file."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PositiveFloat, model_validator

from .section import Section


class EssentialSection(Section):
    """Which base parameters the data need; a rule alone may be given in its place."""

    rule: Literal["f-test", "relative_std", "ratio", "none"] = Field(
        "f-test",
        description="f-test: by residual and held-out error; relative_std: largest relative standard error at most the limit; "
        "ratio: largest over smallest at most the limit",
    )
    limit: PositiveFloat | None = Field(None, description="of relative_std [%] (6 if absent) and of ratio (10 if absent)")

    @model_validator(mode="before")
    @classmethod
    def _rule_alone(cls, data: Any) -> Any:
        return {"rule": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _limited(self) -> EssentialSection:
        if self.limit is not None and self.rule not in ("relative_std", "ratio"):
            raise ValueError(f"the rule '{self.rule}' has no limit; relative_std and ratio have one")
        return self


class EstimationSection(Section):
    """Which estimator."""

    method: Literal["auto", "ols", "wls", "irls", "iv", "gls", "didim", "ml", "ridge", "tls"] = Field(
        "auto",
        description="auto: WLS, row groups weighted by their residual; IRLS where outliers would outweigh it; "
        "IV where reference and controller are known and show that noise on the motion biases WLS; "
        "ml: weighted by the scatter between periods; tls: noise of the positions counted in the regressor",
    )
    loss: Literal["tukey", "huber"] = Field("tukey", description="of IRLS; tukey gives outliers no weight at all")
    covariance: Literal["auto", "model", "hac", "jackknife", "bootstrap", "period", "log"] = Field(
        "auto", description="of standard errors; auto: what counts the noise's autocorrelation, by the residuals"
    )
    essential: EssentialSection = Field(EssentialSection(), description="which base parameters the data need")
