"""Joints whose efforts are not their torques do not enter the bodies that the others show."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import arm_urdf, rnea
from logs import Truth, fourier

import urdf_ident as ui
from urdf_ident.export.sidecar import write_sidecar
from urdf_ident.linalg import Array
from urdf_ident.logs.recording import Recording

FRICTION = ["viscous", "coulomb", "offset"]
#: A lift under an arm of four joints; the second URDF has masses that are wrong by a fifth.
LIFT = (
    arm_urdf("zzyyx", fixed_tip=False)
    .replace('<joint name="j1" type="revolute">', '<joint name="j1" type="prismatic">')
    .replace('rpy="0.1 0 0.2"/><axis xyz="0 0 1"/><limit lower="-2.6" upper="2.6" velocity="3" effort="200"/>', "@", 1)
    .replace("@", 'rpy="0 0 0"/><axis xyz="0 0 1"/><limit lower="-0.4" upper="0.4" velocity="1" effort="900"/>')
)
TRUE = ui.Robot.from_urdf(LIFT)


def described() -> ui.Robot:
    factors = iter((1.2, 0.8, 1.25, 0.85, 1.2))

    def heavier(inertial: re.Match[str]) -> str:
        factor = next(factors)
        number = re.compile(r'(mass value|i[xyz][xyz])="([^"]*)"')
        return number.sub(lambda found: f'{found[1]}="{float(found[2]) * factor}"', inertial[0])

    return ui.Robot.from_urdf(re.sub(r"<inertial>.*?</inertial>", heavier, LIFT))


def motion(seed: int) -> tuple[Array, Array, Array, Array]:
    t, q, v, a = fourier(5, 16.0, 100.0, seed)
    stroke = np.array([0.15, 1.0, 1.0, 1.0, 1.0])
    return t, q * stroke, v * stroke, a * stroke


def torques(q: Array, v: Array, a: Array) -> Array:
    truth, size = Truth.of(5), np.array([5.0, 1.0, 1.0, 1.0, 1.0])
    friction = size * (truth.viscous * v + truth.coulomb * np.tanh(v / 0.02))
    return rnea(TRUE.model, TRUE.configuration(q), v, a) + truth.rotor_inertia * a + friction


def log_of(kind: str, seed: int = 0) -> Recording:
    t, q, v, a = motion(seed)
    tau, generator = torques(q, v, a), np.random.default_rng(seed)
    noise = 0.02 * tau.std(axis=0) * generator.standard_normal(tau.shape)
    if kind == "weightless":
        tau[:, 0] -= rnea(TRUE.model, TRUE.configuration(q), 0 * v, 0 * a)[:, 0]
    elif kind == "noise":
        tau[:, 2] = 10.0 * generator.standard_normal(len(t))
    elif kind == "constant":
        tau[:, 2] = 12.0
    return Recording(kind, TRUE.joints, t, q + 1e-5 * generator.standard_normal(q.shape), effort=tau + noise)


def identified(kind: str) -> ui.Identification:
    return ui.identify(ui.DynamicModel(described(), friction=FRICTION), [log_of(kind)], force=True)


@pytest.mark.parametrize(("kind", "joint"), [("weightless", "j1"), ("noise", "j3"), ("constant", "j3")])
def test_an_effort_that_is_not_a_torque_leaves_the_other_joints_right(kind: str, joint: str, tmp_path: Path) -> None:
    """The weight that a lift's effort lacked was taken from the arm: masses ran to a tenth of the URDF's."""
    ident = identified(kind)
    j = TRUE.joints.index(joint)
    assert ident.model.apart == {j}
    _, q, v, a = motion(9)
    error = np.sqrt(np.mean((ident.torque(q, v, a) - torques(q, v, a)) ** 2, axis=0)) / torques(q, v, a).std(axis=0)
    assert (np.delete(error, j) < 0.01).all()
    assert not [word for word in ident.solver["active"] if ": mass at" in word]
    assert any(item.id == "joint-apart" and item.joint == joint for item in ident.verdict.judgements)
    assert f"the effort of {joint} cannot be its torque" in ident.summary()
    again = ui.load(ident.save(tmp_path / "identification.json"))
    assert again.model.apart == ident.model.apart


def test_rows_of_a_joint_set_apart_hold_its_terms_alone_and_its_torque_is_as_before() -> None:
    model = ui.DynamicModel(TRUE, friction=FRICTION)
    apart = model.with_apart(["j3"])
    assert (apart.groups[2].columns >= apart.n_inertial).all()
    assert [len(own.columns) for own in apart.groups[:2]] == [len(own.columns) for own in model.groups[:2]]
    _, q, v, a = motion(1)
    theta = np.random.default_rng(0).standard_normal(len(model.parameters))
    np.testing.assert_array_equal(apart.torque(theta, q, v, a), model.torque(theta, q, v, a))


def test_the_exported_terms_say_whose_efforts_determined_no_body(tmp_path: Path) -> None:
    model = ui.DynamicModel(TRUE, friction=FRICTION)
    for some, expected in ((model, None), (model.with_apart(["j1"]), ["j1"])):
        path = write_sidecar(tmp_path / "joints.yaml", some, np.zeros(len(model.parameters)))
        assert yaml.safe_load(path.read_text(encoding="utf-8")).get("apart", {}).get("joints") == expected


def test_no_joint_of_a_sound_log_is_set_apart() -> None:
    assert identified("sound").model.apart == frozenset()
