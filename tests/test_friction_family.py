"""Every friction law: its formula written again by hand, and its curve found back in data made with that formula."""

import json
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from conftest import rnea
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import fourier

from urdf_ident import DynamicModel, Recording, Robot, Segment
from urdf_ident.errors import ModelError
from urdf_ident.estimation.friction_selection.reference_torque import ConvergedFit, converge
from urdf_ident.friction import FRICTION, AxisMotion, friction_term, play
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog, prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base

pytestmark = pytest.mark.usefixtures("unexamined")

V = np.array([-2.0, -0.3, -0.01, 0.0, 0.01, 0.3, 2.0])
LOAD = np.array([5.0, -3.0, 2.0, 1.0, -1.0, 4.0, -6.0])


def slow_play(q: np.ndarray, radius: float, start: float) -> np.ndarray:
    """The operator as everybody writes it: one step after the other."""
    out = []
    for x in q:
        start = min(max(start, x - radius), x + radius)
        out.append(start)
    return np.array(out)


@pytest.mark.parametrize(
    ("spec", "parameters", "expected"),
    [
        ({"term": "sublinear", "width": 0.0}, [2.0], 2 * np.sign(V) * np.sqrt(np.abs(V))),
        ({"term": "stribeck", "velocity": 0.1, "exponent": 1, "width": 0}, [1.5], 1.5 * np.sign(V) * np.exp(-np.abs(V) / 0.1)),
        ({"term": "load_coulomb", "width": 0.0}, [0.1], 0.1 * np.sign(V) * np.abs(LOAD)),
        (
            {"term": "asymmetric", "threshold": 0.1, "width": 0.0},
            [1, 2, 3, 4, 5, 6, 7, 8],
            [
                -5 + 6 * -2 + 7 * -4 + 8 * -8,
                -5 + 6 * -0.3 + 7 * -0.09 + 8 * -0.027,
                -5,
                0,
                1,
                1 + 2 * 0.3 + 3 * 0.09 + 4 * 0.027,
                1 + 2 * 2 + 3 * 4 + 4 * 8,
            ],
        ),
    ],
)
def test_formula_where_the_sign_is_sharp(spec: dict, parameters: list, expected: np.ndarray) -> None:
    np.testing.assert_allclose(
        friction_term(spec).columns(AxisMotion(np.cumsum(V), V, 0 * V, 100.0, LOAD)) @ parameters,
        expected,
        rtol=1e-12,
        atol=1e-12,
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.floats(0.01, 1), st.floats(-1, 1))
def test_play_equals_the_step_by_step_operator(q: list[float], radius: float, start: float) -> None:
    np.testing.assert_array_equal(play(np.array(q), radius, start), slow_play(np.array(q), radius, start))


@pytest.mark.parametrize("law", FRICTION.values(), ids=lambda law: law.name)
def test_every_shape_is_explained_checked_and_kept(law: type) -> None:
    term = law()
    given = {name: 1.5 * getattr(term, name) for name in law.shapes}
    assert set(term.as_dict()) - {"term"} == set(law.shapes)
    assert all(symbol in law.formula or "the same" in law.formula for symbol in law.symbols)
    changed = friction_term({"term": law.name, **given})
    assert friction_term(json.loads(json.dumps(changed.as_dict()))) == changed
    for name, shape in law.shapes.items():
        assert shape.meaning
        assert shape.units[0] in ("rad/s", "rad", "s", "s/rad", "1")
        for bad in (-1.0, np.inf, np.nan, "wide", True, *(() if shape.zero else (0.0,))):
            with pytest.raises(ModelError, match=f"shape '{name}' of friction term '{law.name}'"):
                friction_term({"term": law.name, name: bad})
        free = friction_term({"term": law.name, name: "auto"})
        assert free.free == (name,)
        assert friction_term(json.loads(json.dumps(free.as_dict()))) == free
    with pytest.raises(ModelError, match="no shape 'speed_of_light'"):
        friction_term({"term": law.name, "speed_of_light": 3e8})


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("stribek", "did you mean 'stribeck'"),
        ({"term": "coulomb", "widht": 1}, "no shape 'widht'; did you mean 'width'"),
        ({"width": 1}, "unknown friction term"),
        ({"term": "stribeck_arctan", "stribeck": 2000}, "needs a steeper rise at standstill"),
        (7, "neither a name nor a mapping"),
    ],
)
def test_unknown_names_and_impossible_shapes(spec: object, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        friction_term(spec)


SIZE = np.array([3.0, 2.0, 1.0])  # of friction at the three joints


def smooth(v: np.ndarray) -> np.ndarray:
    return np.tanh(v / 0.02)


def bristles(q: np.ndarray) -> np.ndarray:
    return np.column_stack([(x - slow_play(x, 2e-3, x[0])) / 2e-3 for x in q.T])


def fast(v: np.ndarray) -> np.ndarray:
    return np.where(np.abs(v) < 0.2, 0.0, v)


#: law → (terms of the model, friction torque as a function of q, v and the rigid torque)
TRUTHS: dict[str, tuple[list, Callable]] = {
    "viscous": (["viscous"], lambda q, v, load: SIZE * v),
    "coulomb": (["viscous", "coulomb"], lambda q, v, load: SIZE * (v + smooth(v))),
    "offset": (["viscous", "offset"], lambda q, v, load: SIZE * (v + 0.3)),
    "stribeck": (
        ["viscous", "coulomb", "stribeck"],
        lambda q, v, load: SIZE * (v + smooth(v) * (1 + 0.5 * np.exp(-((v / 0.1) ** 2)))),
    ),
    "stribeck_arctan": (
        ["stribeck_arctan"],
        lambda q, v, load: SIZE * (4 / np.pi * np.arctan(1000 * v) - 0.6 / np.pi * np.arctan(10 * v) + 0.5 * v),
    ),
    "asymmetric": (
        [{"term": "asymmetric", "threshold": 0.2}],
        lambda q, v, load: (
            SIZE
            * np.where(
                v > 0,
                smooth(v) + fast(v) - 0.2 * fast(v) ** 2 + 0.02 * fast(v) ** 3,
                1.5 * smooth(v) + 0.7 * fast(v) + 0.1 * fast(v) ** 2 + 0.01 * fast(v) ** 3,
            )
        ),
    ),
    "load_coulomb": (
        ["viscous", "coulomb", "load_coulomb"],
        lambda q, v, load: SIZE * v + smooth(v) * (1 + 0.1 * np.abs(load)),
    ),
    "sublinear": (
        ["viscous", "coulomb", "sublinear"],
        lambda q, v, load: SIZE * (v + smooth(v) * (1 + 2 * np.sqrt(np.abs(v)))),
    ),
    "cubic": (["viscous", "coulomb", "cubic"], lambda q, v, load: SIZE * (v + smooth(v) + 0.2 * v**3)),
    "presliding": (["viscous", {"term": "presliding", "width": 4e-3}], lambda q, v, load: SIZE * (v + bristles(q))),
}


def make_log(robot: Robot, friction: Callable, seed: int, noise: float = 0.01) -> Recording:
    """20 s at 200 Hz; torque noise of 1 % of the joint's torque, a 20-bit encoder. Some motions are slow."""
    t, q, v, a = fourier(robot.n, 20.0, 200.0, seed, amplitude=1.5)
    slower = np.array([1.0, 0.7, 1.3])
    q, v, a = q[0] + slower * (q - q[0]), slower * v, slower * a
    rigid = rnea(robot.model, q, v, a)
    tau = rigid + friction(q, v, rigid)
    rng = np.random.default_rng(seed)
    tau = tau + noise * np.sqrt(np.mean(tau**2, axis=0)) * rng.standard_normal(tau.shape)
    return Recording(f"log{seed}", robot.joints, t, np.rint(q / 6e-6) * 6e-6, effort=tau)


def identify(robot: Robot, terms: list, logs: list[PreparedLog]) -> tuple[ConvergedFit, np.ndarray]:
    model = DynamicModel(robot, friction=terms, rotor_inertia=False)
    converged = converge(model, partial(build_statistics, logs=logs), partial(fit_base, base=model.base()))
    theta = np.zeros(len(model.parameters))
    theta[converged.fit.base.independent] = converged.fit.params
    return converged, theta


def prepare(robot: Robot, logs: list[Recording]) -> list[PreparedLog]:
    return prepare_logs(logs, robot, DynamicModel(robot).drive, SignalConfig())


@pytest.mark.parametrize("law", TRUTHS, ids=str)
def test_curve_is_found_back(robot: Robot, law: str) -> None:
    """Within 1 % of the curve's range, at 1 % torque noise, over all speeds that were driven."""
    terms, friction = TRUTHS[law]
    logs = prepare(robot, [make_log(robot, friction, seed) for seed in (1, 2)])
    converged, theta = identify(robot, terms, logs)
    top = np.max([np.abs(part.v).max(axis=0) for log in logs for part in log.segments], axis=0)
    speed = np.linspace(-0.95, 0.95, 401)[:, None] * top
    way = np.concatenate([0 * speed[:1], np.cumsum(speed, axis=0)])  # far apart: every bristle is bent
    load = np.tile([20.0, -10.0, 5.0], (401, 1))
    still = np.zeros((401, 3))
    segment = Segment("curve", 0.0, 1.0, way[1:], speed, still, reference_torque=load, before=way[:1])
    values = converged.model.term_columns(segment) * theta[30:]
    curve = np.column_stack([values[:, converged.model.distribution[j] != 0].sum(axis=1) for j in range(3)])
    truth = friction(way, np.concatenate([speed[:1], speed]), np.concatenate([load[:1], load]))[1:]
    error = np.abs(curve - truth).max(axis=0) / np.ptp(truth, axis=0)
    assert error.max() < 0.01, error
