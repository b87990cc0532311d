"""The ``consistency`` section of a project file."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PositiveFloat, model_validator

from .section import Section

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
        "auto", description="weight of the prior; auto: by held-out error over logs or blocks of time"
    )
    point_to_set: PositiveFloat | None = Field(
        None, description="instead of a weight: allowed increase of the squared residual over its minimum, as a fraction"
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

    @model_validator(mode="after")
    def _one_way(self) -> ConsistencySection:
        if self.point_to_set is not None and self.weight != "auto":
            raise ValueError("give a weight or point_to_set, not both")
        known = DISTANCES[self.method]
        if self.distance != "auto" and self.distance not in known:
            given = " or ".join(known) or "auto: it measures no distance"
            raise ValueError(f"method '{self.method}' has no distance '{self.distance}'; give {given}")
        return self

    @property
    def measure(self) -> str:
        """The distance that the method uses, ``auto`` resolved; empty for a method that measures none."""
        return self.distance if self.distance != "auto" else next(iter(DISTANCES[self.method]), "")

    def demands(self) -> dict[str, Any]:
        """Keyword arguments of :func:`.consistency.demands.demands`."""
        return {
            "distance": self.measure,
            **self.model_dump(include={"total_mass", "com_in_box", "mass_factor", "ellipsoids", "keep_children"}),
        }
