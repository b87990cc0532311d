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
from ...model.robot import Robot
from ...model.trained import without_inertia
from ...samples import ReadOnly, Segment
from ...signals.clock import even_pieces
from ...signals.filters import HIGHEST, differentiate, lowpass
from ...statistics.least_squares import Solution, solve
from ...statistics.statistic import placed
from .payload import LoadedModel, PayloadFit, PayloadProblem, beside, from_gains, from_robot

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


def resting_poses(logs: Sequence[Recording], robot: Robot) -> StaticPoses:
    """Finds the standstills of logs.

    Args:
        logs: Checked, on the joint side.

    Raises:
        EstimationError: Too few standstills.
    """
    places, torques, directions = [], [], []
    for log in logs:
        pieces, clock = even_pieces(log)
        before = np.zeros(robot.n)
        for piece in pieces:
            if piece.effort is None:
                raise EstimationError("no torque or current in the log", where=log.name, remedy="name the effort columns")
            if len(piece) < 2 * DWELL * clock.rate:
                continue
            smooth = lowpass(piece.position, clock.rate, min(_SLOW, HIGHEST * clock.rate))
            still = np.asarray((np.abs(differentiate(smooth, clock.rate)) < STILL).all(axis=1))
            last = 0
            for begin, end in (run for run in runs(still) if run[1] - run[0] >= DWELL * clock.rate):
                cut = int(EDGE * clock.rate)
                part = slice(begin + cut, end - cut)
                place = np.median(piece.position[part], axis=0)
                path, before, last = smooth[last : begin + 1], before.copy(), end
                for j in range(robot.n):  # the direction of its last motion; unchanged if it has not moved
                    far = np.flatnonzero(np.abs(path[:, j] - place[j]) > _APART)
                    if len(far):
                        before[j] = np.sign(place[j] - path[far[-1], j])
                places.append(place)
                torques.append(piece.effort[part].mean(axis=0))
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

    Raises:
        EstimationError: The body's weight causes no joint torque in these poses.
    """
    model, fit, base, body, params = problem.model, problem.fit, problem.fit.base, problem.columns, np.zeros(10)
    b, still = len(base), np.zeros((1, model.n))
    segments = [Segment("pose", 0.0, 1.0, q[None], still, still) for q in poses.q]
    targets, place = model.row_targets(poses.tau), np.append(base.place, b + np.arange(10))
    for _ in range(3):  # the level of friction depends on the body
        loaded = problem.loaded(params)
        level, blocks = _levels(loaded, poses), [x for part in segments for _, x in loaded.row_blocks(part, chunk=1)]
        rows = []  # of each row group: columns of β, of the body, the shares and the constants, and the torque less W β
        for g, group in enumerate(loaded.groups):
            columns = placed(np.vstack([block[g] for block in blocks]), place[group.columns], b + 10)
            constant = np.tile(np.arange(len(loaded.groups)) == g, (len(poses), 1))
            rest = targets[:, g] - columns[:, :b] @ fit.params
            rows.append(np.column_stack([columns, poses.direction * level * group.mix, constant, rest]))
        sigma = [fit.sigma.get(group.name, 1.0) for group in model.groups]
        alone, weights, hats = _weighted([part[:, b:] for part in rows], sigma)
        if not alone.seen[0]:
            raise EstimationError(
                "the weight of a body on this link turns no joint in these poses",
                remedy="poses in which gravity loads the joints before it, or another link",
            )
        params = np.where(alone.seen[:10], alone.estimate[:10], 0.0)
    noise, dof = _noise(alone.root[:10], hats)
    solution, weighted = beside(fit.params, alone), [w * part for w, part in zip(weights, rows, strict=True)]
    together = np.vstack(weighted)[:, :-1]
    shares = {
        f"share_at_rest_{joint}": (float(alone.estimate[10 + j]), float(np.linalg.norm(alone.root[10 + j])))
        for j, joint in enumerate(poses.joints)
    }
    return PayloadFit(
        "held",
        params,
        noise,
        from_robot(problem, solution, together)[body, body],
        from_gains(problem, solution, weighted)[body, body],
        alone.seen[:10],
        dof,
        float(np.min(fit.error_dof)),
        np.asarray(np.linalg.qr(together[:, body], mode="r")),
        shares,
        {group.name: 1.0 / w for group, w in zip(model.groups, weights, strict=True)},
        len(together),
        f"{len(poses)} poses at rest, with one unknown constant torque a joint",
    )


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


def friction_at_rest(problem: PayloadProblem, poses: StaticPoses) -> dict[str, float]:
    """Largest residual that dry friction of the unloaded robot leaves in poses, of each row group [N·m or N]."""
    levels = _levels(problem.loaded(np.zeros(10)), poses).mean(axis=0)
    return {group.name: float(np.linalg.norm(levels * group.mix)) for group in problem.model.groups}


def _weighted(lean: Sequence[Array], sigma: Sequence[float]) -> tuple[Solution, list[float], list[Array]]:
    """Least squares for body, shares and constants, weighted by the residuals of each row group.

    Args:
        lean: Per row group ``[body | shares | constants | torque]``, shape (P, 10 + n + groups + 1) each.
        sigma: Standard deviations at which the weights start.

    Returns:
        The solution; of each row group its weight, and the weighted columns times the solution's root, whose squares sum to the
        leverage.
    """
    extra, weights = lean[0].shape[1] - 11, [1.0 / value for value in sigma]
    n = extra - len(lean)
    levels = np.array([np.abs(part[:, 10 : 10 + n]).mean(axis=0) for part in lean])
    shared, total = np.ones(n), sum(map(len, lean))
    for _ in range(5):
        apart = _SHARE * np.linalg.norm(levels * (1.0 - np.minimum(np.abs(shared), 1.0)), axis=1)
        firm = [*np.full(n, 1.0 / _SHARE), *(1.0 / np.hypot(1.0 / np.array(weights), apart))]
        prior = np.column_stack([np.zeros((extra, 10)), np.diag(firm), np.zeros(extra)])
        solution = solve(np.vstack([*(w * part for w, part in zip(weights, lean, strict=True)), prior]), total + extra)
        hats = [w * part[:, :-1] @ solution.root for w, part in zip(weights, lean, strict=True)]
        rests = [part[:, -1] - part[:, :-1] @ solution.estimate for part in lean]
        spread = [np.sqrt(rest @ rest / dof) for rest, dof in zip(rests, _free(hats), strict=True)]
        weights, shared = [1.0 / max(float(value), 1e-9) for value in spread], solution.estimate[10 : 10 + n]
    return solution, weights, hats


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


def pose_notes(problem: PayloadProblem, poses: StaticPoses) -> tuple[str, ...]:
    """Returns a note on joints that are approached from one side only."""
    levels = _levels(problem.loaded(np.zeros(10)), poses).mean(axis=0)
    named = [f"{poses.joints[j]} (± {levels[j]:.2g})" for j in np.flatnonzero(poses.one_sided & (levels > 0))]
    if not named:
        return ()
    words = f"approached from one side only: {', '.join(named)}: static friction there counts as an error"
    return (f"{words}; reach each pose from both sides (`design --family poses`)",)
