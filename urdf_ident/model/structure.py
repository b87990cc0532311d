"""Random states over a robot's full range, for structural identifiability."""

from __future__ import annotations

import numpy as np

from ..samples import Segment
from .robot import Robot


def random_motion(robot: Robot, samples: int, seed: int = 0) -> Segment:
    """Returns random states over the robot's full range, for structural analysis.

    Returns:
        A segment whose samples are unrelated states (positions inside the limits, ±π or ±1 m without).
    """
    generator = np.random.default_rng(seed)
    lower, upper = robot.limit("lower"), robot.limit("upper")
    reach = np.where(robot.prismatic, 1.0, np.pi)
    lower, upper = np.where(np.isfinite(lower), lower, -reach), np.where(np.isfinite(upper), upper, reach)
    low = np.where(upper < -2 * reach, np.maximum(lower, upper - 2 * reach), np.maximum(lower, -2 * reach))
    high = np.where(lower > 2 * reach, np.minimum(upper, lower + 2 * reach), np.minimum(upper, 2 * reach))
    q = generator.uniform(low, high, (samples, robot.n))
    v, a = (scale * generator.standard_normal((samples, robot.n)) for scale in (2.0, 5.0))
    reference = 10.0 * generator.standard_normal((samples, robot.n))
    deflection, vm, am = (scale * generator.standard_normal((samples, robot.n)) for scale in (0.05, 2.0, 5.0))
    # Some samples are slow, to excite friction that acts only at low speed.
    slow = [np.where(generator.random(v.shape) < 0.3, 10.0 ** generator.uniform(-4.0, 0.0, v.shape), 1.0) for _ in range(2)]
    v, vm = v * slow[0], vm * slow[1]
    return Segment("random", 0.0, 100.0, q, v, a, None, q + deflection, vm, am, reference_torque=reference)
