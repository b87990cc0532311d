"""The ``estimation`` section of a project file."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PositiveFloat, model_validator

from .section import Section


class EssentialSection(Section):
    """Which base parameters are essential; may be given as the rule alone."""

    rule: Literal["f-test", "relative_std", "ratio", "none"] = Field(
        "f-test",
        description="f-test: by residual and held-out error; relative_std: largest relative standard error within the limit; "
        "ratio: largest over smallest at most the limit",
    )
    limit: PositiveFloat | None = Field(None, description="limit of relative_std [%] (default 6) or of ratio (default 10)")

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
    """The estimator and its standard errors."""

    method: Literal["auto", "ols", "wls", "irls", "iv", "gls", "didim", "ml", "ridge", "tls"] = Field(
        "auto",
        description="auto: WLS, row groups weighted by their residual; IRLS where outliers would dominate; "
        "IV where reference and controller are known and show that noise on the motion biases WLS; "
        "ml: weighted by the scatter between periods; tls: noise of the positions counted in the regressor",
    )
    loss: Literal["tukey", "huber"] = Field("tukey", description="loss function of IRLS; tukey gives outliers no weight at all")
    covariance: Literal["auto", "model", "hac", "jackknife", "bootstrap", "period", "log"] = Field(
        "auto", description="how standard errors are computed; auto: with the autocorrelation of the residuals"
    )
    essential: EssentialSection = Field(EssentialSection(), description="which base parameters are essential")
