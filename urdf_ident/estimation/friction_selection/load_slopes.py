"""Standard errors of a fit whose load-dependent friction depends on its own rigid torque.

With a fixed rigid torque, the column ``S(v)·|τ_rigid|`` is treated as known. At the fixed point it is not: an error of the
inertial parameters changes the column, and thus the estimate. With ``D = ∂(W β)/∂β`` through the rigid torque alone,

    D = Fl · S(v) · sign(τ_rigid) · Y · M ,    M = ∂θ/∂β of the inertial parameters of the rigid torque,

a change ``δ`` of the estimate at a fixed torque becomes ``(1 + W⁺ D)⁻¹ δ`` after convergence (W⁺ the weighted least-squares
inverse; a term in the residuals, zero on average, is neglected). Multiplication by this matrix from both sides transforms the
covariance at a fixed torque into that of the fixed point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...linalg import Array, scaled_lstsq
from ...model.dynamic_model import DynamicModel
from ...model.prior import Prior
from ...model.rigid_bodies import row_columns
from ...samples import Segment
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import FactorAccumulator
from ...statistics.fit import Fit
from ...statistics.rows import RowFilter, filtered_rows
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
    rows, weights = LoadSlopes(model, base.embedded(fit.params), moved), fit.row_weights or fit.weights
    place = np.full(len(model.parameters), -1)
    place[base.independent[seen]] = np.arange(len(seen))
    accumulator = FactorAccumulator(len(seen) + len(moved))
    for log in logs:
        row_filter = RowFilter(log.conditioned.factor)
        for segment in log.segments:
            pieces = filtered_rows(rows, segment, row_filter) if row_filter.output_rows(len(segment)) else ()  # type: ignore[arg-type]
            for _, blocks in pieces:
                for group, block in zip(model.groups, blocks, strict=True):
                    full, target = np.zeros((len(block), accumulator.width)), place[group.columns]
                    full[:, target[target >= 0]] = block[:, : len(group.columns)][:, target >= 0]
                    full[:, len(seen) :] = block[:, len(group.columns) : -1]
                    accumulator.add(weights[group.name] * full)
    factor = accumulator.factor()
    W, D = factor[:, : len(seen)], factor[:, len(seen) :] @ slopes[np.ix_(moved, seen)]
    response = np.eye(len(base))
    response[np.ix_(seen, seen)] = np.linalg.inv(np.eye(len(seen)) + scaled_lstsq(W, D))
    return response


class LoadSlopes:
    """A model whose rows have, after its own columns, the derivatives of its load-dependent torque.

    Args:
        model: The model, with the reference torque.
        theta: Its parameters, shape (p,).
        columns: Indices of the inertial parameters for the derivatives.
    """

    def __init__(self, model: DynamicModel, theta: Array, columns: Any) -> None:
        self.model, self.theta, self.columns = model, theta, columns

    def row_blocks(self, segment: Segment, chunk: int, *, torque: bool = False) -> Iterator[tuple[slice, list[Array]]]:
        """Yields the model's rows with the derivatives appended.

        Args:
            torque: Whether the measured torque is appended as the last column.

        Yields:
            The slice of samples, and per row group its columns and the derivatives.
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
            ends = [len(group.columns) for group in model.groups]
            yield part, [np.hstack([x[:, :end], extra.T, x[:, end:]]) for x, extra, end in zip(blocks, own, ends, strict=True)]

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
