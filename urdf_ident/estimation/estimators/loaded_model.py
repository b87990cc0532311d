"""Rows of a robot that carries an unknown payload: additional columns, and additional load on the gears."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...linalg import Array, IntArray
from ...model.base import BaseParameters
from ...model.dynamic_model import DynamicModel
from ...model.inertia import BODY_PARAMETERS
from ...model.rigid_bodies import CHUNK, rigid_torque
from ...model.row_groups import Compact, RowGroup
from ...samples import Segment
from ...signals.prepare import PreparedLog
from ..friction_selection.load_slopes import LoadSlopes


class LoadedModel:
    """A model with additional columns: the ten of the unknown body, and copies of friction columns for the loaded logs.

    It implements only the part of the model interface that row producers and covariances use.

    Args:
        model: The unloaded robot's model, its load-dependent terms evaluated at the loaded torque.
        theta: Parameters of the unloaded robot, shape (p,), for the increase of friction with the load.
        body: Index of the moving body that carries the unknown one.
        placement: ``theta_body = placement @ theta_link``, shape (10, 10).
        copies: Indices into theta of the copied columns.
    """

    is_rigid = True

    def __init__(self, model: DynamicModel, theta: Array, body: int, placement: Array, copies: Sequence[int] = ()) -> None:
        self.model, self.theta, self.body, self.placement, self.copies = model, theta, body, placement, tuple(copies)
        self.own = np.arange(10 * body, 10 * body + 10)
        self.p, self.n = len(model.names), model.n

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters of the unloaded robot, of the body, and of the copies."""
        body = tuple(f"payload_{name}" for name in BODY_PARAMETERS)
        return (*self.model.names, *body, *(f"loaded_{self.model.names[k]}" for k in self.copies))

    @cached_property
    def unknown(self) -> IntArray:
        """Indices of the estimated parameters: the body's and the copies."""
        return np.arange(self.p, len(self.names), dtype=np.intp)

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """The model's row groups with the additional columns."""
        out = []
        for group in self.model.groups:
            more = list(range(self.p, self.p + 10)) if self._carries(group) else []
            more += [self.p + 10 + i for i, k in enumerate(self.copies) if k in group.columns]
            columns = np.concatenate([group.columns, np.array(more, dtype=np.intp)])
            out.append(replace(group, columns=columns, scale=np.concatenate([group.scale, np.ones(len(more))])))
        return tuple(out)

    @cached_property
    def compact(self) -> tuple[Compact, ...]:
        """The trivial compact form of every row group, with all columns."""
        widths = [len(group.columns) for group in self.groups]
        return tuple(Compact(np.arange(width, dtype=np.intp), np.eye(width)) for width in widths)

    @property
    def fingerprint(self) -> str:
        """Hash of everything that determines the columns."""
        words = f"{self.model.fingerprint} {self.body} {self.placement.tobytes().hex()} {self.copies}"
        return hashlib.sha256(words.encode()).hexdigest()[:16]

    def _carries(self, group: RowGroup) -> bool:
        return bool(np.isin(self.own, group.columns).all())

    def row_targets(self, tau: Array, external: Array | None = None) -> Array:
        """See :meth:`.DynamicModel.row_targets`."""
        return self.model.row_targets(tau, external)

    def row_blocks(
        self, segment: Segment, chunk: int = CHUNK, *, compact: bool = False, torque: bool = False
    ) -> Iterator[tuple[slice, list[Array]]]:
        """See :meth:`.DynamicModel.row_blocks`.

        Args:
            torque: Whether the measured torque is appended as the last column.

        Yields:
            The slice of samples, and per row group its columns.
        """
        slopes = LoadSlopes(self.model, self.theta, self.own)
        for part, blocks in slopes.row_blocks(segment, chunk=chunk, torque=torque):
            out = []
            for group, block in zip(self.model.groups, blocks, strict=True):
                own, slope, last = np.split(block, len(group.columns) + np.array([0, len(self.own)]), axis=1)
                parts = [own]
                if self._carries(group):
                    parts.append((own[:, np.searchsorted(group.columns, self.own)] + slope) @ self.placement)
                parts += [own[:, group.columns == k] for k in self.copies if k in group.columns]
                out.append(np.hstack([*parts, last]))
            yield part, out

    def extended(self, base: BaseParameters) -> BaseParameters:
        """Returns the base parameters extended by the additional ones, which are all independent.

        Returns:
            The reduction; the parameters of the unloaded robot come first.
        """
        nothing = np.zeros(0, dtype=np.intp)
        columns = np.concatenate([base.independent, self.unknown]).astype(np.intp)
        return BaseParameters(self.names, columns, nothing, nothing, np.zeros((len(columns), 0)), base.rank_gap)


def with_load(loaded: LoadedModel, log: PreparedLog, params: Array) -> PreparedLog:
    """Returns the log with the payload's load on its gears, and the friction torque linearized around the current estimate.

    ``S(v)|τ|`` is not linear in the body; with its slope in the columns, the slope's value at the current body is subtracted.

    Args:
        params: Current estimate of the body, shape (10,).
    """
    if not loaded.model.loaded:
        return log
    slopes = LoadSlopes(loaded.model, loaded.theta, loaded.own)
    body = np.zeros(loaded.model.n_inertial)
    robot = body if loaded.model.reference_theta is None else loaded.model.reference_theta
    body = body.copy()
    body[loaded.own] = loaded.placement @ params
    segments = []
    for segment in log.segments:
        carried = rigid_torque(loaded.model.robot, body, segment.q, segment.v, segment.a)
        rest = rigid_torque(loaded.model.robot, robot, segment.q, segment.v, segment.a)
        heavy = replace(segment, reference_torque=rest if segment.external is None else rest - segment.external)
        grown = np.zeros(segment.q.shape)
        for weights, axis, factor in slopes.factors(heavy):
            grown += (factor * (carried @ axis))[:, None] * weights
        external = grown if segment.external is None else segment.external + grown
        segments.append(replace(heavy, external=external))
    return log.with_segments(segments)
