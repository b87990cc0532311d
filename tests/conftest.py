"""What several tests share: where the real logs are, and small robots made on the spot."""

import gc
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: the matrices are small, the workers many

import numpy as np
import pinocchio as pin
import pytest
import yaml

from urdf_ident import BaseParameters, DynamicModel, Recording, read_recording
from urdf_ident.logs.columns.layout import LogLayout
from urdf_ident.model.robot import Robot
from urdf_ident.simulation.plant import RigidPlant

DATA = Path(__file__).parents[2] / "shared" / "data"
gc.disable()  # a million objects of libraries come with the imports, each pass over them takes half a second


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real logs and certified numbers; tests that need it skip, visibly, where it is absent."""
    if not DATA.is_dir():
        pytest.skip("real logs and certified numbers (../shared/data) are not here")
    return DATA


def arm_urdf(axes: str = "zyyxyx", *, fixed_tip: bool = True, kind: str = "revolute") -> str:
    """A serial arm with asymmetric, physical links and, at its tip, a fixed tool.

    Args:
        axes: One letter a joint: the axis it turns about (or slides along).
        fixed_tip: Whether a tool is fixed to the last link.
        kind: Joint type of all joints.

    Returns:
        The URDF.
    """
    limit = "" if kind == "continuous" else '<limit lower="-2.6" upper="2.6" velocity="3" effort="200"/>'
    parts = ['<robot name="arm">', '<link name="base"/>']
    parent = "base"
    for k, axis in enumerate(axes, 1):
        vector = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}[axis]
        mass, size = 8.0 / k, 0.04 + 0.1 / k
        parts.append(
            f'<joint name="j{k}" type="{kind}"><parent link="{parent}"/><child link="l{k}"/>'
            f'<origin xyz="0.03 {0.02 * k} {0.3 / k + 0.1}" rpy="0.1 0 {0.2 * (k % 2)}"/><axis xyz="{vector}"/>{limit}</joint>'
        )
        parts.append(
            f'<link name="l{k}"><inertial><origin xyz="0.02 -0.01 {0.3 * size}" rpy="0.2 0 0.1"/><mass value="{mass}"/>'
            f'<inertia ixx="{mass * size**2}" ixy="{0.05 * mass * size**2}" ixz="0" iyy="{1.2 * mass * size**2}" '
            f'iyz="{0.02 * mass * size**2}" izz="{0.7 * mass * size**2}"/></inertial></link>'
        )
        parent = f"l{k}"
    if fixed_tip:
        parts.append(
            f'<joint name="flange" type="fixed"><parent link="{parent}"/><child link="tool"/><origin xyz="0 0 0.1"/></joint>'
            '<link name="tool"><inertial><origin xyz="0 0 0.05"/><mass value="0.8"/>'
            '<inertia ixx="0.002" ixy="0" ixz="0" iyy="0.0025" iyz="0" izz="0.001"/></inertial></link>'
        )
    return "\n".join([*parts, "</robot>"])


@pytest.fixture(scope="module")
def robot() -> Robot:
    """An arm of three joints."""
    return Robot.from_urdf(arm_urdf("zyx"))


@pytest.fixture
def read(tmp_path: Path, robot: Robot) -> Callable[..., Recording]:
    """Writes a text, bytes or lines as a log of the robot, and reads it."""

    def written(content: str | bytes | Sequence[str], layout: LogLayout | None = None, name: str = "run.csv") -> Recording:
        text = content if isinstance(content, str | bytes) else "\n".join(content)
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_recording(tmp_path / name, robot, layout or LogLayout())

    return written


@pytest.fixture(scope="module")
def model() -> DynamicModel:
    """A model of that arm with motors that two joints share."""
    from motion_samples import coupled_model

    return coupled_model()


@pytest.fixture(scope="module")
def base(model: DynamicModel) -> BaseParameters:
    return model.base()


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A true robot's logs, a URDF of it that is wrong, and a project that lists its friction."""
    from logs import make_log

    folder = tmp_path_factory.mktemp("cli")
    text = arm_urdf("zyx")
    robot = Robot.from_urdf(text)
    for seed in range(3):
        make_log(folder / f"log{seed}.csv", robot, seed=seed)

    def worse(match: re.Match[str]) -> str:
        return f'mass value="{1.4 * float(match[1]):.6g}"'

    (folder / "arm.urdf").write_text(re.sub(r'mass value="([^"]+)"', worse, text))
    (folder / "listed.yaml").write_text("model: {friction: [viscous, coulomb, offset]}\n")
    return folder


@pytest.fixture(scope="module")
def unexamined() -> Iterator[None]:
    """Leaves out the search for faults of logs, half the work of an identification, where tests ask for something else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("urdf_ident.pipeline.checked_logs.physics_findings", lambda robot, motions, *_: [[] for _ in motions])
        yield


def inertials(robot: Robot) -> np.ndarray:
    """The inertial parameters of all bodies as Pinocchio read them, shape (10·n,)."""
    return np.concatenate([inertia.toDynamicParameters() for inertia in list(robot.model.inertias)[1:]])


def rnea(model: pin.Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Inverse dynamics of every sample by Pinocchio, for configurations of its model; shape (N, n)."""
    data = model.createData()
    return np.array([pin.rnea(model, data, *row) for row in zip(q, v, a, strict=True)])


def load_script(path: str) -> ModuleType:
    """A program below ``scripts/`` as a module."""
    file = Path(__file__).parents[1] / "scripts" / path
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # programs import their neighbours
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def script(request: pytest.FixtureRequest) -> ModuleType:
    """The program that a file of tests names as its SCRIPT."""
    return load_script(request.module.SCRIPT)


def page_data(page: str) -> Any:
    """What a page with a 3D view carries for its script."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


def inverse_dynamics(plant: RigidPlant, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Joint torque of a motion without friction, rotors included."""
    return plant.mass(q) @ a + plant.bias(q, v)


def values_of(path: Path) -> dict[str, dict[str, float]]:
    """Joint → symbol → value of a side-car file."""
    joints = yaml.safe_load(path.read_text(encoding="utf-8"))["joints"]
    return {joint: {symbol: entry["value"] for symbol, entry in terms.items()} for joint, terms in joints.items()}
