"""Tables II and III of Gautier and Venture (2013), as ``scripts/papers/d_tx40.py`` prints them."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from conftest import load_script

from urdf_ident.model.prior import USUAL_WEIGHT


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script("papers/d_tx40.py")


@pytest.fixture(scope="module")
def case(script: ModuleType):
    return script.Case.build()


@pytest.fixture(scope="module")
def found(script: ModuleType, case):
    return script.run(seed=1, case=case, weight=USUAL_WEIGHT)


@pytest.fixture(scope="module")
def spread(script: ModuleType, case, found):
    return script.spread(case, {1: found.identified, **{seed: script.identified(case, seed) for seed in (2, 3, 4, 5)}})


def test_the_printed_table_reproduces_the_printed_distances(script: ModuleType) -> None:
    assert len(script.TABLE_II) == 76
    columns = [{name: values[k] for name, values in script.TABLE_II.items()} for k in range(3)]
    assert script.distance(columns[1], columns[0]) == pytest.approx(0.1591, abs=5e-5)
    assert script.distance(columns[2], columns[0]) == pytest.approx(0.0416, abs=5e-5)
    assert len(script.papers_essential()) == 31


def test_columns_and_rank(script: ModuleType, found) -> None:
    assert len(found.model.parameters) == 86
    assert len(found.base) == 60
    assert found.base.rank_gap > 1e6
    assert found.separate == (87, 61)


def test_what_depends_is_what_the_table_never_moves(script: ModuleType, found) -> None:
    own = {script._own(name): name for name in script.TABLE_II}
    dependent = {own[found.base.names[k]] for k in found.base.dependent}
    assert dependent == {"Ia1", "Ia2", "YY2", *(f"{kind}{j}" for kind in ("YY", "M", "MZ") for j in range(3, 7))}
    unseen = {found.base.names[k] for k in found.base.zero}
    assert len(unseen) == 11
    assert {"m_link_2", "mz_link_2"} < unseen
    moved = {name for name, (cad, base, _) in script.TABLE_II.items() if base != cad}
    assert not dependent & moved
    assert all(name[:2] == "Fv" for name in set(own.values()) - dependent - moved - {"MZ2"})  # equal to three digits


def test_table_and_parameters_there_and_back(script: ModuleType, found) -> None:
    for column in (0, 1, 2):
        values = script.paper_values(found.model, script.table_column(found.model, column))
        printed = {name: numbers[column] for name, numbers in script.TABLE_II.items()}
        assert values == pytest.approx(printed, abs=1e-12)


def test_the_wrist_by_virtual_work(script: ModuleType, found) -> None:
    """(35) and the printed friction: what joint 5 and 6 feel, written out."""
    v, a = np.zeros((2, 4, 6))
    v[:, 4:], a[:, 4:] = [[1.0, 2.0], [-2.0, 0.5], [0.3, -1.0], [2.0, 1.0]], [[1.0, -3.0], [2.0, 0.0], [0.0, 1.0], [4.0, 4.0]]
    theta = script.table_column(found.model, 2)
    theta[:60] = 0.0
    at = script.paper_values(found.model, theta)
    tau = found.model.torque(theta, np.zeros((4, 6)), v, a)
    v5, v6, a5, a6 = v[:, 4], v[:, 5], a[:, 4], a[:, 5]
    motor6 = at["Fvm6"] * (v5 + v6) + at["Fsm6"] * np.sign(v5 + v6)
    five = at["Ia5"] * a5 + at["Ia6"] * a6 + (at["Fv5"] - at["Fvm6"]) * v5 + at["Fs5"] * np.sign(v5) + at["off5"] + motor6
    six = at["Ia6"] * (a5 + a6) + (at["Fv6"] - at["Fvm6"]) * v6 + at["Fs6"] * np.sign(v6) + at["off6"] + motor6
    np.testing.assert_allclose(tau[:, 4], five, atol=1e-9)
    np.testing.assert_allclose(tau[:, 5], six, atol=1e-9)


def test_identified_from_motor_counts_and_currents(script: ModuleType, found) -> None:
    """The big ones are the simulated robot's, as far as 5 % of current noise and stiction let them be."""
    values = script.paper_values(found.model, found.thetas["base"])
    for name in ("Fv1", "Fs1", "Fs2", "Fv3", "Fs3", "Ia3", "Ia4", "Ia5", "Ia6", "Fvm6", "Fsm6", "MY3", "ZZ2", "Fs6"):
        assert values[name] == pytest.approx(script.TABLE_II[name][2], rel=0.05), name


def test_other_trajectory_within_ten_percent(found) -> None:
    for name in ("base", "essential", "minimum norm", "LMI"):
        assert found.held_out[name][1] < 0.10, name
        assert found.held_out[name][0].max() < 0.10, name


def test_leaving_out_the_coupling_ruins_joints_5_and_6(found) -> None:
    with_it, without = found.held_out["base"][0], found.held_out["base, coupling left out"][0]
    assert (without[4:] > 5 * with_it[4:]).all()
    assert (without[:4] < 1.2 * with_it[:4]).all()


def test_essential_parameters(script: ModuleType, found) -> None:
    prior = script.paper_values(found.model, found.prior)
    values = script.paper_values(found.model, found.thetas["essential"])
    assert script.distance(values, prior) == pytest.approx(0.0416, abs=0.01)  # the simulated robot is that far from CAD
    kept = {found.base.names[k] for k in found.base.independent[found.keep]}
    still = script._own  # parameters that are no essential ones stay at CAD; those of the wrist's motors are sums
    sums = ("Ia5", "Fv5", "Fv6", "Ia6")
    assert all(values[name] == prior[name] for name in script.TABLE_II if still(name) not in kept and name not in sums)
    big = {name for name, (cad, _, moved) in script.TABLE_II.items() if abs(moved - cad) > 0.025}
    assert len({script._own(name) for name in big} - kept) <= 2  # known to within more than 6 %, whatever their size
    assert found.held_out["essential"][1] < 1.1 * found.held_out["base"][1]  # what leaving parameters out costs


def test_the_strong_result_holds_for_every_seed(spread) -> None:
    """Table III: with the essential parameters every link passes at tolerance zero; with the base parameters not."""
    assert len(spread.seeds) >= 5
    counts = spread.counts
    assert (counts["essential"] == 6).all(), "paper: 6 6 6 6"
    assert (counts["base"][:, 0] < 6).all(), "paper: 2 3 5 6"
    assert (counts["base"][:, 3] == 6).all()
    assert (counts["minimum norm"][:, 0] < 6).all()
    assert (counts["CAD"] == 6).all()  # what it starts from is repaired
    assert all(28 <= number <= 36 for number in spread.essential), "paper: 31"
    assert all(shared >= 25 for shared in spread.shared), "of the paper's 31"
    assert np.median(spread.distances["essential"]) == pytest.approx(0.0416, abs=0.005)
    assert spread.distances["essential"].max() < 0.08, "paper, base: 0.1591"


def test_report_shows_both_sides(script: ModuleType, found, spread) -> None:
    text = script.report(found)
    for words in (
        "86 columns, structural rank 60 (paper: 86, 61",
        "87 columns, rank 61",
        "essential parameters (paper: 31",
        "base           paper 0.1591   ours",
        "essential      paper 0.0416   ours",
        "base, coupling left out",
        "LMI, ours                    6       6       6       6",
        "essential, ours              6       6       6       6",
    ):
        assert words in text, words
    assert sum(line.split()[0] in script.TABLE_II for line in text.splitlines() if line.strip()) == 76
    assert "essential, paper             6       6       6       6   0.0416" in "\n".join(script.spread_lines(spread))
