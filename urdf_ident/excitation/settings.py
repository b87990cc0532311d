"""The `excitation:` section of a project file: kind and duration of the motion, and limits that override the URDF's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, PositiveFloat

from ..errors import ProjectError, check_named
from ..friction.law import LEAST_SPEEDS
from ..linalg import Array
from ..settings import Section

if TYPE_CHECKING:
    from ..model.dynamic_model import DynamicModel
    from ..model.robot import Robot
    from ..motion.collision.collisions import Collisions
    from ..motion.limits import Limits
    from .design import DesignedMotion, Progress
    from .problem import EarlierResult

Range = tuple[float, float]
PerJoint = float | list[float] | dict[str, float]
Ranges = Range | list[Range] | dict[str, Range]


class LimitsSection(Section):
    """For all joints, a list in the order of `robot.joints`, or a mapping by joint name; the URDF's where absent."""

    position: Ranges | None = Field(None, description="least and largest [rad or m]")
    velocity: PerJoint | None = Field(None, description="[rad/s or m/s]")
    acceleration: PerJoint | None = Field(
        None, description="[rad/s² or m/s²]; default: the velocity limit is reached within 0.5 s"
    )
    torque: PerJoint | None = Field(None, description="[N·m or N]")


class CircleSection(Section):
    """The motion of the family circle; Wu 2012's by default."""

    radius: PositiveFloat = Field(0.05, description="[m]")
    speed: PositiveFloat | None = Field(None, description="cruising speed [m/s]; default: 0.5, or less if limits require it")
    frame: str | None = Field(None, description="link that moves on it; default: the last link")
    normal: tuple[float, float, float] | None = Field(
        None, description="normal of its plane in the base frame; default: horizontal plane, or the plane of a planar arm"
    )
    turns: PositiveFloat = Field(3.0, description="number of turns")
    orientation: Literal["keep", "free"] | None = Field(
        None, description="orientation of the link; default: keep with six or more joints"
    )


class ExcitationSection(Section):
    """The motion that `design` makes."""

    duration: float = Field(20.0, gt=0, description="duration of one period [s]")
    harmonics: int = Field(5, description="number of harmonics of the Fourier series")
    criterion: Literal["auto", "D", "A", "E", "cond", "frobenius", "block"] = Field(
        "auto", description="auto: D, for small standard errors overall; with --after A, for what is still unknown"
    )
    family: Literal["modified_fourier", "fourier", "spline", "sweeps", "poses", "circle", "points"] = Field(
        "modified_fourier",
        description="all but fourier start and end at rest; that one has more freedom and needs ramps; sweeps: runs at "
        "constant speed both ways, for friction; poses: at rest, each reached from both sides, to weigh a payload; circle: of "
        "a link, to judge a result; points: via points with trapezoidal acceleration",
    )
    speeds: int = Field(5, ge=LEAST_SPEEDS, description="number of speeds in the sweeps of each joint; 8 for a long experiment")
    cruise: float = Field(
        0.5, gt=0, allow_inf_nan=False, description="time at each speed of a sweep, each way; 2 for a long experiment [s]"
    )
    circle: CircleSection = Field(CircleSection(), description="settings of the family circle")
    points: int | list[list[float]] = Field(
        11, description="via points of the family points, in the order of `robot.joints` [rad or m], or their number"
    )
    dwell: float = Field(0.0, ge=0, description="pause at each via point [s]")
    budget: float = Field(
        10.0, gt=0, allow_inf_nan=False, description="evaluations of the search, in seconds that they take on a usual core [s]"
    )
    seed: int = Field(0, ge=0, description="random seed of the starts")
    ramp: float = Field(2.0, ge=0, description="duration of each ramp of the family fourier [s]")
    periods: int = Field(1, description="number of repetitions of the motion")
    start: list[float] | dict[str, float] | None = Field(
        None, description="pose at both ends [rad or m]; default: found by the search"
    )
    end: list[float] | dict[str, float] | None = Field(
        None, description="different final pose, for modified_fourier and spline"
    )
    noise: PerJoint | None = Field(None, description="expected torque noise [N·m or N]; default: 1 % of the torque limit")
    scaling: Literal["none", "columns"] | None = Field(
        None, description="scaling of the regressor's columns; default: `columns` for A and E"
    )
    collisions: bool | Literal["auto"] = Field(
        "auto", description="avoid collisions; auto: if the URDF has collision geometry, or a world is given"
    )
    world: str | None = Field(None, description="world file: boxes, planes and meshes to keep away from, a box for the tool")
    clearance: float | None = Field(
        None,
        gt=0,
        description="smallest distance [m]; default: that of the world file, otherwise 0.01, at most 1 % of the reach",
    )
    limits: LimitsSection = Field(
        LimitsSection(), description="override the URDF's limits of position, velocity, acceleration, torque"
    )

    def design(
        self,
        model: DynamicModel,
        folder: Path | None = None,
        *,
        after: EarlierResult | None = None,
        progress: Progress | None = None,
    ) -> DesignedMotion:
        """Designs the motion of this section; lists of values follow the robot's `order`.

        Args:
            folder: Base folder of a relative path of the world file.
            after: An earlier result, see :func:`.design.design_excitation`; only searched motions depend on it.
            progress: See :func:`.design.design_excitation`.

        Raises:
            ProjectError: A list of the wrong length, or an unknown joint.
            LimitError: Limits leave no room, or see the function of the family.
            MissingFileError, ModelError: See :meth:`build_collisions`.
        """
        from ..motion.limits import prior_torque
        from .design import design_excitation  # needed only for a design
        from .paths import design_circle, design_points
        from .sweeps import bidirectional_experiment, design_poses

        robot = model.robot
        start, end, noise = (self._of_joints(robot, key) for key in ("start", "end", "noise"))
        shared: dict[str, Any] = {
            "limits": self.build_limits(robot),
            "collisions": self.build_collisions(robot, folder),
            "seed": self.seed,
        }
        if self.family == "sweeps":
            torque = prior_torque(robot)
            return bidirectional_experiment(home=start, count=self.speeds, cruise=self.cruise, torque=torque, **shared)
        if self.family == "poses":
            return design_poses(model, **shared)
        shared.update(start=start, budget=self.budget)
        if self.family == "circle":
            return design_circle(model, **self.circle.model_dump(), **shared)
        if self.family == "points":
            points: Any = self.points
            if not isinstance(points, int):
                listed = enumerate(points, 1)
                points = [_per_joint(robot, point, f"points, point {k},", np.zeros(robot.n)) for k, point in listed]
            return design_points(model, points=points, criterion=self.criterion, noise=noise, dwell=self.dwell, **shared)
        shape = self.model_dump(include={"duration", "criterion", "family", "harmonics", "periods", "ramp", "scaling"})
        return design_excitation(model, end=end, noise=noise, after=after, progress=progress, **shape, **shared)

    def _of_joints(self, robot: Robot, key: str) -> Array | None:
        """Returns the values of a key in model order, shape (n,), or None if it is not set."""
        value = getattr(self, key)
        if value is None:
            return None
        out = _per_joint(robot, value, key, np.full(robot.n, np.nan))
        if not np.isfinite(out).all():
            joint = robot.joints[int(np.argmin(np.isfinite(out)))]
            raise ProjectError(f"excitation.{key} has no value for joint '{joint}'", expected="one number per joint")
        return out

    def build_limits(self, robot: Robot) -> Limits:
        """Returns the URDF's limits with the overrides of this section.

        Raises:
            ProjectError: A list of the wrong length, or an unknown joint.
            LimitError: They leave no room.
        """
        from ..motion.limits import Limits

        stated = Limits.from_robot(robot)
        both = np.column_stack([stated.lower, stated.upper])
        position = _per_joint(robot, self.limits.position, "limits.position", both)
        magnitudes = {
            key: _per_joint(robot, getattr(self.limits, key), f"limits.{key}", getattr(stated, key))
            for key in ("velocity", "acceleration", "torque")
        }
        return Limits.from_robot(robot, lower=position[:, 0], upper=position[:, 1], **magnitudes)

    def build_collisions(self, robot: Robot, folder: Path | None = None) -> Collisions | None:
        """Finds the pairs whose clearance the motion must keep.

        Args:
            folder: Base folder of a relative path of the world file.

        Returns:
            The pairs; None if collisions are not checked.

        Raises:
            MissingFileError, ProjectError: See :func:`..motion.collision.world.read_world`.
            ModelError: See :func:`..motion.collision.find.find_collisions`.
        """
        from ..motion.collision.find import find_collisions, has_collision_geometry

        if self.collisions is False or (self.collisions == "auto" and self.world is None and not has_collision_geometry(robot)):
            return None
        from ..motion.collision.world import read_world

        world = None if self.world is None else read_world((folder or Path()) / Path(self.world).expanduser())
        return find_collisions(robot, world, clearance=self.clearance)


def _per_joint(robot: Robot, value: Any, key: str, default: Array) -> Array:
    """Converts a number, a range, a list or a mapping to the shape of ``default``, in model order."""
    out = np.array(default, dtype=float)
    if value is None:
        return out
    if isinstance(value, Mapping):
        for joint, number in value.items():
            check_named("joint", joint, robot.joints, ProjectError, f"excitation.{key}")
            out[robot.joints.index(joint)] = number
        return out
    given = np.asarray(value, dtype=float)
    if given.ndim < out.ndim:
        out[:] = given
        return out
    if given.shape != out.shape:
        raise ProjectError(
            f"excitation.{key} has the wrong length", got=len(given), expected=f"{robot.n}: {', '.join(robot.order)}"
        )
    return np.asarray(given[robot.places_in_order])
