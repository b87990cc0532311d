"""Records of a fleet: quantities of several robots of one model, outliers, with text, tables and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..files.read_write import write_text
from ..files.records import json_text, plain
from ..grouping import table
from ..linalg import Array, BoolArray, positive
from ..samples import ReadOnly
from ..units import percent
from .comparison import SHOWN, Compared
from .plots.chart import Chart, box, values_chart, vertical


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
        pooled: All quantities.
        level: Family-wise false alarm rate.
        needed: Standard deviations from the others at which a robot is an outlier; inf with fewer than three robots.
        failed: Folder → why its robot could not be identified.
        verdicts: Verdicts of the robots, in their order; empty if unknown.
    """

    robot: str
    names: tuple[str, ...]
    pooled: tuple[Pooled, ...]
    level: float
    tests: int
    needed: float
    failed: Mapping[str, str] = field(default_factory=dict)
    verdicts: tuple[str, ...] = ()

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
        """Name, verdict (empty if unknown) and :meth:`deviations` of every robot."""
        verdicts = self.verdicts or [""] * len(self.names)
        return [(name, verdict, self.deviations(name)) for name, verdict in zip(self.names, verdicts, strict=True)]

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        return dict(
            plain(
                {
                    "robot": self.robot,
                    "robots": [
                        {
                            "name": name,
                            "stands_out": bool(sentences),
                            "sentences": sentences,
                            **({"verdict": verdict} if verdict else {}),
                        }
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
        from .plots.figure import write_rows

        return write_rows([pooled.chart(self.names) for pooled in self.shown], len(self.names), path)
