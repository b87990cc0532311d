"""Remedies are promises: for each kind of judgement whose remedy has settings, a log (or project) with the fault is made, the
settings are applied as data, and then the judgement must be gone and the log, or result, must be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import yaml
from conftest import arm_urdf
from logs import Truth, fourier, torques, write_csv

import urdf_ident as ui
from urdf_ident.errors import LogError
from urdf_ident.judgements.catalogue import Id
from urdf_ident.pipeline.checked_logs import training_logs
from urdf_ident.pipeline.inspect import examine_logs
from urdf_ident.project import parse_project
from urdf_ident.signals.prepare import PreparedLog

ARM = ui.Robot.from_urdf(arm_urdf("zyyx"))
#: Position at which the last joint stands in the logs of a locked joint [rad].
HELD = 1.2
Log = dict[str, np.ndarray]


@dataclass(frozen=True)
class Fault:
    """A fault of the log of a robot, or a wrong project, and what is right after the remedy.

    Attributes:
        log: What it does to the columns t (N,), q, v, tau (N, n) of a sound log.
        project: The project before the remedy.
        velocity: Whether velocities are logged.
        still: Whether the last joint stands at :data:`HELD`.
        settings: The settings that the remedy must state, within 2 %; None where it changes what joints have.
        within: Largest error of positions and torques afterwards, over their range.
        urdf: What the URDF states otherwise.
        seconds: Length of the log.
    """

    log: Callable[[Log], Log] = lambda log: log
    project: Mapping[str, Any] = field(default_factory=dict)
    velocity: bool = False
    still: bool = False
    settings: Mapping[str, Any] | None = None
    within: float = 0.05
    urdf: Callable[[str], str] = lambda text: text
    seconds: float = 12.0


def changed(**columns: Callable[[np.ndarray], np.ndarray]) -> Callable[[Log], Log]:
    """A change of whole columns."""
    return lambda log: {**log, **{name: change(log[name]) for name, change in columns.items()}}


def of_joint(j: int, factor: float, more: float = 0.0) -> Callable[[np.ndarray], np.ndarray]:
    """A change of one joint's column."""
    return lambda values: np.column_stack([factor * column + more if k == j else column for k, column in enumerate(values.T)])


def without_gravity(log: Log) -> Log:
    zero = np.zeros_like(log["q"])
    none = Truth(*np.zeros((4, ARM.n)))
    return {**log, "tau": log["tau"] - torques(ARM, none, log["q"], zero, zero)}


def zeros(*degrees: float) -> Callable[[Log], Log]:
    """Zeros that are to be added to the logged positions, by joint."""
    return changed(q=lambda q: q - np.radians(degrees))


FAULTS: dict[Id, Fault] = {
    Id.EFFORT_SIGN: Fault(changed(tau=of_joint(1, -1.0))),
    Id.EFFORT_SCALE: Fault(changed(tau=of_joint(1, 0.5))),
    Id.POSITION_ZERO: Fault(changed(q=of_joint(1, 1.0, -0.6))),
    Id.POSITION_UNIT: Fault(changed(q=np.degrees), settings={"log.units.position": "deg"}),
    Id.TIME_UNIT: Fault(changed(t=lambda t: 1e3 * t), settings={"log.units.time": "ms"}),
    Id.TIME_SCALE: Fault(changed(t=lambda t: 2.0 * t), settings={"log.rate": 100.0}, seconds=20.0),
    Id.EFFORT_DELAY: Fault(
        changed(tau=lambda tau: np.vstack([tau[:4], tau[:-4]])),
        project={"signals": {"delay": 0.0}},
        settings={"signals.delay": "auto"},
    ),
    Id.GRAVITY_DIRECTION: Fault(
        project={"robot": {"gravity": [0.0, 0.0, 9.81]}}, settings={"robot.gravity": [0.0, 0.0, -9.81]}
    ),
    Id.EFFORT_WITHOUT_GRAVITY: Fault(without_gravity, settings={"robot.gravity": [0.0, 0.0, 0.0]}),
    Id.LOCKED_JOINT: Fault(project={"robot": {"lock": {"j4": 0.0}}}, still=True, settings={"robot.lock.j4": HELD}),
    Id.VELOCITY_UNIT: Fault(changed(v=np.degrees), velocity=True, settings={"log.units.velocity": "deg/s"}),
    Id.VELOCITY_SCALE: Fault(changed(v=lambda v: 10.0 * v), velocity=True, settings={"signals.velocity": "differentiated"}),
    Id.POSITION_BANDWIDTH: Fault(project={"signals": {"cutoff": 0.4}}, settings={"signals.cutoff": "auto"}),
    Id.MASS_SCALE: Fault(changed(tau=lambda tau: 0.1 * tau), within=0.1),  # as sure as masses of a URDF usually are
    Id.NOT_CONSISTENT: Fault(project={"consistency": {"method": "minimum_norm"}}, settings={"consistency.method": "lmi"}),
}


def columns(quantity: str, *joints: str) -> dict[str, list[str]]:
    """The columns of a quantity, in another order of joints than the header's."""
    return {quantity: [f"{({'position': 'q', 'velocity': 'v', 'effort': 'tau'})[quantity]}_{joint}" for joint in joints]}


def exchanged(values: np.ndarray) -> np.ndarray:
    """The columns of the second and third joint exchanged."""
    return values[:, [0, 2, 1, 3]]


#: Kinds whose remedy names a setting in words and leaves its value to the reader, with what a reader sets.
IN_WORDS: dict[Id, Fault] = {
    Id.JOINT_AT_REST: Fault(still=True, settings={"robot.lock.j4": HELD}),
    Id.EFFORT_BEYOND_LIMIT: Fault(changed(tau=lambda tau: 1e3 * tau), settings={"log.units.effort": "mN·m"}),
    Id.VELOCITIES_EXCHANGED: Fault(
        changed(v=exchanged), velocity=True, settings={"log.columns": columns("velocity", "j1", "j3", "j2", "j4")}
    ),
    Id.JOINTS_EXCHANGED: Fault(
        changed(q=exchanged, tau=exchanged),
        settings={"log.columns": columns("position", "j1", "j3", "j2", "j4") | columns("effort", "j1", "j3", "j2", "j4")},
    ),
    Id.POSITION_COUPLED: Fault(
        changed(q=lambda q: q + np.outer(q[:, 1], [0.0, 0.0, 1.0, 0.0])),
        settings={
            "drive.reduction": [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]],
            "log.side.position": "motor",
        },
    ),
    Id.GEARS_MISSING: Fault(project={"log": {"side": {"effort": "motor"}}}, settings={"log.side": {}}),
    Id.SCALE_UNPROVEN: Fault(
        urdf=lambda text: re.sub(r'mass value="[^"]+"', 'mass value="1.0"', text), settings={"drive.scale_known": True}
    ),
}
#: Judgements of a result rather than of logs.
OF_A_RESULT = {Id.MASS_SCALE, Id.NOT_CONSISTENT, Id.SCALE_UNPROVEN}
#: Kinds whose remedy names a setting that no test applies, each with the reason.
UNTESTED: dict[Id, str] = {
    **dict.fromkeys(
        (Id.AT_REST, Id.EFFORT_MISSING, Id.CLOCK_STANDS, Id.EFFORT_TWICE, Id.POSITION_TWICE),
        "the user alone knows which column holds the signal, if any does",
    ),
    **dict.fromkeys(
        (Id.CONSTANTS_UNKNOWN, Id.EFFORT_SCALE_OPEN, Id.EFFORT_CROSSTALK, Id.GRAVITY_SCALE),
        "gains and couplings are on a data sheet, and the log does not determine them",
    ),
    **dict.fromkeys(
        (Id.CONSTRAINTS_CONTRADICTED, Id.CONSTRAINTS_COST, Id.PRIOR_CONTRADICTED),
        "a constraint that does not hold is no longer judged: only the error on other motion tells whether that was right",
    ),
    **dict.fromkeys((Id.FRICTION_IMPLAUSIBLE, Id.TORQUE_IMPLAUSIBLE), "which laws a short log can carry depends on the log"),
    Id.NOT_OPTIMAL: "where a solver stops depends on its version",
    Id.MASS_AT_LIMIT: "with a higher limit the mass is still far from the URDF's (mass-far)",
    Id.SPRING: "it describes the log, whatever laws the model lists",
}


def names_a_setting(text: str) -> bool:
    """Whether a remedy names a key of the project file."""
    sections = "|".join(ui.Project.model_fields)
    return re.search(rf"\b(?:{sections})\.\w|`(?:{sections}): \{{", text) is not None


def sound(*, still: bool = False, seconds: float = 12.0) -> Log:
    """A log of the arm without a fault."""
    t, q, v, a = fourier(ARM.n, seconds, 100.0, 3)
    if still:
        q[:, -1], v[:, -1], a[:, -1] = HELD, 0.0, 0.0
    tau, noise = torques(ARM, Truth.of(ARM.n), q, v, a), np.random.default_rng(7)
    noisy = [1e-5, 1e-4, 0.03 * tau.std(axis=0)]
    q, v, tau = (x + size * noise.standard_normal(x.shape) for x, size in zip((q, v, tau), noisy, strict=True))
    return {"t": t, "q": q, "v": v, "tau": tau}


@dataclass(frozen=True)
class Run:
    """A log in the eyes of a project."""

    project: ui.Project
    path: Path

    @property
    def robot(self) -> ui.Robot:
        return self.project.build_robot(self.urdf)

    @property
    def urdf(self) -> Path:
        return self.path.parent / "arm.urdf"

    def read(self) -> list[ui.Recording]:
        return [ui.read_recording(self.path, self.robot, self.project.log)]

    def judged(self, id: Id) -> list[ui.Judgement]:
        """What lowers the level, or is of a kind."""
        drive, config = self.project.build_drive(self.robot), self.project.signal_config()
        if id in OF_A_RESULT:
            verdict = ui.identify(self.project.build_model(self.robot), self.read(), project=self.project).verdict
            judgements: Sequence[ui.Judgement] = [item for item in verdict.judgements if item.id is not Id.NOT_VALIDATED]
        elif id is Id.EFFORT_DELAY:  # which `inspect` names whatever the settings do about it
            judgements = self.prepared()[0].report.findings
        else:
            judgements = examine_logs(self.read(), self.robot, drive, config)[0].findings
        return [item for item in judgements if item.level != "good" or item.id is id]

    def prepared(self) -> Sequence[PreparedLog]:
        return training_logs(self.project.build_model(self.robot), self.read(), self.project, force=True).logs

    def motion(self) -> np.ndarray:
        """Positions and torques as the estimate gets them; the examination, which changes none of them, is left out."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("urdf_ident.pipeline.checked_logs.physics_findings", lambda robot, motions, *_: [[] for _ in motions])
            (log,) = self.prepared()
        return np.hstack([np.vstack([part.q for part in log.segments]), np.vstack([part.tau for part in log.segments])])

    def after(self, settings: Mapping[str, Any]) -> Run:
        return Run(self.project.with_settings(settings, self.robot), self.path)


def test_every_kind_whose_remedy_sets_something_is_tested_or_says_why_not() -> None:
    """All others ask for another recording, or for a check of the robot, its sensors or its URDF."""
    assert {id for id in Id if id.entry.settings} == {*FAULTS}
    named = {id for id in Id if not id.entry.settings and names_a_setting(id.entry.remedy)}
    assert named - {*IN_WORDS} == {*UNTESTED}
    assert all(UNTESTED.values())


def test_a_setting_that_the_catalogue_does_not_know_cannot_be_promised() -> None:
    with pytest.raises(ValueError, match="knows no setting"):
        ui.Judgement(Id.TIME_UNIT, "words", ui.Remedy("{settings}", {"drive.gain": 2.0}))


#: Several zeros at once, of which each takes up what the others leave if they are searched one by one; a clock that disagrees
#: with the logged velocities.
MORE = {
    "clock": (Id.TIME_SCALE, Fault(changed(t=lambda t: 1.3 * t), velocity=True, settings={"log.rate": 100.0})),
    "two": (Id.POSITION_ZERO, Fault(zeros(0.0, 90.0, -50.0, 0.0))),
}


def written(folder: Path, log: Log, project: Mapping[str, Any], *, velocity: bool, urdf: str = ARM.urdf) -> Run:
    (folder / "arm.urdf").write_text(urdf)
    path = write_csv(folder / "run.csv", ARM.joints, log["t"], log["q"], log["tau"], log["v"] if velocity else None)
    listed = {"model": {"friction": ["viscous", "coulomb", "offset"]}}
    return Run(ui.Project.model_validate({**listed, **project}), path)


@cache
def true_motion_of(*, still: bool, velocity: bool, seconds: float) -> np.ndarray:
    """What the estimate gets of the log without a fault, in a right project."""
    with TemporaryDirectory() as folder:
        held = {"robot": {"lock": {"j4": HELD}}} if still else {}
        return written(Path(folder), sound(still=still, seconds=seconds), held, velocity=velocity).motion()


@pytest.mark.parametrize(
    ("id", "fault"),
    [*FAULTS.items(), *IN_WORDS.items(), *MORE.values()],
    ids=[*map(str, FAULTS), *map(str, IN_WORDS), *MORE],
)
def test_the_settings_of_a_remedy_cure_what_is_judged(tmp_path: Path, id: Id, fault: Fault) -> None:
    log, urdf = fault.log(sound(still=fault.still, seconds=fault.seconds)), fault.urdf(ARM.urdf)
    wrong = written(tmp_path, log, fault.project, velocity=fault.velocity, urdf=urdf)
    told = next(item for item in wrong.judged(id) if item.id is id)
    assert told.remedy is not None
    settings = told.remedy.settings or (fault.settings if id in IN_WORDS else {})
    assert settings
    if fault.settings is not None and id in FAULTS:
        assert told.remedy.settings == {
            key: value if isinstance(value, str) else pytest.approx(value, rel=0.02, abs=0.01)
            for key, value in fault.settings.items()
        }
    cured = wrong.after(settings)
    assert [str(item) for item in cured.judged(id)] == []
    if id is not Id.EFFORT_WITHOUT_GRAVITY:
        cured_motion, true_motion = (
            cured.motion(),
            true_motion_of(still=fault.still, velocity=fault.velocity, seconds=fault.seconds),
        )
        # where efforts are shifted, a few samples end without one; a rate that is not quite right cuts a few more or fewer
        few, many = sorted((true_motion, cured_motion), key=len)
        assert len(many) - len(few) < 8
        pairs = (many[first : first + len(few)] for first in range(len(many) - len(few) + 1))
        apart = min((np.abs(few - others) for others in pairs), key=np.sum)
        assert (apart.max(axis=0) < fault.within * np.ptp(true_motion, axis=0)).all()


def test_gear_ratios_without_effect_are_refused_with_the_setting_that_they_need(tmp_path: Path) -> None:
    log = sound()
    path = write_csv(tmp_path / "run.csv", ARM.joints, log["t"], log["q"], log["tau"])
    for layout in ({}, {"log": {"side": {"effort": "motor"}}}):
        project = ui.Project.model_validate({"drive": {"reduction": [1.0, 1.0, 1.0, 2.0]}, **layout})
        logs = [ui.read_recording(path, ARM, project.log)]
        if layout:
            examine_logs(logs, ARM, project.build_drive(ARM), project.signal_config())
            continue
        for run in (
            lambda p=project, x=logs: ui.identify(p.build_model(ARM), x, project=p, force=True),
            lambda p=project, x=logs: examine_logs(x, ARM, p.build_drive(ARM), p.signal_config()),
        ):
            with pytest.raises(LogError, match=r"has no effect.*log: \{side: \{position: motor\}\}"):
                run()


def refusal_of(data: Any) -> str:
    """Why a project is refused; empty if it is not."""
    try:
        parse_project(data)
    except ui.UrdfIdentError as error:
        return str(error)
    return ""


def test_the_settings_that_remedies_name_exist() -> None:
    """A remedy of the catalogue may name a setting without its value; what it names must be a key of project files."""
    sections = set(ui.Project.model_fields)
    for id in Id:
        for text in re.findall(r"`([^`]+)`", id.entry.remedy):
            key = re.fullmatch(r"(\w+(?:\.\w+)+)(?:: (\w+))?", text)
            data: Any = yaml.safe_load(text.replace("...", "null")) if "{" in text else None
            for name in reversed(key[1].split(".")) if key else ():
                data = {name: data}
            if isinstance(data, dict) and set(data) <= sections:
                error = refusal_of(data)
                assert "unknown key" not in error, (id, text)
                assert not error or "null" in yaml.safe_dump(data), (id, text, error)


def test_settings_change_what_the_project_holds() -> None:
    project = ui.Project.model_validate({"drive": {"gain": [2.0, 1.0, 1.0, 1.0], "joint_offset": 0.1}, "log": {"rate": 100.0}})
    changed = project.with_settings(
        {
            "drive.gain": {"multiply": {ARM.joints[0]: -1.0}},
            "drive.joint_offset": {"add": {ARM.joints[1]: 0.2}},
            "log.rate": {"multiply": 2.0},
            "robot.lock.finger": 0.5,
        },
        ARM,
    )
    assert changed.drive.gain == [-2.0, 1.0, 1.0, 1.0]
    assert changed.drive.joint_offset == pytest.approx([0.1, 0.3, 0.1, 0.1])
    assert changed.log.rate == 200.0
    assert changed.robot.lock == {"finger": 0.5}
    with pytest.raises(ui.UrdfIdentError, match="cannot be changed"):
        ui.Project().with_settings({"log.rate": {"multiply": 2.0}}, ARM)
    with pytest.raises(ui.UrdfIdentError, match="unknown key"):
        ui.Project().with_settings({"log.rates": 2.0}, ARM)
