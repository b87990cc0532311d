"""Records of the changes between results, with text, tables and a plot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..files.records import plain
from ..linalg import Array, positive
from ..quoting import figure_text
from ..samples import ReadOnly
from ..units import percent


@dataclass(frozen=True)
class ParameterChange:
    """One quantity in two results.

    Attributes:
        kind: "inertia", "friction" or "offset".
        before: Its value in the first result; of friction, the mean over the laws of both results.
        after: The same in the second result.
        difference: After minus before.
        std_error: Standard error of the difference.
        chance: p-value: probability of such a difference without a change, 0 to 1.
        changed: Whether the change is significant after correction for multiple testing.
        laws: Part of the standard error due to friction laws, or shapes of them, that differ between the results.
    """

    kind: str
    where: str
    what: str
    unit: str
    before: float
    after: float
    difference: float
    std_error: float
    chance: float
    changed: bool
    note: str = ""
    laws: float = 0.0

    def sentence(self) -> str:
        """Describes the change in words."""
        if self.kind == "friction" and abs(self.before) > 0:
            share, error = 100 * self.difference / abs(self.before), 100 * self.std_error / abs(self.before)
            word = "more" if self.difference > 0 else "less"
            text = f"{self.where} needs {abs(share):.3g} ± {percent(error)} % {word} {self.what}"
            return text + (f"; {self.note}" if self.note else "")
        text = f"{self.where}: {self.what} {self.before:.4g} → {self.after:.4g} ({self.difference:+.3g} ± {self.std_error:.2g})"
        return f"{text} {self.unit}" + (f"; {self.note}" if self.note else "")


@dataclass(frozen=True, eq=False)
class AddedBody:
    """A body on the last link that explains the change in inertia.

    Attributes:
        mass: Added mass, negative if removed [kg].
        std_error: Standard error of the mass [kg].
        com: Its centre of mass in the link's frame, shape (3,) [m].
        explained: Number of base parameters that have changed.
        left: Number of them that it does not explain.
    """

    link: str
    mass: float
    std_error: float
    com: Array
    explained: int
    left: int

    def sentence(self) -> str:
        """Describes the hypothesis in words."""
        word = "more" if self.mass > 0 else "less"
        place = ", ".join(f"{1e3 * x:.0f}" for x in self.com)
        what = f"{self.explained - self.left} of {self.explained} changed inertial parameters"
        if not self.explained:
            what = "a change of inertia that no single parameter shows"
        return (
            f"likely cause: {abs(self.mass):.3g} ± {self.std_error:.2g} kg {word} on {self.link} at ({place}) mm explain "
            f"{what}: was a tool mounted or removed?"
        )


@dataclass(frozen=True)
class CommonFriction:
    """A change of friction that most joints share.

    Attributes:
        share: Relative change, a fraction of the mean of both results' friction; symmetric in them.
        std_error: Its standard error.
        spread: Standard deviation of the joints' changes about it beyond their own errors.
        joints: Number of joints.
    """

    share: float
    std_error: float
    spread: float
    joints: int

    def sentence(self) -> str:
        """Describes the change in words, in percent of the earlier friction."""
        left = 1.0 - 0.5 * self.share
        word, share, error = "more" if self.share > 0 else "less", 100 * abs(self.share) / left, 100 * self.std_error / left**2
        return (
            f"most joints need {percent(share)} ± {percent(error)} % {word} friction alike, as at another temperature or with "
            "another lubricant; joints are tested for a change beyond it"
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of two results, or of a URDF with a result.

    Attributes:
        tests: All quantities, smallest p-value first.
        level: Family-wise false alarm rate.
        hypothesis: The body that explains the change in inertia, or None.
        common_friction: The change of friction that most joints share, which is no change of the robot; None without one.
    """

    robot: str
    names: tuple[str, str]
    tests: tuple[ParameterChange, ...]
    level: float
    hypothesis: AddedBody | None = None
    common_friction: CommonFriction | None = None

    @property
    def changes(self) -> tuple[ParameterChange, ...]:
        """The significant changes of single quantities."""
        return tuple(item for item in self.tests if item.changed)

    @property
    def changed(self) -> bool:
        """Whether the robot has changed: a single quantity, or its inertia as by a body on the last link."""
        return bool(self.changes) or self.hypothesis is not None

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        tool, common = self.hypothesis, self.common_friction
        return dict(
            plain(
                {
                    "robot": self.robot,
                    "names": list(self.names),
                    "changed": self.changed,
                    "level": self.level,
                    "hypothesis": None if tool is None else {**vars(tool), "sentence": tool.sentence()},
                    "common_friction": None if common is None else {**vars(common), "sentence": common.sentence()},
                    "tests": [{**vars(item), "sentence": item.sentence()} for item in self.tests],
                }
            )
        )

    def summary(self) -> str:
        """Describes the changes in words, friction and inertia separately."""
        changed = self.changes
        share = f"{len(self.tests)} quantities tested together at {100 * self.level:g} %"
        common = [] if self.common_friction is None else [f"  {self.common_friction.sentence()}"]
        if not self.changed:
            none = "no change but one of friction that most joints share" if common else "no significant change"
            return "\n".join([f"{self.robot}: {none} ({share})", *common, *self._limited_by_laws()])
        verb = "contradicted" if self.names[0] == "URDF" else "changed"
        lines = [f"{self.robot}: {len(changed) or 'inertia'} {verb} ({share})"]
        if self.hypothesis is not None:
            lines.append(f"  {self.hypothesis.sentence()}")
        for kind in ("friction", "offset", "inertia"):
            mine = [item for item in changed if item.kind == kind]
            if kind == "friction":  # p-values may all be zero: the largest relative change first
                mine.sort(key=lambda item: abs(item.difference / item.before) if item.before else np.inf, reverse=True)
            if mine:
                lines.append(f"  {kind}:")
                lines += [f"    {item.sentence()}" for item in mine[:12]]
                if len(mine) > 12:
                    lines.append(f"    and {len(mine) - 12} more (--json)")
        lines += common + self._limited_by_laws()
        if any(item.what.endswith("+") for item in changed):
            lines.append("  +: base parameter, in which other parameters are regrouped")
        return "\n".join(lines)

    def _limited_by_laws(self) -> list[str]:
        """Names the joints at which most of the error is due to the choice of friction laws."""
        mine = [item for item in self.tests if item.kind == "friction" and 2 * item.laws**2 > item.std_error**2]
        if not mine:
            return []
        joints = ", ".join(dict.fromkeys(sorted(item.where for item in mine)))
        most = max(100 * item.laws / positive(abs(item.before)) for item in mine)
        return [
            f"  the two results describe friction by different laws, or shapes of them, at {joints}:"
            f" this adds up to ± {percent(most)} % to its error, and smaller changes are not seen"
        ]


@dataclass(frozen=True, eq=False)
class Trend(ReadOnly):
    """Friction over many results.

    Attributes:
        names: Names of the results, in order.
        speed: Speed at which friction is evaluated, shape (n,) [rad/s or m/s].
        value: Friction torque, shape (results, n) [N·m or N].
        std_error: Its standard error, same shape.
    """

    robot: str
    names: tuple[str, ...]
    joints: tuple[str, ...]
    speed: Array
    value: Array
    std_error: Array

    def slopes(self) -> tuple[Array, Array]:
        """Slope of a weighted straight line per joint, from result to result, and its standard error, shape (n,) each.

        The error is enlarged if the results scatter more than their own errors explain (Birge 1932).
        """
        steps = np.arange(len(self.names), dtype=float)
        slope, error = np.zeros((2, len(self.joints)))
        for j in range(len(self.joints)):
            weight = 1.0 / np.maximum(self.std_error[:, j], 1e-12) ** 2
            middle = steps - weight @ steps / weight.sum()
            squares = weight @ middle**2
            slope[j] = weight @ (middle * self.value[:, j]) / squares
            rest = self.value[:, j] - weight @ self.value[:, j] / weight.sum() - slope[j] * middle
            error[j] = np.sqrt(max(float(weight @ rest**2) / max(len(steps) - 2, 1), 1.0) / squares)
        return slope, error

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        slope, error = self.slopes()
        rows = [
            {
                "joint": joint,
                "speed": self.speed[j],
                "friction": self.value[:, j],
                "std_error": self.std_error[:, j],
                "slope": slope[j],
                "slope_std_error": error[j],
            }
            for j, joint in enumerate(self.joints)
        ]
        return dict(plain({"robot": self.robot, "results": list(self.names), "trend": rows}))

    def summary(self) -> str:
        """One line per joint."""
        slope, error = self.slopes()
        lines = [
            f"{self.robot}: friction over {len(self.names)} results ({', '.join(self.names)})",
            "  friction [N·m or N] at a speed [rad/s or m/s], and its change from result to result",
        ]
        for j, joint in enumerate(self.joints):
            values = "  ".join(f"{v:.3g}±{e:.1g}" for v, e in zip(self.value[:, j], self.std_error[:, j], strict=True))
            rising = "" if abs(slope[j]) < 3 * error[j] else "  rises" if slope[j] > 0 else "  falls"
            share = 100 / positive(abs(float(np.mean(self.value[:, j]))))
            lines.append(
                f"  {joint:<20} at {self.speed[j]:.2g}: {values}  {share * slope[j]:+.3g} ± {percent(share * error[j])} % "
                f"per result{rising}"
            )
        return "\n".join(lines)

    def plot(self, path: str | Path) -> Path:
        """Plots friction over the results, one line per joint, with 95 % error bars.

        Args:
            path: Output file; its extension gives the format.
        """
        from .plots.figure import apply_style, legend, new_figure, write_figure

        figure = new_figure(7.0, 4.5, on_screen=False)
        axes = figure.add_subplot()
        steps = np.arange(len(self.names))
        for j, joint in enumerate(self.joints):
            axes.errorbar(steps, self.value[:, j], 1.96 * self.std_error[:, j], marker="o", capsize=3, label=figure_text(joint))
        axes.set_xticks(steps, [figure_text(name) for name in self.names], rotation=20, ha="right")
        apply_style(axes, title=f"{self.robot}: friction over results", y="friction at the usual speed [N·m or N]")
        legend(figure, loc="outside right upper")
        return write_figure(figure, path)
