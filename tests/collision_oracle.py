"""MuJoCo as an independent judge of distances: its own kinematics from the URDF, its own collision code."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from urdf_ident.model.robot import Robot

FAR = 5.0  # [m]; what is farther apart is not measured


class MujocoScene:
    """A robot's collision geometry among boxes, cylinders, spheres and planes.

    Args:
        robot: The robot; its URDF's collision geometry is primitive.
        objects: Name → (kind, size as in a world file, xyz), with axes along the root's.
    """

    def __init__(self, robot: Robot, objects: Mapping[str, tuple[str, list[float], list[float]]] | None = None) -> None:
        root = ElementTree.fromstring(robot.urdf)
        block = ElementTree.SubElement(root, "mujoco")
        ElementTree.SubElement(block, "compiler", fusestatic="false", discardvisual="true")
        spec = mujoco.MjSpec.from_string(ElementTree.tostring(root, encoding="unicode"))
        for name, (kind, size, xyz) in (objects or {}).items():
            geom = spec.worldbody.add_geom(name=name, pos=xyz)
            geom.type = {
                "box": mujoco.mjtGeom.mjGEOM_BOX,
                "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
                "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
                "plane": mujoco.mjtGeom.mjGEOM_PLANE,
            }[kind]
            half = {
                "box": lambda s: [x / 2 for x in s],
                "cylinder": lambda s: [s[0], s[1] / 2, 0.0],
                "sphere": lambda s: [s[0], 0.0, 0.0],
                "plane": lambda s: [0.0, 0.0, 1.0],
            }[kind]
            geom.size = half(size)
        self.model: Any = spec.compile()
        self.data = mujoco.MjData(self.model)
        base = next(name for name in robot.description.links if all(j.child != name for j in robot.description.joints.values()))
        self.owner = []
        for k in range(self.model.ngeom):
            own = self.model.geom(k).name
            body = self.model.body(int(self.model.geom_bodyid[k])).name
            self.owner.append(own if own in (objects or {}) else base if body == "world" else body)
        self.addresses = [self.model.jnt_qposadr[self.model.joint(name).id] for name in robot.joints]
        #: Of joints that mimic others: address, that of the other, multiplier and offset, as the URDF states them.
        self.followers = [
            (
                self.model.joint(name).qposadr[0],
                self.model.joint(joint.mimic).qposadr[0],
                joint.mimic_multiplier,
                joint.mimic_offset,
            )
            for name, joint in robot.description.joints.items()
            if name in robot.coupled
        ]

    def distances(self, q: np.ndarray, pairs: list[tuple[str, str]]) -> np.ndarray:
        """Smallest distance of the shapes of two owners, shape (N, P) [m]."""
        groups = [
            [(a, b) for a, x in enumerate(self.owner) if x == first for b, y in enumerate(self.owner) if y == second]
            for first, second in pairs
        ]
        out = np.full((len(q), len(pairs)), FAR)
        for k, configuration in enumerate(q):
            self.data.qpos[self.addresses] = configuration
            for place, other, multiplier, offset in self.followers:
                self.data.qpos[place] = multiplier * self.data.qpos[other] + offset
            mujoco.mj_kinematics(self.model, self.data)
            for p, group in enumerate(groups):
                out[k, p] = min(mujoco.mj_geomDistance(self.model, self.data, a, b, FAR, None) for a, b in group)
        return out
