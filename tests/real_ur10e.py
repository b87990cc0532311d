"""The UR10e whose logs are in the data folder: what their columns hold, its torque constants, and how tests read them."""

from pathlib import Path
from typing import Any

from urdf_ident import DynamicModel, Recording, read_recording
from urdf_ident.project import Project, parse_project

COLUMNS = {
    "time": 0,
    "position": list(range(1, 7)),
    "velocity": list(range(7, 13)),
    "effort": list(range(13, 19)),
    "effort_target": list(range(19, 25)),
    "torque_target": list(range(25, 31)),
}
#: Torque per motor current of each joint [N·m/A].
CONSTANTS = [11.976, 11.976, 9.8386, 10.763, 10.763, 10.763]
SIMPLE = ["viscous", "coulomb", "offset"]


def columns_given(**settings: Any) -> Project:
    """A project that says nothing but what the columns hold, and the given settings."""
    return parse_project({"log": {"columns": COLUMNS, "units": {"effort": "A"}}, **settings})


def constants_given(friction: Any = SIMPLE, **settings: Any) -> Project:
    """A project that also gives the torque constants and the friction laws."""
    return columns_given(drive={"gain": CONSTANTS}, model={"friction": friction}, **settings)


def read_logs(data: Path, project: Project) -> tuple[DynamicModel, list[Recording]]:
    """The model of a project, and all seven logs."""
    model = project.build_model(project.build_robot(data / "ur10e" / "ur10e.urdf"))
    layout = project.log
    return model, [read_recording(path, model.robot, layout) for path in sorted((data / "ur10e").glob("*.csv"))]
