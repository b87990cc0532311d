"""Identify the dynamic model of a real robot from its URDF and its logs.

Each command of ``urdf-ident`` is a function of the same name; `design` is :func:`design_excitation`, `export` and `report` are
the functions ``write_*``, and `plot` is the attribute ``plot`` of an :class:`Identification`. The modules :mod:`.errors` (all
errors) and :mod:`.friction` (all laws) are public too. Names are loaded on first use, so that
``import urdf_ident`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import errors as errors
    from . import friction as friction
    from .comparison.changes import compare as compare
    from .comparison.changes import trend as trend
    from .errors import QualityError as QualityError
    from .errors import UrdfIdentError as UrdfIdentError
    from .excitation.design import Design as Design
    from .excitation.design import design_excitation as design_excitation
    from .excitation.sequential import forecast as forecast
    from .excitation.sweeps import bidirectional_experiment as bidirectional_experiment
    from .export.on_robot import export_motion as export_motion
    from .judgements.judgement import Judgement as Judgement
    from .judgements.judgement import Remedy as Remedy
    from .judgements.judgement import Verdict as Verdict
    from .logs.motions import read_trajectory as read_trajectory
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
    from .motion.fourier import random_fourier as random_fourier
    from .motion.limits import Limits as Limits
    from .motion.trajectory import Trajectory as Trajectory
    from .pipeline.check import check as check
    from .pipeline.demo import demo as demo
    from .pipeline.fleet import fleet as fleet
    from .pipeline.identify import identify as identify
    from .pipeline.inspect import inspect as inspect
    from .pipeline.payload import payload as payload
    from .pipeline.simulate import simulate as simulate
    from .pipeline.validate import validate as validate
    from .project import Project as Project
    from .project import load_project as load_project
    from .report import write_report as write_report
    from .result.identification import Identification as Identification
    from .result.identification import load as load
    from .result.write import write_mjcf as write_mjcf
    from .result.write import write_sdf as write_sdf
    from .result.write import write_sidecar as write_sidecar
    from .result.write import write_urdf as write_urdf
    from .samples import Segment as Segment
    from .simulation.simulate import write_log as write_log
    from .viz.player import play as play

_HOME = {
    "BaseParameters": "model.base",
    "Collisions": "motion.collision.collisions",
    "Design": "excitation.design",
    "Drive": "model.drive",
    "DynamicModel": "model.dynamic_model",
    "ElasticModel": "model.elasticity",
    "Identification": "result.identification",
    "Judgement": "judgements.judgement",
    "Limits": "motion.limits",
    "Project": "project",
    "QualityError": "errors",
    "Recording": "logs.recording",
    "Remedy": "judgements.judgement",
    "Robot": "model.robot",
    "Segment": "samples",
    "Trajectory": "motion.trajectory",
    "UrdfIdentError": "errors",
    "Verdict": "judgements.judgement",
    "bidirectional_experiment": "excitation.sweeps",
    "check": "pipeline.check",
    "compare": "comparison.changes",
    "demo": "pipeline.demo",
    "design_excitation": "excitation.design",
    "expand_logs": "logs.sources",
    "export_motion": "export.on_robot",
    "find_collisions": "motion.collision.find",
    "fleet": "pipeline.fleet",
    "forecast": "excitation.sequential",
    "identify": "pipeline.identify",
    "inspect": "pipeline.inspect",
    "load": "result.identification",
    "load_project": "project",
    "payload": "pipeline.payload",
    "play": "viz.player",
    "random_fourier": "motion.fourier",
    "read_recording": "logs.read",
    "read_trajectory": "logs.motions",
    "read_world": "motion.collision.world",
    "robot_path": "model.bundled",
    "simulate": "pipeline.simulate",
    "trend": "comparison.changes",
    "validate": "pipeline.validate",
    "write_log": "simulation.simulate",
    "write_mjcf": "result.write",
    "write_report": "report",
    "write_sdf": "result.write",
    "write_sidecar": "result.write",
    "write_urdf": "result.write",
}
_MODULES = ("errors", "friction")

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("urdf-ident")
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'urdf_ident' has no attribute '{name}'")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
