"""MuJoCo as an independent judge: loads a model strictly and computes its inverse dynamics by joint name."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin

from urdf_ident.model.robot import Robot


def load_urdf(text: str, *, fuse: bool = True) -> Any:
    """Compiles a URDF without its geometry (mesh files are absent)."""
    root = ElementTree.fromstring(text.lstrip("\ufeff").replace(' xmlns="http://www.ros.org"', "").encode())
    for link in root.iter("link"):
        for tag in ("visual", "collision"):
            for node in link.findall(tag):
                link.remove(node)
    for tag in ("gazebo", "transmission", "material"):
        for node in root.findall(tag):
            root.remove(node)
    block = ElementTree.SubElement(root, "mujoco")
    ElementTree.SubElement(block, "compiler", fusestatic="true" if fuse else "false", balanceinertia="false")
    return mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))


def inverse_dynamics(model: Any, joints: Sequence[str], gravity: np.ndarray, q: Any, v: Any, a: Any, fixed: Any = None) -> Any:
    """Joint torques, shape (N, n), without damping, friction or limits; ``fixed``: joint name → position of others."""
    model.opt.gravity[:] = gravity
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    for flag in ("mjDSBL_PASSIVE", "mjDSBL_SPRING", "mjDSBL_DAMPER"):
        model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, flag, 0))
    model.dof_damping[:] = 0.0
    data = mujoco.MjData(model)
    positions = [model.jnt_qposadr[model.joint(name).id] for name in joints]
    velocities = [model.jnt_dofadr[model.joint(name).id] for name in joints]
    for name, value in (fixed or {}).items():
        data.qpos[model.jnt_qposadr[model.joint(name).id]] = value
    tau = np.empty(q.shape)
    for k in range(len(q)):
        data.qpos[positions], data.qvel[velocities], data.qacc[velocities] = q[k], v[k], a[k]
        mujoco.mj_inverse(model, data)
        tau[k] = data.qfrc_inverse[velocities]
    return tau


def states(robot: Robot, count: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Random states of a robot, shape (count, n) each."""
    rng = np.random.default_rng(seed)
    q, v, a = (scale * rng.uniform(-1, 1, (count, robot.n)) for scale in (2.0, 3.0, 10.0))
    return q, v, a


def regressor_torques(robot: Robot, theta: np.ndarray, q: Any, v: Any, a: Any) -> np.ndarray:
    """What ``theta`` means, from the source robot's regressor, shape (N, n)."""
    data = robot.model.createData()
    rows = zip(robot.configuration(q), v, a, strict=True)
    tau = [pin.computeJointTorqueRegressor(robot.model, data, x, y, z) @ theta for x, y, z in rows]
    return np.reshape(tau, q.shape)  # Pinocchio drops the row axis of a single joint


def difference(tau: np.ndarray, reference: np.ndarray) -> float:
    """Largest error of any joint, relative to that joint's largest torque."""
    size = np.abs(reference).max(axis=0)
    return float((np.abs(tau - reference).max(axis=0) / np.maximum(size, 1e-6 * size.max())).max())
