"""Friction parameters that may differ between logs, and the record of how they do, as estimated by :mod:`.mixed_model`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...friction import Law
from ...grouping import grouped
from ...linalg import Array, BoolArray, IntArray
from ...model.dynamic_model import DynamicModel
from ...samples import ReadOnly


@dataclass(frozen=True)
class Varying:
    """A parameter that may differ between logs.

    Attributes:
        name: Name of its first entry of theta.
        axis: Index of the joint (or motor) that it belongs to.
        kind: "dry", "viscous" or "load"; "body" for inertial ones.
        columns: Indices into theta of the entries that change together.
        size: Order of magnitude of a difference, if it does not follow from the estimate.
    """

    name: str
    axis: int
    kind: str
    columns: tuple[int, ...]
    size: float = 0.0


def varying(model: DynamicModel) -> tuple[Varying, ...]:
    """Returns the friction parameters that change with temperature and wear: per axis, side and kind those of the first law.

    Returns:
        The parameters, in the order of theta.
    """
    by_kind: dict[tuple[int, str, str], Varying] = {}
    for applied, places in model.placed_terms:
        if isinstance(applied.term, Law):
            kinds = applied.term.changing
            symbols = enumerate(applied.term.symbols, places.start)
            for kind, columns in grouped((kinds[symbol], k) for k, symbol in symbols if symbol in kinds).items():
                entry = Varying(model.names[columns[0]], applied.axis, kind, tuple(columns))
                by_kind.setdefault((applied.axis, applied.side, kind), entry)
    return tuple(sorted(by_kind.values(), key=lambda entry: entry.columns))


#: Drift within a log, or friction that differs between logs, is reported if the difference is this many standard errors; a
#: drift also needs this share of the mean.
_SURE, _WORTH = 4.0, 0.05
#: A spread of friction above this fraction of its mean is too large for one robot.
_ABSURD = 0.5


@dataclass(frozen=True, eq=False)
class FrictionChanges(ReadOnly):
    """Friction as a mean and a deviation for each log; q parameters, L logs.

    Attributes:
        axes: Index of the joint (or motor) of each, shape (q,).
        kinds: "dry", "viscous" or "load", length q.
        columns: Indices into theta of the entries that change together, length q.
        mean: Over logs, in the unit of the parameter, shape (q,).
        mean_error: Its standard error, shape (q,).
        spread: Standard deviation between logs by REML, shape (q,); NaN with a single log.
        spread_dof: Degrees of freedom of the variance ``spread²``, shape (q,).
        deviation: Deviation of each log from the mean, shape (L, q).
        deviation_error: Their standard errors, shape (L, q).
        parts: Deviation in each third of each log, shape (L, 3, q).
        parts_error: Their standard errors, same shape.
        noise: Effective standard deviation of a row per row group, with autocorrelation, shape (groups,) [N·m or N].
        slope: Change per kelvin if temperatures were logged, shape (q,); NaN elsewhere.
        slope_error: Its standard error, shape (q,).
        left: Spread that the slope does not explain, shape (q,); NaN where no temperature was logged.
        covariate: Temperature of each log for each parameter, shape (L, q) [K or °C], or None.
        seconds: Duration of each log's motion, shape (L,) [s], or None.
        carriers: Names of inertial parameters that differ between the logs because only some carry a payload, length c.
        carried: Their deviation from the mean in each log, shape (L, c) [kg, kg·m]; None without such a payload.
    """

    parameters: tuple[str, ...]
    axes: IntArray
    kinds: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    logs: tuple[str, ...]
    mean: Array
    mean_error: Array
    spread: Array
    spread_dof: Array
    deviation: Array
    deviation_error: Array
    parts: Array
    parts_error: Array
    noise: Array
    slope: Array
    slope_error: Array
    left: Array
    covariate: Array | None = None
    seconds: Array | None = None
    carriers: tuple[str, ...] = ()
    carried: Array | None = None

    @property
    def known(self) -> bool:
        """Whether there are enough logs to estimate the spread."""
        return len(self.logs) > 1

    @property
    def warm(self) -> bool:
        """Whether the change with temperature is known for some parameter."""
        return bool(np.isfinite(self.slope).any())

    @property
    def next_log_error(self) -> Array:
        """Standard error of the mean as a prediction for the next log, shape (q,); of the mean alone with one log."""
        return np.asarray(np.sqrt(self.mean_error**2 + np.nan_to_num(self.spread) ** 2))

    def torque(self, speed: Array, load: Array) -> tuple[Array, Array]:
        """Returns the mean of the friction that may change, and its spread between logs, for each joint.

        Args:
            speed: Joint speeds, shape (n,) [rad/s or m/s].
            load: Torque transmitted by the gears to the links, shape (n,) [N·m or N].

        Returns:
            Both of shape (n,) [N·m or N]; the spread is zero where it is unknown.
        """
        size, of_joint = self._sizes(speed, load)
        return (size * self.mean) @ of_joint, np.sqrt((size * np.nan_to_num(self.spread)) ** 2 @ of_joint)

    def _sizes(self, speed: Array, load: Array) -> tuple[Array, BoolArray]:
        """Torque of each parameter per unit, shape (q,), and its joint, one-hot, shape (q, n), at such speeds and loads."""
        size = {"dry": np.ones_like(speed), "viscous": speed, "load": load}
        sizes = np.array([size[kind][j] for j, kind in zip(self.axes, self.kinds, strict=True)])
        return sizes, np.equal.outer(self.axes, np.arange(len(speed)))

    @property
    def drift(self) -> Array:
        """Last third minus first third of each log, shape (L, q)."""
        return np.asarray(self.parts[:, -1] - self.parts[:, 0])

    @property
    def drift_error(self) -> Array:
        """Standard error of :attr:`drift`, shape (L, q)."""
        return np.asarray(np.hypot(self.parts_error[:, -1], self.parts_error[:, 0]))

    def lines(self) -> list[str]:
        """Returns one line per parameter: mean, spread, and each log's deviation with its error."""
        short = (log if len(log) <= 17 else "…" + log[-16:] for log in self.logs)
        names = "  ".join(f"{log:>17}" for log in short) if self.known else ""
        lines = [f"  {'friction between logs':<32} {'mean':>10}   {'next log':>10}   {'spread':>10}   {names}".rstrip()]
        for k, name in enumerate(self.parameters):
            spread = f"{self.spread[k]:>10.3g}" if self.known else f"{'not known':>10}"
            each = "  ".join(
                f"{d:>+8.2g} ± {e:<6.1g}" for d, e in zip(self.deviation[:, k], self.deviation_error[:, k], strict=True)
            )
            error = self.next_log_error[k]
            lines.append(f"  {name:<32} {self.mean[k]:>10.4g} ± {error:>10.2g}   {spread}   {each * self.known}".rstrip())
            if np.isfinite(self.slope[k]):
                slope = f"{self.slope[k]:+.2g} ± {self.slope_error[k]:.1g} per kelvin"
                lines.append(f"  {'':<32} {slope}, which leaves a spread of {self.left[k]:.2g}")
        return lines

    def notes(self, speed: Array, load: Array) -> list[str]:
        """Returns notes for the user: a single log, friction that drifts within a log, an implausibly large spread, payloads.

        Args:
            speed: Usual speeds of the joints, shape (n,) [rad/s or m/s].
            load: Their usual loads, shape (n,) [N·m or N].
        """
        notes = []
        # friction that differs by more than is plausible for one robot, and between which logs; a spread that the logs cannot
        # show, as of a joint that moves in one of them, is a guess and no such difference
        mean, spread = self.torque(speed, load)
        size, of_joint = self._sizes(speed, load)
        total, error = (self.deviation * size) @ of_joint, np.sqrt((self.deviation_error * size) ** 2 @ of_joint)
        most, least = total.argmax(axis=0), total.argmin(axis=0)
        at = np.arange(len(speed))
        sure = total[most, at] - total[least, at] > _SURE * np.hypot(error[most, at], error[least, at])
        ratio = np.where(sure & (mean > 0), spread / np.where(mean > 0, mean, 1.0), 0.0)
        j = int(np.argmax(ratio))
        if ratio[j] >= _ABSURD:
            first = int(np.flatnonzero(of_joint[:, j])[0])
            more, less = (
                ", ".join(log for log, x in zip(self.logs, total[:, j], strict=True) if (x > 0) == above)
                for above in (True, False)
            )
            notes.append(
                f"friction differs by {100 * ratio[j]:.0f} % of its mean from log to log ({self.parameters[first]}), more than "
                f"temperature and wear do: logs of two robots? more in {more}; less in {less}"
            )
        for k, name in enumerate(self.carriers):  # payloads that only some logs carry
            if self.carried is None or not name.startswith("m_"):
                continue
            mass = self.carried[:, k]
            middle = 0.5 * (mass.max() + mass.min())
            loaded = [log for log, m in zip(self.logs, mass, strict=True) if m > middle]
            others = [log for log in self.logs if log not in loaded]
            difference = float(mass[mass > middle].mean() - mass[mass <= middle].mean())
            notes.append(
                f"{', '.join(loaded)}: about {difference:.2g} kg more on '{name[2:]}' than in {', '.join(others)}; a body that "
                "comes and goes is no friction: name it and its logs in `payload`, or identify the logs apart"
            )
        if not self.known:
            notes.append("friction between logs: unknown from a single log; record another one on another day")
        with np.errstate(divide="ignore", invalid="ignore"):
            sure = np.abs(self.drift) / self.drift_error
        sure[(np.abs(self.drift) < _WORTH * np.abs(self.mean)) | ~np.isfinite(sure)] = 0.0
        row, worst = np.unravel_index(int(np.argmax(sure)), sure.shape)
        if sure[row, worst] >= _SURE:
            change = 100 * self.drift[row, worst] / abs(self.mean[worst])
            further = int((sure >= _SURE).sum()) - 1
            also = f"; {further} more such changes" if further else ""
            notes.append(
                f"friction drifts within a log: {self.parameters[worst]} by {change:+.0f} % from the first to the last third "
                f"of {self.logs[row]}{also}"
            )
        return notes
