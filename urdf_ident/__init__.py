"""Find the dynamic model that a robot really has, from its URDF and its logs.

The public names are loaded on first use, so that ``import urdf_ident`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .data.readers.read import read_recording as read_recording
    from .data.readers.sources import expand_logs as expand_logs
    from .data.recording import Recording as Recording
    from .errors import UrdfIdentError as UrdfIdentError
    from .excitation.design import Design as Design
    from .excitation.design import design_excitation as design_excitation
    from .excitation.sequential import forecast as forecast
    from .excitation.sweeps import bidirectional_experiment as bidirectional_experiment
    from .model.base import BaseParameters as BaseParameters
    from .model.drive import Drive as Drive
    from .model.dynamic_model import DynamicModel as DynamicModel
    from .model.library import robot_path as robot_path
    from .model.robot import Robot as Robot
    from .motion.collision.collisions import Collisions as Collisions
    from .motion.collision.world import read_world as read_world
    from .pipeline.identify import identify as identify
    from .pipeline.validate import validate as validate
    from .project import Project as Project
    from .project import load_project as load_project
    from .result.exports import write_mjcf as write_mjcf
    from .result.exports import write_sidecar as write_sidecar
    from .result.exports import write_urdf as write_urdf
    from .result.file import load as load
    from .result.identification import Identification as Identification

_HOME = {
    "BaseParameters": "model.base",
    "Collisions": "motion.collision.collisions",
    "Design": "excitation.design",
    "Drive": "model.drive",
    "DynamicModel": "model.dynamic_model",
    "Identification": "result.identification",
    "Project": "project",
    "Recording": "data.recording",
    "Robot": "model.robot",
    "UrdfIdentError": "errors",
    "bidirectional_experiment": "excitation.sweeps",
    "design_excitation": "excitation.design",
    "expand_logs": "data.readers.sources",
    "forecast": "excitation.sequential",
    "identify": "pipeline.identify",
    "load": "result.file",
    "load_project": "project",
    "read_recording": "data.readers.read",
    "read_world": "motion.collision.world",
    "robot_path": "model.library",
    "validate": "pipeline.validate",
    "write_mjcf": "result.exports",
    "write_sidecar": "result.exports",
    "write_urdf": "result.exports",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'urdf_ident' has no attribute '{name}'")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
