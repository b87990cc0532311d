"""Public interface of the trajectories: all kinds, their composition, and their files."""

from .base import PiecewisePolynomial, Trajectory
from .compose import RepeatedTrajectory, SequenceTrajectory, ramped, repeated
from .files import read_trajectory, ros2_yaml, sampled, why_recorded, write_ros2, write_trajectory
from .fourier import FourierTrajectory, ModifiedFourierTrajectory, random_fourier
from .point_to_point import TrapezoidalTrajectory, constant_speed_sweep, random_via_points
from .splines import BSplineTrajectory

__all__ = [
    "BSplineTrajectory",
    "FourierTrajectory",
    "ModifiedFourierTrajectory",
    "PiecewisePolynomial",
    "RepeatedTrajectory",
    "SequenceTrajectory",
    "Trajectory",
    "TrapezoidalTrajectory",
    "constant_speed_sweep",
    "ramped",
    "random_fourier",
    "random_via_points",
    "read_trajectory",
    "repeated",
    "ros2_yaml",
    "sampled",
    "why_recorded",
    "write_ros2",
    "write_trajectory",
]
