"""Identify the dynamic model of a real robot from its URDF and its logs.

The public names are loaded on first use, so that ``import urdf_ident`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import EstimationError as EstimationError
    from .errors import FingerprintError as FingerprintError
    from .errors import LimitError as LimitError
    from .errors import LogError as LogError
    from .errors import MissingExtraError as MissingExtraError
    from .errors import MissingFileError as MissingFileError
    from .errors import ModelError as ModelError
    from .errors import OutputError as OutputError
    from .errors import ProjectError as ProjectError
    from .errors import QualityError as QualityError
    from .errors import ShapeError as ShapeError
    from .errors import SimulationError as SimulationError
    from .errors import SolverError as SolverError
    from .errors import UnitError as UnitError
    from .errors import UrdfError as UrdfError
    from .errors import UrdfIdentError as UrdfIdentError
    from .excitation.design import Design as Design
    from .excitation.design import design_excitation as design_excitation
    from .excitation.planned.sweeps import bidirectional_experiment as bidirectional_experiment
    from .excitation.sequential import forecast as forecast
    from .logs.read import read_recording as read_recording
    from .logs.recording import Recording as Recording
    from .logs.sources import expand_logs as expand_logs
    from .model.base import BaseParameters as BaseParameters
    from .model.bundled import robot_path as robot_path
    from .model.drive import Drive as Drive
    from .model.dynamic_model import DynamicModel as DynamicModel
    from .model.elasticity import ElasticModel as ElasticModel
    from .model.robot import Robot as Robot
    from .motion.collision.collisions import Collisions as Collisions
    from .motion.collision.find import find_collisions as find_collisions
    from .motion.collision.world import read_world as read_world
    from .motion.files import read_trajectory as read_trajectory
    from .motion.fourier import random_fourier as random_fourier
    from .motion.limits import Limits as Limits
    from .pipeline.check import check as check
    from .pipeline.compare import compare as compare
    from .pipeline.compare import contradictions as contradictions
    from .pipeline.experiment import simulate as simulate
    from .pipeline.identify import identify as identify
    from .pipeline.payload import weigh as weigh
    from .pipeline.validate import validate as validate
    from .project import Project as Project
    from .project import load_project as load_project
    from .result.files.exports import write_mjcf as write_mjcf
    from .result.files.exports import write_sidecar as write_sidecar
    from .result.files.exports import write_urdf as write_urdf
    from .result.files.load import load as load
    from .result.identification import Identification as Identification
    from .simulation.simulated_log import write_log as write_log
    from .viz.player import play as play

_HOME = {
    "BaseParameters": "model.base",
    "Collisions": "motion.collision.collisions",
    "find_collisions": "motion.collision.find",
    "Design": "excitation.design",
    "Drive": "model.drive",
    "DynamicModel": "model.dynamic_model",
    "ElasticModel": "model.elasticity",
    "EstimationError": "errors",
    "FingerprintError": "errors",
    "Identification": "result.identification",
    "LimitError": "errors",
    "Limits": "motion.limits",
    "LogError": "errors",
    "MissingExtraError": "errors",
    "MissingFileError": "errors",
    "ModelError": "errors",
    "OutputError": "errors",
    "Project": "project",
    "ProjectError": "errors",
    "QualityError": "errors",
    "Recording": "logs.recording",
    "Robot": "model.robot",
    "ShapeError": "errors",
    "SimulationError": "errors",
    "SolverError": "errors",
    "UnitError": "errors",
    "UrdfError": "errors",
    "UrdfIdentError": "errors",
    "bidirectional_experiment": "excitation.planned.sweeps",
    "check": "pipeline.check",
    "compare": "pipeline.compare",
    "contradictions": "pipeline.compare",
    "design_excitation": "excitation.design",
    "expand_logs": "logs.sources",
    "forecast": "excitation.sequential",
    "identify": "pipeline.identify",
    "load": "result.files.load",
    "load_project": "project",
    "play": "viz.player",
    "random_fourier": "motion.fourier",
    "read_recording": "logs.read",
    "read_trajectory": "motion.files",
    "read_world": "motion.collision.world",
    "robot_path": "model.bundled",
    "simulate": "pipeline.experiment",
    "validate": "pipeline.validate",
    "write_log": "simulation.simulated_log",
    "weigh": "pipeline.payload",
    "write_mjcf": "result.files.exports",
    "write_sidecar": "result.files.exports",
    "write_urdf": "result.files.exports",
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("urdf-ident")
    if name not in _HOME:
        raise AttributeError(f"module 'urdf_ident' has no attribute '{name}'")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
