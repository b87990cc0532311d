"""The result of the demonstration beside the truth, which only a simulated robot has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..grouping import table
from ..linalg import Array
from .identification import Identification


@dataclass(frozen=True, eq=False)
class Demo:
    """Output of the demo: the result, the true parameters, and notes to print."""

    ident: Identification
    truth: Array
    notes: tuple[str, ...]

    def summary(self) -> str:
        """Errors side by side, then true and estimated values."""
        ident, truth, model, urdf = self.ident, self.truth, self.ident.model, self.ident.urdf_theta
        score = ident.validation[0]  # mean errors on the held-out log; those of each joint are in the summary of the result
        named = {"wrong URDF": "urdf_", "wrong URDF + fitted friction": "urdf_friction_", "identified": ""}
        means = ", ".join(f"{word} {score[f'{key}mean_rmse']:.3f}" for word, key in named.items())
        ratio = score["urdf_mean_rmse"] / score["mean_rmse"]
        masses = range(0, model.n_inertial, 10)
        rows = [[model.names[k] + " [kg]", f"{truth[k]:.3f}", f"{urdf[k]:.3f}", f"{ident.theta[k]:.3f}"] for k in masses]
        rows += [
            [f"{parameter.name} [{parameter.unit}]", f"{truth[k]:.3f}", "-", f"{ident.theta[k]:.3f}"]
            for symbol in ("Fv", "Fc", "Ia")
            for k, parameter in enumerate(model.parameters)
            if parameter.symbol == symbol
        ]
        inside = np.abs(ident.fit.params - ident.fit.base.of(truth)) <= 3 * ident.fit.bse
        lines = [
            f"  held-out mean RMSE [N·m]: {means}: {ratio:.1f} times smaller than the wrong URDF's",
            "",
            *table(["parameter", "truth", "wrong URDF", "identified"], rows),
            "  single masses are only partly determined by joint torques (`from data` in report.html); base parameters are:",
            f"  {int(inside.sum())} of {len(inside)} base parameters within three standard errors of the truth",
        ]
        return "\n".join([*lines, "", *self.notes])
