"""Tables II and III of Gautier and Venture (2013), as ``scripts/papers/d_tx40.py`` prints them."""

from types import ModuleType

import numpy as np
import pytest

SCRIPT = "papers/d_tx40.py"


@pytest.fixture(scope="module")
def case(script: ModuleType):
    return script.Case.build()


@pytest.fixture(scope="module")
def runs(script: ModuleType, case) -> list:
    return [script.run(case, seed) for seed in (1, 2)]


@pytest.fixture(scope="module")
def held_out(script: ModuleType, case, runs) -> dict:
    return script.held_out(case, runs[0], 1)


def test_the_printed_table_reproduces_the_printed_distances(script: ModuleType) -> None:
    assert len(script.TABLE_II) == 76
    columns = [{name: values[k] for name, values in script.TABLE_II.items()} for k in range(3)]
    assert script.distance(columns[1], columns[0]) == pytest.approx(0.1591, abs=5e-5)
    assert script.distance(columns[2], columns[0]) == pytest.approx(0.0416, abs=5e-5)
    assert len(script.papers_essential()) == 31


def test_what_depends_is_what_the_table_never_moves(script: ModuleType, case) -> None:
    own = {script.symbol_of(name): name for name in script.TABLE_II}
    dependent = {own[case.base.names[k]] for k in case.base.dependent}
    assert dependent == {"Ia1", "Ia2", "YY2", *(f"{kind}{j}" for kind in ("YY", "M", "MZ") for j in range(3, 7))}
    unseen = {case.base.names[k] for k in case.base.zero}
    assert len(unseen) == 11
    assert {"m_link_2", "mz_link_2"} < unseen
    moved = {name for name, (cad, base, _) in script.TABLE_II.items() if base != cad}
    assert not dependent & moved
    assert all(name[:2] == "Fv" for name in set(own.values()) - dependent - moved - {"MZ2"})  # equal to three digits


def test_the_wrist_by_virtual_work(script: ModuleType, case) -> None:
    """(35) and the printed friction: what joint 5 and 6 feel, written out."""
    v, a = np.zeros((2, 4, 6))
    v[:, 4:], a[:, 4:] = [[1.0, 2.0], [-2.0, 0.5], [0.3, -1.0], [2.0, 1.0]], [[1.0, -3.0], [2.0, 0.0], [0.0, 1.0], [4.0, 4.0]]
    theta = script.table_column(case.model, 2)
    theta[:60] = 0.0
    at = script.paper_values(case.model, theta)
    tau = case.model.torque(theta, np.zeros((4, 6)), v, a)
    v5, v6, a5, a6 = v[:, 4], v[:, 5], a[:, 4], a[:, 5]
    motor6 = at["Fvm6"] * (v5 + v6) + at["Fsm6"] * np.sign(v5 + v6)
    five = at["Ia5"] * a5 + at["Ia6"] * a6 + (at["Fv5"] - at["Fvm6"]) * v5 + at["Fs5"] * np.sign(v5) + at["off5"] + motor6
    six = at["Ia6"] * (a5 + a6) + (at["Fv6"] - at["Fvm6"]) * v6 + at["Fs6"] * np.sign(v6) + at["off6"] + motor6
    np.testing.assert_allclose(tau[:, 4], five, atol=1e-9)
    np.testing.assert_allclose(tau[:, 5], six, atol=1e-9)


def test_identified_from_motor_counts_and_currents(script: ModuleType, case, runs) -> None:
    """The big ones are the simulated robot's, as far as 5 % of current noise and stiction let them be."""
    values = script.paper_values(case.model, runs[0].thetas["base"])
    for name in ("Fv1", "Fs1", "Fs2", "Fv3", "Fs3", "Ia3", "Ia4", "Ia5", "Ia6", "Fvm6", "Fsm6", "MY3", "ZZ2", "Fs6"):
        assert values[name] == pytest.approx(script.TABLE_II[name][2], rel=0.05), name


def test_other_trajectory_within_ten_percent(held_out) -> None:
    for name in ("base", "essential", "minimum norm", "LMI"):
        assert held_out[name][1] < 0.10, name
        assert held_out[name][0].max() < 0.10, name


def test_leaving_out_the_coupling_ruins_joints_5_and_6(held_out) -> None:
    with_it, without = held_out["base"][0], held_out["base, coupling left out"][0]
    assert (without[4:] > 5 * with_it[4:]).all()
    assert (without[:4] < 1.2 * with_it[:4]).all()


def test_essential_parameters(script: ModuleType, case, runs, held_out) -> None:
    prior, found = script.paper_values(case.model, case.prior.theta0), runs[0]
    values = script.paper_values(case.model, found.thetas["essential"])
    assert script.distance(values, prior) == pytest.approx(0.0416, abs=0.01)  # the simulated robot is that far from CAD
    kept = {case.base.names[k] for k in case.base.independent[found.keep]}
    still = script.symbol_of  # parameters that are no essential ones stay at CAD; those of the wrist's motors are sums
    sums = ("Ia5", "Fv5", "Fv6", "Ia6")
    assert all(values[name] == prior[name] for name in script.TABLE_II if still(name) not in kept and name not in sums)
    big = {name for name, (cad, _, moved) in script.TABLE_II.items() if abs(moved - cad) > 0.025}
    assert len({script.symbol_of(name) for name in big} - kept) <= 2  # known to within more than 6 %, whatever their size
    assert held_out["essential"][1] < 1.1 * held_out["base"][1]  # what leaving parameters out costs


def test_the_strong_result_holds_for_every_seed(script: ModuleType, case, runs) -> None:
    """Table III: with the essential parameters every link passes at tolerance zero; with the base parameters not."""
    counts = {name: np.array([script.passing(found.thetas[name]) for found in runs]) for name in runs[0].thetas}
    assert (counts["essential"] == 6).all(), "paper: 6 6 6 6"
    assert (counts["base"][:, 0] < 6).all(), "paper: 2 3 5 6"
    assert (counts["base"][:, 3] == 6).all()
    assert (counts["minimum norm"][:, 0] < 6).all()
    assert (counts["CAD"] == 6).all()  # what it starts from is repaired
    assert all(28 <= found.keep.sum() <= 36 for found in runs), "paper: 31"
    theirs = {script.symbol_of(name) for name in script.papers_essential()}
    kept = [{case.base.names[k] for k in case.base.independent[found.keep]} for found in runs]
    assert all(len(theirs & names) >= 25 for names in kept), "of the paper's 31"


def test_the_papers_base_column_holds_regrouped_values(script: ModuleType, case, runs) -> None:
    """D3: distances from CAD. Closest to it, base parameters are as near as the essential ones; the paper's column is not."""
    prior = script.paper_values(case.model, case.prior.theta0)
    apart = {
        name: np.array([script.distance(script.paper_values(case.model, found.thetas[name]), prior) for found in runs])
        for name in ("essential", "base", "regrouped")
    }
    assert np.median(apart["essential"]) == pytest.approx(0.0416, abs=0.005)
    assert max(apart["essential"].max(), apart["base"].max()) < 0.08
    assert apart["regrouped"] == pytest.approx(np.full(len(runs), 0.1591), abs=0.015)
    assert np.median(apart["regrouped"] / apart["essential"]) > 3.5, "paper: 4 times smaller"
    # term by term: what the reduction adds to MX2 and MY3, with the masses and lengths of Tables I and II
    table = script.TABLE_II
    mass = {j: table[f"M{j}"][0] for j in (3, 4, 5, 6)}
    assert table["MX2"][1] - table["MX2"][2] == pytest.approx(0.225 * sum(mass.values()), abs=0.05)
    added = 0.225 * (mass[4] + mass[5] + mass[6]) + table["MZ4"][0]
    assert table["MY3"][2] - table["MY3"][1] == pytest.approx(added, abs=0.02)
