"""The efforts of an unknown log: which columns they are, their unit and torque constants, and the direction of gravity.

Every column is regressed on the torques that the URDF predicts for a motion: gravity in any direction, inertia, friction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from ...linalg import Array, BoolArray, lstsq, positive
from ...model.robot import Robot
from ...units import Unit, parse_unit
from ..columns.headers import without_unit
from .series import Block, Certainty

#: Half-width of the smooth sign of dry friction, over the largest velocity.
_WIDTH = 0.02
#: Least change of the weight of a joint, over the largest inertial torque, for which gravity loads it.
_LOADED = 1e-3
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
#: Agreement over the best one's from which columns are efforts too, and from which they fit as well; noise of a target over
#: that of the measured effort.
_FIT, _FIT_AS_WELL, _QUIET = 0.4, 0.8, 0.5
#: Share explained, where no other columns fit nearly as well, from which columns and direction of gravity are certain: more
#: than of a smooth signal by chance.
_SURE = 0.5
#: Cosine to an axis of the base from which a robot is taken to be mounted along it: friction turns the direction by degrees.
_ALONG = 0.97

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
        model = robot.model.copy()
        data = model.createData()
        whole, rates = robot.configuration(q), (robot.spread(v), robot.spread(a))
        gravity = np.empty((*q.shape, 3))
        inertial = np.empty(q.shape)
        model.gravity.linear = np.zeros(3)
        for k, state in enumerate(zip(whole, *rates, strict=True)):
            inertial[k] = robot.reduced(pin.rnea(model, data, *state))
        for axis in range(3):
            model.gravity.linear = np.eye(3)[axis]
            for k, c in enumerate(whole):
                gravity[k, :, axis] = robot.reduced(pin.computeGeneralizedGravity(model, data, c))
        return cls(v, a, gravity, inertial)


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
    if not columns:
        return ()
    centred = means[:, columns] - means[:, columns].mean(axis=0)
    power, std = positive((centred**2).sum(axis=0)), positive(means.std(axis=0))
    heavy = np.linalg.norm(motion.gravity.std(axis=0), axis=-1)
    loaded = heavy > max(0.02 * float(heavy.max()), 1e-6 * float(np.abs(motion.gravity).max()))
    fits = np.zeros((robot.n, len(columns)), _REGRESSION)  # of every column on the torques of every joint
    for j, fit in enumerate(fits):
        v = motion.velocity[:, j]
        dry = np.tanh(v / max(_WIDTH * float(np.abs(v).max()), 1e-9))
        base = np.column_stack([np.ones(len(v)), v, dry, motion.acceleration[:, j], motion.inertial[:, j]])
        fit["without_rotor"] = _solve(np.delete(base, 3, axis=1), centred)[-1]
        left = ((centred - base @ _solve(base, centred)) ** 2).sum(axis=0)
        weight = motion.gravity[:, j]
        if np.ptp(weight, axis=0).max() * 9.81 < _LOADED * max(float(np.abs(motion.inertial).max()), 1e-3):
            fit["explained"] = 1.0 - left / power
            continue
        full = np.column_stack([base, weight])
        solution = _solve(full, centred)
        remaining = ((centred - full @ solution) ** 2).sum(axis=0)
        fit["explained"] = np.clip(1.0 - remaining / power, 0.0, 1.0)
        fit["by_gravity"] = np.clip((left - remaining) / power, 0.0, 1.0)
        fit["of_rest"] = np.clip((left - remaining) / positive(left), 0.0, 1.0)
        fit["per_inertia"], fit["per_gravity"] = solution[4], solution[5:].T
    rows = []
    for run in runs:
        of_joints = [run[place] for place in robot.places_in_order]
        own = fits[np.arange(robot.n), np.searchsorted(columns, of_joints)]  # of every joint, its own effort
        share, per_gravity = own["by_gravity"], own["per_gravity"].copy()
        score = float(share[loaded].mean()) if loaded.any() else 0.0
        whole = float(own["explained"].mean())
        if whole < _LEAST:
            continue
        clear = float(np.mean(np.log(np.maximum(1 - own["explained"], _ENOUGH)) / np.log(_ENOUGH)))
        # direction of gravity, of unit length and signed so that most joints are positive, and effort per N·m
        size = np.linalg.norm(per_gravity, axis=1)
        unit, weight = per_gravity / positive(size)[:, None], np.where(size > 0, share, 0.0)
        axis = np.asarray(np.linalg.eigh(np.einsum("j,jx,jy->xy", weight, unit, unit))[1][:, -1])
        axis = axis if float((weight * np.sign(per_gravity @ axis)).sum()) >= 0 else -axis
        slopes = np.where(weight > _VISIBLE, per_gravity @ axis / 9.81, 0.0) if loaded.any() else own["without_rotor"]
        seen = (own["of_rest"] > _CLEARLY) & (share > _VISIBLE)
        upright = float((own["per_inertia"] * np.linalg.norm(motion.inertial, axis=0) / std[of_joints]).sum())
        noise = float(np.median(rough[of_joints] / std[of_joints]))
        rows.append(EffortColumns(run, score, whole, clear, axis, slopes, seen, upright, noise))
    return tuple(sorted(rows, key=lambda row: row.agreement, reverse=True))


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


@dataclass(frozen=True)
class Recognised:
    """One recognised setting: its value as in the project file, how certain it is, and the reason."""

    value: object
    certainty: Certainty
    reason: str

    @property
    def why(self) -> str:
        return f"{self.certainty}: {self.reason}"


def share_explained(row: EffortColumns) -> str:
    """Fraction of an effort's variance explained by the URDF's torques, as text."""
    gravity = f" ({100 * row.score:.0f} % by gravity alone)" if row.score > _VISIBLE else ""
    return f"{100 * row.whole:.0f} % of the variance{gravity}"


def certain_if(condition: bool) -> Certainty:
    """Certain if two independent indications agree, else likely."""
    return "certain" if condition else "likely"


def effort_columns(roles: Mapping[str, EffortColumns], named: Mapping[str, Block], alone: bool) -> dict[str, Recognised]:
    """Describes the columns of the measured effort and of the targets, by quantity.

    Args:
        named: Quantities that the header names.
        alone: Whether no other columns fit nearly as well.
    """
    origins = {
        "effort": "taken as measured because it has the most noise",
        "effort_target": "taken as the controller's target because it follows the effort without noise",
        "torque_target": "in N·m and without noise, so a target torque",
    }
    columns = {}
    for role, row in roles.items():
        why = f"the URDF's torques and friction explain {share_explained(row)}; {origins[role]}"
        certainty = certain_if(role in named or (alone and row.clear > _SURE))
        columns[role] = Recognised(row.block, certainty, "named so in the header" if role in named else why)
    return columns


def with_sign(row: EffortColumns, robot: Robot) -> EffortColumns:
    """Efforts that show gravity upwards and inertia backwards count backwards: the direction of gravity is the opposite one."""
    backwards = row.weighed and row.upright < 0 and row.along(robot) < -ELSEWHERE
    return replace(row, axis=-row.axis, slopes=-row.slopes) if backwards else row


def gravity_direction(row: EffortColumns, robot: Robot, alone: bool) -> tuple[Recognised | None, list[str]]:
    """Gravity that efforts show if it differs from the robot's, and a note if it agrees; neither if they do not show it."""
    if not row.weighed:
        return None, []
    along = row.along(robot)
    angle = float(np.degrees(np.arccos(np.clip(along, -1, 1))))
    if along >= ELSEWHERE:
        return None, [f"the direction of gravity agrees with the project within {angle:.0f}°"]
    near = int(np.argmax(np.abs(row.axis)))
    snapped = np.eye(3)[near] * np.sign(row.axis[near]) if abs(row.axis[near]) > _ALONG else row.axis
    vector = [round(float(9.81 * value), 4) + 0.0 for value in snapped]
    why = f"the efforts show this direction, {angle:.0f}° from the project's"
    return Recognised(vector, certain_if(alone and row.score > _SURE), why), []


def stated_unit(row: EffortColumns, names: Sequence[str]) -> Unit | None:
    """The unit that the names of all its columns state."""
    stated = {without_unit(names[column])[1] for column in row.block} if names else {""}
    return parse_unit(next(iter(stated))) if len(stated) == 1 and "" not in stated else None


def effort_unit(row: EffortColumns, unit: Unit | None) -> Recognised | None:
    """The unit of efforts that are no torques and whose names state none."""
    if unit is not None or row.kind == "torque":
        return None
    why = f"a current, about {row.typical:.3g} per N·m of the URDF's torque; if it is a voltage, write V"
    return Recognised("A" if row.kind == "current" else "mA", "likely", why)


def effort_gain(
    row: EffortColumns, robot: Robot, unit: Unit | None, *, with_target: bool
) -> tuple[Recognised | None, list[str]]:
    """Torque per effort, including signs, if efforts are no torques or count backwards; and notes on signs.

    Args:
        unit: That of :func:`stated_unit`.
        with_target: Whether a target torque was logged, which gives it; else it comes from the URDF's gravity torques.
    """
    seen, slopes = row.seen, row.slopes
    backwards = [robot.joints[k] for k in range(robot.n) if slopes[k] < 0 and seen[k]]
    doubtful = [robot.joints[k] for k in range(robot.n) if slopes[k] < 0 and not seen[k]]
    doubt = f"the effort of {', '.join(doubtful)} may have the opposite sign; gravity acts too little on it to decide"
    notes = [doubt] if doubtful else []
    if row.kind == "torque" if unit is None else unit.kind in ("torque", "force"):
        signs = [-1.0 if joint in backwards else 1.0 for joint in robot.order]
        why = f"the effort of {', '.join(backwards)} has the opposite sign to the URDF's gravity torque"
        return Recognised(signs, "likely", why) if backwards else None, notes
    if with_target:
        why = "the logged target torque divided by the target current at rest gives the torque constant"
        return Recognised("auto", "certain", why), notes
    per = 1.0 / unit.factor if unit is not None else {"torque": 1.0, "current": 1.0, "thousandths": 1e3}[row.kind]
    known = np.where(seen | (not seen.any()), slopes, 0.0)
    gains = per / np.where(known != 0, known, row.typical or 1.0)
    unseen = [joint for joint in robot.order if not seen[robot.joints.index(joint)]]
    median = f" ({', '.join(unseen)}: the median of the others, as gravity hardly acts on them)" * bool(unseen and seen.any())
    why = f"N·m per {unit.si if unit else 'A'} that fit the gravity torque of the URDF's masses{median}"
    listed = [float(f"{gains[robot.joints.index(joint)]:.4g}") for joint in robot.order]
    return Recognised(listed, "guess", f"{why}; replace them by those of the data sheet"), notes
