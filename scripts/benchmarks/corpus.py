"""Published robots: every export is read by Pinocchio, by MuJoCo and by this program's own strict rules, with equal dynamics.

python scripts/benchmarks/corpus.py FOLDER... [--masses 1,1e-8,1e4] [--most 1000]

FOLDER is searched for ``*.urdf`` (install or unpack packages with robots there: example-robot-data, pybullet, rtb-data, …; none
of them is part of this project). Each robot's inertials are written as URDF and MJCF as if they had been identified. Masses and
inertias can be multiplied, for very small and very large robots. Joints that mimic are locked; a robot with other
kinds of joints is counted as not supported. Reported: refusals by reader, and relative
differences of inverse dynamics.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import mujoco
import numpy as np
import pinocchio as pin
from mujoco_oracle import difference, inverse_dynamics, regressor_torques, states

from urdf_ident.errors import UrdfIdentError
from urdf_ident.export.mjcf import write_mjcf
from urdf_ident.export.split import physical_bodies
from urdf_ident.export.strict_mjcf import mjcf_violations
from urdf_ident.export.urdf import fix_urdf, torque_difference, violations, write_urdf
from urdf_ident.files.splice import Splicer
from urdf_ident.model.prior import lumped_inertials
from urdf_ident.model.robot import Robot
from urdf_ident.model.urdf import MOVING_TYPES, parse_urdf


def opened(text: str, path: Path) -> Robot:
    """The robot, repaired where it is not physically consistent, with mimicking joints locked."""
    fixed, _ = fix_urdf(text, str(path))
    joints = parse_urdf(fixed).joints.items()
    mimics = {name: 0.0 for name, joint in joints if joint.mimic is not None and joint.type in MOVING_TYPES}
    robot = Robot.from_urdf(fixed, lock=mimics)
    object.__setattr__(robot, "path", str(path))
    return robot


def without_meshes(text: str) -> str:
    """A URDF without mesh geometry, whose files MuJoCo would look for elsewhere."""
    splicer = Splicer(text)
    for link in splicer.root.all("link"):
        for part in (*link.all("visual"), *link.all("collision")):
            if any(shape.tag == "mesh" for item in part.all("geometry") for shape in item.children):
                splicer.remove(part)
    return splicer.text()


def scaled(text: str, factor: float) -> str:
    """All masses and inertias multiplied."""
    splicer = Splicer(text)
    for link in splicer.root.all("link"):
        for inertial in link.all("inertial"):
            for node in (*inertial.all("mass"), *inertial.all("inertia")):
                for name, attribute in node.attributes.items():
                    splicer.set(node, name, repr(factor * float(attribute.value)))
    return splicer.text()


def judge(path: Path, factor: float, folder: Path) -> list[str]:
    """Everything that is wrong with the exports of one robot; raises what makes the robot itself unusable."""
    text = path.read_text(encoding="utf-8-sig")
    robot = opened(text if factor == 1.0 else scaled(text, factor), path)
    theta, _ = physical_bodies(robot, lumped_inertials(robot).ravel(), repair=True)
    wrong = []
    for kind, write in (("URDF", write_urdf), ("MJCF", write_mjcf)):
        target = folder / f"robot.{'urdf' if kind == 'URDF' else 'xml'}"
        try:
            write(target, robot, theta, repair=True)
        except UrdfIdentError as error:
            wrong.append(f"{kind} not written: {error}")
            continue
        written = target.read_text()
        own = [str(item) for item in violations(written)] if kind == "URDF" else mjcf_violations(written)
        wrong += [f"{kind} refused by own rules: {item}" for item in own]
        try:
            if kind == "URDF":
                model = mujoco.MjModel.from_xml_string(without_meshes(written))
            else:
                model = mujoco.MjModel.from_xml_path(str(target))
        except (ValueError, RuntimeError) as error:
            wrong.append(f"{kind} refused by MuJoCo: {' '.join(str(error).split())[:150]}")
            continue
        if kind == "URDF":
            again = Robot.from_urdf(written, joints=robot.order, lock=robot.locked, gravity=robot.model.gravity.linear)
            apart = torque_difference(robot, theta, again.model)
            if not apart <= 1e-9:
                wrong.append(f"URDF differs by {apart:.2g}")
        else:
            q, v, a = states(robot, 10)
            model.dof_armature[:] = 0.0
            tau = inverse_dynamics(model, robot.joints, robot.model.gravity.linear, q, v, a)
            apart = difference(tau, regressor_torques(robot, theta, q, v, a))
            if not apart <= 1e-6:
                wrong.append(f"MJCF differs by {apart:.2g}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--masses", default="1")
    parser.add_argument("--most", type=int, default=10_000)
    options = parser.parse_args()
    paths, seen = [], set()
    for folder in options.folders:
        for path in sorted(folder.rglob("*.urdf")):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if digest not in seen:
                seen.add(digest)
                paths.append(path)
    for factor in map(float, options.masses.split(",")):
        counts: Counter[str] = Counter()
        unusable: Counter[str] = Counter()
        with tempfile.TemporaryDirectory() as place:
            for number, path in enumerate(paths[: options.most], 1):
                if number % 20 == 0:
                    print(f"{number} of {len(paths)} files, {dict(counts)}", file=sys.stderr, flush=True)
                try:
                    wrong = judge(path, factor, Path(place))
                except (UrdfIdentError, UnicodeDecodeError, ValueError) as error:
                    unusable[str(error).split(": ", 1)[-1].split("'")[0][:60]] += 1
                    if not isinstance(error, UrdfIdentError):
                        print(f"{path}: {type(error).__name__} {str(error)[:150]}")
                    continue
                counts["robots"] += 1
                counts["robots with a wrong export"] += bool(wrong)
                for item in wrong:
                    counts[item.split(":")[0].split(" by 0")[0][:40]] += 1
                    print(f"{path}: {item[:300]}", flush=True)
        print(f"masses x {factor:g}: {dict(counts)}; not supported: {sum(unusable.values())} {dict(unusable)}", flush=True)
    print(f"Pinocchio {pin.__version__}, MuJoCo {mujoco.__version__}, NumPy {np.__version__}")


if __name__ == "__main__":
    main()
