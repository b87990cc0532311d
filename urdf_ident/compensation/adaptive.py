"""The online model with friction that adapts to measured torques, one sample after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ModelError, check_positive, check_shape
from ..linalg import Array
from .friction_filter import VARIANCES, FilterSettings, FrictionFilter, samples_per_row
from .online import OnlineModel

#: Attributes of a filter that are its state.
_STATE = ("mean", "covariance", "surprise")


class AdaptiveModel:
    """Inverse dynamics with friction adapted to measured torques: call ``update`` with each measured sample and ``torque``
    whenever a torque is needed.

    The samples of a row (:data:`.friction_filter.ROW`) are averaged and processed together, so most updates are four
    additions. Deterministic; not thread-safe.

    Args:
        online: The static model.
        settings: Settings of the filter.
        rate: Updates per second [Hz].
        state: State to continue from, from :meth:`as_dict`; None: the mean over logs.

    Raises:
        ModelError: A rate that is not positive, or a state of another robot.
    """

    def __init__(
        self, online: OnlineModel, settings: FilterSettings, rate: float, state: Mapping[str, Any] | None = None
    ) -> None:
        check_positive("the rate of the updates", rate, ModelError, "Hz")
        self.settings, self.rate, self._online = settings, float(rate), online
        self._factor = samples_per_row(rate)
        self._filter = FrictionFilter([settings], self._factor / rate)
        n = online.n
        self._shape = (n,)
        self._v, self._a, self._tau, self._q, self._first = np.zeros((5, n))
        self._count = 0
        self._apply()
        if state is None:
            return
        try:
            if float(state["rate"]) != self.rate:
                raise ModelError("the state is of another rate", got=state["rate"], expected=self.rate)
            inner = {name: np.array(state["filter"][name], dtype=float) for name in _STATE}
            row = {name: np.array(state["row"][name], dtype=float) for name in ("q", "v", "a", "tau", "first")}
            self._count = int(state["count"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError("not the state of an adaptive model", got=f"{type(error).__name__}: {error}") from error
        for name, value in inner.items():
            if value.shape != getattr(self._filter, name).shape:
                raise ModelError("the state is of another robot", got=value.shape, expected=getattr(self._filter, name).shape)
            setattr(self._filter, name, value)
        for name, value in row.items():
            check_shape(name, value.shape, self._shape)
            setattr(self, f"_{name}", value)
        self._apply()

    def _apply(self) -> None:
        """Takes over the filter's deviations, bounded, for the torques until the next row."""
        self._applied = self._filter.bounded(self._filter.mean[:2])[:, 0].T

    @property
    def deviation(self) -> Array:
        """Dry and viscous deviation from the mean, shape (n, 2) [N·m, N·m·s/rad or N, N·s/m]; 0 where nothing is adapted."""
        return self._filter.mean[:2, 0].T.copy()

    @property
    def deviation_error(self) -> Array:
        """Their standard errors, shape (n, 2)."""
        return np.asarray(np.sqrt(np.maximum(self._filter.covariance[VARIANCES[:2], 0].T, 0.0)))

    def reset(self) -> None:
        """Resets friction to the mean over logs."""
        self._filter.reset()
        self._count = 0
        self._apply()

    def update(self, q: Array, v: Array, a: Array, tau: Array) -> None:
        """Adds a measured sample; a sample that is not finite invalidates its row only, which is ignored.

        Args:
            q, v, a: Joint motion, shape (n,) [rad, rad/s, rad/s² or m, m/s, m/s²].
            tau: Measured torque, shape (n,) [N·m or N].

        Raises:
            ShapeError: An array of another shape.
        """
        v, tau = np.asarray(v, dtype=float), np.asarray(tau, dtype=float)
        if v.shape != self._shape or tau.shape != self._shape:
            check_shape("v", v.shape, self._shape)
            check_shape("tau", tau.shape, self._shape)
        if self._count == 0:
            self._first[:], self._v[:], self._a[:], self._tau[:] = v, v, a, tau
        else:
            self._v += v
            self._a += a
            self._tau += tau
        if self._count == self._factor // 2:
            self._q[:] = q
        self._count += 1
        if self._count == self._factor:
            share, self._count = 1.0 / self._factor, 0
            mean = self._v * share
            static = self._online(self._q, mean, self._a * share)
            self._filter.step(self._tau * share - static, mean, self._first, v)
            self._apply()

    def torque(self, q: Array, v: Array, a: Array) -> Array:
        """Torque of one sample with the current friction, shape (n,) [N·m or N].

        Args:
            q, v, a: Joint motion, shape (n,) of floats [rad, rad/s, rad/s² or m, m/s, m/s²].
        """
        return np.asarray(self._online(q, v, a) + (self.settings.columns(v) * self._applied).sum(axis=-1))

    def as_dict(self) -> dict[str, Any]:
        """The state as plain data for JSON; ``ident.adaptive(state=…)`` continues from it."""
        row = {name: getattr(self, f"_{name}").tolist() for name in ("q", "v", "a", "tau", "first")}
        inner = {name: getattr(self._filter, name).tolist() for name in _STATE}
        return {"rate": self.rate, "count": self._count, "row": row, "filter": inner}
