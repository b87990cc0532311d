"""The circle of Wu et al. (2012), as ``scripts/papers/b_circle.py`` drives it: shorter, with one design each."""

from types import ModuleType
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from conftest import load_script


@pytest.fixture(scope="module")
def script() -> ModuleType:
    module = load_script("papers/b_circle.py")
    module.PERIOD, module.PERIODS = 5.0, 2
    return module


@pytest.fixture(scope="module")
def found(script: ModuleType) -> tuple[Any, Any, Any]:
    experiment = script.Experiment()
    free, tied = (experiment.run(family, 0, 60.0, starts=1) for family in script.FAMILIES)
    return experiment, free, tied


def test_the_circle_is_the_papers(script: ModuleType, found: tuple[Any, Any, Any]) -> None:
    experiment, _, _ = found
    q = experiment.circle.evaluate(experiment.circle.times(200.0))[0]
    robot, data = experiment.robot, experiment.robot.model.createData()
    frame = robot.model.getFrameId(robot.bodies[-1].links[-1].name)
    places = np.empty((len(q), 3))
    for k, x in enumerate(q):
        pin.framesForwardKinematics(robot.model, data, x)
        places[k] = data.oMf[frame].translation
    assert np.linalg.norm(places - places[0], axis=1).max() == pytest.approx(0.1, rel=1e-3)  # 100 mm
    speed = np.linalg.norm(np.diff(places, axis=0), axis=1) * 200.0
    assert speed.max() == pytest.approx(0.5, rel=2e-3)
    assert q.shape[1] == 3
    assert len(experiment.base) == 22


def test_mfs_predicts_the_circle_better_on_the_first_two_axes(found: tuple[Any, Any, Any]) -> None:
    """Table 3 of Wu 2012: smaller residuals with MFS; what the true parameters leave is the floor."""
    experiment, free, tied = found
    assert (tied.residual[:2] < free.residual[:2]).all()
    assert (tied.residual < 1.2 * experiment.floor).all()
    assert (experiment.floor > np.array([2.0, 2.0, 1.0])).all()  # the noise alone
