"""Models whose rows have more columns than the parameters of a :class:`.DynamicModel`; statistics and covariances read them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..linalg import Array, IntArray, block_diagonal
from ..model.dynamic_model import DynamicModel
from ..model.rigid_bodies import CHUNK, row_columns
from ..model.row_groups import Compact, RowGroup
from ..samples import Segment


class ExtendedModel:
    """A model whose rows have more columns; the part of the model interface that statistics and covariances use.

    Args:
        names: Names of the added parameters.
    """

    is_rigid = True

    def __init__(self, model: DynamicModel, names: Sequence[str]) -> None:
        self.model, self.n, self.names = model, model.n, (*model.names, *names)
        #: Indices of the added parameters.
        self.added = np.arange(len(model.names), len(self.names), dtype=np.intp)

    def added_to(self, group: RowGroup) -> IntArray:
        """Returns the indices of the added parameters of a row group of the model."""
        return self.added

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """The model's row groups with the added columns."""
        groups = []
        for group in self.model.groups:
            added = self.added_to(group)
            scale = np.concatenate([group.scale, np.ones(len(added))])
            groups.append(replace(group, columns=np.concatenate([group.columns, added]), scale=scale))
        return tuple(groups)

    @cached_property
    def compact(self) -> tuple[Compact, ...]:
        """The compact form of every row group: that of the model's own columns, and all added ones."""
        compact = []
        for group, own in zip(self.model.groups, self.model.compact, strict=True):
            width, added = len(group.columns), len(self.added_to(group))
            places = np.concatenate([own.places, width + np.arange(added)])
            compact.append(Compact(places, block_diagonal(own.expansion, np.eye(added))))
        return tuple(compact)

    @property
    def fingerprint(self) -> str:
        """Hash of the model and the names of the added parameters; statistics of several of them are not merged."""
        return hashlib.sha256(f"{self.model.fingerprint} {self.names}".encode()).hexdigest()[:16]

    def row_targets(self, tau: Array, external: Array | None = None) -> Array:
        """See :meth:`.DynamicModel.row_targets`."""
        return self.model.row_targets(tau, external)


class LoadSlopes(ExtendedModel):
    """A model whose rows have, after its own columns, the derivatives of its load-dependent torque.

    Attributes:
        whole: Whether :meth:`beside` reads all own columns.

    Args:
        model: The model, with the reference torque.
        theta: Its parameters, shape (p,).
        columns: Indices of the inertial parameters for the derivatives, shape (k,).
        names: Names of the added parameters if they are not these derivatives.
    """

    whole = False

    def __init__(self, model: DynamicModel, theta: Array, columns: IntArray, names: Sequence[str] = ()) -> None:
        super().__init__(model, names or [f"load of {model.names[k]}" for k in columns])
        self.theta, self.columns = theta, columns

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
        for part, blocks in model.row_blocks(segment, chunk=chunk, compact=compact, torque=torque):
            own = np.zeros((len(model.groups), len(self.columns), len(blocks[0])))
            rigid = row_columns(model.robot, read, segment.q[part], segment.v[part], segment.a[part])
            for (weights_of_joints, _, factor), rows in zip(slopes, rigid, strict=True):
                for g, group in enumerate(model.groups):
                    share = float(group.mix @ weights_of_joints)
                    if share:
                        own[g] += share * factor[part] * rows
            rows_of_groups = []
            for group, basis, block, slope in zip(model.groups, model.compact, blocks, own, strict=True):
                columns, measured = np.split(block, [block.shape[1] - torque], axis=1)
                whole = columns @ basis.expansion if compact and self.whole else columns
                rows_of_groups.append(np.hstack([columns, self.beside(group, whole, slope.T), measured]))
            yield part, rows_of_groups

    def beside(self, group: RowGroup, columns: Array, slopes: Array) -> Array:
        """Returns the added columns of a row group from the derivatives, shape (N, added).

        Args:
            columns: Its own columns, all of them where :attr:`whole` says so.
        """
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
