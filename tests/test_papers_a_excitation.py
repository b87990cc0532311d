"""The excitation problem of Szabó and Gincsainé (2021, eqs. 20-22), as ``scripts/papers/a_excitation.py`` solves it."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from conftest import load_script

from urdf_ident.model.rigid_bodies import regressor


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script("papers/a_excitation.py")


@pytest.mark.parametrize("travels", [False, True])
def test_cond_f_is_minimised_between_given_ends(script: ModuleType, travels: bool) -> None:
    case = script.solve("test", script.END if travels else None, 60.0, 0, starts=2)
    path = case.design.trajectory
    q, v, a = path.evaluate([0.0, script.DURATION])
    np.testing.assert_allclose(q, [script.START, script.END if travels else script.START], atol=1e-9)
    np.testing.assert_allclose([v, a], 0.0, atol=1e-8)
    assert case.design.report.feasible
    optimum, best, middle = case.cond_f
    assert optimum < 0.8 * best
    assert optimum < 0.5 * middle
    assert np.median(case.errors[1] / case.errors[0]) > 1.2

    # CondF by its definition, on a regressor made here
    model, base, _ = script.prepare()
    assert len(base) == 24
    t = np.arange(0.005, script.DURATION, 0.01)
    q, v, a = path.evaluate(t)
    law = model.terms[0].term
    friction = np.zeros((len(t), 3, 9))
    for j in range(3):
        columns = [2 / np.pi * np.arctan(law.sharpness * v[:, j]), 2 / np.pi * np.arctan(law.stribeck * v[:, j]), v[:, j]]
        friction[:, j, 3 * j : 3 * j + 3] = np.column_stack(columns)
    W = np.concatenate([regressor(model.robot, q, v, a), friction], axis=2)[:, :, base.independent].reshape(-1, 24)
    gram = W.T @ W
    assert optimum == pytest.approx(np.linalg.norm(gram) * np.linalg.norm(np.linalg.inv(gram)), rel=1e-6)
