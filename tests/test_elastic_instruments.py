"""Instruments for elastic joints: the robot with its springs in closed loop, behind a coupled drive, noise on both encoders."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import write_yaml
from test_coupled_elastic import ARM, FC, FV, IA, SETTINGS, TRUTH, K

from urdf_ident import ElasticModel, Identification, Limits, Recording, identify, random_fourier
from urdf_ident.errors import UrdfIdentError
from urdf_ident.linalg import Array
from urdf_ident.pipeline.simulate import simulate, true_plant
from urdf_ident.project import Project, parse_project

#: As wide as that of the simulated friction, at the motor where that moves several joints.
WIDTH = 0.01 * np.array([1.0, 45.0, 32.0])
LAWS = {
    joint: ["viscous", {"term": "coulomb", "width": float(width)}, "offset"]
    for joint, width in zip(ARM.joints, WIDTH, strict=True)
}


def project(method: str, noise: float = 1e-4, **more: Any) -> Project:
    sensors = {"position_noise": {"sigma": noise}, "torque_noise": {"sigma": 0.3}}
    simulation = {"rate": 250, "step": 2e-3, "log_target": True, "controller": {"bandwidth": 4.0}, "sensors": sensors}
    model = {"elastic": True, "friction": LAWS}
    given = {"model": model, "signals": {"cutoff": 25.0}, "estimation": {"method": method}, "simulation": simulation}
    return parse_project({**SETTINGS, **given, **more})


def simulated(noise: float, folder: Path) -> Recording:
    wanted = project("wls", noise)
    motion = random_fourier(Limits.from_robot(ARM), 8.0, 5, 4, fill=0.8)
    plant, _ = true_plant(wanted, ARM, write_yaml(folder / "truth.yaml", TRUTH))
    return simulate(ARM, motion, project=wanted, truth=plant).recording


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Eight seconds with 0.1 mrad of noise on both encoders."""
    return simulated(1e-4, tmp_path_factory.mktemp("noisy"))


def identified(wanted: Project, recording: Recording) -> Identification:
    return identify(wanted.build_model(ARM), [recording], project=wanted)


def true_theta(model: ElasticModel) -> Array:
    values = {"Ia": IA, "Fv": FV, "Fc": FC, "K": K, "offset": np.zeros(3), "preload": np.zeros(3)}
    ratio, terms = np.where(model.drive.coupled, np.abs(model.drive.ratio), 1.0), []
    for p in model.parameters[model.n_inertial :]:
        symbol, j = p.symbol.removesuffix("m"), ARM.index(p.owner)
        terms.append(values[symbol][j] / ratio[j] ** (1 if symbol == "Fc" else 2))
    return np.concatenate([ARM.inertials.ravel(), terms])


def test_noise_on_both_encoders_does_not_bias_instruments(noisy: Recording) -> None:
    """And auto takes them, because the controller is described and least squares is biased."""
    found = identified(project("auto"), noisy)
    assert found.fit.method == "iv"
    assert found.estimation["hausman"]["rejected"]
    assert "biased by noise on the motion" in found.estimation["why"]
    model = found.model
    assert isinstance(model, ElasticModel)
    z = (found.fit.params - found.fit.base.of(true_theta(model))) / found.fit.bse
    assert np.sqrt(np.mean(z**2)) < 1.2
    assert np.mean(np.abs(z) < 1.96) >= 0.9
    rotors = [found.theta[model.of_spring(j) - 4] * model.after_gear(model.of_spring(j) - 4) for j in range(3)]
    np.testing.assert_allclose(rotors, IA, rtol=0.03)
    assert "stiffness_bounds" not in found.solver["springs"][1], "noise on the motion is in both regressions"
    for joint, stiff in list(zip(ARM.joints, K, strict=True))[1:]:  # the first spring moves by as much as its noise
        at = model.of_spring(ARM.index(joint))
        assert found.theta[at] * model.after_gear(at) == pytest.approx(stiff, rel=0.02)


@pytest.mark.parametrize(
    ("method", "change", "words"),
    [
        ("iv", {"position_target": None}, r"no reference to simulate.*position_target_<joint>.*method wls"),
        ("didim", {}, r"didim is for rigid joints.*auto, ols, wls or iv"),
    ],
)
def test_what_is_missing_is_said(noisy: Recording, method: str, change: dict[str, Any], words: str) -> None:
    with pytest.raises(UrdfIdentError, match=words) as caught:
        identified(project(method), replace(noisy, **change))
    assert "\n" not in str(caught.value)
