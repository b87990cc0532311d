"""All commands condition a log in the same way: its segments are the same in each."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import arm_urdf
from logs import make_log

import urdf_ident as ui
from urdf_ident import Recording, Robot, Segment
from urdf_ident.pipeline import checked_logs, identify, validate
from urdf_ident.project import Project, parse_project
from urdf_ident.signals.prepare import prepare_log

#: Signals of a segment that conditioning makes.
SIGNALS = ("q", "v", "a", "tau")


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_urdf(arm_urdf("zyy"))


@pytest.fixture(scope="module")
def logs(robot: Robot, tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    folder = tmp_path_factory.mktemp("logs")
    for seed in range(2):
        make_log(folder / f"run{seed}.csv", robot, seed=seed, seconds=8.0)
    first, second = (ui.read_recording(folder / f"run{seed}.csv", robot) for seed in range(2))
    noise = 3e-4 * np.random.default_rng(0).standard_normal(first.position.shape)
    return [first, replace(second, position=second.position + noise, sha256="noisy")]  # its own cut-off is lower


@pytest.fixture(params=["automatic", "cut-off of the user", "payload in one log"])
def project(request: pytest.FixtureRequest) -> Project:
    settings: dict[str, Any] = {
        "automatic": {},
        "cut-off of the user": {"signals": {"cutoff": 6.0}},
        "payload in one log": {"drive": {"payload": {"link": "l3", "mass": 0.1, "com": [0.0, 0.0, 0.05], "logs": ["run1"]}}},
    }
    return parse_project(settings[request.param])


def seen_by(module: Any, name: str, at: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The values of an argument of a function, each time a module calls it."""
    seen, function = [], getattr(module, name)

    def noted(*given: Any, **options: Any) -> Any:
        seen.append(given[at])
        return function(*given, **options)

    monkeypatch.setattr(module, name, noted)
    return seen


def assert_same(one: Sequence[Segment], other: Sequence[Segment]) -> None:
    for a, b in zip(one, other, strict=True):
        assert (a.log, a.start, a.rate) == (b.log, b.start, b.rate)
        for name in SIGNALS:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_a_log_has_the_same_segments_in_every_command(
    robot: Robot, logs: list[Recording], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined = seen_by(checked_logs, "physics_findings", 1, monkeypatch)
    estimated = seen_by(identify, "estimate_from_data", 0, monkeypatch)
    compared = seen_by(validate, "filtered_errors", 0, monkeypatch)
    alone = [prepare_log(log, robot, project.build_drive(robot), project.signal_config()).examined.cutoff for log in logs]
    assert project.signals.cutoff != "auto" or alone[0] > 1.2 * alone[1]
    ui.inspect(robot, logs, project=project)
    ident = ui.identify(project.build_model(robot), logs, project=project, force=True)
    assert not ident.signals.get("delay", {}).get("compensated")
    (prepared,) = estimated
    by_inspect, by_identify = examined[0], examined[1]
    assert [cutoff for _, cutoff in by_inspect] == [cutoff for _, cutoff in by_identify]
    for (one, _), (other, _) in zip(by_inspect, by_identify, strict=True):
        assert_same(one, other)
    for recording in logs:
        validate.torque_error(ident, recording, force=True)
    for known, other in zip(prepared.logs, compared, strict=True):
        assert_same(known.segments, other.segments)


def test_a_given_delay_holds_for_further_logs_also_where_none_can_be_estimated() -> None:
    """With elastic joints, or too little motion, the training logs are conditioned with it and not tested for one."""
    project = parse_project({"signals": {"delay": 0.02}})
    assert project.further_config({"cutoff": 5.0, "decimate": 20.0}).delay == project.signal_config().delay == 0.02
    found = {"cutoff": 5.0, "decimate": 20.0, "delay": {"compensated": 0.03}}
    assert parse_project({}).further_config(found).delay == 0.03
    assert parse_project({}).further_config({"cutoff": 5.0, "decimate": 20.0}).delay == 0.0
