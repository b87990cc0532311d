"""Recognition of the efforts of a motion: their columns, their unit, and which of several are the measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...linalg import Array, BoolArray, positive
from ...model.robot import Robot
from .blocks import Block
from .gravity import CandidateMotion, match

#: Unexplained fraction of the variance below which a smaller one is no further evidence.
_ENOUGH = 0.05
#: Fraction of the variance that the torques explain of any effort.
_LEAST = 0.3
#: Fraction explained by gravity from which it is visible at a joint; and of what inertia and friction leave, clearly visible.
_VISIBLE, _CLEARLY = 0.02, 0.7
#: Score by gravity from which its direction is known, and cosine below which one differs from the project's.
_WEIGHED, ELSEWHERE = 0.1, 0.9
#: Effort per expected torque: range of torques, and value above which efforts are in thousandths; others are currents.
_TORQUE, _THOUSANDTHS = (0.4, 2.5), 30.0


@dataclass(frozen=True, eq=False)
class EffortColumns:
    """One run of columns interpreted as efforts.

    Attributes:
        block: The columns, in the robot's order.
        score: Mean fraction of the variance explained by gravity, over the joints loaded by gravity.
        whole: Mean fraction explained by gravity, inertia and friction.
        clear: Mean logarithm of the unexplained fraction, scaled from 0 (all unexplained) to 1 (5 % or less). Part of any
            smooth signal is explained by chance, but not nearly all of it.
        axis: Direction of gravity, shape (3,).
        slopes: Effort per N·m, shape (n,) in model order; 0 for joints without visible gravity torque.
        seen: Whether the gravity torque is clearly visible, shape (n,), bool.
        upright: Weighted sum of the inertial coefficients: negative if efforts count backwards.
        rough: Noise of the columns as a fraction of their standard deviation.
    """

    block: Block
    score: float
    whole: float
    clear: float
    axis: Array
    slopes: Array
    seen: BoolArray
    upright: float
    rough: float

    @property
    def agreement(self) -> float:
        """Agreement with the torques of the URDF, 0 to 1: mean of ``score`` and ``clear``."""
        return (self.score + self.clear) / 2

    @property
    def weighed(self) -> bool:
        """Whether they show the direction of gravity."""
        return self.score > _WEIGHED

    def along(self, robot: Robot) -> float:
        """Cosine of the angle between the direction of gravity that they show and the robot's."""
        return float(self.axis @ robot.gravity / max(float(np.linalg.norm(robot.gravity)), 1e-12))

    @property
    def typical(self) -> float:
        """Median effort per torque."""
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
    """Evaluates runs of columns as efforts of a motion.

    Args:
        means: All columns, shape (M, W).
        rough: Their noise, shape (W,).
        runs: Runs of columns in the order of ``robot.order``.

    Returns:
        The runs of which the model explains at least 30 % of the variance, best first.
    """
    columns = sorted({k for run in runs for k in run})
    if not columns:
        return ()
    fit = match(motion, means[:, columns])
    place_of = {column: k for k, column in enumerate(columns)}
    place = robot.places_in_order
    std = positive(means.std(axis=0))
    heavy = np.linalg.norm(motion.gravity.std(axis=0), axis=-1)
    loaded = heavy > max(0.02 * float(heavy.max()), 1e-6 * float(np.abs(motion.gravity).max()))
    rows = []
    for run in runs:
        effort_of = np.array([place_of[run[k]] for k in place])
        each = np.arange(robot.n), effort_of  # of every joint, its own effort
        share = fit.gravity_share[each]
        score = float(share[loaded].mean()) if loaded.any() else 0.0
        explained = fit.explained[each]
        whole = float(explained.mean())
        clear = float(np.mean(np.log(np.maximum(1 - explained, _ENOUGH)) / np.log(_ENOUGH)))
        if whole < _LEAST:
            continue
        # direction of gravity, of unit length and signed so that most joints are positive, and effort per N·m
        per_gravity = fit.effort_per_gravity[each]
        size = np.linalg.norm(per_gravity, axis=1)
        unit, weight = per_gravity / positive(size)[:, None], np.where(size > 0, share, 0.0)
        axis = np.asarray(np.linalg.eigh(np.einsum("j,jx,jy->xy", weight, unit, unit))[1][:, -1])
        axis = axis if float((weight * np.sign(per_gravity @ axis)).sum()) >= 0 else -axis
        slopes = np.where(weight > _VISIBLE, per_gravity @ axis / 9.81, 0.0)  # 0 for joints without visible gravity torque
        seen = (fit.gravity_share_of_rest[each] > _CLEARLY) & (share > _VISIBLE)
        if not loaded.any():
            slopes = fit.inertia_without_rotor[each]
        inertia = fit.inertia[each] * np.linalg.norm(motion.inertial, axis=0) / std[[run[k] for k in place]]
        upright = float(inertia.sum())
        noise = float(np.median(rough[list(run)] / std[list(run)]))
        rows.append(EffortColumns(run, score, whole, clear, axis, slopes, seen, upright, noise))
    return tuple(sorted(rows, key=lambda row: row.agreement, reverse=True))


def effort_roles(efforts: Sequence[EffortColumns]) -> dict[str, EffortColumns]:
    """Tells the measured effort from the controller's targets: quantity → run of columns, of all runs that fit, best first."""
    if not efforts:
        return {}
    good: list[EffortColumns] = []
    for row in efforts:
        enough = row.agreement > 0.4 * efforts[0].agreement
        if enough and not any(set(other.block) & set(row.block) for other in good):  # a shifted copy
            good.append(row)
    currents = sorted((row for row in good if row.kind == "current"), key=lambda row: -row.rough)
    torques = [row for row in good if row.kind == "torque"]
    if len(currents) > 1 and torques and currents[-1].rough < 0.5 * currents[0].rough:
        target = min(torques, key=lambda row: row.rough)
        return {"effort": currents[0], "effort_target": currents[-1], "torque_target": target}
    return {"effort": max(torques or good, key=lambda row: (row.agreement > 0.8 * efforts[0].agreement, row.rough))}
