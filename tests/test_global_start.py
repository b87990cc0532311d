"""Global searches before the local one: what they promise of themselves, and of the motions that they hand on."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from urdf_ident.errors import LimitError, MissingExtraError, ProjectError
from urdf_ident.excitation.design import design_excitation
from urdf_ident.excitation.family import FAMILIES, Family
from urdf_ident.excitation.global_start import POPULATION, Encoding, evolve
from urdf_ident.excitation.optimise import Search
from urdf_ident.excitation.problem import Problem, formulate
from urdf_ident.linalg import Array
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.motion.limits import Limits, check_limits
from urdf_ident.project import parse_project

MODEL = DynamicModel(Robot.from_urdf(robot_path("szabo_3r")), friction="none", rotor_inertia=False)
METHODS = ("cma", "differential_evolution")


def problem(name: str) -> Problem:
    start = np.array([0.2, -0.4, 0.6]) if name == "tied_fourier" else None
    family = Family(name, MODEL.robot.joints, 6.0, 4, ramp=1.0 if name == "fourier" else 0.0, start=start)
    return formulate(MODEL, family, Limits.from_robot(MODEL.robot), "D", noise=1.0)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_vector_is_a_motion_inside_the_limits(name: str) -> None:
    asked = problem(name)
    search, rng = Search(asked, 0, np.inf), np.random.default_rng(1)
    encoding = Encoding(asked.family, asked.limits, search.limits)
    X = search.random()
    z = encoding.encode(X)
    for vector in (z, z + rng.standard_normal(len(z)), 3 * rng.standard_normal(len(z))):
        rest, swing = encoding.decode(vector)
        report = check_limits(asked.family.trajectory(rest + swing), asked.limits)
        assert all(margin.margin >= 0 for margin in report.margins)
    rest, swing = encoding.decode(z)  # the direction comes back, drawn out to the limits
    np.testing.assert_allclose(rest, asked.family.rest(rest[0] if asked.family.start is None else asked.family.start))
    moved = X - rest
    for j in range(3):
        some = np.abs(moved[:, j]) > 1e-9
        assert some.any()
        larger = swing[some, j] / moved[some, j]
        np.testing.assert_allclose(larger, larger[0], rtol=1e-6)
        assert larger[0] > 0


@pytest.mark.parametrize("method", METHODS)
def test_a_known_minimum_is_approached(method: str) -> None:
    goal, calls = np.linspace(-1.0, 1.0, 8), []

    def value(z: Array) -> float:
        calls.append(z)
        return float(np.sum((z - goal) ** 2))

    for _ in range(2):  # the same seed, the same way
        evolve(method, value, np.zeros(8), np.random.default_rng(0), lambda: False, 600)
    half = len(calls) // 2
    np.testing.assert_array_equal(calls[half - 1], calls[-1])
    assert 600 - POPULATION <= half <= 600
    assert min(value(z) for z in calls[:half]) < 0.05 * value(np.zeros(8))


@pytest.mark.parametrize("method", METHODS)
def test_time_ends_it(method: str) -> None:
    calls: list[Array] = []

    def value(z: Array) -> float:
        calls.append(z)
        return float(z @ z)

    evolve(method, value, np.ones(5), np.random.default_rng(0), lambda: len(calls) >= 33, 10_000)
    assert len(calls) == 33


@pytest.mark.parametrize("method", METHODS)
def test_it_begins_lower_than_random_motions_do(method: str) -> None:
    plain, evolved = (Search(problem("modified_fourier"), 3, np.inf, how) for how in ("none", method))
    values = [search.objective(search.start(), 0.0).value for search in (plain, evolved)]
    assert values[1] < values[0] - 0.1
    assert evolved.best.value == pytest.approx(values[1])


@pytest.mark.parametrize("method", METHODS)
def test_a_design_with_it_keeps_the_limits(method: str) -> None:
    options = {"harmonics": 4, "starts": 1, "budget": 60.0, "collisions": None, "global_start": method}
    design = design_excitation(MODEL, 6.0, **options)
    assert design.report.feasible
    assert design.settings["global_start"] == method
    again = design_excitation(MODEL, 6.0, **options)
    assert again.value == design.value


def test_bad_names_and_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LimitError, match=r"unknown global start.*did you mean 'cma'"):
        design_excitation(MODEL, 6.0, global_start="cmaa")
    with pytest.raises(ProjectError, match=r"excitation.global_start"):
        parse_project({"excitation": {"global_start": "annealing"}})
    real = builtins.__import__

    def refuse(name: str, *rest: object, **options: object) -> object:
        if name == "cma":
            raise ImportError(name)
        return real(name, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'urdf-ident\[design\]'"):
        design_excitation(MODEL, 6.0, global_start="cma")
