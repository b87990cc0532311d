"""The project file: frozen and validated settings, each with its default and unit.

It describes what cannot be determined otherwise: columns and units of logs of other programs, gear ratios, torque
constants, locked joints. Everything else is better left at its default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from operator import add, mul
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Field, PositiveFloat, ValidationError, field_validator, model_validator

from .errors import MissingFileError, ProjectError, nearest
from .excitation.settings import ExcitationSection
from .files.documents import parse_yaml
from .files.read_write import read_text
from .logs.columns.layout import LogLayout
from .model.robot import STANDARD_GRAVITY, Robot
from .settings import Auto, CompensationSection, ConsistencySection, EstimationSection, Section
from .signals.config import LONGEST_DELAY, SignalConfig
from .simulation.settings import SimulationSection

if TYPE_CHECKING:
    from .model.drive import Drive
    from .model.dynamic_model import DynamicModel
    from .model.payload import Payload

_READ = "docs/project_file.md lists every key"
#: Phrases of pydantic, and what a user understands.
_WORDS = {
    "valid (tuple|list)": "list",
    r"valid dictionary( or instance of \w+)?": "mapping (`key: value`)",
    "valid (number|integer|string|boolean), unable to .*": r"valid \1",
    "a valid integer": "a whole number",
    "a valid boolean": "true or false",
    "a valid (number|string)": r"a \1",
    "^(greater|less) than": r"a number \1 than",
}


class RobotSection(Section):
    """Which robot, and which of its joints move."""

    urdf: str | None = Field(None, description="path of the URDF, relative to this file")
    joints: list[str] | None = Field(None, description="joints to identify, in the order of the log's index lists")
    lock: dict[str, float] = Field({}, description="locked joints: their positions [rad or m]")
    mimic: Literal["lock", "identify"] = Field(
        "lock", description="joints that mimic others: locked with them, or identified as one coordinate"
    )
    gravity: tuple[float, float, float] = Field(STANDARD_GRAVITY, description="gravity vector in the base frame [m/s²]")


class PayloadSection(Section):
    """A known body that some logs carry; with ``gain: auto`` it sets the scale of all torque constants."""

    logs: list[str] = Field(description="names of the logs that carry it; * and ? as in file names")
    link: str = Field(description="link that carries it; com and inertia are in its frame")
    mass: PositiveFloat = Field(description="[kg]")
    com: tuple[float, float, float] = Field(description="centre of mass [m]")
    inertia: tuple[float, float, float, float, float, float] = Field(
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        description="ixx, ixy, ixz, iyy, iyz, izz about the centre of mass [kg·m²]; default: point mass",
    )


class DriveSection(Section):
    """Gears, torque constants and zero positions."""

    reduction: list[float] | list[list[float]] | None = Field(None, description="A in q_motor = A (q - offset); default: 1")
    gain: list[float] | float | Auto | None = Field(None, description="torque per unit of effort [N·m or N per unit]")
    joint_offset: list[float] | float | None = Field(
        None, description="joint position at motor zero, or what is added to logged joint positions [rad or m]"
    )
    payload: PayloadSection | None = Field(None, description="a known body that some logs carry")
    scale_known: bool = Field(
        False, description="the scale of the torques was checked: masses far from the URDF's do not lower the verdict"
    )


class SignalsSection(Section):
    """Conditioning of the signals; `auto` chooses from the data."""

    cutoff: PositiveFloat | Auto = Field(
        "auto", description="low-pass of the positions for the fit [Hz]; auto: from the spectrum"
    )
    prediction: PositiveFloat | Auto = Field(
        "auto",
        description="low-pass of the positions for predictions [Hz]; auto: `cutoff` if given, else by held-out error",
    )
    decimate: PositiveFloat | Auto = Field(
        "auto", description="rows per second for the estimators [Hz]; auto: from the cut-off"
    )
    velocity: Literal["auto", "logged", "differentiated"] = Field("auto", description="auto: logged if it agrees with dq/dt")
    periodic: Literal["auto", "on", "off"] = Field(
        "auto", description="average the periods of a motion that repeats; auto: where a log holds three or more"
    )
    delay: Annotated[float, Field(ge=-LONGEST_DELAY, le=LONGEST_DELAY)] | Auto = Field(
        "auto", description="delay of the efforts to correct [s]; auto: if the logs clearly show one"
    )

    @field_validator("periodic", mode="before")
    @classmethod
    def _switch(cls, value: Any) -> Any:
        return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value  # YAML 1.1 reads on as true


class ValidationSection(Section):
    """How held-out logs are scored."""

    score_cutoff: PositiveFloat | Auto = Field(
        "auto", description="low-pass of measured and predicted torque [Hz]; auto: 10, independent of signals.cutoff"
    )


class ElasticSection(Section):
    """Springs between motors and links; `elastic: true` uses all defaults."""

    coupling: Literal["complete", "reduced"] = Field("complete", description="reduced: without the rotors' gyroscopic torques")
    damping: bool = Field(False, description="damping inside the springs")
    preload: bool = Field(True, description="the zeros of motor and link encoders may differ")
    rigid: list[str] = Field([], description="joints that are modelled as rigid; coupled drives: joints with a rigid motor")
    encoder_step: PositiveFloat | Auto = Field(
        "auto", description="coarser encoder's step after the gear [rad or m]; auto: logs"
    )
    least_counts: float = Field(10.0, ge=0, description="rms deflection in encoder steps from which a spring is identified")


class ModelSection(Section):
    """What the model contains besides rigid bodies."""

    friction: Auto | Literal["none"] | list[Any] | dict[str, list[Any]] = Field("auto", description="laws, or laws by joint")
    motor_friction: dict[str, list[Any]] = Field({}, description="motor-side laws of coupled axes, by joint")
    rotor_inertia: bool = Field(True, description="reflected rotor inertia of every axis")
    elastic: ElasticSection | None = Field(None, description="springs between motors and links; needs motor positions")

    @field_validator("elastic", mode="before")
    @classmethod
    def _elastic_switch(cls, value: Any) -> Any:
        return {} if value is True else None if value is False else value


class Project(Section):
    """A complete project file."""

    robot: RobotSection = RobotSection()
    drive: DriveSection = DriveSection()
    log: LogLayout = LogLayout()
    signals: SignalsSection = SignalsSection()
    validation: ValidationSection = ValidationSection()
    model: ModelSection = ModelSection()
    estimation: EstimationSection = EstimationSection()
    consistency: ConsistencySection = ConsistencySection()
    compensation: CompensationSection = CompensationSection()
    excitation: ExcitationSection = ExcitationSection()
    simulation: SimulationSection = SimulationSection()

    @model_validator(mode="after")
    def _essential_is_asked_for(self) -> Project:
        if self.consistency.method == "essential" and self.estimation.essential.rule == "none":
            raise ValueError("consistency.method: essential needs a rule in estimation.essential, got none")
        return self

    @model_validator(mode="before")
    @classmethod
    def _drive_alias(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and isinstance(data.get("log"), Mapping) and "drive" in data["log"]:
            if "drive" in data:
                raise ValueError("'drive' and its alias 'log.drive' are both given")
            log = dict(data["log"])
            return {**data, "drive": log.pop("drive"), "log": log}
        return data

    def build_robot(self, urdf: str | Path | None = None, folder: Path | None = None) -> Robot:
        """The robot of this project.

        Args:
            urdf: A URDF that overrides the one of the file.
            folder: The folder that the file's URDF path is relative to.

        Raises:
            ProjectError: No URDF is given.
            UrdfError, ModelError: See :meth:`Robot.from_urdf`.
        """
        own = self.robot.urdf
        if urdf is None and own is None:
            raise ProjectError(
                "no URDF is named",
                remedy="give ROBOT.urdf or --robot, or robot.urdf in the project file",
            )
        path = urdf if urdf is not None else (folder or Path()) / Path(str(own)).expanduser()
        chosen = self.robot
        return Robot.from_urdf(path, joints=chosen.joints, lock=chosen.lock, gravity=chosen.gravity, mimic=chosen.mimic)

    def build_drive(self, robot: Robot) -> Drive:
        """The drive train; lists in the robot's order are converted to model order.

        Args:
            robot: The robot.

        Returns:
            The drive, in model order.

        Raises:
            ModelError: Wrong lengths or a singular reduction.
        """
        from .model.drive import Drive

        gain = None if self.drive.gain == "auto" else self.drive.gain
        origin = "auto" if self.drive.gain == "auto" else None
        listed = Drive.build(
            robot.n, reduction=self.drive.reduction, gain=gain, offset=self.drive.joint_offset, gain_origin=origin
        )
        place = robot.places_in_order
        return Drive(listed.reduction[place][:, place], listed.gain[place], listed.offset[place], listed.gain_origin)

    def with_settings(self, settings: Mapping[str, Any], robot: Robot) -> Project:
        """The project with settings applied, as remedies hold them.

        Args:
            settings: Key with dots → value, or a change of the present one (:class:`.judgements.judgement.Remedy`).
            robot: Its joints give the order of lists.

        Raises:
            ProjectError: Unknown key, invalid value, or a change of a value that the project does not hold.
        """
        data = self.model_dump(exclude_unset=True)
        for key, value in settings.items():
            section, (*path, name) = data, key.split(".")
            for part in path:
                section = section.setdefault(part, {})
            how = next(iter(value), None) if isinstance(value, Mapping) and len(value) == 1 else None
            if how not in ("multiply", "add"):
                section[name] = value
                continue
            present, by = section.get(name), value[how]
            change, neutral = (mul, 1.0) if how == "multiply" else (add, 0.0)
            if isinstance(by, Mapping):  # of single joints: the value becomes a list of all
                every = (
                    list(present) if isinstance(present, list | tuple) else [neutral if present is None else present] * robot.n
                )
                for joint, size in by.items():
                    at = robot.order.index(joint)
                    every[at] = change(every[at], size)
                section[name] = every
            elif present is None:
                raise ProjectError(f"'{key}' is not given, so that it cannot be changed", remedy="give its value")
            else:
                section[name] = change(present, by)
        return parse_project(data)

    def build_payload(self, robot: Robot) -> Payload | None:
        """The known payload.

        Args:
            robot: The robot.

        Returns:
            The payload, or None if the project has none.

        Raises:
            ModelError: Its link does not exist, or its inertia is not physically consistent.
        """
        from .model.payload import Payload

        return None if self.drive.payload is None else Payload.create(robot, **self.drive.payload.model_dump())

    def build_model(self, robot: Robot) -> DynamicModel:
        """The dynamic model.

        Args:
            robot: The robot.

        Raises:
            ModelError: Unknown friction laws or joints.
        """
        from .model.dynamic_model import DynamicModel

        if self.model.elastic is not None:
            from .model.elasticity import ElasticModel

            options = self.model.elastic.model_dump()
            options["encoder_step"] = None if options["encoder_step"] == "auto" else options["encoder_step"]
            drive = None if self.drive.reduction is None else self.build_drive(robot)
            return ElasticModel(robot, drive=drive, friction=self.model.friction, rows="sum", **options)
        return DynamicModel(
            robot,
            friction=self.model.friction,
            rotor_inertia=self.model.rotor_inertia,
            drive=self.build_drive(robot),
            motor_friction=self.model.motor_friction,
        )

    def signal_config(self) -> SignalConfig:
        """Signal conditioning of the fit."""
        return SignalConfig(**self.signals.model_dump(exclude={"prediction"}))

    def further_config(self, signals: Mapping[str, Any]) -> SignalConfig:
        """Signal conditioning of further logs: that of the training logs, without averaging of periods.

        Args:
            signals: The conditioning of the training logs: ``signals`` of identification.json.
        """
        stated = 0.0 if self.signals.delay == "auto" else self.signals.delay  # where the logs were not tested for one
        delay = float(signals.get("delay", {}).get("compensated", stated))
        cutoff, decimate = float(signals["cutoff"]), signals["decimate"]
        return SignalConfig(cutoff=cutoff, decimate=decimate, velocity=self.signals.velocity, periodic="off", delay=delay)

    def scoring_config(self, signals: Mapping[str, Any]) -> SignalConfig:
        """:meth:`further_config` with the low-pass for predictions.

        Args:
            signals: The conditioning of the training logs: ``signals`` of identification.json.
        """
        config = self.further_config(signals)
        if self.signals.prediction != "auto":
            return replace(config, cutoff=float(self.signals.prediction))
        if "prediction" in signals:
            return replace(config, cutoff="auto", scale=float(signals["prediction"]["scale"]))
        return config


def load_project(path: str | Path | None, lock: Mapping[str, float] | None = None) -> tuple[Project, Path]:
    """Reads a project file.

    Args:
        path: The YAML file; all defaults if None.
        lock: Positions of joints to lock besides those of the file [rad or m].

    Returns:
        The project and the folder that its relative paths refer to.

    Raises:
        MissingFileError: The file does not exist.
        ProjectError: It cannot be parsed, or contains an unknown key or an invalid value.
    """
    project, folder = Project(), Path()
    if path is not None:
        if Path(path).is_dir():
            raise MissingFileError("the project file is a folder", where=str(path), remedy="name the YAML file")
        data = parse_yaml(read_text(path, "project file"), str(path), ProjectError, "project file")
        project, folder = parse_project({} if data is None else data, str(path)), Path(path).parent
    if lock:
        robot = project.robot.model_copy(update={"lock": {**project.robot.lock, **lock}})
        project = project.model_copy(update={"robot": robot})
    return project, folder


def parse_project(data: Any, where: str = "project file") -> Project:
    """Validates a project that is already in memory.

    Args:
        data: Nested mappings, as parsed from YAML.

    Raises:
        ProjectError: Unknown key (the nearest known one is suggested) or invalid value.
    """
    if not isinstance(data, Mapping):
        raise ProjectError(
            "this is not a project file",
            where=where,
            got=repr(data)[:40],
            expected="sections such as `robot:` and `log:`",
            remedy=_READ,
        )
    try:
        return Project.model_validate(data)
    except ValidationError as error:
        raise _refusal(error, where) from error


def _refusal(error: ValidationError, where: str) -> ProjectError:
    """The first problem of pydantic, and all others of the same value, in the words of a project file."""
    problem, *others = error.errors()
    path, place = [str(part) for part in problem["loc"]], _place(problem)
    key, got = ".".join(place), repr(problem["input"])[:80]
    if problem["type"] == "extra_forbidden":
        elsewhere = settings_called(path[-1])
        comma = "; numbers are written with a decimal point, as in 2.5" if path[-1].isdigit() else ""
        remedy = f"write {' or '.join(elsewhere)}" if elsewhere else nearest(path[-1], _keys(path[:-1])) + comma
        return ProjectError(f"unknown key '{key}'", where=where, remedy=remedy)
    if not key:  # it concerns the whole file
        return ProjectError("sections contradict each other", where=where, got=_expected(problem))
    if problem["type"] == "missing":
        return ProjectError(f"'{key}' is missing", where=where, got=got, remedy=_READ)
    same = [problem, *(other for other in others if _place(other) == place)]  # one for each type that the value may have
    expected = " or ".join(dict.fromkeys(map(_expected, same)))
    return ProjectError(f"bad value of '{key}'", where=where, got=got, expected=expected, remedy=_READ)


def settings_called(name: str) -> list[str]:
    """Returns the settings of all sections that have a name: ``["excitation.duration", "simulation.duration"]``."""
    return [f"{section}.{name}" for section in Project.model_fields if name in _keys([section])]


def _place(problem: Any) -> list[str]:
    """Keys of the value that a problem of pydantic is about, without the names of accepted types."""
    path = [str(part) for part in problem["loc"]]
    place = [
        part for part in path if not part.startswith(("literal[", "dict[", "list[", "tuple[", "function-", "constrained-"))
    ]
    return place[:-1] if len(place) > 1 and place[-1] in ("str", "int", "float", "bool") else place


def _expected(problem: Any) -> str:
    """What would have been valid, in the words of a user."""
    expected = problem["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    for pattern, words in _WORDS.items():
        expected = re.sub(pattern, words, expected)
    return str(expected)


def _keys(path: list[str]) -> list[str]:
    """The keys that a section of the project file may have; path: its own key and those around it."""
    section: Any = Project
    for part in path:
        section = section.model_fields[part].annotation if part in section.model_fields else Section
        section = next((choice for choice in get_args(section) if choice is not type(None)), section)  # X | None is X
    return list(section.model_fields)
