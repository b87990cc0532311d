"""One class is one law: what estimator, plant, online callable and files make of it agrees, for a law made up here too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import yaml
from conftest import arm_urdf, inertials, values_of
from logs import fourier

from urdf_ident import DynamicModel, Recording, Robot
from urdf_ident.compensation.online import OnlineModel
from urdf_ident.errors import ModelError
from urdf_ident.estimation.friction_selection.selection import select_friction
from urdf_ident.export.sidecar import write_sidecar
from urdf_ident.friction import (
    FRICTION,
    AxisScale,
    Coulomb,
    Dahl,
    Law,
    Presliding,
    Relaxing,
    Shape,
    Sliding,
    friction_from_mapping,
)
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_logs
from urdf_ident.simulation.truth import rotors_and_friction
from urdf_ident.statistics.accumulate import build_statistics

ROBOT = Robot.from_urdf(arm_urdf("zyx"))


@pytest.fixture
def new_law() -> Iterator[type[Law]]:
    """A law that the package has never heard of; this class is all there is of it."""

    @dataclass(frozen=True)
    class Saturating(Law):
        """``Fq · v/(|v| + half)``: a lubricant that shears off."""

        half: float = 0.5
        name: ClassVar[str] = "saturating"
        symbols: ClassVar[tuple[str, ...]] = ("Fq",)
        nonnegative: ClassVar[tuple[bool, ...]] = (True,)
        shapes: ClassVar = {"half": Shape("speed", "speed at which half of it is reached")}
        formula: ClassVar[str] = "Fq*v/(|v| + half)"

        def basis(self, motion: Sliding) -> Sequence[np.ndarray]:
            return (motion.v / (np.abs(motion.v) + self.half),)

        def units(self, prismatic: bool) -> tuple[str, ...]:
            return ("N",) if prismatic else ("N·m",)

        @classmethod
        def variants(cls, scale: AxisScale) -> Sequence[Law]:
            return [cls(half=factor * scale.speed) for factor in (0.15, 0.3, 0.6)]

    yield Saturating
    del FRICTION["saturating"]


def saturating_logs(half: float) -> list[Recording]:
    """Two logs whose joints have 8 N·m of the new law over a little viscous friction; noise 0.05 N·m."""
    logs, model = [], DynamicModel(ROBOT, friction="none", rotor_inertia=False)
    for seed in range(2):
        t, q, v, a = fourier(ROBOT.n, 12.0, 100.0, seed, amplitude=1.2)
        theta = inertials(ROBOT)
        tau = model.torque(theta, q, v, a) + 8.0 * v / (np.abs(v) + half) + 0.5 * v
        tau = tau + 0.05 * np.random.default_rng(seed).standard_normal(tau.shape)
        logs.append(Recording(f"log{seed}", ROBOT.joints, t, q, effort=tau))
    return logs


def test_a_new_law_is_one_class(new_law: type[Law], tmp_path: Path) -> None:
    """Project file, estimator, friction search, plant, online callable, JSON and joints.yaml take it as it is."""
    model = DynamicModel(ROBOT, friction=["viscous", {"term": "saturating", "half": 0.2}], rotor_inertia=False)
    rng = np.random.default_rng(0)
    q, v, a = rng.standard_normal((3, 5, 3))
    theta = rng.uniform(0.5, 2.0, len(model.parameters))
    own = dict(zip(model.names, theta, strict=True))
    rigid = DynamicModel(ROBOT, friction="none", rotor_inertia=False).torque(theta[: model.n_inertial], q, v, a)
    formula = np.column_stack(
        [own[f"Fv_{j}"] * v[:, k] + own[f"Fq_{j}"] * v[:, k] / (np.abs(v[:, k]) + 0.2) for k, j in enumerate(ROBOT.joints)]
    )
    np.testing.assert_allclose(model.torque(theta, q, v, a) - rigid, formula, atol=1e-10)
    online = OnlineModel(model, theta)
    np.testing.assert_allclose([online(*one) for one in zip(q, v, a, strict=True)], rigid + formula, atol=1e-10)
    _, plant = rotors_and_friction(model, theta)
    np.testing.assert_allclose(plant.torque(v[0], np.sign(v[0]), np.zeros(3)), formula[0], atol=1e-12)
    assert DynamicModel.from_dict(model.as_dict()).fingerprint == model.fingerprint
    data = yaml.safe_load(write_sidecar(tmp_path / "joints.yaml", model, theta).read_text(encoding="utf-8"))
    entry = data["joints"][ROBOT.joints[0]]["Fq"]
    assert (entry["term"], entry["half"], entry["formula"]) == ("saturating", 0.2, "Fq*v/(|v| + half)")
    assert values_of(tmp_path / "joints.yaml")[ROBOT.joints[0]]["Fq"] == own[f"Fq_{ROBOT.joints[0]}"]
    read = friction_from_mapping({"saturating": {"Fq": [1.0, 2.0, 3.0], "half": 0.2}})
    np.testing.assert_allclose(read[0].torque(Sliding(v[0], slip=np.sign(v[0]))), [1, 2, 3] * v[0] / (np.abs(v[0]) + 0.2))


def test_the_search_finds_a_new_law(new_law: type[Law]) -> None:
    logs = saturating_logs(0.4)
    model = DynamicModel(ROBOT, friction="auto", rotor_inertia=False)
    prepared = prepare_logs(logs, ROBOT, model.drive, SignalConfig())
    motion = [part for log in prepared for part in log.segments]
    found = select_friction(model, partial(build_statistics, logs=prepared), motion)
    chosen = {(item.axis, item.term.name) for item in found.model.terms}
    assert {(axis, "saturating") for axis in range(ROBOT.n)} <= chosen


def test_two_laws_of_one_name_are_refused(new_law: type[Law]) -> None:
    with pytest.raises(ModelError, match="one name"):
        type("Other", (Coulomb,), {"name": "saturating"})


@pytest.mark.parametrize("law", [Presliding(width=0.02), Dahl(width=0.02), Relaxing(time=0.2)])
def test_memory_along_a_path_is_memory_step_by_step(law: Law) -> None:
    q = np.cumsum(np.random.default_rng(1).normal(0, 5e-3, 500))
    bent, steps = np.array([0.7]), []
    for way in np.diff(q, prepend=q[:1]):
        bent = law.bend(bent, np.array([way]), 0.01)
        steps.append(float(bent[0]))
    np.testing.assert_allclose(law.trace(q, 0.7, 100.0), steps, atol=1e-12)
    np.testing.assert_allclose(Law.trace(law, q, 0.7, 100.0), steps, atol=0)
