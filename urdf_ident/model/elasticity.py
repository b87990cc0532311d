"""Elastic joints (docs/theory.md §4): springs between motors and links, as a linear model with two rows per joint.

Link rows balance the spring torque with the rigid-body torque; motor rows balance the measured torque with
rotor inertia, friction and springs. q is the link position, θ the motor position *after the gear*, d = θ − q:

    link:   Y(q, v, a)·inertial + [rotor coupling]·Ia − K d − D d' − preload = known external torque
    motor:  Ia θ'' + [rotor coupling]·Ia + friction(θ') + K d + D d' + preload = motor torque after the gear

The spring cancels in the sum of both rows, which is the balance of the rigid robot. A joint whose spring is not
observable is therefore identified from the sum alone (``rigid``): its link row would imply zero torque on the link.

Motors that move several joints through A are modelled before their gears, as for rigid robots: θ is the motor's own
position, d = θ − A q, and link rows are ``A⁻ᵀ`` times those above. Every row then holds one motor and one spring. A URDF
does not state the axis of such a motor, so its rotor is not coupled to the links, as in the reduced model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import ModelError, check_known, check_shape
from ..friction import AxisMotion, friction_by_joint
from ..linalg import Array, IntArray
from ..samples import Segment
from .drive import Drive
from .dynamic_model import DynamicModel
from .inertia import skew
from .rigid_bodies import CHUNK, rigid_torque
from .robot import Robot
from .row_groups import RowGroup, inertial_columns
from .terms import SPRING_TERMS, AppliedTerm, Damping, Preload, RotorInertia, Stiffness


def rotor_coupling(robot: Robot, ratio: Array, q: Array, v: Array, a: Array, vm: Array, am: Array) -> tuple[Array, Array]:
    """Computes the inertial coupling torques of rotors and links, without the spring and Ia·θ'' itself.

    Rotor i is carried by the body before joint i and spins about the unit axis z_i, fixed in that body. Its spin is
    ``s = z_i·ω + r θ'_i`` with ω of the carrying body. About its axis it has the inertia Υ; its mass and transverse
    inertia belong to the carrying body's ten parameters. This is pure kinematics, vectorised over samples and
    independent of Pinocchio, on which the simulated plant is based, so that the two validate each other.

    Args:
        ratio: Gear ratios r, shape (n,); may be negative.
        q, v, a: Link motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].
        vm, am: Motor motion after the gear, shape (N, n) [rad/s, rad/s² or m/s, m/s²].

    Returns:
        Per unit of each rotor's inertia after the gear, Ia = r²Υ: torque on joint j by rotor k, shape (N, n, n) [1/s²], zero
        where joint j does not move the rotor; and the contribution of the carrier's rotation to θ'' in the motor's balance,
        shape (N, n) [rad/s² or m/s²].

    Raises:
        ShapeError: The arrays disagree.
    """
    n, count = robot.n, len(q)
    for name, array in (("v", v), ("a", a), ("vm", vm), ("am", am)):
        check_shape(name, np.shape(array), (count, n))
    # angular velocity (N, 3), acceleration (N, 3) and Jacobian (N, 3, n) of each body in its own frame
    omega, alpha, jacobian = list[Array](), list[Array](), list[Array]()
    for j, (parent, axis) in enumerate(zip(robot.parents, robot.axes, strict=True)):
        turns = not robot.prismatic[j]
        back = np.broadcast_to(robot.placements[j, :3, :3].T, (count, 3, 3))
        if turns:
            K, angle = skew(axis), -q[:, j, None, None]  # Rodrigues' formula
            back = (np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)) @ back
        if parent < 0:
            w, dw, J = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 3, n))
        else:
            w, dw = ((back @ x[parent][:, :, None])[:, :, 0] for x in (omega, alpha))
            J = back @ jacobian[parent]
        if turns:
            own = v[:, j, None] * axis
            dw = dw + a[:, j, None] * axis + np.cross(w, own)
            w = w + own
            J[:, :, j] += axis
        omega.append(w)
        alpha.append(dw)
        jacobian.append(J)
    link, motor = np.zeros((count, n, n)), np.zeros((count, n))
    for k, body in enumerate(robot.parents):
        if body < 0:  # mounted on the base: no coupling
            continue
        z = robot.placements[k, :3, :3] @ robot.axes[k]
        spin = omega[body] @ z + ratio[k] * vm[:, k]
        moment = (alpha[body] @ z + ratio[k] * am[:, k])[:, None] * z + spin[:, None] * np.cross(omega[body], z)
        link[:, :, k] = np.einsum("nxj,nx->nj", jacobian[body], moment) / ratio[k] ** 2
        motor[:, k] = alpha[body] @ z / ratio[k]
    return link, motor


COUPLINGS = ("complete", "reduced")
ROWS = ("motor", "sum")


class ElasticModel(DynamicModel):
    """A robot with elastic joints as a linear model, two rows per joint.

    Segments must hold the motor side. Parameters per joint: the body's ten, ``Ia`` = r²Υ (rotor inertia after the gear),
    motor-side friction, ``K``, and optionally ``D`` and ``preload``; for a motor that moves several joints ``Iam``,
    ``Km``, …, before the gear.

    Args:
        robot: The robot.
        drive: The drive train.
        friction: On the motor side; as in :class:`DynamicModel`.
        coupling: "complete", or "reduced" (Spong): without the inertial coupling between rotors and links.
        damping: Whether springs are damped.
        preload: Whether the encoders' zeros may differ.
        rows: "motor": link and motor rows; "sum": link rows and their sum with the motor rows, which are
            independent of each other when the noise is on the deflection.
        rigid: Joints too stiff for their encoders to resolve the deflection (in a coupled drive, those of such motors);
            see the module docstring.
        encoder_step: Step of the coarser encoder, after the gear [rad or m]; determined from the logs if None.
        least_counts: Deflections below this many steps (RMS) are not attributed to a spring: the accuracy of an
            encoder is worse than its resolution.

    Raises:
        ModelError: No gear ratios, unknown terms, coupling or joints.
    """

    is_rigid = False

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
        if robot.coupled:
            raise ModelError(
                f"a model with elastic joints needs independent ones, and '{next(iter(robot.coupled))}' mimics another one",
                where=robot.path,
                remedy="leave out `robot: {mimic: identify}`: coupled joints are then locked",
            )
        super().__init__(robot, friction="none", rotor_inertia=False, drive=drive)
        check_known("rotor coupling", coupling, COUPLINGS, ModelError)
        check_known("rows of elastic joints", rows, ROWS, ModelError)
        for joint in rigid:
            robot.index(joint)
        self.coupling, self.damping, self.preload, self.rows = coupling, bool(damping), bool(preload), rows
        self.rigid = tuple(joint for joint in robot.joints if joint in set(rigid))
        self.encoder_step, self.least_counts = encoder_step, float(least_counts)
        coupled = self.drive.coupled
        turns = {
            joint: float(abs(r)) for joint, r, shared in zip(robot.joints, self.drive.ratio, coupled, strict=True) if shared
        }
        laws = friction_by_joint(friction, robot.joints, turns)
        springs = [Stiffness()] + [Damping()] * self.damping + [Preload()] * self.preload
        self.terms = tuple(
            AppliedTerm(law, j, "motor" if coupled[j] else "joint")
            for j, joint in enumerate(robot.joints)
            for law in (RotorInertia(), *laws[joint], *springs)
        )

    def with_rigid(self, joints: Collection[str]) -> ElasticModel:
        """Returns the same model with other joints treated as rigid.

        Args:
            joints: Their names.
        """
        for joint in joints:
            self.robot.index(joint)
        changed: ElasticModel = self._changed(rigid=tuple(joint for joint in self.robot.joints if joint in set(joints)))  # type: ignore[assignment]
        return changed

    @cached_property
    def turns(self) -> Array:
        """Shape (n, n): motor per joint motion, before the gear for motors that move several joints, else after it."""
        return np.asarray(np.where(self.drive.coupled[:, None], self.drive.reduction, np.eye(self.n)))

    def of_spring(self, joint: int) -> int:
        """Returns the index of a spring's stiffness.

        Args:
            joint: Index of the joint.

        Returns:
            Index into theta.
        """
        return int(self.n_inertial + self._of("spring", joint)[0])

    def after_gear(self, index: int) -> float:
        """Returns the factor that refers a motor's rotor inertia, stiffness, damping or preload to after its gear.

        Args:
            index: Index of the parameter in theta.

        Returns:
            The gear ratio, or its square, if the parameter is before the gear; else 1.
        """
        j = self._axis_of[index - self.n_inertial]
        power = 1 if isinstance(self.term_of(index), Preload) else 2
        return float(self.drive.ratio[j] ** power) if self.drive.coupled[j] else 1.0

    @cached_property
    def _owned(self) -> dict[str, IntArray]:
        """Term columns by kind, as indices after the inertial ones: ``rotor``, ``friction``, ``spring``."""
        kinds = [
            "rotor"
            if isinstance(applied.term, RotorInertia)
            else "spring"
            if isinstance(applied.term, SPRING_TERMS)
            else "friction"
            for applied in self.terms
            for _ in applied.term.symbols
        ]
        return {kind: np.flatnonzero([k == kind for k in kinds]) for kind in ("rotor", "friction", "spring")}

    @cached_property
    def _axis_of(self) -> IntArray:
        return np.array([applied.axis for applied in self.terms for _ in applied.term.symbols], dtype=np.intp)

    def _of(self, kind: str, joint: int) -> IntArray:
        owned = self._owned[kind]
        return np.asarray(owned[self._axis_of[owned] == joint])

    def axis_motion(self, segment: Segment, applied: AppliedTerm) -> AxisMotion:
        """See :meth:`.DynamicModel.axis_motion`; springs get the deflection, all others the motion of the motor."""
        row, mix = self.turns[applied.axis], self.drive.row_mix[applied.axis]
        qm, vm, am = motor_side(segment)
        q, v, a = qm @ row, vm @ row, am @ row
        if isinstance(applied.term, SPRING_TERMS):
            q, v, a = q - segment.q @ row, v - segment.v @ row, a - segment.a @ row
        reference, before = segment.reference_torque, segment.before
        past = None if before is None else before @ row + (qm[0] - segment.q[0]) @ row
        return AxisMotion(q, v, a, segment.rate, None if reference is None else reference @ mix, past)

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """``link:j`` and ``motor:j`` for elastic joints; their sum, ``joint:j`` or ``actuator:j``, for rigid ones."""
        groups, alone = [], ~self.drive.coupled
        for j, joint in enumerate(self.robot.joints):
            inertial = inertial_columns(self.robot, self.drive.row_mix[j])
            carried = [k for k, body in enumerate(self.robot.parents) if 10 * body in inertial and alone[k]]
            rotors = [self._of("rotor", k) for k in carried if self.coupling == "complete"]
            coupled = np.concatenate([*rotors, np.zeros(0, dtype=np.intp)])
            own = np.concatenate([self._of("rotor", j), self._of("friction", j)])
            spring, start = self._of("spring", j), self.n_inertial
            if joint not in self.rigid:
                groups.append(self._group("link", j, np.concatenate([inertial, start + coupled, start + spring])))
            if joint in self.rigid or self.rows == "sum":
                both = "joint" if alone[j] else "actuator"
                groups.append(self._group(both, j, np.concatenate([inertial, start + coupled, start + own])))
            else:
                groups.append(self._group("motor", j, np.concatenate([start + own, start + spring])))
        return tuple(groups)

    def _group(self, kind: str, j: int, columns: IntArray) -> RowGroup:
        return RowGroup(f"{kind}:{self.robot.joints[j]}", j, self.drive.row_mix[j], columns, np.ones(len(columns)))

    def _term_rows(self, segment: Segment) -> tuple[Array, Array]:
        """Returns all term columns in link rows and in motor rows, (N, n, k) each; springs cancel in their sum."""
        values = self.term_columns(segment)
        count, k = values.shape
        link, motor = np.zeros((count, self.n, k)), np.zeros((count, self.n, k))
        motor[:, self._axis_of, np.arange(k)] = values
        spring = self._owned["spring"]
        link[:, self._axis_of[spring], spring] = -values[:, spring]
        if self.coupling == "complete":
            _, vm, am = motor_side(segment)
            on_links, on_motors = rotor_coupling(self.robot, self.drive.ratio, segment.q, segment.v, segment.a, vm, am)
            rotor, alone = self._owned["rotor"], ~self.drive.coupled
            link[:, :, rotor] = np.einsum("ji,nik->njk", self.drive.row_mix, on_links) * alone
            motor[:, np.arange(self.n), rotor] += on_motors * alone
        return link, motor

    def row_blocks(
        self, segment: Segment, chunk: int = CHUNK, *, compact: bool = False, torque: bool = False
    ) -> Iterator[tuple[slice, list[Array]]]:
        """See :meth:`.DynamicModel.row_blocks`.

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
                sides = {"link": (link,), "motor": (motor,)}.get(kind, (link, motor))
                blocks.append(np.vstack([rigid, sum(side[part, j][:, own] for side in sides).T]).T)  # type: ignore[union-attr]
            if torque:
                external = segment.external
                targets = self.row_targets(segment.measured[part], None if external is None else external[part])
                blocks = [np.column_stack(pair) for pair in zip(blocks, targets.T, strict=True)]
            yield part, blocks

    def row_targets(self, tau: Array, external: Array | None = None) -> Array:
        """Returns known torques as right-hand sides of the rows: wrenches act on links, drives on motors.

        Args:
            tau: Motor torques referred to the joints, shape (N, n) [N·m or N].
            external: Torque of known wrenches on the links, shape (N, n) [N·m or N]; none if None.

        Returns:
            Shape (N, number of row groups).
        """
        tau = np.asarray(tau) @ self.drive.row_mix.T
        load = np.zeros(tau.shape) if external is None else external @ self.drive.row_mix.T
        rows = {"link": load, "motor": tau}
        targets = [rows.get(group.name.split(":", 1)[0], tau + load)[:, group.joint] for group in self.groups]
        return np.stack(targets, axis=1)

    def torque_along(self, theta: Array, segment: Segment) -> Array:
        """See :meth:`.DynamicModel.torque_along`: the motor torque referred to the joints, the sum of link and motor rows."""
        return self.balance(theta, segment)[2]

    def balance(self, theta: Array, segment: Segment) -> tuple[Array, Array, Array]:
        """Evaluates link rows, motor rows and their sum for a motion.

        Args:
            theta: Parameters, shape (p,) or (p, k).
            segment: With the motor side.

        Returns:
            Left-hand sides referred to the joints, shape (N, n) or (N, n, k) each [N·m or N]: of the link rows (zero, or
            the known external torque, if the model is exact), of the motor rows, and of their sum (both the motor torque).
        """
        link_terms, motor_terms = self._term_rows(segment)
        own = theta[self.n_inertial :]
        link, motor = (np.einsum("ji,nj...->ni...", self.turns, rows @ own) for rows in (link_terms, motor_terms))
        link += rigid_torque(self.robot, theta[: self.n_inertial], segment.q, segment.v, segment.a)
        return link, motor, link + motor

    def spring_torque(self, theta: Array, segment: Segment) -> Array:
        """Returns the torque of the springs on the links: ``K d + D d' + preload``, shape (N, n) [N·m or N].

        Args:
            theta: Parameters, shape (p,).
            segment: With the motor side.
        """
        values, spring = self.term_columns(segment), self._owned["spring"]
        out = np.zeros((len(segment), self.n))
        for k in spring:
            out[:, self._axis_of[k]] += values[:, k] * theta[self.n_inertial + k]
        return out @ self.turns

    def as_dict(self) -> dict[str, Any]:
        """See :meth:`.DynamicModel.as_dict`."""
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


def motor_side(segment: Segment) -> tuple[Array, Array, Array]:
    """Returns the motor motion referred to the joints, as if they were rigid.

    Returns:
        Position, velocity, acceleration, shape (N, n) each [rad, rad/s, rad/s² or m, m/s, m/s²].

    Raises:
        ModelError: The segment has no motor side.
    """
    if segment.qm is None or segment.vm is None or segment.am is None:
        raise ModelError(
            "elastic joints need the motors' positions",
            where=segment.log or None,
            remedy="log them as qm_<joint> (before the gear), or set model.elastic: false",
        )
    return segment.qm, segment.vm, segment.am
