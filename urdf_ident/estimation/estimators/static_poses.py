"""Estimation of an unknown payload from poses at rest: mass and centre of mass, for arms that may not move fast.

At rest dry friction balances any torque up to its level, with the sign of the preceding motion. In poses that are approached
from both sides it cancels; from one side it is indistinguishable from weight. Every joint's friction at rest is therefore an
unknown share of its level, at most ± 1, along the direction of approach: data with both directions determine it; otherwise its
whole range contributes to the error of the body. Integral action leaves other shares in one direction than in the other, alike
in all poses. Every joint therefore has a constant torque, unknown within the deviation of one pose and within what a mean share
s allows: none exceeds 1, so that the two directions differ from s by at most 1 − s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import EstimationError
from ...grouping import runs
from ...linalg import Array, BoolArray, positive
from ...logs.recording import Recording
from ...model.drive import Drive
from ...model.robot import Robot
from ...model.trained import without_inertia
from ...samples import ReadOnly, Segment
from ...signals.filters import HIGHEST, differentiate, lowpass
from ...signals.joint_side import joint_side
from ...signals.quality.report import assess
from ...signals.resample import even_pieces
from ...statistics.fit import Fit
from ...statistics.least_squares import Solution, solve
from .payload import LoadedModel, PayloadFit, PayloadProblem

#: A pose: all joints slower than this [rad/s or m/s] for at least this time [s]; time omitted at its ends [s].
STILL, DWELL, EDGE = 4e-3, 0.5, 0.15
#: Low-pass for detecting standstill [Hz]; displacement that defines a direction of approach [rad or m].
_SLOW, _APART = 4.0, 2e-3
#: Smallest number of poses; share of equal directions above which a joint counts as approached from one side.
_FEWEST, _ONE_SIDED = 4, 0.75
#: Standard deviation of a share uniformly distributed over ± 1; speed for evaluating the level of friction [rad/s or m/s].
_SHARE, _SLIDING = 3.0**-0.5, 0.05


@dataclass(frozen=True, eq=False)
class StaticPoses(ReadOnly):
    """Poses at rest.

    Attributes:
        q: Shape (P, n) [rad or m].
        tau: Mean joint torque, shape (P, n) [N·m or N].
        direction: Direction of each joint's motion before the pose, shape (P, n): −1, 1, or 0 if it has never moved.
    """

    joints: tuple[str, ...]
    q: Array
    tau: Array
    direction: Array

    def __len__(self) -> int:
        return len(self.q)

    @property
    def one_sided(self) -> BoolArray:
        """Joints with the same direction of approach in most poses, shape (n,)."""
        moved = np.abs(self.direction).sum(axis=0)
        return np.asarray((moved == 0) | (np.abs(self.direction.sum(axis=0)) > _ONE_SIDED * np.maximum(moved, 1)))


def resting_poses(logs: Sequence[Recording], robot: Robot, drive: Drive) -> StaticPoses:
    """Finds the standstills of logs.

    Returns:
        The poses, log by log in order of time.

    Raises:
        EstimationError: Too few standstills.
    """
    places, torques, directions = [], [], []
    for log in logs:
        pieces, clock = even_pieces(assess(joint_side(log, drive), robot).recording)
        before = np.zeros(robot.n)
        for piece in pieces:
            if piece.tau is None:
                raise EstimationError("no torque or current in the log", where=log.name, remedy="name the effort columns")
            if len(piece.q) < 2 * DWELL * clock.rate:
                continue
            smooth = lowpass(piece.q, clock.rate, min(_SLOW, HIGHEST * clock.rate))
            still = np.asarray((np.abs(differentiate(smooth, clock.rate)) < STILL).all(axis=1))
            last = 0
            for begin, end in (run for run in runs(still) if run[1] - run[0] >= DWELL * clock.rate):
                cut = int(EDGE * clock.rate)
                part = slice(begin + cut, end - cut)
                place = np.median(piece.q[part], axis=0)
                path, before, last = smooth[last : begin + 1], before.copy(), end
                for j in range(robot.n):  # the direction of its last motion; unchanged if it has not moved
                    far = np.flatnonzero(np.abs(path[:, j] - place[j]) > _APART)
                    if len(far):
                        before[j] = np.sign(place[j] - path[far[-1], j])
                places.append(place)
                torques.append(piece.tau[part].mean(axis=0))
                directions.append(before)
    if len(places) < _FEWEST:
        raise EstimationError(
            "too few poses at rest",
            got=len(places),
            expected=f"at least {_FEWEST}, each held {2 * DWELL:g} s",
            remedy="`design --family poses` plans them, or use the motion without --static",
        )
    return StaticPoses(robot.joints, np.array(places), np.array(torques), np.array(directions))


def estimate_static(problem: PayloadProblem, poses: StaticPoses) -> PayloadFit:
    """Estimates mass and centre of mass from poses.

    Returns:
        The estimate; the inertia is not identifiable.

    Raises:
        EstimationError: The body's weight causes no joint torque in these poses.
    """
    params = np.zeros(10)
    for _ in range(3):  # the level of friction depends on the body
        rows = _rows(problem, problem.loaded(params), poses)
        params, finished = _solved(problem, rows, poses)
    return finished


@dataclass(frozen=True, eq=False)
class _Rows:
    """Per row group: columns of β, of the body, of the shares of friction, and the torque, shape (P, …) each."""

    groups: tuple[str, ...]
    known: list[Array]
    body: list[Array]
    friction: list[Array]
    torque: list[Array]


def _rows(problem: PayloadProblem, loaded: LoadedModel, poses: StaticPoses) -> _Rows:
    model, base = problem.model, problem.fit.base
    place = base.place
    out = _Rows(tuple(group.name for group in model.groups), [], [], [], [])
    still = np.zeros((1, model.n))
    segments = (Segment("pose", 0.0, 1.0, q[None], still, still) for q in poses.q)
    blocks = [block for segment in segments for _, block in loaded.row_blocks(segment, chunk=1)]
    targets = model.row_targets(poses.tau)
    level = _levels(loaded, poses)
    for g, group in enumerate(loaded.groups):
        stack = np.vstack([block[g] for block in blocks])
        known, body = np.zeros((len(poses), len(base))), np.zeros((len(poses), 10))
        for column, index in enumerate(group.columns):
            if index < len(place):
                if place[index] >= 0:
                    known[:, place[index]] = stack[:, column]
            else:
                body[:, index - len(place)] = stack[:, column]
        out.known.append(known)
        out.body.append(body)
        out.friction.append(poses.direction * level * group.mix)
        out.torque.append(targets[:, g])
    return out


def _levels(loaded: LoadedModel, poses: StaticPoses) -> Array:
    """Level of dry friction of each joint in each pose, shape (P, n) [N·m or N]."""
    model, theta = loaded.model, without_inertia(loaded.model, loaded.theta)
    for applied, places in model.placed_terms:
        if applied.term.name == "offset":
            theta[places] = 0.0
    v = np.full((1, model.n), _SLIDING)
    still = np.zeros_like(v)
    both = [[model.torque(theta, q[None], sign * v, still)[0] for q in poses.q] for sign in (1.0, -1.0)]
    return np.asarray(np.maximum(0.5 * (np.array(both[0]) - np.array(both[1])), 0.0))


def _weighted(fit: Fit, rows: _Rows) -> tuple[Solution, list[Array], list[float], list[Array]]:
    """Least squares of the rows with the known torque taken off, weighted by their residuals.

    Returns:
        The solution for body, shares and constants; of each row group these rows ``[columns | torque]``, the weight, and the
        weighted columns times the solution's root, whose squares sum to the leverage.
    """
    n, groups = rows.friction[0].shape[1], len(rows.groups)
    given = zip(rows.known, rows.body, rows.friction, np.eye(groups), rows.torque, strict=True)
    lean = [
        np.column_stack([body, share, np.tile(constant, (len(torque), 1)), torque - known @ fit.params])
        for known, body, share, constant, torque in given
    ]
    weights = [1.0 / fit.sigma.get(name, 1.0) for name in rows.groups]
    levels = np.array([np.abs(friction).mean(axis=0) for friction in rows.friction])
    extra, shared, total = n + groups, np.ones(n), sum(map(len, lean))
    for _ in range(5):
        apart = _SHARE * np.linalg.norm(levels * (1.0 - np.minimum(np.abs(shared), 1.0)), axis=1)
        firm = [*np.full(n, 1.0 / _SHARE), *(1.0 / np.hypot(1.0 / np.array(weights), apart))]
        prior = np.column_stack([np.zeros((extra, 10)), np.diag(firm), np.zeros(extra)])
        solution = solve(np.vstack([*(w * part for w, part in zip(weights, lean, strict=True)), prior]), total + extra)
        hats = [w * part[:, :-1] @ solution.root for w, part in zip(weights, lean, strict=True)]
        rests = [part[:, -1] - part[:, :-1] @ solution.estimate for part in lean]
        sigma = [np.sqrt(rest @ rest / dof) for rest, dof in zip(rests, _free(hats), strict=True)]
        weights, shared = [1.0 / max(float(value), 1e-9) for value in sigma], solution.estimate[10 : 10 + n]
    return solution, lean, weights, hats


def _free(hats: Sequence[Array]) -> Array:
    """Degrees of freedom of each row group's variance: its rows less their leverages, as priors determine some parameters."""
    return np.maximum([len(hat) - float(np.sum(hat**2)) for hat in hats], 1.0)


def _noise(root: Array, hats: Sequence[Array]) -> tuple[Array, Array]:
    """Covariance of the body's parameters from the noise, shape (10, 10), and the degrees of freedom of each variance, (10,).

    Weights that are estimated from few poses each make the errors too small (Meier 1953, variance of a weighted mean), and the
    row groups' degrees of freedom do not add up (Satterthwaite 1946).

    Args:
        root: Of the covariance with known weights, rows of the body's parameters, shape (10, k).
        hats: As from :func:`_weighted`.
    """
    parts, total = np.array([np.sum((root @ hat.T) ** 2, axis=1) for hat in hats]), np.sum(root**2, axis=1)
    share, free = parts / positive(total), _free(hats)[:, None]
    wider = np.sqrt(1.0 + 4.0 * np.sum(share * (1.0 - share) / free, axis=0))
    return root @ root.T * np.outer(wider, wider), np.maximum(1.0 / positive(np.sum(share**2 / free, axis=0)), 1.0)


def _solved(problem: PayloadProblem, rows: _Rows, poses: StaticPoses) -> tuple[Array, PayloadFit]:
    fit = problem.fit
    solution, lean, weights, hats = _weighted(fit, rows)
    if not solution.seen[0]:
        raise EstimationError(
            "the weight of a body on this link turns no joint in these poses",
            remedy="poses in which gravity loads the joints before it, or another link",
        )
    root = solution.root[:10]
    noise, dof = _noise(root, hats)
    stacked = np.vstack([w * part[:, :-1] for w, part in zip(weights, lean, strict=True)])
    known = np.flatnonzero(fit.seen)
    beta = np.vstack([w * part[:, known] for w, part in zip(weights, rows.known, strict=True)])
    response = -root @ (solution.root.T @ (stacked.T @ beta))
    gains = np.zeros((10, 10))
    for w, part, error in zip(weights, lean, problem.gain_error, strict=True):
        weighted = w * part[:, :-1]
        move = root @ (solution.root.T @ (weighted.T @ (weighted[:, :10] @ solution.estimate[:10])))
        gains += error**2 * np.outer(move, move)
    information = np.vstack([w * part for w, part in zip(weights, rows.body, strict=True)])
    params = np.where(solution.seen[:10], solution.estimate[:10], 0.0)
    shares = {
        f"share_at_rest_{joint}": (float(solution.estimate[10 + j]), float(np.linalg.norm(solution.root[10 + j])))
        for j, joint in enumerate(poses.joints)
    }
    finished = PayloadFit(
        "held",
        params,
        noise,
        response @ fit.covariance[np.ix_(known, known)] @ response.T,
        gains,
        solution.seen[:10],
        dof,
        float(np.min(fit.dofs)),
        np.asarray(np.linalg.qr(information, mode="r")),
        shares,
        {name: 1.0 / w for name, w in zip(rows.groups, weights, strict=True)},
        sum(map(len, lean)),
        f"{len(poses)} poses at rest, with one unknown constant torque a joint",
    )
    return params, finished


def pose_notes(problem: PayloadProblem, poses: StaticPoses) -> tuple[str, ...]:
    """Returns a note on joints that are approached from one side only.

    Returns:
        One sentence, or none.
    """
    levels = _levels(problem.loaded(np.zeros(10)), poses).mean(axis=0)
    named = [f"{poses.joints[j]} (± {levels[j]:.2g})" for j in np.flatnonzero(poses.one_sided & (levels > 0))]
    if not named:
        return ()
    words = f"approached from one side only: {', '.join(named)}: static friction there counts as an error"
    return (f"{words}; reach each pose from both sides (`design --family poses`)",)
