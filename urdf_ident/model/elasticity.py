"""Elastic joints (docs/theory.md §4): springs between motors and links, as a linear model of twice as many rows.

Link rows balance the torque of the springs with the rigid bodies, motor rows balance the measured torque with
rotor inertia, friction and springs. q is the link's position, θ the motor's *after the gear*, d = θ − q:

    link:   Y(q, v, a)·inertial + [rotor coupling]·Ia − K d − D d' − preload = known external torque
    motor:  Ia θ'' + [rotor coupling]·Ia + friction(θ') + K d + D d' + preload = motor torque after the gear

The sum of both rows holds no spring: it is the rigid robot's balance. A joint whose spring cannot be seen is therefore
still identified, from the sum alone (``rigid``): its rows would otherwise claim that no torque acts on the link.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, check_shape, nearest
from ..friction import AxisMotion, Term, friction_by_joint
from ..linalg import Array
from ..samples import Segment
from .drive import Drive
from .dynamic_model import DynamicModel
from .engine.rigid import CHUNK, rigid_of
from .robot import Robot
from .rotors import carriers_of_rotors, rotor_coupling
from .row_groups import RowGroup
from .terms import AppliedTerm, RotorInertia, term_from_dict

COUPLINGS = ("complete", "reduced")
ROWS = ("motor", "sum")


@dataclass(frozen=True)
class Stiffness(Term):
    """``K · (θ − q)``: a spring between motor and link; on this axis q is the deflection."""

    name: ClassVar[str] = "stiffness"
    symbols: ClassVar[tuple[str, ...]] = ("K",)
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)

    def columns(self, axis: AxisMotion) -> Array:
        return axis.q[:, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return ("N/m",) if prismatic else ("N·m/rad",)


@dataclass(frozen=True)
class Damping(Term):
    """``D · (θ' − v)``: damping inside the spring."""

    name: ClassVar[str] = "spring_damping"
    symbols: ClassVar[tuple[str, ...]] = ("D",)
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)

    def columns(self, axis: AxisMotion) -> Array:
        return axis.v[:, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return ("N·s/m",) if prismatic else ("N·m·s/rad",)


@dataclass(frozen=True)
class Preload(Term):
    """The spring's torque where both encoders read the same: K times the difference of their zeros."""

    name: ClassVar[str] = "preload"
    symbols: ClassVar[tuple[str, ...]] = ("preload",)
    nonnegative: ClassVar[tuple[bool, ...]] = (False,)

    def columns(self, axis: AxisMotion) -> Array:
        return np.ones((len(axis.q), 1))

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return ("N",) if prismatic else ("N·m",)


SPRING_TERMS = (Stiffness, Damping, Preload)


class ElasticModel(DynamicModel):
    """A robot with elastic joints as a linear model, two rows a joint.

    Segments must hold the motor side. Parameters a joint: the body's ten, ``Ia`` = r²Υ (rotor inertia after the gear),
    friction of the motor side, ``K``, and, where asked for, ``D`` and ``preload``.

    Args:
        robot: The robot.
        drive: The drive train; its reduction must be diagonal.
        friction: On the motor side; as in :class:`DynamicModel`.
        coupling: "complete", or "reduced" (Spong): without the torques by which rotors and links turn each other.
        damping: Whether springs are damped.
        preload: Whether the encoders' zeros may differ.
        rows: "motor": link and motor rows, as in C; "sum": link rows and their sum with the motor rows, which are
            independent of each other when the noise is on the deflection.
        rigid: Joints that are stiffer than their encoders can show; see the module's text.
        encoder_step: Step of the coarser encoder, after the gear [rad or m]; read from the logs if None.
        least_counts: Deflections below this many steps, root mean square, are not taken for a spring's: encoders
            are even less exact than fine.

    Raises:
        ModelError: No gear ratios, a coupled drive, unknown terms, coupling or joints.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        drive: Drive | None,
        friction: str | Sequence[Any] | Mapping[str, Sequence[Any]] = "auto",
        coupling: str = "complete",
        damping: bool = False,
        preload: bool = True,
        rows: str = "motor",
        rigid: Collection[str] = (),
        encoder_step: float | None = None,
        least_counts: float = 10.0,
    ) -> None:
        if drive is None:
            raise ModelError(
                "elastic joints need the gear ratios", remedy="give drive.reduction (1 for each joint without a gear)"
            )
        super().__init__(robot, friction="none", rotor_inertia=False, drive=drive)
        if self.drive.coupled.any():
            joint = robot.joints[int(np.argmax(self.drive.coupled))]
            raise ModelError(
                "elastic joints with a coupled drive are not supported",
                where=f"joint '{joint}'",
                expected="a diagonal drive.reduction",
                remedy="set model.elastic: false",
            )
        if coupling not in COUPLINGS:
            raise ModelError("unknown rotor coupling", got=repr(coupling), remedy=nearest(coupling, COUPLINGS))
        if rows not in ROWS:
            raise ModelError("unknown rows of elastic joints", got=repr(rows), remedy=nearest(rows, ROWS))
        for joint in rigid:
            robot.index(joint)
        self.coupling, self.damping, self.preload, self.rows = coupling, bool(damping), bool(preload), rows
        self.rigid = tuple(joint for joint in robot.joints if joint in set(rigid))
        self.encoder_step, self.least_counts = encoder_step, float(least_counts)
        laws = friction_by_joint(friction, robot.joints)
        springs = [Stiffness()] + [Damping()] * self.damping + [Preload()] * self.preload
        self.terms = tuple(
            AppliedTerm(law, j) for j, joint in enumerate(robot.joints) for law in (RotorInertia(), *laws[joint], *springs)
        )

    def with_rigid(self, joints: Collection[str]) -> ElasticModel:
        """The same model with other joints taken as rigid.

        Args:
            joints: Their names.

        Returns:
            A model with the same list of parameters.
        """
        for joint in joints:
            self.robot.index(joint)
        found: ElasticModel = self._changed(rigid=tuple(joint for joint in self.robot.joints if joint in set(joints)))  # type: ignore[assignment]
        return found

    @property
    def ratio(self) -> Array:
        """Gear ratios r, shape (n,) [motor rad per joint rad or m]."""
        return np.asarray(np.diag(self.drive.reduction))

    @cached_property
    def _owned(self) -> dict[str, NDArray[np.intp]]:
        """Term columns by kind, as indices after the inertial ones: ``rotor``, ``friction``, ``spring``."""
        kinds = [_kind(item.term) for item in self.terms for _ in item.term.symbols]
        return {kind: np.flatnonzero([k == kind for k in kinds]) for kind in ("rotor", "friction", "spring")}

    @cached_property
    def _axis_of(self) -> NDArray[np.intp]:
        return np.array([item.axis for item in self.terms for _ in item.term.symbols], dtype=np.intp)

    def _of(self, kind: str, joint: int) -> NDArray[np.intp]:
        owned = self._owned[kind]
        return np.asarray(owned[self._axis_of[owned] == joint])

    def _axis_motion(self, segment: Segment, item: AppliedTerm) -> AxisMotion:
        j = item.axis
        qm, vm, am = motor_side(segment)
        q, v, a = qm[:, j], vm[:, j], am[:, j]
        if isinstance(item.term, SPRING_TERMS):
            q, v, a = q - segment.q[:, j], v - segment.v[:, j], a - segment.a[:, j]
        reference, before = segment.reference_torque, segment.before
        past = None if before is None else before[:, j] + (qm[0, j] - segment.q[0, j])
        return AxisMotion(q, v, a, segment.rate, None if reference is None else reference[:, j], past)

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """``link:j`` and ``motor:j`` of every elastic joint, ``joint:j`` (their sum) of every rigid one."""
        groups = []
        carriers = carriers_of_rotors(self.robot)
        for j, joint in enumerate(self.robot.joints):
            inertial = np.array([10 * body + k for body in self.robot.subtrees[j] for k in range(10)], dtype=np.intp)
            carried = [k for k, body in enumerate(carriers) if body in self.robot.subtrees[j]]
            coupled = np.concatenate([self._of("rotor", k) for k in carried]) if carried else np.array([], dtype=np.intp)
            if self.coupling == "reduced":
                coupled = coupled[:0]
            own = np.concatenate([self._of("rotor", j), self._of("friction", j)])
            spring, start = self._of("spring", j), self.n_inertial
            if joint not in self.rigid:
                groups.append(self._group("link", j, np.concatenate([inertial, start + coupled, start + spring])))
            if joint in self.rigid or self.rows == "sum":
                groups.append(self._group("joint", j, np.concatenate([inertial, start + coupled, start + own])))
            else:
                groups.append(self._group("motor", j, np.concatenate([start + own, start + spring])))
        return tuple(groups)

    def _group(self, kind: str, j: int, columns: NDArray[np.intp]) -> RowGroup:
        return RowGroup(f"{kind}:{self.robot.joints[j]}", j, np.eye(self.n)[j], columns, np.ones(len(columns)))

    def _term_rows(self, segment: Segment) -> tuple[Array, Array]:
        """All term columns in link rows and in motor rows, shape (N, n, k) each; the sum of both has no spring."""
        values = self.term_columns(segment)
        count, k = values.shape
        link, motor = np.zeros((count, self.n, k)), np.zeros((count, self.n, k))
        motor[:, self._axis_of, np.arange(k)] = values
        spring = self._owned["spring"]
        link[:, self._axis_of[spring], spring] = -values[:, spring]
        if self.coupling == "complete":
            _, vm, am = motor_side(segment)
            turned = rotor_coupling(self.robot, self.ratio, segment.q, segment.v, segment.a, vm, am)
            rotor = self._owned["rotor"]
            link[:, :, rotor] = turned.link
            motor[:, np.arange(self.n), rotor] += turned.motor
        return link, motor

    def row_blocks(
        self, segment: Segment, chunk: int = CHUNK, *, compact: bool = False, torque: bool = False
    ) -> Iterator[tuple[slice, list[Array]]]:
        """The rows of the estimation problem, piece by piece.

        Args:
            segment: A whole segment at full rate, with the motor side.
            chunk: Samples a piece.
            compact: Whether to leave out the columns that follow from the others: see :attr:`compact`.
            torque: Whether the measured torque (:meth:`row_targets`) is one column more, the last.

        Yields:
            The slice of samples, and per row group its columns, shape (≤ chunk, len(group.columns)), or fewer columns.

        Raises:
            ModelError: The segment has no motor side.
        """
        link, motor = self._term_rows(segment)
        for begin in range(0, len(segment), chunk):
            part = slice(begin, min(begin + chunk, len(segment)))
            blocks = []
            for group, rigid in zip(self.groups, self._inertial_columns(segment, part, compact), strict=True):
                kind, j = group.name.split(":", 1)[0], group.joint
                own = group.columns[group.columns >= self.n_inertial] - self.n_inertial
                sides = {"link": (link,), "motor": (motor,), "joint": (link, motor)}[kind]
                blocks.append(np.vstack([rigid, sum(side[part, j][:, own] for side in sides).T]).T)  # type: ignore[union-attr]
            if torque:
                external = segment.external
                targets = self.row_targets(segment.tau[part], None if external is None else external[part])  # type: ignore[index]
                blocks = [np.column_stack(pair) for pair in zip(blocks, targets.T, strict=True)]
            yield part, blocks

    def row_targets(self, tau: Array, external: Array | None = None) -> Array:
        """Known torques as the rows of the estimation problem see them: wrenches act on links, drives on motors.

        Args:
            tau: Motor torques after the gear, shape (N, n) [N·m or N].
            external: Torque of known wrenches on the links, shape (N, n) [N·m or N]; none if None.

        Returns:
            Shape (N, number of row groups).
        """
        load = np.zeros(np.shape(tau)) if external is None else external
        rows = {"link": load, "motor": np.asarray(tau), "joint": tau + load}
        targets = [rows[group.name.split(":", 1)[0]][:, group.joint] for group in self.groups]
        return np.stack(targets, axis=1)

    def torque_along(self, theta: Array, segment: Segment) -> Array:
        """Motor torque after the gear along a motion: see :meth:`torque`.

        Args:
            theta: Parameters, shape (p,) or (p, k).
            segment: With the motor side.

        Returns:
            Shape (N, n) or (N, n, k) [N·m or N].
        """
        return self.balance(theta, segment)[2]

    def torque(
        self,
        theta: Array,
        q: Array,
        v: Array,
        a: Array,
        *,
        rate: float = 0.0,
        reference: Array | None = None,
        motor: tuple[Array, Array, Array] | None = None,
    ) -> Array:
        """Motor torque after the gear that a motion needs: the sum of link and motor rows, in which no spring appears.

        Args:
            theta: Parameters, shape (p,); or (p, k) for k models at the price of one regressor.
            q, v, a: Link motion, shape (N, n) or (n,) [rad, rad/s, rad/s² or m, m/s, m/s²].
            rate: Samples per second [Hz], for terms with memory.
            reference: Frozen rigid torque for load-dependent terms, shape as q [N·m or N].
            motor: Motor motion after the gear, three arrays of the shape of q; if None the links', as if the joints
                were rigid.

        Returns:
            Shape as ``q`` [N·m or N], with a last axis of length k for k models.

        Raises:
            ShapeError: The arrays do not fit.
        """
        q, theta = np.asarray(q, dtype=float), np.asarray(theta, dtype=float)
        check_shape("theta", theta.shape, (len(self.parameters), *theta.shape[1:2]))
        rows = [None if x is None else np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, v, a, *(motor or (q, v, a)))]
        frozen = None if reference is None else np.atleast_2d(np.asarray(reference, dtype=float))
        segment = Segment("", 0.0, rate, rows[0], rows[1], rows[2], None, *rows[3:], reference_torque=frozen)  # type: ignore[arg-type, misc]
        return np.asarray(self.balance(theta, segment)[2].reshape(*q.shape, *theta.shape[1:]))

    def balance(self, theta: Array, segment: Segment) -> tuple[Array, Array, Array]:
        """What link rows, motor rows and their sum say of a motion.

        Args:
            theta: Parameters, shape (p,) or (p, k).
            segment: With the motor side.

        Returns:
            Left-hand sides, shape (N, n) or (N, n, k) each [N·m or N]: of the link rows (zero, or the known external
            torque, if the model is true), of the motor rows, and of their sum (both the motor torque).
        """
        link_terms, motor_terms = self._term_rows(segment)
        own = theta[self.n_inertial :]
        link, motor = link_terms @ own, motor_terms @ own
        link += rigid_of(self.robot).torque(theta[: self.n_inertial], segment.q, segment.v, segment.a)
        return link, motor, link + motor

    def spring_torque(self, theta: Array, segment: Segment) -> Array:
        """Torque of the springs on the links: ``K d + D d' + preload``.

        Args:
            theta: Parameters, shape (p,).
            segment: With the motor side.

        Returns:
            Shape (N, n) [N·m or N].
        """
        values, spring = self.term_columns(segment), self._owned["spring"]
        out = np.zeros((len(segment), self.n))
        for k in spring:
            out[:, self._axis_of[k]] += values[:, k] * theta[self.n_inertial + k]
        return out

    def as_dict(self) -> dict[str, Any]:
        """JSON form: everything that :meth:`from_dict` needs to build the same model."""
        options = {
            "coupling": self.coupling,
            "damping": self.damping,
            "preload": self.preload,
            "rows": self.rows,
            "rigid": list(self.rigid),
            "encoder_step": self.encoder_step,
            "least_counts": self.least_counts,
        }
        return {**super().as_dict(), "elastic": options}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ElasticModel:
        """Builds the model that :meth:`as_dict` described.

        Args:
            data: Its result.

        Returns:
            The model; its columns are equal to the last bit.
        """
        robot = Robot.from_urdf(data["urdf"], joints=data["order"], lock=data["lock"], gravity=data["gravity"])
        object.__setattr__(robot, "path", data.get("path", robot.path))
        model = cls(robot, drive=Drive.from_dict(data["drive"]), friction="none", **data["elastic"])
        springs = {term.name: term for term in SPRING_TERMS}
        terms = []
        for item in data["terms"]:
            law = {key: value for key, value in item.items() if key not in ("axis", "side")}
            term = springs[law["term"]]() if law["term"] in springs else term_from_dict(law)
            terms.append(AppliedTerm(term, robot.index(item["axis"]), item["side"]))
        reference = None if data.get("reference") is None else np.array(data["reference"], dtype=float)
        return model.with_terms(terms).with_reference(reference)  # type: ignore[return-value]


def motor_side(segment: Segment) -> tuple[Array, Array, Array]:
    """The motor's motion after the gear.

    Returns:
        Position, velocity, acceleration, shape (N, n) each [rad, rad/s, rad/s² or m, m/s, m/s²].

    Raises:
        ModelError: The segment has none.
    """
    if segment.qm is None or segment.vm is None or segment.am is None:
        raise ModelError(
            "elastic joints need the motors' positions",
            where=segment.log or None,
            remedy="log them as qm_<joint> (before the gear), or set model.elastic: false",
        )
    return segment.qm, segment.vm, segment.am


def _kind(term: Term) -> str:
    if isinstance(term, RotorInertia):
        return "rotor"
    return "spring" if isinstance(term, SPRING_TERMS) else "friction"
