"""Positions in steps that are so coarse that the low-pass leaves them in the accelerations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...judgements.catalogue import Id
from ...judgements.judgement import Judgement, Remedy
from ...linalg import orthogonal_part, positive, rms
from ...logs.recording import Recording
from ...model.rigid_bodies import mass_matrices
from ...model.robot import Robot
from ...samples import fast_speed, moving
from ..condition import Conditioned
from ..resolution import counts_of

#: Part of a joint's acceleration that steps of its position may be, as inertias come out too small by its square; part of an
#: effort that they may be, as the error of a good result; number of poses for the inertia.
_OF_MOTION, _OF_EFFORT, _POSES = 0.3, 0.1, 20
#: Least part of the square of an acceleration that is taken for motion; singular values, relative to the largest, that count as
#: zero.
_LEAST, _DEPENDENT = 0.2, 1e-7


def step_findings(recording: Recording, log: Conditioned, robot: Robot) -> Iterator[Judgement]:
    """Yields a finding for each moving joint whose position's steps are a relevant part of its acceleration and of an effort.

    Steps of size s are noise of variance s²/12, white up to half the rate (Widrow and Kollár, Quantization Noise, 2008).
    With the URDF's inertias, or with that of the joint and its rotor if the log shows a larger one, their acceleration is a
    torque. The cut-off follows the noise of most joints, so that it fits steps of all joints, but not those of one.

    Args:
        recording: The log as repaired.
        log: The same log, conditioned.
        robot: The robot with the inertias of the URDF.
    """
    if log.averaged is not None or log.velocity_source == "logged":
        return  # harmonics take the place of the low-pass, or accelerations do not come from positions
    q, v, a, tau = (np.vstack([getattr(segment, name) for segment in log.segments]) for name in ("q", "v", "a", "tau"))
    moves = moving(np.array([fast_speed(x) for x in v.T]), robot.prismatic)
    steps = np.where(moves, counts_of(recording.position), 0.0)
    power = float(np.median(np.diff(recording.time))) / 6.0 * (2 * np.pi) ** 4 * log.cutoff**5 / 5.0
    noise = np.sqrt(power) * steps
    coarse = np.flatnonzero(noise > _OF_MOTION * rms(a, 0))
    if not len(coarse):
        return
    inertia = rms(mass_matrices(robot, q[:: max(len(q) // _POSES, 1)]), 0)
    for j in coarse:  # its inertia as the effort shows it beside friction and its own weight
        x, speed = q[:, j], v[:, j]
        beside = np.column_stack([speed, np.sign(speed), np.sin(x), np.cos(x), np.ones_like(x)])
        moved, effort = orthogonal_part(np.column_stack([a[:, j], tau[:, j]]), beside, _DEPENDENT).T
        square = float(moved @ moved)  # of which the noise is a part
        motion = positive(max(square - len(moved) * noise[j] ** 2, _LEAST * square))
        inertia[j, j] = max(inertia[j, j], float(moved @ effort) / motion)
    share = inertia * noise / positive(rms(tau, 0))[:, None]
    for j in coarse[share[:, coarse].max(axis=0) > _OF_EFFORT]:
        i = int(np.argmax(share[:, j]))
        words = (
            f"the position comes in steps of {steps[j]:.3g} {'m' if robot.prismatic[j] else 'rad'}: with the low-pass at "
            f"{log.cutoff:.3g} Hz, their acceleration makes {100 * share[i, j]:.0f} % of the torque of {robot.joints[i]}"
        )
        remedy = "log it with more digits, or move faster"
        yield Judgement(
            Id.POSITION_QUANTISED, words, Remedy(remedy), joint=robot.joints[j], size=float(steps[j]), certainty=0.99
        )
