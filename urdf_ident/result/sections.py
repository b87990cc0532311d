"""What the program reads of the sections of identification.json that a result holds as they are; they may hold more."""

# without "from __future__ import annotations", with which every entry would count as required
from typing import NotRequired, TypedDict


class _Delay(TypedDict):
    compensated: float


class _Prediction(TypedDict):
    scale: float
    scales: tuple[float, ...]
    folds: tuple[str, ...]
    mean_rmse: tuple[float, ...]


class _Signals(TypedDict):
    rate: float
    cutoff: float
    decimate: float
    why: tuple[str, ...]
    delay: NotRequired[_Delay]
    prediction: NotRequired[_Prediction]


class _Spring(TypedDict):
    joint: str


class _Weight(TypedDict):
    weight: float
    held_out: float


class _Folds(TypedDict):
    count: float
    variance: float


class _Solver(TypedDict):
    active: NotRequired[tuple[str, ...]]
    notes: NotRequired[tuple[str, ...]]
    weight: NotRequired[float]
    springs: NotRequired[tuple[_Spring, ...]]
    weights_tried: NotRequired[tuple[_Weight, ...]]
    folds: NotRequired[_Folds]


class _Trial(TypedDict):
    joint: str
    term: str
    side: str
    gain: float
    std_error: float
    chosen: bool


class _Selection(TypedDict):
    groups: tuple[str, ...]
    rmse_simple: tuple[float, ...]
    rmse_chosen: tuple[float, ...]
    trials: tuple[_Trial, ...]


class _Errors(TypedDict):
    urdf: tuple[float, ...]
    urdf_friction: tuple[float, ...]


class _SimplerModels(TypedDict):
    groups: tuple[str, ...]
    rmse: _Errors
    text: str


class _BlackBox(TypedDict):
    text: tuple[str, ...]


class _JointScore(TypedDict):
    joint: str
    unit: str
    rmse: float
    relative: float
    rms_torque: float
    moving_rmse: float
    fit_rmse: float
    urdf_rmse: float
    urdf_friction_rmse: float
    held: NotRequired[float]


class _AdaptedJoint(TypedDict):
    joint: str
    rmse: float


class _Adapted(TypedDict):
    mean_rmse: float
    per_joint: tuple[_AdaptedJoint, ...]


class _Score(TypedDict):
    log: str
    relative: float
    trained_on: bool
    mean_rmse: float
    fit_mean_rmse: float
    urdf_mean_rmse: float
    urdf_friction_mean_rmse: float
    per_joint: tuple[_JointScore, ...]
    repeats: NotRequired[str]
    adapted: NotRequired[_Adapted]


class Sections(TypedDict):
    """Those of them that are not empty, by their names in the file and in :class:`.Record`."""

    signals: _Signals
    solver: _Solver
    selection: _Selection
    simpler_models: _SimplerModels
    black_box: _BlackBox
    validation: tuple[_Score, ...]
