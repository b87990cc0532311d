"""The efforts of an unknown log: which columns they are, and which of these were measured.

Every column is regressed on the torques that the URDF predicts for a motion: gravity in any direction, inertia, friction. The
bounds are fractions of its variance: efforts are what these torques explain nearly all of, which they do of no other signal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array, BoolArray, lstsq, positive
from ...model.rigid_bodies import rigid_torque, torques_by_gravity
from ...model.robot import Robot
from .series import Block

#: Half-width of the smooth sign of dry friction, over the largest velocity.
_WIDTH = 0.02
#: Least change of a joint's gravity torque, over the largest inertial torque, for a regression on it; and its variation over
#: that of the joint with most, from which gravity is expected to show.
_CHANGES, _LOADED = 1e-3, 0.02
#: Fraction of the variance that the torques explain of any effort, and from which more is no further evidence.
_LEAST, _ENOUGH = 0.3, 0.95
#: Fraction by gravity from which it is visible at a joint; and of what inertia and friction leave, clearly visible.
_VISIBLE, _CLEARLY = 0.02, 0.7
#: Fraction by gravity, mean over the joints that it loads, from which its direction is known; cosine below which a direction
#: differs from the project's.
_WEIGHED, ELSEWHERE = 0.1, 0.9
#: Effort per expected torque: range of torques, and value above which efforts are in thousandths; others are currents.
_TORQUE, _THOUSANDTHS = (0.4, 2.5), 30.0
#: Agreement over the best one's from which columns are efforts too, and from which they fit as well; noise of a target over
#: that of the measured effort.
_FIT, _FIT_AS_WELL, _QUIET = 0.4, 0.8, 0.5

#: What the regression of a column on the torques of a joint shows.
_REGRESSION = np.dtype(
    [
        ("explained", float),  # fraction of the variance explained by all terms
        ("by_gravity", float),  # explained by gravity beyond inertia and friction
        ("of_rest", float),  # the same, as a fraction of what inertia and friction leave
        ("per_gravity", float, 3),  # effort per torque of gravity along x, y, z
        ("per_inertia", float),  # effort per torque of inertia
        ("without_rotor", float),  # the same of a regression without gravity and rotor
    ]
)


@dataclass(frozen=True, eq=False)
class CandidateMotion:
    """The motion given by candidate columns, and the torques that the URDF predicts for it.

    Attributes:
        velocity, acceleration: Shape (M, n) [rad/s or m/s; rad/s² or m/s²].
        gravity: Torque per unit of gravity along x, y, z of the base, shape (M, n, 3) [kg·m or kg].
        inertial: Torque without gravity, shape (M, n) [N·m or N].
    """

    velocity: Array
    acceleration: Array
    gravity: Array
    inertial: Array

    @classmethod
    def of(cls, robot: Robot, q: Array, v: Array, a: Array) -> CandidateMotion:
        """Computes the torques.

        Args:
            robot: The robot; its gravity vector is not used.
            q: Shape (M, n) [rad or m].
            v: Shape (M, n) [rad/s or m/s].
            a: Shape (M, n) [rad/s² or m/s²].
        """
        theta = robot.inertials.ravel()
        inertial = rigid_torque(robot.with_gravity(np.zeros(3)), theta, q, v, a)
        return cls(v, a, torques_by_gravity(robot, theta, q), inertial)


def _solve(columns: Array, values: Array) -> Array:
    """Least squares in columns of unit norm; other than in :func:`.scaled_lstsq`, columns of rounding errors count as zero."""
    scale = np.linalg.norm(columns, axis=0)
    scale = np.where(scale > 1e-9 * scale.max(), scale, np.inf)
    return np.asarray(lstsq(columns / scale, values, rcond=1e-6)[0] / scale[:, None])


@dataclass(frozen=True, eq=False)
class EffortColumns:
    """One run of columns interpreted as efforts.

    Attributes:
        block: The columns, in the robot's order.
        explained: Fraction of the variance explained by gravity, inertia and friction, mean over the joints.
        by_gravity: Fraction explained by gravity alone, mean over the joints that it loads.
        evidence: Log-likelihood of the torques over that of a constant, mean over the joints, as a fraction of that at 5 %
            unexplained. Part of any smooth signal is explained by chance, but not nearly all of it.
        axis: Direction of gravity, shape (3,).
        slopes: Effort per N·m, shape (n,) in model order; 0 for joints without visible gravity torque.
        seen: Whether the gravity torque is clearly visible, shape (n,), bool.
        upright: Weighted sum of the inertial coefficients: negative if efforts count backwards.
        rough: Noise of the columns as a fraction of their standard deviation.
    """

    block: Block
    explained: float
    by_gravity: float
    evidence: float
    axis: Array
    slopes: Array
    seen: BoolArray
    upright: float
    rough: float

    @property
    def agreement(self) -> float:
        """Agreement with the torques of the URDF, 0 to 1: mean of ``by_gravity`` and ``evidence``."""
        return (self.by_gravity + self.evidence) / 2

    @property
    def weighed(self) -> bool:
        """Whether they show the direction of gravity."""
        return self.by_gravity > _WEIGHED

    def along(self, robot: Robot) -> float:
        """Cosine of the angle between the direction of gravity that they show and the robot's."""
        return float(self.axis @ robot.gravity / max(float(np.linalg.norm(robot.gravity)), 1e-12))

    @property
    def typical(self) -> float:
        known = np.abs(self.slopes[(self.slopes != 0) & (self.seen | (not self.seen.any()))])
        return float(np.median(known)) if len(known) else 0.0

    @property
    def kind(self) -> str:
        """Kind of effort: "torque", "current" or "thousandths"."""
        size = self.typical
        return "torque" if _TORQUE[0] < size < _TORQUE[1] or size == 0 else "thousandths" if size > _THOUSANDTHS else "current"


def find_efforts(
    robot: Robot, motion: CandidateMotion, means: Array, rough: Array, runs: Sequence[Block]
) -> tuple[EffortColumns, ...]:
    """Evaluates runs of columns as efforts of a motion, by a regression of each column on the torques of its joint.

    Args:
        means: All columns, shape (M, W).
        rough: Their noise, shape (W,).
        runs: Runs of columns in the order of ``robot.order``.

    Returns:
        The runs of which the model explains at least 30 % of the variance, best first.
    """
    columns = sorted({k for run in runs for k in run})
    weight = np.linalg.norm(motion.gravity.std(axis=0), axis=-1)
    loaded = weight > max(_LOADED * float(weight.max()), 1e-6 * float(np.abs(motion.gravity).max()))  # the latter: rounding
    fits = np.array([_regressions(motion, means[:, columns], j) for j in range(robot.n)])
    std, inertial = positive(means.std(axis=0)), np.linalg.norm(motion.inertial, axis=0)
    efforts = []
    for run in runs:
        of_joints = [run[place] for place in robot.places_in_order]
        own = fits[np.arange(robot.n), np.searchsorted(columns, of_joints)]  # of every joint, its own effort
        if own["explained"].mean() < _LEAST:
            continue
        # direction of gravity, of unit length and signed so that most joints are positive, and effort per N·m along it
        share, size = own["by_gravity"], np.linalg.norm(own["per_gravity"], axis=1)
        unit = own["per_gravity"] / positive(size)[:, None]
        axis = np.asarray(np.linalg.eigh(np.einsum("j,jx,jy->xy", share, unit, unit))[1][:, -1])
        axis = axis if float((share * np.sign(unit @ axis)).sum()) >= 0 else -axis
        slopes = np.where(share > _VISIBLE, own["per_gravity"] @ axis / 9.81, 0.0) if loaded.any() else own["without_rotor"]
        efforts.append(
            EffortColumns(
                run,
                explained=float(own["explained"].mean()),
                by_gravity=float(share[loaded].mean()) if loaded.any() else 0.0,
                evidence=float(np.mean(np.log(1 - np.minimum(own["explained"], _ENOUGH)) / np.log(1 - _ENOUGH))),
                axis=axis,
                slopes=slopes,
                seen=(share > _VISIBLE) & (own["of_rest"] > _CLEARLY),
                upright=float((own["per_inertia"] * inertial / std[of_joints]).sum()),
                rough=float(np.median(rough[of_joints] / std[of_joints])),
            )
        )
    return tuple(sorted(efforts, key=lambda row: row.agreement, reverse=True))


def _regressions(motion: CandidateMotion, columns: Array, j: int) -> NDArray[np.void]:
    """Regressions of columns, shape (M, W), on friction, rotor, inertia and, if it changes, gravity of a joint, shape (W,)."""
    fits, v, gravity = np.zeros(columns.shape[1], _REGRESSION), motion.velocity[:, j], motion.gravity[:, j]
    dry = np.tanh(v / positive(_WIDTH * float(np.abs(v).max())))
    base = np.column_stack([np.ones(len(v)), v, dry, motion.acceleration[:, j], motion.inertial[:, j]])
    centred = columns - columns.mean(axis=0)
    power, left = positive((centred**2).sum(axis=0)), _left(base, centred)
    fits["explained"] = 1.0 - left / power
    fits["without_rotor"] = _solve(np.delete(base, 3, axis=1), centred)[-1]
    if 9.81 * np.ptp(gravity, axis=0).max() >= _CHANGES * max(float(np.abs(motion.inertial).max()), 1e-3):
        full = np.column_stack([base, gravity])
        remaining = _left(full, centred)
        fits["explained"] = 1.0 - remaining / power
        fits["by_gravity"] = np.clip((left - remaining) / power, 0.0, 1.0)
        fits["of_rest"] = np.clip((left - remaining) / positive(left), 0.0, 1.0)
        *_, fits["per_inertia"], x, y, z = _solve(full, centred)
        fits["per_gravity"] = np.column_stack([x, y, z])
    return fits


def _left(columns: Array, values: Array) -> Array:
    """Sums of squares that a regression leaves of values, shape (W,)."""
    return np.asarray(((values - columns @ _solve(columns, values)) ** 2).sum(axis=0))


def effort_roles(efforts: Sequence[EffortColumns]) -> dict[str, EffortColumns]:
    """Tells the measured effort from the controller's targets: quantity → run of columns, of all runs that fit, best first."""
    if not efforts:
        return {}
    good: list[EffortColumns] = []
    for row in efforts:
        enough = row.agreement > _FIT * efforts[0].agreement
        if enough and not any(set(other.block) & set(row.block) for other in good):  # a shifted copy
            good.append(row)
    currents = sorted((row for row in good if row.kind == "current"), key=lambda row: -row.rough)
    torques = [row for row in good if row.kind == "torque"]
    if len(currents) > 1 and torques and currents[-1].rough < _QUIET * currents[0].rough:
        target = min(torques, key=lambda row: row.rough)
        return {"effort": currents[0], "effort_target": currents[-1], "torque_target": target}
    return {"effort": max(torques or good, key=lambda row: (row.agreement > _FIT_AS_WELL * efforts[0].agreement, row.rough))}
