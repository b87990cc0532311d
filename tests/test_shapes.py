"""Free friction shapes: found back, honest about what cannot be found, and gone from the saved model."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from logs import fourier
from test_friction_family import SIZE, TRUTHS, make_log, prepare, smooth

from urdf_ident import Drive, DynamicModel, ElasticModel, Robot, Segment, identify, load
from urdf_ident.errors import ModelError
from urdf_ident.estimation.friction_selection.shapes import Shaped, check_excited, fit_shapes
from urdf_ident.friction import friction_term
from urdf_ident.project import parse_project
from urdf_ident.signals.prepare import PreparedLog
from urdf_ident.statistics.accumulate import build_statistics

pytestmark = pytest.mark.usefixtures("unexamined")


def find(robot: Robot, terms: object, logs: list[PreparedLog]) -> Shaped:
    model = DynamicModel(robot, friction=terms, rotor_inertia=False)
    return fit_shapes(model, partial(build_statistics, logs=logs), [part for log in logs for part in log.segments])


FREE = {
    "coulomb": (["viscous", {"term": "coulomb", "width": "auto"}], {"width": 0.02}),
    "stribeck": (["viscous", "coulomb", {"term": "stribeck", "velocity": "auto"}], {"velocity": 0.1}),
    "stribeck_arctan": (
        [{"term": "stribeck_arctan", "sharpness": "auto", "stribeck": "auto"}],
        {"sharpness": 1000.0, "stribeck": 10.0},
    ),
    "asymmetric": ([{"term": "asymmetric", "threshold": "auto"}], {"threshold": 0.2}),
    "presliding": (["viscous", {"term": "presliding", "width": "auto"}], {"width": 4e-3}),
}


@pytest.mark.parametrize("law", FREE, ids=str)
def test_shapes_are_found_back(robot: Robot, law: str) -> None:
    terms, truth = FREE[law]
    logs = prepare(robot, [make_log(robot, TRUTHS[law][1], seed) for seed in (1, 2)])
    found = find(robot, terms, logs)
    assert len(found.reports) == 3 * len(truth)
    for report in found.reports:
        assert report.value == pytest.approx(truth[report.shape], rel=0.15)
        assert report.determined
        assert report.interval[0] <= report.value <= report.interval[1]
        assert report.bounds[0] <= report.interval[0] < report.interval[1] <= report.bounds[1]
    own = [item.term for item in found.model.terms if item.term.name == law]
    assert all(term.free == () for term in own)
    assert [getattr(own[0], name) for name in truth] == [r.value for r in found.reports if r.joint == "j1"]


def test_shapes_of_several_laws_and_a_load_at_once(robot: Robot) -> None:
    def friction(q: np.ndarray, v: np.ndarray, load: np.ndarray) -> np.ndarray:
        return SIZE * v + np.tanh(v / 0.05) * (SIZE * (1 + np.exp(-((v / 0.3) ** 2))) + 0.1 * np.abs(load))

    terms = [
        "viscous",
        {"term": "coulomb", "width": "auto"},
        {"term": "stribeck", "velocity": "auto", "width": 0.05},
        {"term": "load_coulomb", "width": 0.05},
    ]
    logs = prepare(robot, [make_log(robot, friction, seed) for seed in (1, 2)])
    found = find(robot, terms, logs)
    assert found.model.reference_theta is None  # the fixed point is looked for again, with the new shapes
    for report in found.reports:
        assert report.value == pytest.approx({"width": 0.05, "velocity": 0.3}[report.shape], rel=0.2)


def test_a_shape_at_its_bound_is_reported(robot: Robot) -> None:
    """A sign as hard as a sign can be: the width goes to the least that is searched."""

    def friction(q: np.ndarray, v: np.ndarray, load: np.ndarray) -> np.ndarray:
        return SIZE * (v + np.sign(v))

    logs = prepare(robot, [make_log(robot, friction, seed) for seed in (1, 2)])
    found = find(robot, ["viscous", {"term": "coulomb", "width": "auto"}], logs)
    assert {report.at_bound for report in found.reports} == {"lower"}
    assert all("at the lower bound of its search" in note for note in found.notes)
    assert all(report.value < 0.007 for report in found.reports)


def motion(robot: Robot, scale: float = 1.0) -> Segment:
    _, q, v, a = fourier(robot.n, 5.0, 50.0, 0)
    return Segment("s", 0.0, 50.0, q[0] + scale * (q - q[0]), scale * v, scale * a)


def test_a_threshold_outside_the_speeds_of_the_logs_is_refused(robot: Robot) -> None:
    law = {"term": "asymmetric", "threshold": 40.0}
    model = DynamicModel(robot, friction={"default": ["viscous"], "j2": [law]})
    for ask in (check_excited, lambda m, s: fit_shapes(m, build_statistics, s)):
        with pytest.raises(ModelError, match=r"joint 'j2': 'threshold' of friction term 'asymmetric' is outside the speeds"):
            ask(model, [motion(robot)])
    slow = DynamicModel(robot, friction=[{"term": "asymmetric", "threshold": 0.2}])
    check_excited(slow, [motion(robot), motion(robot, 0.01)])
    with pytest.raises(
        ModelError, match=r"got 0\.2 rad/s, expected less than .* the top speed; lower it, or write threshold: auto"
    ):
        check_excited(slow, [motion(robot, 0.01)])


def test_what_cannot_be_searched_is_refused(robot: Robot) -> None:
    free = [{"term": "coulomb", "width": "auto"}]
    with pytest.raises(ModelError, match="the axis does not move"):
        fit_shapes(DynamicModel(robot, friction=free), build_statistics, [motion(robot, 0.0)])
    elastic = ElasticModel(robot, drive=Drive.build(3, reduction=[50.0, 50.0, 50.0]), friction=free)
    with pytest.raises(ModelError, match="free friction shapes with elastic joints"):
        fit_shapes(elastic, build_statistics, [motion(robot)])


def test_result_holds_the_numbers_and_says_where_they_came_from(robot: Robot, tmp_path: Path) -> None:
    def friction(q: np.ndarray, v: np.ndarray, load: np.ndarray) -> np.ndarray:
        return SIZE * (v + smooth(v) * (1 + 0.5 * np.exp(-((v / 0.2) ** 2))))

    project = parse_project(
        {"model": {"friction": ["viscous", "coulomb", {"term": "stribeck", "velocity": "auto"}], "rotor_inertia": False}}
    )
    logs = [make_log(robot, friction, seed) for seed in (1, 2)]
    result = identify(project.build_model(robot), logs, project=project)
    again = load(result.save(tmp_path / "identification.json"))
    found = [item.term for item in again.model.terms if item.term.name == "stribeck"]
    assert all(term.free == () for term in found)
    assert [term.velocity for term in found] == pytest.approx([0.2] * 3, rel=0.1)
    assert sum("stribeck of j" in note for note in result.solver["notes"]) == 3
    _, q, v, a = fourier(3, 2.0, 50.0, 7)
    np.testing.assert_array_equal(result.torque(q, v, a), again.torque(q, v, a))
    assert friction_term(found[0].as_dict()) == found[0]
