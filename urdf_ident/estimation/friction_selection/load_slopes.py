"""Standard errors of a fit whose load-dependent friction depends on its own rigid torque.

With a fixed rigid torque, the column ``S(v)·|τ_rigid|`` is treated as known. At the fixed point it is not: an error of the
inertial parameters changes the column, and thus the estimate. With ``D = ∂(W β)/∂β`` through the rigid torque alone,

    D = Fl · S(v) · sign(τ_rigid) · Y · M ,    M = ∂θ/∂β of the inertial parameters of the rigid torque,

a change ``δ`` of the estimate at a fixed torque becomes ``(1 + W⁺ D)⁻¹ δ`` after convergence (W⁺ the weighted least-squares
inverse; a term in the residuals, zero on average, is neglected). Multiplication by this matrix from both sides transforms the
covariance at a fixed torque into that of the fixed point.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...linalg import Array, IntArray, scaled_lstsq
from ...model.dynamic_model import DynamicModel
from ...model.prior import Prior
from ...model.rigid_bodies import CHUNK, row_columns
from ...model.row_groups import Compact, RowGroup
from ...samples import Segment
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import build_statistics
from ...statistics.fit import Fit
from .reference_torque import rigid_slopes


def with_load_slopes(fit: Fit, model: DynamicModel, logs: Sequence[PreparedLog], prior: Prior | None = None) -> Fit:
    """Returns the same estimate with the covariance of the fixed point; the given one without load-dependent terms.

    Args:
        fit: The converged estimate, with the covariance at the fixed torque.
        logs: The logs of the fit; without any the fit is not changed.
        prior: The prior used for the reference torque.
    """
    if not model.loaded or not logs:
        return fit
    response = load_response(fit, model, logs, prior)
    kind = f"{fit.covariance_kind}; the load of friction counted as estimated"
    return replace(fit, covariance=response @ fit.covariance @ response.T, covariance_kind=kind)


def load_response(fit: Fit, model: DynamicModel, logs: Sequence[PreparedLog], prior: Prior | None = None) -> Array:
    """Returns the sensitivity of the converged estimate to a change of the estimate at a fixed torque.

    Args:
        prior: As for :func:`.rigid_slopes`.

    Returns:
        ``(1 + W⁺ D)⁻¹``, shape (b, b); identity for base parameters that are not identifiable.
    """
    base, seen = fit.base, np.flatnonzero(fit.seen)
    slopes = rigid_slopes(base, model.n_inertial, prior)
    moved = np.flatnonzero(slopes.any(axis=1))
    sloped = LoadSlopes(model, base.embedded(fit.params), moved)
    statistics = build_statistics(sloped, logs, blocks=1)  # type: ignore[arg-type]
    factor = statistics.stacked(fit.row_weights or fit.weights, np.concatenate([base.independent[seen], sloped.added]))
    W, D = factor[:, : len(seen)], factor[:, len(seen) : -1] @ slopes[np.ix_(moved, seen)]
    response = np.eye(len(base))
    response[np.ix_(seen, seen)] = np.linalg.inv(np.eye(len(seen)) + scaled_lstsq(W, D))
    return response


class LoadSlopes:
    """A model whose rows have, after its own columns, the derivatives of its load-dependent torque.

    It implements only the part of the model interface that statistics and covariances use.

    Args:
        model: The model, with the reference torque.
        theta: Its parameters, shape (p,).
        columns: Indices of the inertial parameters for the derivatives, shape (k,).
    """

    is_rigid = True

    def __init__(self, model: DynamicModel, theta: Array, columns: IntArray) -> None:
        self.model, self.theta, self.columns, self.n = model, theta, columns, model.n

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, those of the added columns last."""
        return (*self.model.names, *(f"load of {self.model.names[k]}" for k in self.columns))

    @property
    def added(self) -> IntArray:
        """Indices of the parameters of the added columns."""
        return np.arange(len(self.model.names), len(self.names), dtype=np.intp)

    def added_to(self, group: RowGroup) -> IntArray:
        """Returns the indices of the added columns of a row group of the model."""
        return self.added

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """The model's row groups with the added columns."""
        return tuple(
            replace(
                group,
                columns=np.concatenate([group.columns, self.added_to(group)]),
                scale=np.concatenate([group.scale, np.ones(len(self.added_to(group)))]),
            )
            for group in self.model.groups
        )

    @cached_property
    def compact(self) -> tuple[Compact, ...]:
        """The trivial compact form of every row group, with all columns."""
        widths = [len(group.columns) for group in self.groups]
        return tuple(Compact(np.arange(width, dtype=np.intp), np.eye(width)) for width in widths)

    @property
    def fingerprint(self) -> str:
        """Hash of everything that determines the columns."""
        words = f"{self.model.fingerprint} {self.names} {self.theta.tobytes().hex()}"
        return hashlib.sha256(words.encode()).hexdigest()[:16]

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
            The slice of samples, and per row group its columns and the added ones.
        """
        model, segment = self.model, self.model.with_reference_torque(segment)
        slopes = self.factors(segment)
        read = [(axis, self.columns) for _, axis, _ in slopes]
        for part, blocks in model.row_blocks(segment, chunk=chunk, torque=torque):
            own = np.zeros((len(model.groups), len(self.columns), len(blocks[0])))
            rigid = row_columns(model.robot, read, segment.q[part], segment.v[part], segment.a[part])
            for (weights_of_joints, _, factor), rows in zip(slopes, rigid, strict=True):
                for g, group in enumerate(model.groups):
                    share = float(group.mix @ weights_of_joints)
                    if share:
                        own[g] += share * factor[part] * rows
            rows_of_groups = []
            for group, block, slope in zip(model.groups, blocks, own, strict=True):
                columns, measured = np.split(block, [len(group.columns)], axis=1)
                rows_of_groups.append(np.hstack([columns, self.beside(group, columns, slope.T), measured]))
            yield part, rows_of_groups

    def beside(self, group: RowGroup, columns: Array, slopes: Array) -> Array:
        """Returns the added columns of a row group from its own and the derivatives, shape (N, added)."""
        return slopes

    def factors(self, segment: Segment) -> list[tuple[Array, Array, Array]]:
        """Returns, per load-dependent term, its distribution over joints (n,), the weights of the torque that it depends on
        (n,), and ``Fl S(v) sign(τ)`` (N,)."""
        model, slopes = self.model, list[tuple[Array, Array, Array]]()
        if not model.loaded:
            return slopes
        columns = model.term_columns(segment)
        reference = model.with_reference_torque(segment).reference_torque
        if reference is None:
            reference = np.zeros(segment.q.shape) if segment.external is None else -segment.external
        for item, own in model.placed_terms:
            if item.term.loaded:  # one column, S(v)·|τ|
                axis = model.drive.load_weights(item.axis, item.side)
                torque = reference @ axis
                column = columns[:, own.start - model.n_inertial]
                slope = np.divide(column, torque, out=np.zeros_like(column), where=np.abs(torque) > 0)
                slopes.append((model.drive.rate_weights(item.axis, item.side), axis, self.theta[own.start] * slope))
        return slopes
