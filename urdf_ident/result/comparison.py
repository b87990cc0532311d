"""Records of what differs between results of one robot, or among robots of one model, with text, tables and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..files.documents import json_text, plain
from ..files.read_write import write_text
from ..grouping import table
from ..linalg import Array, BoolArray, positive
from ..samples import ReadOnly
from ..units import percent
from .plots.charts import SHOWN, Chart, box, values_chart, vertical


@dataclass(frozen=True)
class Compared:
    """A quantity that results have in common.

    Attributes:
        kind: "inertia", "friction" or "offset".
        where: Its joint or body.
        what: Its name.
    """

    kind: str
    where: str
    what: str
    unit: str

    def in_percent(self, verb: str, gap: float, error: float, usual: float) -> str:
        """Says how much more or less friction a joint needs or has; "" for other quantities.

        Args:
            gap: The difference, in the quantity's unit.
            error: Its standard error.
            usual: What it refers to.
        """
        if self.kind != "friction" or not usual > 0:
            return ""
        share, word = 100 * abs(gap) / usual, "more" if gap > 0 else "less"
        return f"{self.where} {verb} {share:.3g} ± {percent(100 * error / usual)} % {word} {self.what}"


@dataclass(frozen=True)
class ParameterChange(Compared):
    """One quantity in two results.

    Attributes:
        before: Its value in the first result; of friction, the mean over the laws of both results.
        after: The same in the second result.
        difference: After minus before.
        std_error: Standard error of the difference.
        chance: p-value: probability of such a difference without a change, 0 to 1.
        changed: Whether the change is significant after correction for multiple testing.
        laws: Part of the standard error due to friction laws, or shapes of them, that differ between the results.
    """

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
        difference = f"{self.difference:+.3g} ± {self.std_error:.2g}"
        text = self.in_percent("needs", self.difference, self.std_error, abs(self.before))
        text = text or f"{self.where}: {self.what} {self.before:.4g} → {self.after:.4g} ({difference}) {self.unit}"
        return text + (f"; {self.note}" if self.note else "")


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
        return tuple(test for test in self.tests if test.changed)

    @property
    def changed(self) -> bool:
        """Whether the robot has changed: a single quantity, or its inertia as by a body on the last link."""
        return bool(self.changes) or self.hypothesis is not None

    def as_dict(self) -> dict[str, Any]:
        tool, common = (one and {**vars(one), "sentence": one.sentence()} for one in (self.hypothesis, self.common_friction))
        tests = [{**vars(test), "sentence": test.sentence()} for test in self.tests]
        told = {"changed": self.changed, "hypothesis": tool, "common_friction": common, "tests": tests}
        return dict(plain({**vars(self), **told}))

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
            of_kind = [change for change in changed if change.kind == kind]
            if kind == "friction":  # p-values may all be zero: the largest relative change first
                of_kind.sort(
                    key=lambda change: abs(change.difference / change.before) if change.before else np.inf, reverse=True
                )
            if of_kind:
                lines.append(f"  {kind}:")
                lines += [f"    {change.sentence()}" for change in of_kind[:SHOWN]]
                if len(of_kind) > SHOWN:
                    lines.append(f"    and {len(of_kind) - SHOWN} more (--json)")
        lines += common + self._limited_by_laws()
        if any(change.what.endswith("+") for change in changed):
            lines.append("  +: base parameter, in which other parameters are regrouped")
        return "\n".join(lines)

    def _limited_by_laws(self) -> list[str]:
        """Names the joints at which most of the error is due to the choice of friction laws."""
        limited = [test for test in self.tests if test.kind == "friction" and 2 * test.laws**2 > test.std_error**2]
        if not limited:
            return []
        joints = ", ".join(dict.fromkeys(sorted(test.where for test in limited)))
        most = max(100 * test.laws / positive(abs(test.before)) for test in limited)
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
        for j, (value, std_error) in enumerate(zip(self.value.T, self.std_error.T, strict=True)):
            weight = 1.0 / np.maximum(std_error, 1e-12)
            line, covariance = np.polyfit(steps, value, 1, w=weight, cov="unscaled")
            scatter = float(np.sum((weight * (value - np.polyval(line, steps))) ** 2)) / max(len(steps) - 2, 1)
            slope[j], error[j] = line[0], np.sqrt(covariance[0, 0] * max(scatter, 1.0))
        return slope, error

    def as_dict(self) -> dict[str, Any]:
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
        """Plots friction of each joint in the results, one below the other, with 95 % intervals.

        Args:
            path: Output file; its extension gives the format.
        """
        charts = [
            values_chart(
                f"{joint}: friction at {speed:.2g} rad/s or m/s [N·m or N]", self.names, self.value[:, j], self.std_error[:, j]
            )
            for j, (joint, speed) in enumerate(zip(self.joints, self.speed, strict=True))
        ]
        from .plots.plots import write_rows

        return write_rows(charts, len(self.names), path)


@dataclass(frozen=True, eq=False)
class Pooled(Compared, ReadOnly):
    """One quantity in m robots.

    Attributes:
        mean: Mean over the robots that are not outliers in it.
        std_error: Standard error of the mean.
        spread: Standard deviation between these robots.
        interval: 95 % interval of the mean.
        value, error: Value of each robot and its standard error, shape (m,).
        difference: Difference from the mean of the other robots, shape (m,).
        deviation: Standard deviation of the difference, shape (m,).
        chance: p-value of the difference, shape (m,), 0 to 1.
        stands_out: Whether each robot is an outlier after correction for multiple testing, shape (m,).
        carried_by: Of a body's inertial parameter, the bodies and joints whose base parameters include it.
    """

    mean: float
    std_error: float
    spread: float
    interval: tuple[float, float]
    value: Array
    error: Array
    difference: Array
    deviation: Array
    chance: Array
    stands_out: BoolArray
    carried_by: tuple[str, ...] = ()

    def sentence(self, robot: int) -> str:
        """Describes how one robot differs."""
        gap, error = float(self.difference[robot]), float(self.deviation[robot])
        text = self.in_percent("has", gap, error, abs(self.mean))
        return text or f"{self.where}: {self.what} {gap:+.3g} ± {error:.2g} {self.unit} from the others"

    def chart(self, names: Sequence[str]) -> Chart:
        """The value of every robot with its 95 % interval; outliers in red, mean and two spreads of the others as a band."""
        band = box(self.mean - 2 * self.spread, self.mean + 2 * self.spread, -np.inf, np.inf, "soft", 0.25)
        beside = [band, vertical(self.mean, "soft", 1.2)]
        return values_chart(f"{self.where}: {self.what} [{self.unit}]", names, self.value, self.error, beside, self.stands_out)


@dataclass(frozen=True, eq=False)
class Fleet:
    """Several robots of one model.

    Attributes:
        verdicts: Verdicts of the robots' results, in their order.
        pooled: All quantities.
        level: Family-wise false alarm rate.
        needed: Standard deviations from the others at which a robot is an outlier; inf with fewer than three robots.
        failed: Folder → why its robot could not be identified.
    """

    robot: str
    names: tuple[str, ...]
    verdicts: tuple[str, ...]
    pooled: tuple[Pooled, ...]
    level: float
    tests: int
    needed: float
    failed: Mapping[str, str] = field(default_factory=dict)

    def deviations(self, name: str) -> list[str]:
        """Describes the quantities in which a robot is an outlier, smallest p-value first.

        A body that differs alters the base parameters of all bodies that carry it: of inertial parameters only the most
        significant one of each outermost body is described, and the others are counted.
        """
        i = self.names.index(name)
        odd = sorted((pooled for pooled in self.pooled if pooled.stands_out[i]), key=lambda pooled: float(pooled.chance[i]))
        inertial = [pooled for pooled in odd if pooled.kind == "inertia"]
        carrying = {body for pooled in inertial for body in pooled.carried_by}
        sentences: list[str] = []
        seen: set[str] = set()
        for pooled in odd:
            if pooled.kind != "inertia":
                sentences.append(pooled.sentence(i))
            elif pooled.where not in carrying | seen:
                seen.add(pooled.where)
                more = sum(other.where in (pooled.where, *pooled.carried_by) for other in inertial) - 1
                also = f" ({more} more of it and of the bodies that carry it differ: its change alters them as well)"
                sentences.append(pooled.sentence(i) + (also if more else ""))
        return sentences

    @property
    def robots(self) -> list[tuple[str, str, list[str]]]:
        """Name, verdict and :meth:`deviations` of every robot."""
        return [(name, verdict, self.deviations(name)) for name, verdict in zip(self.names, self.verdicts, strict=True)]

    def as_dict(self) -> dict[str, Any]:
        return dict(
            plain(
                {
                    "robot": self.robot,
                    "robots": [
                        {"name": name, "stands_out": bool(sentences), "sentences": sentences, "verdict": verdict}
                        for name, verdict, sentences in self.robots
                    ],
                    "failed": [{"folder": name, "why": why} for name, why in self.failed.items()],
                    "level": self.level,
                    "tests": self.tests,
                    "needed": self.needed if np.isfinite(self.needed) else None,
                    "quantities": [vars(pooled) for pooled in self.pooled],
                }
            )
        )

    def save(self, path: str | Path) -> Path:
        """Writes the JSON form.

        Raises:
            OutputError: It cannot be written.
        """
        return write_text(path, json_text(self.as_dict()) + "\n")

    @property
    def headline(self) -> tuple[str, str]:
        """Number of outliers, and the deviation from which a robot is one, in words."""
        odd = sum(bool(sentences) for _, _, sentences in self.robots)
        count = f"{odd} outlier{'s' if odd > 1 else ''}" if odd else "no outliers"
        how = f"{self.tests} quantities tested together at {100 * self.level:g} %"
        needed = "of two robots, neither can be called the outlier: use `urdf-ident compare`"
        if np.isfinite(self.needed):
            needed = f"a robot is an outlier beyond {self.needed:.2g} standard deviations of the prediction from the others"
        return f"{len(self.names)} robots, {count} ({how})", needed

    @property
    def shown(self) -> tuple[Pooled, ...]:
        """Quantities to plot: friction of every joint, and all others with an outlier."""
        shown = [pooled for pooled in self.pooled if pooled.kind == "friction"]
        shown += [pooled for pooled in self.pooled if pooled.kind != "friction" and pooled.stands_out.any()][:SHOWN]
        return tuple(shown or self.pooled[:SHOWN])

    def summary(self) -> str:
        """Outliers with their quantities, then friction of the fleet."""
        headline, needed = self.headline
        lines = [f"{self.robot}: {headline}", f"  {needed}"]
        width = max(len(name) for name in self.names)
        for name, verdict, sentences in self.robots:
            lines.append(f"  {name:<{width}}  {verdict:<6}  {sentences[0] if sentences else '-'}".rstrip())
            lines += [f"  {'':<{width}}          {line}" for line in sentences[1:SHOWN]]
            if len(sentences) > SHOWN:
                lines.append(f"  {'':<{width}}          and {len(sentences) - SHOWN} more (--json)")
        lines += [f"  {name}: not used: {why}" for name, why in self.failed.items()]
        friction = [
            (
                f"{pooled.where}, {pooled.what}",
                f"{pooled.mean:.4g} ± {pooled.std_error:.2g} {pooled.unit}",
                f"{pooled.spread:.2g} ({percent(float(100 * pooled.spread / positive(abs(pooled.mean))))} %)",
            )
            for pooled in self.pooled
            if pooled.kind == "friction"
        ]
        lines += table(("friction of the fleet", "mean", "spread between robots"), friction) if friction else []
        return "\n".join(lines)

    def plot(self, path: str | Path) -> Path:
        """Plots friction of every robot by joint with 95 % intervals, and all other quantities with an outlier.

        Args:
            path: Output file; its extension gives the format.
        """
        from .plots.plots import write_rows

        return write_rows([pooled.chart(self.names) for pooled in self.shown], len(self.names), path)
