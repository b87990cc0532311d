"""The robot: a URDF as a Pinocchio model without meshes, with the names of its joints and links.

Two pitfalls are handled here (docs/architecture.md). Pinocchio orders sibling joints alphabetically, so everything is
matched by joint *name*. Links behind fixed (or locked) joints are lumped into the body that moves them: each
:class:`Body` stores its links and their placements, so that export can separate them again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pinocchio as pin

from ..errors import ModelError, UrdfError, check_known, nearest
from ..linalg import Array, BoolArray, IntArray, shaped
from .description import read_description
from .inertia import transform
from .locked_joints import Follower, choose_joints, reduced_model
from .urdf import Description, parse_urdf

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
#: Largest differences of joint placements [m, or entries of a rotation] and of gravity [m/s²] within one robot.
SAME_PLACE, SAME_GRAVITY = 1e-6, 1e-3
#: Largest acceptable gravity [m/s²]; anything above is a mistake in units.
MOST_GRAVITY = 100.0


@dataclass(frozen=True)
class LumpedLink:
    """A URDF link that moves with a body; ``rotation`` (3, 3) and ``translation`` (3,) [m] place it in the body.

    ``theta``: its inertial parameters as written, in the body's frame, shape (10,); zero without ``<inertial>``.
    """

    name: str
    rotation: Array
    translation: Array
    theta: Array


@dataclass(frozen=True)
class Body:
    """The body that one joint moves, named after the joint's child link; ``links[0]`` is that link."""

    name: str
    joint: str
    links: tuple[LumpedLink, ...]

    @property
    def theta(self) -> Array:
        """Its inertial parameters as stated in the URDF, lumped links summed, shape (10,); not repaired."""
        return np.asarray(sum((link.theta for link in self.links), np.zeros(10)))

    @property
    def carrier(self) -> LumpedLink:
        """The link that absorbs a change of the body; all others keep their URDF inertials.

        It is the body's own link if it has a mass, otherwise the heaviest of its fixed children: some URDFs attach the
        actual link to a massless frame.
        """
        return self.links[0] if self.links[0].theta[0] > 0 else max(self.links, key=lambda link: float(link.theta[0]))


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot whose joints are revolute, continuous or prismatic.

    Build it with :meth:`from_urdf`. Joint-space arrays are ordered like :attr:`joints` (Pinocchio's order). A joint that mimics
    another one is no joint of these arrays: its body moves with the other joint's coordinate, ``q_tree = G q + h``. What
    belongs to the tree of bodies (:attr:`bodies`, :attr:`parents`, :attr:`placements`, …) has an entry for it.

    Attributes:
        name: The ``<robot name>``.
        urdf: The source text, byte for byte but for numbers that readers would read differently (:func:`.canonical_urdf`).
        path: Its origin, for messages.
        description: The links and joints as written.
        locked: Joint name → position [rad or m] of the locked joints.
        order: Joint names in the order of the index lists of a project file.
        model: The Pinocchio model of the tree, locked joints removed and coupled ones independent. Do not change it.
        coupled: Names of joints that mimic others → the independent joint that they follow.
        notes: What was read otherwise than written, and joints that were locked unasked.
    """

    name: str
    urdf: str
    path: str
    description: Description
    locked: Mapping[str, float]
    order: tuple[str, ...]
    model: pin.Model
    coupled: Mapping[str, Follower]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        locked = f", {len(self.locked)} locked" if self.locked else ""
        return f"<Robot {self.name}: {self.n} joints{locked} ({', '.join(self.joints[:8])}{', …' if self.n > 8 else ''})>"

    @classmethod
    def from_urdf(
        cls,
        source: str | Path,
        *,
        joints: Sequence[str] | None = None,
        lock: Mapping[str, float] | None = None,
        gravity: Sequence[float] | Array = STANDARD_GRAVITY,
        mimic: str = "lock",
    ) -> Robot:
        """Reads a robot from a file or its text: URDF, SDFormat, MJCF (by MuJoCo) or xacro (by the package xacro).

        Args:
            source: Path of the file, or its XML text.
            joints: Names of the joints to identify, in the order of the log's index lists; all other moving
                joints are locked at ``lock`` or, by default, at zero clamped to their limits.
            lock: Joint name → position [rad or m] of joints that did not move during the logs.
            gravity: Acceleration of gravity in the base frame, 3 numbers [m/s²].
            mimic: What becomes of joints that mimic others: ``"lock"``, or ``"identify"``: they follow the joint they mimic.

        Raises:
            UrdfError: The URDF is unreadable or not physical (see :func:`parse_urdf`).
            ModelError: A name is unknown, a joint type is unsupported, a joint mimics one that does not move, or nothing moves.
        """
        check_known("treatment of mimic joints", mimic, ("lock", "identify"), ModelError)
        text, where, rewritten = read_description(source)
        description = parse_urdf(text, where)
        locked, order, coupled, locks = choose_joints(description, joints, lock or {}, where, mimic)
        model = reduced_model(text, where, locked)
        model.gravity.linear = _vector3(gravity)
        robot = cls(description.name, text, where, description, locked, order, model, coupled, (*rewritten, *locks))
        # urdfdom drops inertials that it cannot parse
        for inertia, body in zip(list(model.inertias)[1:], robot.bodies, strict=True):
            stated = body.theta
            if not stated[0] > 0:  # Pinocchio keeps no first moments without a mass
                continue
            read = np.asarray(inertia.toDynamicParameters())
            if not np.allclose(read, stated, rtol=1e-6, atol=1e-6 * np.abs(stated).max()):
                raise UrdfError(
                    f"Pinocchio reads another inertial of body '{body.name}'",
                    where=where,
                    got=f"{read[0]:g} kg",
                    expected=f"{stated[0]:g} kg",
                    remedy="write plain decimal numbers in its links' <inertial>",
                )
        return robot

    def of_urdf(self, source: str | Path) -> Robot:
        """Reads another URDF with this robot's choice of joints, locked positions and gravity.

        Args:
            source: As for :meth:`from_urdf`.

        Raises:
            UrdfError: As :meth:`from_urdf`.
            ModelError: As :meth:`from_urdf`.
        """
        return Robot.from_urdf(source, joints=self.order, lock=self.locked, gravity=self.gravity, mimic=self.mimic)

    def with_gravity(self, gravity: Sequence[float] | Array) -> Robot:
        """Returns the same robot with another gravity.

        Args:
            gravity: Acceleration of gravity in the base frame, 3 numbers [m/s²].

        Raises:
            ModelError: They are not three finite numbers.
        """
        model = self.model.copy()
        model.gravity.linear = _vector3(gravity)
        return replace(self, model=model)

    def of_bodies(self, bodies: Sequence[int]) -> Robot:
        """Returns the robot of some bodies, the joints of all others at zero.

        Args:
            bodies: Their indices; those that coupled joints move together.
        """
        others = [k + 1 for k in range(len(self.tree_joints)) if k not in bodies]
        if not others:
            return self
        model = pin.buildReducedModel(self.model, others, pin.neutral(self.model))
        return replace(self, model=model, coupled={name: self.coupled[name] for name in self.coupled if name in model.names})

    @property
    def n(self) -> int:
        """Number of independent joints (degrees of freedom)."""
        return len(self.joints)

    @property
    def n_inertial(self) -> int:
        """Number of inertial parameters: ten per body."""
        return 10 * len(self.tree_joints)

    @property
    def mimic(self) -> str:
        """The argument of :meth:`from_urdf`."""
        return "identify" if self.coupled else "lock"

    @property
    def gravity(self) -> Array:
        """Acceleration of gravity in the base frame, shape (3,) [m/s²]."""
        return np.array(self.model.gravity.linear)

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Names of the independent joints in Pinocchio's order, the order of every joint-space array."""
        return tuple(name for name in self.tree_joints if name not in self.coupled)

    @cached_property
    def tree_joints(self) -> tuple[str, ...]:
        """Names of all joints that move a body, in Pinocchio's order: that of :attr:`bodies`."""
        return tuple(self.model.names)[1:]

    @cached_property
    def place_in_tree(self) -> tuple[int, ...]:
        """For each joint, the index of the body that it moves first."""
        return tuple(self.tree_joints.index(name) for name in self.joints)

    @cached_property
    def coupling(self) -> Array:
        """G: velocities of all joints of the tree per unit velocity of the independent ones, shape (n_bodies, n)."""
        G = np.zeros((len(self.tree_joints), self.n))
        for row, name in zip(G, self.tree_joints, strict=True):
            leader, multiplier, _ = self.coupled.get(name, Follower(name, 1.0, 0.0))
            row[self.joints.index(leader)] = multiplier
        return G

    def spread(self, rates: Array) -> Array:
        """Velocities or accelerations of all joints of the tree, shape (…, n_bodies).

        Args:
            rates: Those of the independent joints, shape (…, n).
        """
        return np.asarray(rates @ self.coupling.T) if self.coupled else rates

    def positions_in_tree(self, q: Array) -> Array:
        """Positions of all joints of the tree, shape (…, n_bodies) [rad or m].

        Args:
            q: Those of the independent joints, shape (…, n).
        """
        return self.spread(q) + self.starts if self.coupled else q

    @cached_property
    def starts(self) -> Array:
        """Positions of all joints of the tree where the independent joints are at zero, shape (n_bodies,) [rad or m]."""
        return np.array([self.coupled[name].offset if name in self.coupled else 0.0 for name in self.tree_joints])

    def in_tree(self, values: Array) -> Array:
        """Values of the independent joints for all joints of the tree, shape (n_bodies,), with zeros for coupled ones.

        Args:
            values: Shape (n,).
        """
        out = np.zeros(len(self.tree_joints))
        out[list(self.place_in_tree)] = values
        return out

    def reduced(self, torque: Array) -> Array:
        """Torques or rows of the independent joints, shape (…, n): ``Gᵀ`` times those of all joints of the tree.

        Args:
            torque: Shape (…, n_bodies) [N·m or N].
        """
        return np.asarray(torque @ self.coupling) if self.coupled else torque

    @cached_property
    def places_in_order(self) -> IntArray:
        """Position of each joint in :attr:`order`, shape (n,): a list in that order, indexed by it, is in model order."""
        return np.array([self.order.index(name) for name in self.joints], dtype=np.intp)

    @cached_property
    def sha256(self) -> str:
        """Hash of the source text."""
        return hashlib.sha256(self.urdf.encode("utf-8")).hexdigest()

    @cached_property
    def prismatic(self) -> BoolArray:
        """Shape (n,): True where the joint is prismatic."""
        return self.slides[list(self.place_in_tree)]

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """For each joint of the tree, the index of the body that carries it, −1 for the base; parents come first."""
        return tuple(int(parent) - 1 for parent in list(self.model.parents)[1:])

    def carrier(self, j: int) -> int:
        """Returns the index of the joint whose body carries another one, −1 for the base or the body of a coupled joint.

        Args:
            j: Index of the joint that is carried.
        """
        parent = self.parents[self.place_in_tree[j]]
        return self.place_in_tree.index(parent) if parent in self.place_in_tree else -1

    @cached_property
    def placements(self) -> Array:
        """Placement of each joint in its parent at position zero, shape (n_bodies, 4, 4) [m]."""
        return np.array([placement.homogeneous for placement in list(self.model.jointPlacements)[1:]])

    @cached_property
    def offsets(self) -> Array:
        """Distance of each joint from its parent at position zero, shape (n_bodies,) [m]."""
        return np.asarray(np.linalg.norm(self.placements[:, :3, 3], axis=1))

    @cached_property
    def twists(self) -> Array:
        """Unit twist (linear, angular) of each joint in its own frame, shape (n_bodies, 6)."""
        return np.array([np.asarray(joint.createData().S, dtype=float).ravel() for joint in list(self.model.joints)[1:]])

    @cached_property
    def axes(self) -> Array:
        """Unit vector along the axis of each joint in its own frame, shape (n_bodies, 3)."""
        return np.asarray(self.twists[:, :3] + self.twists[:, 3:])

    @cached_property
    def slides(self) -> BoolArray:
        """Shape (n_bodies,): True where a joint of the tree is prismatic."""
        return np.asarray(self.twists[:, :3].any(axis=1))

    @cached_property
    def continuous(self) -> BoolArray:
        """Shape (n,): True where the joint is continuous (two numbers in Pinocchio's q)."""
        return np.array([self.model.joints[k + 1].nq == 2 for k in self.place_in_tree])

    def limit(self, key: str) -> Array:
        """Returns one kind of limit per joint, as stated in the URDF.

        Args:
            key: ``"lower"``, ``"upper"`` [rad or m], ``"velocity"`` [rad/s or m/s] or ``"effort"`` [N·m or N].

        Returns:
            Shape (n,); ±inf where the URDF states none (a continuous joint has no position limits). Zero
            velocity or effort means "not stated", as URDF exporters write it, and so do two position limits of zero.
        """
        default = -math.inf if key == "lower" else math.inf
        stated = [self.description.joints[name].limits for name in self.joints]
        values = np.array([limits.get(key, default) for limits in stated])
        if key in ("lower", "upper"):
            blank = [limits.get("lower") == limits.get("upper") == 0.0 for limits in stated]
            return np.where(self.continuous | np.array(blank, dtype=bool), default, values)
        return np.where(values > 0, values, np.inf)

    def difference(self, other: Robot) -> str | None:
        """Compares the joints of two robots, their placements and gravity; links and their inertias may differ.

        Args:
            other: The other robot.

        Returns:
            The first difference in words; None if there is none.
        """
        if self.joints != other.joints:
            apart = sorted(set(self.joints) ^ set(other.joints))
            return f"joint '{apart[0]}' is in one only" if apart else "its joints are in another order"
        if self.tree_joints != other.tree_joints or self.coupled != other.coupled:
            return "its joints mimic others in another way"
        for j, joint in enumerate(self.tree_joints):
            if self.parents[j] != other.parents[j] or not np.allclose(self.twists[j], other.twists[j]):
                return f"joint '{joint}' is of another kind"
            moved = np.abs(self.placements[j] - other.placements[j]).max()
            if moved > SAME_PLACE:
                return f"joint '{joint}' sits {moved:.2g} m or rad elsewhere"
        same = np.allclose(self.gravity, other.gravity, atol=SAME_GRAVITY)
        return None if same else "gravity comes from another side"

    def index(self, joint: str) -> int:
        """Returns the index of a joint in joint-space arrays.

        Args:
            joint: Joint name.

        Returns:
            Index into :attr:`joints`.

        Raises:
            ModelError: No such joint, or it is locked.
        """
        if joint not in self.joints:
            state = "is locked" if joint in self.locked else "does not exist"
            raise ModelError(f"joint '{joint}' {state}", where=self.path, remedy=nearest(joint, self.joints))
        return self.joints.index(joint)

    def configuration(self, q: Array) -> Array:
        """Converts joint positions to Pinocchio's configuration: a continuous joint becomes (cos, sin), shape (N, nq).

        Args:
            q: Joint positions, shape (N, n) [rad or m].
        """
        return self.posture(shaped("q", q, ("N", self.n)))

    def posture(self, q: Array) -> Array:
        """As :meth:`configuration`, without checks, also for a single sample: shape (…, n) → (…, nq)."""
        q = self.positions_in_tree(q)
        if self._places is None:
            return q
        place, turns = self._places
        out = np.empty((*q.shape[:-1], self.model.nq))
        out[..., place] = np.where(turns, np.cos(q), q)
        out[..., place[turns] + 1] = np.sin(q[..., turns])
        return out

    @cached_property
    def _places(self) -> tuple[IntArray, BoolArray] | None:
        """Where Pinocchio's q holds each joint of the tree, and which are continuous (two numbers); None if none is."""
        if self.model.nq == self.model.nv:
            return None
        joints = list(self.model.joints)[1:]
        return np.array([joint.idx_q for joint in joints]), np.array([joint.nq == 2 for joint in joints])

    @cached_property
    def link_placements(self) -> Mapping[str, tuple[int, Array]]:
        """Link → joint that carries it (−1 for fixed links), and its placement in that joint's frame, shape (4, 4) [m]."""
        frames = [frame for frame in self.model.frames if frame.type == pin.FrameType.BODY]
        return {frame.name: (int(frame.parentJoint) - 1, np.array(frame.placement.homogeneous)) for frame in frames}

    @cached_property
    def bodies(self) -> tuple[Body, ...]:
        """The moving bodies, one per joint in the order of :attr:`tree_joints`, each with its lumped links."""
        links_of: list[list[LumpedLink]] = [[] for _ in self.tree_joints]
        for name, (joint, placement) in self.link_placements.items():
            if joint >= 0:
                theta, rotation, translation = self.description.links[name].theta, placement[:3, :3], placement[:3, 3]
                stated = np.zeros(10) if theta is None else transform(theta, rotation, translation)
                links_of[joint].append(LumpedLink(name, rotation.copy(), translation.copy(), stated))
        bodies = []
        for name, links in zip(self.tree_joints, links_of, strict=True):
            child = self.description.joints[name].child
            links.sort(key=lambda link, child=child: link.name != child)  # type: ignore[misc]
            bodies.append(Body(child, name, tuple(links)))
        return tuple(bodies)

    @cached_property
    def inertials(self) -> Array:
        """Inertial parameters of the bodies as stated in the URDF, shape (n_bodies, 10), about the joint frames' origins."""
        inertials = np.array([body.theta for body in self.bodies])
        inertials.flags.writeable = False
        return inertials

    def reach(self, *, with_strokes: bool = True) -> float:
        """Returns the length of the longest chain of links, joint to joint.

        Args:
            with_strokes: Whether the strokes of prismatic joints count.

        Returns:
            [m]; 0.5 if all joints coincide.
        """
        stroke = with_strokes * np.max(
            np.abs(np.nan_to_num([self.limit("lower"), self.limit("upper")], posinf=0.0, neginf=0.0)), axis=0
        )
        steps = self.offsets + np.abs(self.coupling) @ np.where(self.prismatic, stroke, 0.0)
        lengths = [0.0]
        for parent, step in zip(self.parents, steps, strict=True):
            lengths.append(lengths[parent + 1] + float(step))
        frames = self.model.frames
        longest = max(lengths[frame.parentJoint] + float(np.linalg.norm(frame.placement.translation)) for frame in frames)
        return longest if longest > 1e-3 else 0.5

    @cached_property
    def tip(self) -> int:
        """Index of the last body of the longest chain of joints; of several, the last one."""
        return max(range(len(self.tree_joints)), key=lambda j: (len(self.model.supports[j + 1]), j))

    @property
    def last_link(self) -> str:
        """The link at the end of that chain: the last one fixed to the last body, e.g. a tool tip."""
        return self.bodies[self.tip].links[-1].name

    @cached_property
    def subtrees(self) -> tuple[tuple[int, ...], ...]:
        """For each joint, the indices of the bodies that it moves (its own first)."""
        moved = []
        for place, rates in zip(self.place_in_tree, self.coupling.T, strict=True):
            bodies = {int(k) - 1 for j in np.flatnonzero(rates) for k in self.model.subtrees[int(j) + 1]}
            moved.append((place, *sorted(bodies - {place})))
        return tuple(moved)


def _vector3(values: Sequence[float] | Array) -> Array:
    vector = shaped("gravity", values, (3,))
    if not np.isfinite(vector).all():
        raise ModelError("gravity is not finite", got=list(values))
    if np.abs(vector).max() > MOST_GRAVITY:
        raise ModelError(
            "gravity is out of proportion",
            got=list(values),
            expected=f"at most {MOST_GRAVITY:g} m/s²",
            remedy="robot.gravity is in m/s²: [0, 0, -9.81]",
        )
    return vector
