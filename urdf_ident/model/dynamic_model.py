"""The dynamic model: the list of parameters and the regressor columns that multiply them.

``tau = Y(q, v, a) theta`` for the rigid bodies (Pinocchio), with the columns of the terms (rotor inertia,
friction) appended. Rows come in *row groups*: one per joint, or one per actuator where the drive couples axes.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, check_shape
from ..friction import AxisMotion, Law, Term
from ..linalg import Array, IntArray
from ..samples import Segment
from .base import RANK_TOLERANCE, BaseParameters, random_motion, reduce_factor
from .drive import Drive
from .rigid_bodies import CHUNK, rigid_torque, row_columns
from .robot import Robot
from .row_groups import Compact, RowGroup, compact_groups, row_groups
from .terms import AppliedTerm, Parameter, applied_terms, inertial_parameters

#: Number of random states, for robots of few joints; with more, each state gives more rows, of which four per parameter do.
STATES, _FEW_JOINTS = 200, 8
#: Samples per chunk of torques, so that memory does not grow with the length of a log.
AT_ONCE = 1 << 15


class DynamicModel:
    """A robot with its terms and drive train as a linear model ``tau = W theta``.

    Args:
        robot: The robot.
        friction: ``"auto"``, ``"none"``, a list of law names for all joints, or a mapping
            ``{"default": [...], "<joint>": [...]}``; see :func:`friction_by_joint`. "auto" starts with viscous,
            Coulomb and offset, adds viscous and Coulomb friction to motors that move several joints, and lets
            identification choose (:attr:`automatic`).
        rotor_inertia: Whether every axis has a rotor inertia; if False, lists of terms may name "rotor_inertia".
        drive: The drive train; direct drive with torque logs if None.
        motor_friction: Like ``friction``, for the motor side, by joint name. Where a motor moves only its own
            joint, both sides give the same column, and only the joint-side one is created.

    Raises:
        ModelError: Unknown terms, or a drive of the wrong size.

    Attributes:
        is_rigid: Whether the motion of the joints alone determines the rows; otherwise segments hold the motors' too.
    """

    is_rigid = True

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
        #: Whether identification still has to choose the friction laws from the data.
        self.automatic = friction == "auto"
        given = dict(motor_friction or {})
        #: Axes whose motor-side friction was given by the user.
        self.motor_listed = frozenset(j for j, joint in enumerate(robot.joints) if joint in given or "default" in given)
        self.terms = applied_terms(robot, self.drive, friction, given, rotor_inertia=rotor_inertia)
        #: Inertial parameters of the frozen rigid torque that load-dependent terms use, shape (10·n,), or None.
        self.reference_theta: Array | None = None
        #: Joints whose efforts are not their torques: in estimates their rows contain their terms alone.
        self.apart: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        laws = ", ".join(dict.fromkeys(applied.term.name for applied in self.terms)) or "no terms"
        choice = " (friction still to be chosen)" if self.automatic else ""
        return f"<DynamicModel of {self.robot.name}: {self.n} joints, {len(self.parameters)} parameters; {laws}{choice}>"

    @property
    def loaded(self) -> bool:
        """Whether some term depends on the rigid torque."""
        return any(applied.term.loaded for applied in self.terms)

    def with_reference(self, theta: Array | None) -> DynamicModel:
        """Returns the same model with a frozen rigid torque for its load-dependent terms.

        Args:
            theta: Inertial parameters for that torque, shape (10·n,) (further entries are ignored). Results save them,
                so that a reloaded result gives bitwise the same torque. None: unknown.
        """
        if theta is not None:
            theta = np.array(theta, dtype=float)[: self.n_inertial]
            check_shape("theta", theta.shape, (self.n_inertial,))
            theta.setflags(write=False)
        return self._changed(reference_theta=theta)

    def with_terms(self, terms: Sequence[AppliedTerm], *, automatic: bool = False) -> DynamicModel:
        """Returns a model of the same robot and drive with other terms.

        Args:
            terms: The terms, in the order of their parameters; a law may appear twice, to compare its shapes.
            automatic: Whether identification still has to choose the friction laws.
        """
        return self._changed(terms=tuple(terms), automatic=automatic)

    def unloaded(self) -> DynamicModel:
        """Returns the model without load-dependent terms, for a first estimate before a rigid torque is known."""
        return self.with_terms([applied for applied in self.terms if not applied.term.loaded]) if self.loaded else self

    def with_drive(self, drive: Drive) -> DynamicModel:
        """Returns a model of the same robot and terms with another drive of the same gear ratios.

        Args:
            drive: The drive.
        """
        return self._changed(drive=drive)

    def with_apart(self, joints: Collection[str]) -> DynamicModel:
        """Returns the model with joints set apart: their efforts determine their own terms, and no bodies.

        Args:
            joints: Their names.

        Returns:
            The model; its torques are the same.
        """
        return self._changed(apart=frozenset(map(self.robot.joints.index, joints)))

    def tilted(self) -> DynamicModel:
        """Returns the model under tilted gravity, to find what another mounting would make identifiable."""
        return self._changed(robot=self.robot.with_gravity((3.0, -4.0, -8.0)))

    def _changed(self, **attributes: Any) -> DynamicModel:
        """Returns a copy with other attributes and without cached properties."""
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
        """All entries of theta: the 10·n inertial parameters, then those of the terms, joint by joint."""
        listed = list(inertial_parameters(self.robot))
        for applied in self.terms:
            joint = self.robot.joints[applied.axis]
            suffix = "m" if applied.side == "motor" else ""
            prismatic = bool(self.robot.prismatic[applied.axis]) and applied.side == "joint"
            law = applied.term
            for symbol, unit, sign in zip(law.symbols, law.units(prismatic), law.nonnegative, strict=True):
                listed.append(Parameter(f"{symbol}{suffix}_{joint}", symbol + suffix, joint, unit, sign))
        return tuple(listed)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def n_inertial(self) -> int:
        """Number of inertial parameters, ten per body; they come first in theta."""
        return self.robot.n_inertial

    @cached_property
    def placed_terms(self) -> tuple[tuple[AppliedTerm, slice], ...]:
        """Each term with the slice of its parameters in theta."""
        ends = np.cumsum([self.n_inertial, *(len(applied.term.symbols) for applied in self.terms)]).tolist()
        return tuple((applied, slice(*own)) for applied, own in zip(self.terms, pairwise(ends), strict=True))

    @cached_property
    def distribution(self) -> Array:
        """Shape (n, k): coefficients that distribute each term column over the joint rows."""
        weights = [self.drive.rate_weights(applied.axis, applied.side) for applied in self.terms for _ in applied.term.symbols]
        return np.array(weights).reshape(-1, self.n).T

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """The row groups, in joint order."""
        return row_groups(self.robot, self.drive, self.distribution, self.apart)

    def term_columns(self, segment: Segment) -> Array:
        """Returns the values of all term columns, before they are distributed over the rows.

        Args:
            segment: A whole segment at full rate (terms may have memory).

        Returns:
            Shape (N, k), columns in the order of ``parameters[10 n:]``.
        """
        return self.term_values(self.with_reference_torque(segment), self.terms)

    def term_values(self, segment: Segment, terms: Sequence[AppliedTerm]) -> Array:
        """Returns the values of the columns of the given terms, shape (N, k), columns in the order of the terms.

        Args:
            segment: A whole segment at full rate, with the reference torque if one of the terms uses it.
            terms: The terms.
        """
        ends = np.cumsum([0, *(len(applied.term.symbols) for applied in terms)])
        motions: dict[Hashable, AxisMotion] = {}
        out = np.empty((ends[-1], len(segment)))
        for applied, own in zip(terms, pairwise(ends), strict=True):
            # friction laws of one axis share its motion
            key = (applied.axis, applied.side) if isinstance(applied.term, Law) else id(applied)
            if key not in motions:
                motions[key] = self.axis_motion(segment, applied)
            out[slice(*own)] = applied.term.columns(motions[key]).T
        return out.T

    def term_chunks(self, segment: Segment, chunk: int) -> Iterator[tuple[slice, Array]]:
        """Yields :meth:`term_columns` in chunks; only terms with memory are evaluated on the whole segment.

        Args:
            segment: A whole segment at full rate.
            chunk: Samples per chunk.

        Yields:
            The slice of samples and its columns, shape (≤ chunk, k).
        """
        remembers = [bool(getattr(applied.term, "memory", False)) for applied in self.terms]
        lasting = [applied for applied, whole in zip(self.terms, remembers, strict=True) if whole]
        passing = [applied for applied, whole in zip(self.terms, remembers, strict=True) if not whole]
        memory = np.repeat(remembers, [len(applied.term.symbols) for applied in self.terms]).astype(bool)
        loaded = any(applied.term.loaded for applied in lasting)
        whole = self.term_values(self.with_reference_torque(segment) if loaded else segment, lasting)
        for begin in range(0, len(segment), chunk):
            samples = slice(begin, min(begin + chunk, len(segment)))
            made = self.term_values(self.with_reference_torque(segment.window(begin, samples.stop)), passing)
            columns = np.empty((len(memory), samples.stop - begin))
            columns[memory], columns[~memory] = whole[samples].T, made.T
            yield samples, columns.T

    def axis_motion(self, segment: Segment, applied: AppliedTerm) -> AxisMotion:
        """Returns the motion of the axis on which a term acts.

        Args:
            segment: The motion of the joints, with the reference torque if the term uses it.
            applied: The term.
        """
        j, reference, before = applied.axis, segment.reference_torque, segment.before
        if applied.side == "joint":
            torque = None if reference is None else reference[:, j]
            past = None if before is None else before[:, j]
            return AxisMotion(segment.q[:, j], segment.v[:, j], segment.a[:, j], segment.rate, torque, past)
        row, offset = self.drive.reduction[j], self.drive.offset
        torque = None if reference is None else reference @ self.drive.load_weights(j, applied.side)
        past = None if before is None else (before - offset) @ row
        return AxisMotion((segment.q - offset) @ row, segment.v @ row, segment.a @ row, segment.rate, torque, past)

    def with_reference_torque(self, segment: Segment) -> Segment:
        """Returns the segment with the torque that its gears transmit, if a term needs it and the segment lacks it.

        This is the frozen rigid torque minus the torque of known wrenches, so that a payload counts as load.

        Args:
            segment: The segment.

        Returns:
            The same, or one with ``reference_torque``.
        """
        if self.reference_theta is None or segment.reference_torque is not None or not self.loaded:
            return segment
        carried = rigid_torque(self.robot, self.reference_theta, segment.q, segment.v, segment.a)
        return replace(segment, reference_torque=carried if segment.external is None else carried - segment.external)

    @cached_property
    def compact(self) -> tuple[Compact, ...]:
        """Per row group, a subset of columns that spans all its columns for every motion."""
        return compact_groups(self.robot, self.groups)

    @cached_property
    def compact_inertial(self) -> tuple[tuple[Array, IntArray], ...]:
        """Per row group, the mix of joint rows, and the inertial columns of :attr:`compact`."""
        kept = [group.columns[some.places] for group, some in zip(self.groups, self.compact, strict=True)]
        return tuple((group.mix, own[own < self.n_inertial]) for group, own in zip(self.groups, kept, strict=True))

    def _inertial_columns(self, segment: Segment, part: slice, compact: bool, spare: Sequence[int] = ()) -> list[Array]:
        """Per row group, its inertial columns followed by spare ones to be filled, shape (columns, samples)."""
        whole = [(group.mix, group.columns[group.columns < self.n_inertial]) for group in self.groups]
        wanted = self.compact_inertial if compact else whole
        return row_columns(self.robot, wanted, segment.q[part], segment.v[part], segment.a[part], spare)

    def row_blocks(
        self, segment: Segment, chunk: int = CHUNK, *, compact: bool = False, torque: bool = False
    ) -> Iterator[tuple[slice, list[Array]]]:
        """Yields the rows of the estimation problem in chunks.

        Args:
            segment: A whole segment at full rate.
            chunk: Samples per chunk.
            compact: Whether to leave out columns that depend on the others: see :attr:`compact`.
            torque: Whether to append the measured torque (:meth:`row_targets`) as the last column.

        Yields:
            The slice of samples, and per row group its columns, shape (≤ chunk, len(group.columns)), or fewer columns.
        """
        of_terms = [group.columns >= self.n_inertial for group in self.groups]
        spare = [int(which.sum()) + torque for which in of_terms]
        for samples, terms in self.term_chunks(segment, chunk):
            blocks = self._inertial_columns(segment, samples, compact, spare)
            targets = self.row_targets(segment.window(samples.start, samples.stop).total) if torque else None
            for g, (group, block, which) in enumerate(zip(self.groups, blocks, of_terms, strict=True)):
                term_rows, columns = block[len(block) - spare[g] :], group.columns[which] - self.n_inertial
                for row, k, factor in zip(term_rows, columns, group.scale[which], strict=False):
                    np.multiply(terms[:, k], factor, out=row)
                if targets is not None:
                    block[-1] = targets[:, g]
            yield samples, [block.T for block in blocks]

    def row_targets(self, tau: Array, external: Array | None = None) -> Array:
        """Returns joint torques as right-hand sides of the rows of the estimation problem.

        Args:
            tau: Joint torques, shape (N, n) [N·m or N].
            external: Torque of known wrenches on the joints, shape (N, n) [N·m or N]; none if None.

        Returns:
            Shape (N, n), one column per row group.
        """
        return np.asarray((tau if external is None else tau + external) @ self.drive.row_mix.T)

    def torque(self, theta: Array, q: Array, v: Array, a: Array, *, rate: float = 0.0, reference: Array | None = None) -> Array:
        """Returns the joint torques of the model; with elastic joints for motors that move like the links.

        Args:
            theta: Parameters, shape (p,), or (p, k) for k models at the cost of one regressor.
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
        check_shape("q", q.shape[-1:], (self.n,))
        x, dx, ddx = (np.atleast_2d(np.asarray(values, dtype=float)) for values in (q, v, a))
        frozen = None if reference is None else np.atleast_2d(np.asarray(reference, dtype=float))
        segment = Segment("", 0.0, rate, x, dx, ddx, None, x, dx, ddx, frozen)
        return np.asarray(self.torque_along(theta, segment).reshape(*q.shape, *theta.shape[1:]))

    def torque_along(self, theta: Array, segment: Segment) -> Array:
        """Returns the joint torques of the model along a recorded motion, including the segment's history.

        Args:
            theta: Parameters, shape (p,) or (p, k).
            segment: The motion.

        Returns:
            Shape (N, n) or (N, n, k) [N·m or N].
        """
        theta = np.asarray(theta, dtype=float)
        bodies, rest = theta[: self.n_inertial], theta[self.n_inertial :]
        out = rigid_torque(self.robot, bodies, segment.q, segment.v, segment.a)
        of_terms = np.einsum("jk,k...->kj...", self.distribution, rest)
        for samples, terms in self.term_chunks(segment, AT_ONCE):
            out[samples] += np.tensordot(terms, of_terms, 1)
        return out

    def torque_by_sample(self, thetas: Array, which: NDArray[np.int32], segment: Segment) -> Array:
        """Returns efforts along a motion with a choice of parameters per sample; of joints set apart their terms alone.

        Args:
            thetas: Parameters, shape (p, k).
            which: Index of each sample's parameters, shape (N,).
            segment: The motion.

        Returns:
            Shape (N, n) [N·m or N].
        """
        out = np.empty(segment.q.shape)
        for k in np.unique(which):
            some = which == k
            bodies = thetas[: self.n_inertial, k]
            out[some] = rigid_torque(self.robot, bodies, segment.q[some], segment.v[some], segment.a[some])
        out[:, sorted(self.apart)] = 0.0
        for samples, terms in self.term_chunks(segment, AT_ONCE):
            out[samples] += (terms * thetas[self.n_inertial :, which[samples]].T) @ self.distribution.T
        return out

    def effort_along(self, theta: Array, segment: Segment) -> Array:
        """Returns what the efforts of a log should be along a motion: torques, of joints that are set apart their terms alone.

        Args:
            theta: Parameters, shape (p,) or (p, k).
            segment: The motion.

        Returns:
            Shape (N, n) or (N, n, k) [N·m or N].
        """
        effort, apart = self.torque_along(theta, segment), sorted(self.apart)
        if apart:
            bodies = np.asarray(theta, dtype=float)[: self.n_inertial]
            effort[:, apart] -= rigid_torque(self.robot, bodies, segment.q, segment.v, segment.a)[:, apart]
        return effort

    def base(self, *, order: Sequence[str | int] | None = None, tolerance: float = RANK_TOLERANCE) -> BaseParameters:
        """Returns the base parameters that perfect data would identify, found on random motion.

        Args:
            order: All parameters by name or index, those preferred as independent first; theta's order if None.
            tolerance: Distance of a unit column from the span of the others up to which it depends on them, a fraction.

        Raises:
            ModelError: ``order`` is not a permutation of the parameters.
        """
        permutation = None
        if order is not None:
            index = {name: k for k, name in enumerate(self.names)}
            permutation = np.array([index.get(k, -1) if isinstance(k, str) else int(k) for k in order], dtype=np.intp)
            if sorted(permutation) != list(range(len(self.names))):
                raise ModelError("the column order is not a permutation of the parameters", got=list(order)[:5])
        p = len(self.names)
        motion = random_motion(self.robot, max(4 * p // self.n, min(STATES, STATES * _FEW_JOINTS // self.n)))
        rows = np.zeros((len(self.groups), len(motion), p))
        for samples, blocks in self.row_blocks(motion, chunk=len(motion)):
            for group_rows, group, block in zip(rows, self.groups, blocks, strict=True):
                group_rows[samples, group.columns] = block
        R = np.asarray(np.linalg.qr(rows.reshape(-1, p), mode="r"))
        # A first axis that is 1e-5 rad off gravity because of rounding in the URDF gives columns of that size: scaled to unit
        # norm they would count as parameters. The scale of a column is at least a tenth of the largest of its unit.
        norms, units = np.linalg.norm(R, axis=0), [parameter.unit for parameter in self.parameters]
        scale = np.maximum(norms, 0.1 * np.array([norms[np.array(units) == unit].max() for unit in units]))
        return replace(reduce_factor(R, self.names, permutation, tolerance, scale), units=tuple(units))

    def as_dict(self) -> dict[str, Any]:
        """JSON form: everything that :meth:`from_dict` needs to build the same model."""
        robot = self.robot
        return {
            "urdf": robot.urdf,
            "path": robot.path,
            "order": list(robot.order),
            "lock": dict(robot.locked),
            **({"mimic": robot.mimic} if robot.coupled else {}),
            "gravity": robot.gravity.tolist(),
            "drive": self.drive.as_dict(),
            "terms": [applied.as_dict(robot) for applied in self.terms],
            **({} if self.reference_theta is None else {"reference": self.reference_theta.tolist()}),
            **({"apart": [robot.joints[j] for j in sorted(self.apart)]} if self.apart else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DynamicModel:
        """Builds a model from the result of :meth:`as_dict`.

        Args:
            data: Its result.

        Returns:
            The model; its columns are bitwise equal.
        """
        reference = None if data.get("reference") is None else np.array(data["reference"], dtype=float)
        chosen = {"joints": data["order"], "lock": data["lock"], "mimic": data.get("mimic", "lock")}
        robot = Robot.from_urdf(data["urdf"], gravity=data["gravity"], **chosen)
        object.__setattr__(robot, "path", data.get("path", robot.path))
        options: Mapping[str, Any] = data.get("elastic", {"rotor_inertia": False})
        model = cls(robot, friction="none", drive=Drive.from_dict(data["drive"]), **options)
        model = model.with_terms([AppliedTerm.from_dict(applied, robot) for applied in data["terms"]]).with_reference(reference)
        return model.with_apart(data.get("apart", ()))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that determines the columns, except the URDF's path; guards the merging of statistics."""
        content = {key: value for key, value in self.as_dict().items() if key not in ("path", "order")}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def term_of(self, index: int) -> Term:
        """Returns the term to which a parameter belongs.

        Args:
            index: Index into theta, at least ``n_inertial``.
        """
        return next(applied.term for applied, own in self.placed_terms if index < own.stop)
