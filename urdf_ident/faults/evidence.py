"""How well one rigid robot with free inertias explains the torques of all joints, for one interpretation of the motion.

No URDF inertia is used. Samples of a joint at rest are left out, because static friction is indeterminate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..linalg import Array, positive, rms
from ..model.rigid_bodies import regressor
from ..model.robot import Robot
from ..model.row_groups import Limb, spanning_anywhere
from .friction import scaled_friction
from .interpretation import Interpretation
from .motion_samples import MotionSamples
from .regression import Efforts, JointColumns, Regression

#: Gain in the sum of the rows' log relative residuals above which an explanation replaces another, above which it is reported,
#: above which something is wrong whatever the cause, and the fraction of it within which another cause is a rival.
DECISIVE, DOUBTFUL, SEVERE, RIVAL = 0.35, 0.15, 1.0, 0.3
#: Least gain over its standard error between blocks: for an interpretation that explains a material part of some torque, and
#: for one that explains so little that unmodelled friction may do so by chance, as the best of many joints: 3.5 is a level of
#: 1 % among some 20 interpretations; beyond 5 the blocks would have to be dependent.
SIGNIFICANT, SURE = 3.5, 5.0
#: An explanation that leaves more than this fraction of the residual is no clear one.
CLEAR = 0.85
#: Bounds of the relative residuals from which rows are weighted: so that neither a noise-free nor a faulty row dominates where
#: interpretations are compared, and, closer to the rows' own errors, in the model of their torques.
_USUAL, TRUSTED = (0.03, 0.3), (0.01, 0.5)
#: Relative residual below which a torque counts as exactly explained.
EXACT = 5e-3
#: Relative residual that unmodelled friction usually leaves, and that another interpretation may explain by chance.
MATERIAL = 0.05
#: Usual error of the calibration of torques, a fraction: torque constants and sensors are calibrated to a few per cent.
CALIBRATED = 0.03
#: Poses at which the inertia of each joint is computed.
_POSES = 12
#: Number of folds; each leaves out every ``_FOLDS``-th block.
_FOLDS = 5


@dataclass(frozen=True, eq=False)
class RigidEvidence:
    """The regression of the efforts of a limb's joints on one interpretation of the motion.

    Attributes:
        limb: The limb.
        regression: Of the rows of its joints.
        efforts: Products with the efforts of all joints of the robot.
        scale: Scale factors by which independent columns of its bodies were divided, infinite where one is zero, shape (m,).
        inertia: Mean torque of each joint by the inertia of these, at its RMS acceleration, shape (joints, m).
        sizes: Root mean square of each effort about its mean, where a joint moves, shape (n, efforts) [N·m or N].
    """

    limb: Limb
    regression: Regression
    efforts: Efforts
    scale: Array
    inertia: Array
    sizes: Array

    @classmethod
    def of(cls, limb: Limb, robot: Robot, motion: MotionSamples, springs: Sequence[int] = ()) -> RigidEvidence:
        """Computes the regression of a motion.

        Args:
            robot: The limb's, perhaps with another gravity.
            springs: Joints with a spring or balancer.
        """
        kept, joints, (q, v, a) = spanning_anywhere(limb.robot)[0], list(limb.joints), motion.of(limb.joints)
        inertial = regressor(robot, q, v, a)[:, :, kept]
        scale, friction = column_scale(inertial), scaled_friction(motion, joints, springs=springs)
        design = JointColumns.of(inertial / scale, friction, motion.glides.T[joints], motion.block)
        # of each joint by its own acceleration alone, mean over some poses
        poses = np.repeat(q[:: max(1, len(q) // _POSES)], robot.n, axis=0)
        unit = np.tile(np.eye(robot.n), (len(poses) // robot.n, 1))
        torque = regressor(robot.with_gravity(np.zeros(3)), poses, np.zeros_like(poses), unit)[:, :, kept]
        own = torque.reshape(-1, robot.n, robot.n, len(kept))[:, range(robot.n), range(robot.n)].mean(axis=0)
        inertia = own * rms(a, 0)[:, None] / scale
        return cls(limb, design.regression, design.products(motion.tau[:, None, :]), scale, inertia, motion.sizes)

    @property
    def nbytes(self) -> int:
        """Memory of the Gram matrices [bytes]."""
        return self.regression.gram.nbytes + self.efforts.moments.nbytes

    @property
    def size(self) -> Array:
        """Root mean square of each effort about its mean, where its own joint moves, shape (n,) [N·m or N]."""
        return np.asarray(np.diag(self.sizes))

    def read(self, readings: Sequence[Interpretation]) -> Array:
        """Factor of each logged effort in each row, shape (joints, n, H)."""
        out = np.zeros((len(self.limb.joints), len(self.sizes), len(readings)))
        for h, item in enumerate(readings):
            for k, (effort, factor) in enumerate(item.efforts(self.limb.joints)):
                out[k, effort, h] = factor
        return out

    def size_of(self, efforts: Array) -> Array:
        """RMS of the interpreted efforts about their means, at least :meth:`exact_of`, shape (joints, H) [N·m or N].

        An effort that is interpreted as another joint's must be explained where that joint moves.

        Args:
            efforts: Factor of each logged effort in each row, shape (joints, n, H).
        """
        found = np.einsum("ieh,ie->ih", np.abs(efforts), self.sizes[list(self.limb.joints)])
        return np.asarray(np.maximum(found, positive(self.exact_of(efforts))))

    def exact_of(self, efforts: Array) -> Array:
        """Residual below which the interpreted efforts count as exactly explained, shape (joints, H) [N·m or N].

        It follows their variation where their own joints move: while the joint they are interpreted as moves, an effort may
        hardly vary (joints move one after the other), and would be easy to explain.
        """
        return np.asarray(EXACT * np.einsum("ieh,e->ih", np.abs(efforts), self.size))

    def fit(self, efforts: Array, *, held_out: bool = True, weights: Array | None = None) -> tuple[Array, Array, Array]:
        """Fits interpretations of the efforts.

        Args:
            efforts: Factor of each logged effort in each row, shape (joints, n, H).
            held_out: Whether the squared errors are of fits that have not seen a block; otherwise of one fit to all.
            weights: One over the variance of each row, shape (joints, H); by default of usual residuals.

        Returns:
            Coefficients and mean squared errors of each block as of :meth:`.Regression.fit`, and the RMS error over that of the
            row's effort about its mean, at least :data:`EXACT`, shape (joints, H).
        """
        size, count = self.size_of(efforts), self.regression.count
        fold = np.arange(len(count)) % min(_FOLDS, len(count)) if held_out else None
        weights = 1 / (self._usual * size) ** 2 if weights is None else weights
        x, squares = self.regression.fit(self.efforts.read(efforts), weights, fold)
        left = np.maximum(np.sqrt(np.average(squares, 0, count)), self.exact_of(efforts)) / size
        return x, squares, np.asarray(left)

    @cached_property
    def _usual(self) -> Array:
        """Relative residuals of the rows with the efforts as logged, for weights, shape (joints, 1)."""
        joints = list(self.limb.joints)
        as_logged = np.eye(len(self.sizes))[joints, :, None]
        return np.asarray(np.clip(self.fit(as_logged, weights=1 / self.size[joints, None] ** 2)[2], *_USUAL))


def column_scale(columns: Array) -> Array:
    """Returns the RMS of the columns of all rows, infinite where one is zero, shape (m,); columns of shape (N, n, m)."""
    scale = rms(columns, (0, 1))
    return np.where(scale > 1e-9 * scale.max(initial=0.0), scale, np.inf)


def material(before: Array, after: Array) -> bool:
    """Whether a row's residual falls by more than unmodelled friction and imperfect filters explain (:data:`MATERIAL`).

    Args:
        before, after: Relative residuals of the rows, shape (n,).
    """
    return bool((before**2 - after**2).max() > MATERIAL**2)


def gains(before: Array, after: Array) -> Array:
    """Gain of one explanation over another in each block of time: reduction of the sum of the rows' log residuals.

    Args:
        before, after: Mean squared errors over the squares of the efforts, shape (B, n).
    """
    return np.asarray(0.5 * np.log((before + EXACT**2) / (after + EXACT**2)).sum(axis=1))


def significance(gained: Array) -> float:
    """Mean gain of blocks of time over the standard error of that mean.

    Args:
        gained: Gain of each block, shape (B,).
    """
    return float(gained.mean() / positive(gained.std(ddof=1) / np.sqrt(len(gained))))


def remaining_doubt(gained: float) -> float:
    """Doubt that a gain leaves: 1 without a gain, a quarter at :data:`DECISIVE`.

    Args:
        gained: Gain in the sum of the logarithms of the rows' residuals.
    """
    return float(np.exp(-4.0 * gained))
