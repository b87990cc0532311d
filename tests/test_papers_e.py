"""The excitation of Liu et al. (2023, section 3), as ``scripts/papers/e_block.py`` judges it: one seed of its twenty."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from urdf_ident.motion.limits import check_limits

SCRIPT = "papers/e_block.py"


@pytest.fixture(scope="module")
def found(script: ModuleType) -> dict[str, Any]:
    judge = script.Judge(draws=20)
    motions = {
        name: [script.design(judge.model, name, seed, 30.0, starts=1) for seed in range(1)] for name in ("cond", "block")
    }
    motions["printed"] = [script.table_3(judge.model.robot)]
    return {"judge": judge, "motions": motions, **{key: [judge(path) for path in paths] for key, paths in motions.items()}}


def test_limits_are_table_1(script: ModuleType, found: dict[str, Any]) -> None:
    limits = found["judge"].limits
    np.testing.assert_allclose(np.rad2deg(limits.upper), [120, 90, 60, 120, 120, 120])
    np.testing.assert_allclose(limits.lower, -limits.upper)
    np.testing.assert_allclose(np.rad2deg(limits.velocity), [100, 60, 60, 80, 80, 80])
    np.testing.assert_allclose(np.rad2deg(limits.acceleration), 120)


def test_table_3_meets_its_ties_and_limits_with_a_period_of_20_s(script: ModuleType, found: dict[str, Any]) -> None:
    path = found["motions"]["printed"][0]
    ends = path.evaluate([0.0, 20.0])
    for signal in ends:
        np.testing.assert_allclose(signal[:, :5], 0.0, atol=5e-4)  # four printed digits
        np.testing.assert_allclose(signal[:, 5], 0.0, atol=4e-3)  # joint 6 has a misprint: its a add up to 0.0036
    assert check_limits(path, found["judge"].limits).feasible


def test_designs_keep_the_ties_and_limits(found: dict[str, Any]) -> None:
    for path in [*found["motions"]["cond"], *found["motions"]["block"]]:
        for signal in path.evaluate([0.0, 20.0]):
            np.testing.assert_allclose(signal, 0.0, atol=1e-9)
        assert check_limits(path, found["judge"].limits).feasible


def test_each_criterion_is_best_at_what_it_asks_for(found: dict[str, Any]) -> None:
    cond, block, printed = found["cond"], found["block"], found["printed"][0]
    assert np.mean([x.weighted for x in cond]) < np.mean([x.weighted for x in block])
    assert np.mean([x.parts[0] for x in block]) < np.mean([x.parts[0] for x in cond])
    for item in (*cond, *block):
        assert item.weighted < 0.5 * printed.weighted
        assert item.block < 0.5 * printed.block


def test_block_value_is_the_papers_sum(found: dict[str, Any]) -> None:
    weights = found["judge"].criterion.weights
    for item in (found["cond"][0], found["printed"][0]):
        assert item.block == pytest.approx(weights.sum() * item.weighted + weights @ np.array(item.parts), rel=2e-3)
