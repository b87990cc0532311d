"""Models whose rows have more columns than the parameters of a :class:`.DynamicModel`: ``W theta + A x = tau``.

Statistics and covariances read them as they read the model itself. The added columns A are an unknown body, a payload of known
mass, or the slopes of friction that depends on the load (:class:`LoadSlopes`): ``Fl S(v) |τ|`` is a column of the model for a
given torque τ of the rigid bodies, but τ depends on the bodies' parameters too.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..linalg import Array, IntArray, block_diagonal
from ..model.dynamic_model import DynamicModel
from ..model.rigid_bodies import CHUNK, row_columns
from ..model.row_groups import Compact, RowGroup
from ..samples import Segment


class ExtendedModel(ABC):
    """A model with added columns; the part of the model interface that statistics and covariances use.

    Args:
        names: Names of the added parameters x.
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
        return self.model.row_targets(tau, external)

    @abstractmethod
    def row_blocks(
        self, segment: Segment, chunk: int = CHUNK, *, compact: bool = False, torque: bool = False
    ) -> Iterator[tuple[slice, list[Array]]]:
        """See :meth:`.DynamicModel.row_blocks`; a group has its own columns, the added ones, then the torque."""


class LoadFriction(NamedTuple):
    """Friction ``Fl S(v) |τ|`` of a joint or motor that transmits the torque τ, linearized in it.

    ``Fl`` is its share of the load, ``S(v)`` the direction of motion, -1 to 1, smooth about rest.

    Attributes:
        distribution: Weights with which the friction acts on the joints, shape (n,).
        weights: Weights of the joint torques in τ, shape (n,).
        slope: Derivative with respect to τ, ``Fl S(v) sign(τ)``, 0 without a load, shape (N,).
    """

    distribution: Array
    weights: Array
    slope: Array


class LoadSlopes(ExtendedModel):
    """A model whose added columns are the derivatives of its load-dependent torque by inertial parameters.

    A subclass adds other columns that these derivatives are a part of (:meth:`beside`).

    Attributes:
        reads_all_columns: Whether :meth:`beside` needs all of the model's columns even if the rows are compact.

    Args:
        model: The model, with the reference torque.
        theta: Its parameters, shape (p,).
        columns: Indices of the inertial parameters for the derivatives, shape (k,).
        names: Names of the added parameters if they are not these derivatives.
    """

    reads_all_columns = False

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
        loads = self.load_friction(segment)
        read = [(load.weights, self.columns) for load in loads]
        for part, blocks in model.row_blocks(segment, chunk=chunk, compact=compact, torque=torque):
            # by the chain rule: share of the friction in the row, slope by τ, derivatives of τ by the inertial parameters
            slopes = np.zeros((len(model.groups), len(self.columns), len(blocks[0])))
            derivatives = row_columns(model.robot, read, segment.q[part], segment.v[part], segment.a[part])
            for load, derivative in zip(loads, derivatives, strict=True):
                for group, slope in zip(model.groups, slopes, strict=True):
                    if share := float(group.mix @ load.distribution):
                        slope += share * load.slope[part] * derivative
            rows_of_groups = []
            for group, basis, block, slope in zip(model.groups, model.compact, blocks, slopes, strict=True):
                columns, measured = np.split(block, [block.shape[1] - torque], axis=1)
                read_columns = columns @ basis.expansion if compact and self.reads_all_columns else columns
                rows_of_groups.append(np.hstack([columns, self.beside(group, read_columns, slope.T), measured]))
            yield part, rows_of_groups

    def beside(self, group: RowGroup, columns: Array, slopes: Array) -> Array:
        """Returns the added columns of a row group from the derivatives, shape (N, added).

        Args:
            columns: Its own columns, all of them where :attr:`reads_all_columns` says so.
            slopes: Derivatives of its load-dependent torque with respect to the inertial parameters, shape (N, k).
        """
        return slopes

    def load_friction(self, segment: Segment) -> list[LoadFriction]:
        """Returns the load-dependent friction along a segment, linearized about its reference torque, one entry per term.

        Without a reference torque, that of the known wrenches alone counts.

        The model's column of such a term is ``S(v) |τ|``. As it is proportional to the size of τ, its derivative is
        the column divided by τ, ``S(v) sign(τ)``; times the term's parameter ``Fl`` it is that of the friction.
        """
        model, drive = self.model, self.model.drive
        if not model.loaded:
            return []
        loads, columns = list[LoadFriction](), model.term_columns(segment)
        external = np.zeros(segment.q.shape) if segment.external is None else segment.external
        reference = -external if segment.reference_torque is None else segment.reference_torque
        for law, place in model.placed_terms:
            if law.term.loaded:  # it has one column
                distribution = drive.rate_weights(law.axis, law.side)
                weights = drive.load_weights(law.axis, law.side)
                torque, column = reference @ weights, columns[:, place.start - model.n_inertial]
                direction = np.divide(column, torque, out=np.zeros_like(column), where=np.abs(torque) > 0)
                loads.append(LoadFriction(distribution, weights, self.theta[place.start] * direction))
        return loads
