"""The dynamic model: THE list of parameters, and the columns that multiply them.

``tau = Y(q, v, a) theta`` for the rigid bodies (Pinocchio), with the columns of the terms (rotor inertia,
friction) appended. Rows come in *row groups*: one a joint, or one an actuator where the drive couples axes.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, check_shape
from ..friction import MOTOR_FRICTION, AxisMotion, Term, friction_by_joint
from ..linalg import Array
from ..samples import Segment
from ..scratch import room
from ..sending import SentOnce
from .base import BaseParameters
from .drive import Drive
from .engine.rigid import CHUNK, rigid_of
from .parameters import Parameter, inertial_parameters
from .robot import Robot
from .row_groups import Compact, RowGroup, compact_groups, row_groups
from .structure import reduce_to_base
from .term_chunks import columns_of, term_chunks, torque_chunks
from .terms import AppliedTerm, RotorInertia, term_from_dict, with_rotor_terms


class DynamicModel(SentOnce):
    """A robot, its terms and its drive train as one linear model ``tau = W theta``.

    Args:
        robot: The robot.
        friction: ``"auto"``, ``"none"``, a list of law names for all joints, or a mapping
            ``{"default": [...], "<joint>": [...]}``; see :func:`friction_by_joint`. "auto" begins with viscous,
            Coulomb and offset, on motors that move several joints with viscous and Coulomb friction of their own, and lets
            identification choose (:attr:`automatic`).
        rotor_inertia: Whether each axis gets one; with False, lists of terms may name "rotor_inertia" where there is one.
        drive: The drive train; direct drive with torque logs if None.
        motor_friction: Like ``friction``, for the motor side, by joint name. Where a motor moves its own joint
            alone, both sides are the same column and the joint-side one is made, once.

    Raises:
        ModelError: Unknown terms, or a drive of another size.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        friction: str | Sequence[Any] | Mapping[str, Sequence[Any]] = "auto",
        rotor_inertia: bool = True,
        drive: Drive | None = None,
        motor_friction: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self.robot = robot
        self.drive = drive or Drive.build(robot.n)
        if self.drive.n != robot.n:
            raise ModelError("the drive has another number of axes than the robot", got=self.drive.n, expected=robot.n)
        #: Whether the friction laws are still to be chosen by the data.
        self.automatic = friction == "auto"
        laws = friction_by_joint(with_rotor_terms(friction), robot.joints)
        shared, ratios = map(self._drives_others, range(robot.n)), np.abs(np.diag(self.drive.reduction))
        turns = {joint: float(r) or 1.0 for joint, r, others in zip(robot.joints, ratios, shared, strict=True) if others}
        given = {joint: with_rotor_terms(listed) for joint, listed in (motor_friction or {}).items()}
        #: Axes whose motor-side friction is given, not chosen.
        self.motor_listed = frozenset(j for j, joint in enumerate(robot.joints) if joint in given or "default" in given)
        motor_laws = friction_by_joint({"default": MOTOR_FRICTION if self.automatic else (), **given}, robot.joints, turns)
        terms: list[AppliedTerm] = []
        for j, joint in enumerate(robot.joints):
            if rotor_inertia:
                terms.append(AppliedTerm(RotorInertia(), j, "motor" if self.drive.coupled[j] else "joint"))
            terms += [AppliedTerm(law, j) for law in laws[joint]]
            if self._drives_others(j):
                terms += [AppliedTerm(law, j, "motor") for law in motor_laws[joint]]
            elif j in self.motor_listed:  # the motor moves its joint alone: its side would make the same column twice
                present = {law.name for law in laws[joint]}
                terms += [AppliedTerm(law, j) for law in motor_laws[joint] if law.name not in present]
        self.terms = tuple(terms)
        columns = [(symbol, item.axis, item.side) for item in terms for symbol in item.term.symbols]
        twice = next((entry for entry in columns if columns.count(entry) > 1), None)
        if twice is not None:
            name = f"{twice[0]}{'m' if twice[2] == 'motor' else ''}_{robot.joints[twice[1]]}"
            raise ModelError("a term is listed twice", got=name, remedy="name each friction law once per joint")
        #: Inertial parameters of the frozen rigid torque that load-dependent terms read, shape (10·n,), or None.
        self.reference_theta: Array | None = None

    def __repr__(self) -> str:
        laws = ", ".join(dict.fromkeys(item.term.name for item in self.terms)) or "no terms"
        choice = " (friction still to be chosen)" if self.automatic else ""
        return f"<DynamicModel of {self.robot.name}: {self.n} joints, {len(self.parameters)} parameters; {laws}{choice}>"

    def _drives_others(self, j: int) -> bool:
        """Whether motor j moves more than its own joint."""
        return bool(np.delete(self.drive.reduction[j], j).any())

    @property
    def loaded(self) -> bool:
        """Whether some term depends on the rigid torque."""
        return any(item.term.loaded for item in self.terms)

    def with_reference(self, theta: Array | None) -> DynamicModel:
        """The same model with a frozen rigid torque for its load-dependent terms.

        Args:
            theta: Inertial parameters that the torque is computed from, shape (10·n,) (more are ignored); it is what a
                result saves, so that a reloaded one gives the same torque to the last bit. None: unknown.

        Returns:
            A model with the same list of parameters.
        """
        if theta is not None:
            theta = np.array(theta, dtype=float)[: self.n_inertial]
            check_shape("theta", theta.shape, (self.n_inertial,))
            theta.setflags(write=False)
        return self._changed(reference_theta=theta)

    def with_terms(self, terms: Sequence[AppliedTerm], *, automatic: bool = False) -> DynamicModel:
        """The same robot and drive with other terms.

        Args:
            terms: The terms, in the order of their parameters; a law may come twice, to compare its shapes.
            automatic: Whether the data are still to choose the friction laws.

        Returns:
            The model.
        """
        return self._changed(terms=tuple(terms), automatic=automatic)

    def unloaded(self) -> DynamicModel:
        """The same model without load-dependent terms: for a first estimate, before any rigid torque is known."""
        return self.with_terms([item for item in self.terms if not item.term.loaded]) if self.loaded else self

    def with_drive(self, drive: Drive) -> DynamicModel:
        """The same robot and terms with a drive of the same gears whose gains are known.

        Args:
            drive: The drive.

        Returns:
            The model.
        """
        return self._changed(drive=drive)

    def tilted(self) -> DynamicModel:
        """The same robot as if mounted at a slant, for the question what gravity from another side would show."""
        return self._changed(robot=self.robot.with_gravity((3.0, -4.0, -8.0)))

    def _changed(self, **attributes: Any) -> DynamicModel:
        """A copy with other attributes; what was derived from the old ones is forgotten."""
        other = copy.copy(self)
        for name in list(vars(other)):
            if any(isinstance(vars(cls).get(name), cached_property) for cls in type(self).__mro__):
                del other.__dict__[name]
        other.__dict__.update(attributes)
        return other

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.robot.n

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every entry of theta: 10·n inertial ones, then the terms joint by joint."""
        listed = list(inertial_parameters(self.robot))
        for item in self.terms:
            joint = self.robot.joints[item.axis]
            suffix = "m" if item.side == "motor" else ""
            prismatic = bool(self.robot.prismatic[item.axis]) and item.side == "joint"
            law = item.term
            for symbol, unit, sign in zip(law.symbols, law.units(prismatic), law.nonnegative, strict=True):
                listed.append(Parameter(f"{symbol}{suffix}_{joint}", symbol + suffix, joint, unit, sign))
        return tuple(listed)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def n_inertial(self) -> int:
        """Number of inertial parameters, 10·n; they come first."""
        return 10 * self.n

    @cached_property
    def placed_terms(self) -> tuple[tuple[AppliedTerm, slice], ...]:
        """The terms, each with the place of its parameters in theta."""
        ends = np.cumsum([self.n_inertial, *(len(item.term.symbols) for item in self.terms)]).tolist()
        return tuple((item, slice(*own)) for item, own in zip(self.terms, pairwise(ends), strict=True))

    @cached_property
    def distribution(self) -> Array:
        """Shape (n, k): how each term column spreads over the joint rows."""
        spread = [
            item.distribution(self.drive.reduction)[:, None].repeat(len(item.term.symbols), axis=1) for item in self.terms
        ]
        return np.hstack([np.zeros((self.n, 0)), *spread])

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """The row groups, in joint order."""
        return row_groups(self.robot, self.drive, self.distribution)

    def term_columns(self, segment: Segment) -> Array:
        """Values of all term columns, before they are spread over rows.

        Args:
            segment: A whole segment at full rate (terms may have memory).

        Returns:
            Shape (N, k), columns in the order of ``parameters[10 n:]``.
        """
        return self.term_values(self.with_reference_torque(segment), self.terms)

    def term_values(self, segment: Segment, terms: Sequence[AppliedTerm]) -> Array:
        """Values of the columns of some terms.

        Args:
            segment: A whole segment at full rate; with the reference torque where one of the terms reads it.
            terms: The terms.

        Returns:
            Shape (N, k), columns in the order of the terms.
        """
        return columns_of(terms, len(segment), partial(self._axis_motion, segment))

    def _axis_motion(self, segment: Segment, item: AppliedTerm) -> AxisMotion:
        j, reference, before = item.axis, segment.reference_torque, segment.before
        if item.side == "joint":
            torque = None if reference is None else reference[:, j]
            past = None if before is None else before[:, j]
            return AxisMotion(segment.q[:, j], segment.v[:, j], segment.a[:, j], segment.rate, torque, past)
        row, offset = self.drive.reduction[j], self.drive.offset
        torque = None if reference is None else reference @ np.linalg.inv(self.drive.reduction)[:, j]
        past = None if before is None else (before - offset) @ row
        return AxisMotion((segment.q - offset) @ row, segment.v @ row, segment.a @ row, segment.rate, torque, past)

    def with_reference_torque(self, segment: Segment) -> Segment:
        """The segment with the load of its gears, where a term reads it and the segment does not bring its own.

        Gears carry the frozen rigid torque, less what known wrenches do of it: a payload is carried like the robot's own.

        Args:
            segment: The segment.

        Returns:
            The same, or one with ``reference_torque``.
        """
        if self.reference_theta is None or segment.reference_torque is not None or not self.loaded:
            return segment
        torque = rigid_of(self.robot).torque(self.reference_theta, segment.q, segment.v, segment.a)
        return replace(segment, reference_torque=torque if segment.external is None else torque - segment.external)

    @cached_property
    def compact(self) -> tuple[Compact, ...]:
        """Per row group, the columns of which all its columns are combinations, whatever the motion."""
        return compact_groups(self.robot, self.groups)

    @cached_property
    def compact_inertial(self) -> tuple[tuple[Array, NDArray[np.intp]], ...]:
        """Per row group, how joint rows combine to it, and the inertial columns of :attr:`compact`."""
        kept = [group.columns[some.places] for group, some in zip(self.groups, self.compact, strict=True)]
        return tuple((group.mix, own[own < self.n_inertial]) for group, own in zip(self.groups, kept, strict=True))

    def _inertial_columns(self, segment: Segment, part: slice, compact: bool, spare: Sequence[int] = ()) -> list[Array]:
        """Per row group its inertial columns, and spare ones to be filled, shape (columns, samples)."""
        whole = [(group.mix, group.columns[group.columns < self.n_inertial]) for group in self.groups]
        wanted = self.compact_inertial if compact else whole
        return rigid_of(self.robot).columns(wanted, segment.q[part], segment.v[part], segment.a[part], len(segment), spare)

    def row_blocks(
        self, segment: Segment, chunk: int = CHUNK, *, compact: bool = False, torque: bool = False
    ) -> Iterator[tuple[slice, list[Array]]]:
        """The rows of the estimation problem, piece by piece.

        Args:
            segment: A whole segment at full rate.
            chunk: Samples a piece.
            compact: Whether to leave out the columns that follow from the others: see :attr:`compact`.
            torque: Whether the measured torque (:meth:`row_targets`) is one column more, the last.

        Yields:
            The slice of samples, and per row group its columns, shape (≤ chunk, len(group.columns)), or fewer columns.
        """
        own = [group.columns >= self.n_inertial for group in self.groups]
        spare = [int(which.sum()) + torque for which in own]
        for part, terms in term_chunks(self, segment, chunk):
            blocks = self._inertial_columns(segment, part, compact, spare)
            targets = self.row_targets(segment.window(part.start, part.stop).total) if torque else None
            for g, (group, block, which) in enumerate(zip(self.groups, blocks, own, strict=True)):
                term_rows, columns = block[len(block) - spare[g] :], group.columns[which] - self.n_inertial
                for row, k, factor in zip(term_rows, columns, group.scale[which], strict=False):
                    np.multiply(terms[:, k], factor, out=row)
                if targets is not None:
                    block[-1] = targets[:, g]
            yield part, [block.T for block in blocks]

    def row_targets(self, tau: Array, external: Array | None = None) -> Array:
        """Joint torques as the rows of the estimation problem see them.

        Args:
            tau: Joint torques, shape (N, n) [N·m or N].
            external: Torque of known wrenches on the joints, shape (N, n) [N·m or N]; none if None.

        Returns:
            Shape (N, n), one column a row group.
        """
        total = tau if external is None else tau + external
        return np.asarray(total @ self.drive.row_mix.T)

    def torque(self, theta: Array, q: Array, v: Array, a: Array, *, rate: float = 0.0, reference: Array | None = None) -> Array:
        """Joint torques of the model.

        Args:
            theta: Parameters, shape (p,); or (p, k) for k models at the price of one regressor.
            q, v, a: Joint motion, shape (N, n) or (n,) [rad, rad/s, rad/s² or m, m/s, m/s²].
            rate: Samples per second [Hz], for terms with memory.
            reference: Frozen rigid torque for load-dependent terms, shape as q [N·m or N].

        Returns:
            Shape as ``q`` [N·m or N], with a last axis of length k for k models.

        Raises:
            ShapeError: The arrays do not fit.
        """
        q, theta = np.asarray(q, dtype=float), np.asarray(theta, dtype=float)
        check_shape("theta", theta.shape, (len(self.parameters), *theta.shape[1:2]))
        rows = [None if x is None else np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, v, a, reference)]
        check_shape("q", q.shape[-1:], (self.n,))
        segment = Segment("", 0.0, rate, rows[0], rows[1], rows[2], reference_torque=rows[3])  # type: ignore[arg-type]
        return np.asarray(self.torque_along(theta, segment).reshape(*q.shape, *theta.shape[1:]))

    def torque_along(self, theta: Array, segment: Segment) -> Array:
        """Joint torques of the model along a recorded motion, with all that the segment knows of it and of its past.

        Args:
            theta: Parameters, shape (p,) or (p, k).
            segment: The motion.

        Returns:
            Shape (N, n) or (N, n, k) [N·m or N].
        """
        theta = np.asarray(theta, dtype=float)
        whole = room((*segment.q.shape, *theta.shape[1:]))
        for part, torque in torque_chunks(self, theta, segment):
            whole[part] = torque
        return whole

    def base(self, **options: Any) -> BaseParameters:
        """What this model could show with perfect data: see :func:`reduce_to_base`.

        Args:
            options: Passed on.

        Returns:
            The base parameters.
        """
        return reduce_to_base(self, **options)

    def as_dict(self) -> dict[str, Any]:
        """JSON form: everything that :meth:`from_dict` needs to build the same model."""
        robot = self.robot
        return {
            "urdf": robot.urdf,
            "path": robot.path,
            "order": list(robot.order),
            "lock": dict(robot.locked),
            "gravity": np.asarray(robot.model.gravity.linear).tolist(),
            "drive": self.drive.as_dict(),
            "terms": [{**item.term.as_dict(), "axis": robot.joints[item.axis], "side": item.side} for item in self.terms],
            **({} if self.reference_theta is None else {"reference": self.reference_theta.tolist()}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DynamicModel:
        """Builds the model that :meth:`as_dict` described.

        Args:
            data: Its result.

        Returns:
            The model; its columns are equal to the last bit.
        """
        reference = None if data.get("reference") is None else np.array(data["reference"], dtype=float)
        robot = Robot.from_urdf(data["urdf"], joints=data["order"], lock=data["lock"], gravity=data["gravity"])
        object.__setattr__(robot, "path", data.get("path", robot.path))
        options: Mapping[str, Any] = data.get("elastic", {"rotor_inertia": False})
        model = cls(robot, friction="none", drive=Drive.from_dict(data["drive"]), **options)
        terms = []
        for item in data["terms"]:
            law = {key: value for key, value in item.items() if key not in ("axis", "side")}
            terms.append(AppliedTerm(term_from_dict(law), robot.index(item["axis"]), item["side"]))
        return model.with_terms(terms).with_reference(reference)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that decides the columns, wherever the URDF lies; unequal statistics are never merged."""
        content = {key: value for key, value in self.as_dict().items() if key not in ("path", "order")}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def term_of(self, index: int) -> Term:
        """The term that owns a parameter.

        Args:
            index: Index into theta, at least ``n_inertial``.

        Returns:
            The law.
        """
        return next(item.term for item, own in self.placed_terms if index < own.stop)
