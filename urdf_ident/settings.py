"""Sections of the project file, one per stage; the keys of a section are the arguments of its stage.

Sections whose stage needs more than plain data stand in its layer; :mod:`.project` combines all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationInfo, field_validator, model_validator


class Section(BaseModel):
    """A section of the file: unknown keys are errors, values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, data: Any) -> Any:
        """Ignores known keys without a value, such as ``drive:`` with all its lines commented out.

        A value that may be null keeps it. Unknown keys stay, so that they are errors: ``cutoff: 2,5`` in braces is the key 5.
        """
        if not isinstance(data, Mapping):
            return data
        named = {str(key): value for key, value in data.items()}
        return {key: value for key, value in named.items() if value is not None or cls._holds(key, type(None))}

    @field_validator("*", mode="before")
    @classmethod
    def _true_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuses a truth value where a number is expected; pydantic would read ``true`` as 1."""
        name = str(info.field_name)
        number = cls._holds(name, float) or cls._holds(name, int)
        if number and not cls._holds(name, bool) and _truth_value(value):
            raise ValueError("Input should be a number")
        return value

    @classmethod
    def _holds(cls, name: str, kind: type) -> bool:
        """Whether the type of a field contains another one; True for an unknown field."""
        field = cls.model_fields.get(name)
        return field is None or kind in _types(field.annotation)


def _types(annotation: Any) -> set[Any]:
    """A type annotation and all types that it is composed of."""
    return {annotation}.union(*(_types(part) for part in get_args(annotation)))


def _truth_value(value: Any) -> bool:
    """Whether a value is, or contains, true or false."""
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return isinstance(value, bool) or any(_truth_value(part) for part in parts)


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


Auto = Literal["auto"]
#: Distances from the prior that each ``consistency.method`` supports, its default first.
DISTANCES: dict[str, tuple[str, ...]] = {
    "auto": ("entropic", "euclid"),
    "lmi": ("entropic", "euclid"),
    "minimum_norm": ("euclid", "plain"),
    "frozen": (),
    "essential": (),
}


class ConsistencySection(Section):
    """How standard parameters are chosen among those that fit the data."""

    method: Literal["auto", "lmi", "minimum_norm", "frozen", "essential"] = Field(
        "auto",
        description="auto is lmi: physically consistent bodies, close to the prior; minimum_norm and frozen fit exactly, "
        "consistent or not; essential moves only what estimation.essential keeps",
    )
    prior: Literal["urdf"] = Field("urdf", description="prior that the solution stays close to")
    distance: Literal["auto", "entropic", "euclid", "plain"] = Field(
        "auto",
        description="from the prior: entropic (lmi, its auto), euclid in the prior's standard deviations (lmi; minimum_norm, "
        "its auto), plain in SI units, kg added to kg·m² (minimum_norm)",
    )
    weight: PositiveFloat | Auto = Field(
        "auto",
        description="weight of the prior; auto: 10, more for correlated residuals; by held-out error if data contradict it",
    )
    relative_std: float = Field(0.3, gt=0, description="relative uncertainty of the URDF's inertial parameters")
    mass_std: float = Field(0.3, gt=0, description="relative uncertainty of the URDF's masses")
    total_mass: float | tuple[float, float] | None = Field(
        None, description="total mass of the moving bodies [kg], or (lowest, highest)"
    )
    com_in_box: bool = Field(True, description="keep centres of mass inside the URDF's geometry, if it covers the whole body")
    mass_factor: float | None = Field(
        10.0, gt=1, description="largest factor by which a mass may differ from the URDF's; null: no limit"
    )
    ellipsoids: bool = Field(False, description="keep the mass distribution inside ellipsoids around that geometry")
    keep_children: bool = Field(False, description="keep the inertial parameters of links behind fixed joints as in the URDF")
    solver: str | None = Field(
        None,
        description="solver of CVXPY for the lmi, such as CLARABEL, SCS or MOSEK; null: Clarabel without CVXPY, the fastest",
    )

    @field_validator("total_mass")
    @classmethod
    def _possible_mass(cls, value: float | tuple[float, float] | None) -> float | tuple[float, float] | None:
        low, high = value if isinstance(value, tuple) else (value, value)
        if low is not None and high is not None and not 0 < low <= high:
            raise ValueError("Input should be a mass above 0 [kg], or [lowest, highest]")
        return value

    @model_validator(mode="after")
    def _fits_method(self) -> ConsistencySection:
        if self.solver is not None and self.method not in ("auto", "lmi"):
            raise ValueError(f"method '{self.method}' uses no solver; leave solver out, or set method: lmi")
        known = DISTANCES[self.method]
        if self.distance != "auto" and self.distance not in known:
            given = " or ".join(known) or "auto: it measures no distance"
            raise ValueError(f"method '{self.method}' has no distance '{self.distance}'; give {given}")
        return self

    @property
    def measure(self) -> str:
        """The distance that the method uses, ``auto`` resolved; empty for a method that measures none."""
        return self.distance if self.distance != "auto" else next(iter(DISTANCES[self.method]), "")

    def constraints(self) -> dict[str, Any]:
        """Keyword arguments of :func:`.consistency.constraints.body_constraints`."""
        return self.model_dump(include={"total_mass", "com_in_box", "mass_factor", "ellipsoids", "keep_children"})


class CompensationSection(Section):
    """Prediction of the residual of the rigid model from two encoders."""

    residual: Literal["none", "rbf", "gmr", "auto"] = Field(
        "none", description="model of the residual; auto: the one that predicts held-out motions best, or none"
    )
    rounds: int = Field(20, ge=1, description="maximum number of iterations over friction, links and residual")
    seed: int = Field(0, ge=0, description="random seed of the Gaussian mixture")

    def options(self) -> dict[str, Any]:
        """Keyword arguments of :func:`..pipeline.compensate.compensate`."""
        return {"kind": self.residual, "rounds": self.rounds, "seed": self.seed}
