"""A robust interior-point method for the programme of :mod:`.lmi`, without a modelling layer.

It has two uses. Choosing the prior's weight by held-out error takes dozens of solutions to three digits, for which
compiling a conic programme each time would take ten times as long as solving it. And data that contradict physics (a
wrong sign, a wrong gain) make the objective 1e10 times larger than the distances in the constraints; conic solvers then
stall or report infeasibility, while a barrier method stays feasible from its first step to its last.

Bodies are coupled only by the data term, so the Newton matrix is block-diagonal plus a low-rank term. The data enter
through their compliance ``1/s²`` instead of being squared: a direction that the data determine 1e7 times better than
the prior causes no loss of digits, and the factored matrix is no larger than the rank of the data.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg import Array, IntArray, lstsq
from ..scipy_parts import lapack, non_negative_least_squares
from .clarabel import solve_conic
from .cones import Feasible
from .programme import Point, Programme

#: Reduction of the barrier per outer iteration, final relative gap, most Newton steps per outer iteration.
_SHRINK, _GAP, _STEPS = 0.1, 1e-8, 60
#: Squared Newton decrement over ``mu`` at which centring stops along the path, and at its end.
_LOOSE, _TIGHT = 3.0, 0.1
#: Relative gap of the intermediate point used as a warm start.
_NEAR = 0.03
#: Relative gap at which the rough optimum is accepted.
_ROUGH_GAP = 1e-4
#: Smallest slack of a start.
_INSIDE = 1e-6


def minimise(programme: Programme) -> tuple[Point | None, str]:
    """Follows the central path from an interior point to the optimum.

    Returns:
        The point with its dual variables, and ``"optimal"``; None and ``"nothing inside"`` if the constraints have no
        interior, ``"too close to the boundary"`` if rounding errors put an iterate outside.
    """
    begin = time.perf_counter()
    feasible = programme.feasible
    start = interior(feasible)
    if start is None:
        return None, "nothing inside"
    path = _Path(programme)
    try:
        x, mu = path.follow(start, _GAP)
        x, cones, rows = path.finish(path.polish(x, mu), mu)
    except np.linalg.LinAlgError:
        return None, "too close to the boundary"
    gradient = programme.data.gradient(x) + programme.weight * programme.prior(x)[1]
    gradient -= feasible.cones.adjoint(cones, feasible.p) + feasible.G.T @ rows
    equalities = lstsq(feasible.E.T, -gradient, rcond=None)[0]
    return Point(x, cones, rows, np.asarray(equalities, dtype=float), time.perf_counter() - begin), "optimal"


def central_path_point(programme: Programme, start: Array, *, near: bool = False) -> Array:
    """A point on the central path, used as a warm start for similar problems, shape (p,), strictly feasible.

    Args:
        start: From :func:`interior`, or such a warm start of a similar problem, shape (p,).
        near: Whether ``start`` is a warm start.
    """
    return _Path(programme).follow(start, _NEAR, _NEAR if near else 1.0)[0]


def minimise_roughly(programme: Programme, start: Array) -> Array:
    """The optimum to a few digits, without a certificate, shape (p,), strictly feasible.

    Args:
        start: From :func:`central_path_point` for a similar problem, shape (p,).
    """
    return _Path(programme).follow(start, _ROUGH_GAP, _NEAR)[0]


def interior(feasible: Feasible) -> Array | None:
    """A strictly feasible point: the prior or the closest point inside all half-spaces, otherwise that with the largest slack.

    Returns:
        Shape (p,), or None if there is no such point.
    """
    if not len(feasible.e):
        near = np.zeros(feasible.p)
        if len(feasible.h) and feasible.h.min() <= _INSIDE:
            near = _inside_half_spaces(feasible)
        if _least_slack(feasible, near) > _INSIDE:
            return near

    def objective(cp: Any, x: Any, slack: Any) -> Any:
        return 1e-6 * cp.sum_squares(x) - slack

    x = solve_conic(feasible, objective)
    if x is not None and len(feasible.e):
        x = x + lstsq(feasible.E, feasible.e - feasible.E @ x, rcond=None)[0]
    return x if x is not None and _least_slack(feasible, x) > 0 else None


def _inside_half_spaces(feasible: Feasible) -> Array:
    """The point closest to the prior with a slack of 1 in all half-spaces, shape (p,); the prior if there is none.

    A least-distance problem, by its dual, a non-negative least-squares problem (Lawson and Hanson, 1974, ch. 23).
    """
    lifted = np.vstack([feasible.G.T, 1.0 - feasible.h])
    goal = np.eye(len(lifted))[-1]
    try:
        left = goal - lifted @ non_negative_least_squares(lifted, goal, 50 * len(feasible.h))
    except RuntimeError:  # it did not converge
        left = goal
    return np.asarray(-left[:-1] / left[-1]) if left[-1] > 1e-12 else np.zeros(feasible.p)


def _least_slack(feasible: Feasible, x: Array) -> float:
    eigenvalues = np.linalg.eigvalsh(feasible.cones.at(x))
    return float(min(eigenvalues.min(initial=np.inf), (feasible.G @ x + feasible.h).min(initial=np.inf)))


@dataclass(frozen=True, eq=False)
class _Blocks:
    """A block-diagonal positive definite matrix ``RᵀR``: one 10×10 block per body, one block per group of joint terms.

    Attributes:
        bodies: Upper-triangular factors of the bodies' blocks, shape (n, 10, 10).
        joints: Those of the groups, shape (m, K, K); smaller groups are padded.
        slots: Row of each joint term in the stacked groups, shape (p − 10·n,).
    """

    bodies: Array
    joints: Array
    slots: IntArray

    def half(self, columns: Array) -> Array:
        """``R⁻ᵀ columns``, shape (p, k)."""
        return self._solved(self.bodies.transpose(0, 2, 1), self.joints.transpose(0, 2, 1), columns)

    def back(self, vector: Array) -> Array:
        """``R⁻¹ vector``, shape (p,)."""
        return self._solved(self.bodies, self.joints, vector[:, None])[:, 0]

    def _solved(self, bodies: Array, joints: Array, columns: Array) -> Array:
        (n, _, _), (m, most, _), k = bodies.shape, joints.shape, columns.shape[1]
        upper = np.linalg.solve(bodies, columns[: 10 * n].reshape(n, 10, k)).reshape(10 * n, k)
        padded = np.zeros((m * most, k))
        padded[self.slots] = columns[10 * n :]
        lower = np.linalg.solve(joints, padded.reshape(m, most, k)).reshape(m * most, k)
        return np.vstack([upper, lower[self.slots]])


class _Path:
    """Objective divided by the weight, plus ``mu`` times the logarithmic barrier."""

    def __init__(self, programme: Programme) -> None:
        feasible = programme.feasible
        self.feasible, self.data = feasible, programme.data
        self.weight, self.distance, self.prior_value = programme.weight, programme.distance, programme.prior_value
        n = feasible.n
        group = feasible.joint_groups
        self.groups = int(group.max(initial=-1)) + 1, int(np.bincount(group).max(initial=1))
        self.slots = group * self.groups[1] + _count(group)
        block = np.concatenate([np.repeat(np.arange(n), 10), n + group])
        first, last = (block[column] for column in _ends(feasible.G))
        local = first == last  # half-spaces of one body or one group of joint terms; the others couple blocks
        self.inertial, self.joint = local & (first < n), local & (first >= n)
        self.coupled = ~local
        self.home = first[self.inertial]
        self.normals = np.take_along_axis(feasible.G[self.inertial], 10 * self.home[:, None] + np.arange(10), axis=1)
        self.place = self.home, _count(self.home)
        padded = np.zeros((int(self.joint.sum()), self.groups[0] * self.groups[1]))
        padded[:, self.slots] = feasible.G[self.joint, 10 * n :]
        owner = first[self.joint] - n
        self.joint_normals = padded.reshape(len(padded), *self.groups)[np.arange(len(padded)), owner]
        self.joint_place = owner, _count(owner)
        self.cone_place = feasible.cones.body, _count(feasible.cones.body)
        self.U = np.vstack([self.data.V, feasible.G[self.coupled], feasible.E])

    def cost(self, x: Array) -> float:
        return (self.data.value(x) - self.data.constant) / self.weight + self.prior_value(x)

    def value(self, x: Array, mu: float) -> float:
        """Barrier objective at x; infinite outside the feasible set."""
        rows = self.feasible.G @ x + self.feasible.h
        eigenvalues = np.linalg.eigvalsh(self.feasible.cones.at(x))
        if eigenvalues.min(initial=1.0) <= 0 or rows.min(initial=1.0) <= 0:
            return float(np.inf)
        return self.cost(x) - mu * float(np.log(eigenvalues).sum() + np.log(rows).sum())

    def follow(self, x: Array, gap: float, first: float = 1.0) -> tuple[Array, float]:
        """Follows the central path from an interior point, from one relative gap to another; returns x and the last ``mu``."""
        order = 4 * len(self.feasible.cones.body) + len(self.feasible.h)
        mu = first * max(1.0, self.cost(x)) / order
        for _ in range(200):
            x = self.centre(x, mu, _LOOSE)
            if order * mu <= gap * (1.0 + self.cost(x)):
                break
            mu *= _SHRINK
        return self.centre(x, mu, _TIGHT), mu

    def finish(self, x: Array, mu: float) -> tuple[Array, Array, Array]:
        """One more step, and the corresponding dual variables of cones and half-spaces.

        They are linearised like the step itself, so that they balance the gradient up to rounding. Close to a boundary
        ``mu / slack`` would inherit the slack's rounding error.
        """
        feasible = self.feasible
        step, _ = self._step(x, mu)
        if not np.isfinite(self.value(x + step, mu)):
            step = np.zeros(feasible.p)
        inverse, white = feasible.cones.white(x)
        own = step[: 10 * feasible.n].reshape(-1, 10)[feasible.cones.body]
        relative = np.einsum("ckl,cl->ck", white, own).reshape(-1, 4, 4)
        cones = mu * self.weight * np.einsum("cba,cbd,cde->cae", inverse, np.eye(4) - relative, inverse)
        slack = feasible.G @ x + feasible.h
        return x + step, cones, mu * self.weight * (1.0 - feasible.G @ step / slack) / slack

    def centre(self, x: Array, mu: float, near: float) -> Array:
        """Damped Newton steps for one ``mu``, until the squared decrement is below ``near * mu``."""
        value = self.value(x, mu)
        for _ in range(_STEPS):
            try:
                step, decrement = self._step(x, mu)
            except np.linalg.LinAlgError:
                return x  # rounding puts the point on the boundary
            if decrement < 1e-14 * abs(value):  # below rounding error
                break
            size, moved = 1.0, np.inf
            while size > 1e-10:
                moved = self.value(x + size * step, mu)
                if moved <= value - 0.1 * size * decrement:
                    break
                size *= 0.5
            else:
                return x  # rounding: no step improves any more
            x, value = x + size * step, moved
            if decrement < near * mu:
                break
        return x

    def polish(self, x: Array, mu: float) -> Array:
        """Full Newton steps near the centre while they halve the decrement, for exact dual variables."""
        step, decrement = self._step(x, mu)
        for _ in range(8):
            if not np.isfinite(self.value(x + step, mu)):
                break
            ahead, less = self._step(x + step, mu)
            if not less < 0.5 * decrement:
                break
            x, step, decrement = x + step, ahead, less
        return x

    def _step(self, x: Array, mu: float) -> tuple[Array, float]:
        """Newton step and squared decrement.

        With D the blocks, U the rows that couple them, r their residuals and c their compliances, the step and the
        forces f along U solve ``D dx + Uᵀ f = −g`` and ``U dx − c f = −r``; an equality is a row with c = 0.
        """
        feasible, data = self.feasible, self.data
        rows = feasible.G @ x + feasible.h
        gradient, blocks = self._local(x, mu, rows)
        coupled = rows[self.coupled]
        compliance = np.concatenate([0.5 * self.weight / data.s**2, coupled**2 / mu, np.zeros(len(feasible.e))])
        residual = np.concatenate([data.V @ x - data.a, -coupled, feasible.E @ x - feasible.e])
        white = blocks.half(np.column_stack([gradient, self.U.T]))
        slope, Y = white[:, 0], white[:, 1:]
        stiff = Y.T @ Y
        stiff.flat[:: len(stiff) + 1] += compliance
        half = -(slope + Y @ _solve(stiff, residual - Y.T @ slope))
        step = blocks.back(half)
        moved = self.U @ step
        inside = compliance > 0
        return step, float(half @ half + np.sum(moved[inside] ** 2 / compliance[inside]))

    def _local(self, x: Array, mu: float, rows: Array) -> tuple[Array, _Blocks]:
        """Gradient and Hessian of the terms that do not couple blocks."""
        feasible, n = self.feasible, self.feasible.n
        gradient, metric = 2.0 * x, np.tile(np.sqrt(2.0) * np.eye(10), (n, 1, 1))
        inertial = gradient[: 10 * n].reshape(n, 10)  # a view
        if self.distance == "entropic":
            scale, white = feasible.entropy_scale[:, None, None], feasible.relative.white(x)[1]
            traces = feasible.relative.linear.reshape(n, 16, 10)
            relative = feasible.relative_mass(x)[:, None]
            inertial[:] = (scale * (traces - white))[:, ::5].sum(axis=1)
            inertial += feasible.mass_scale[:, None] * (1.0 - 1.0 / relative) * feasible.mass
            masses = np.sqrt(feasible.mass_scale)[:, None] / relative * feasible.mass
            metric = np.concatenate([np.sqrt(scale) * white, masses[:, None, :]], axis=1)
        white = feasible.cones.white(x)[1]
        np.subtract.at(inertial, feasible.cones.body, mu * white[:, ::5].sum(axis=1))
        local = ~self.coupled
        gradient = gradient - mu * (feasible.G[local].T @ (1.0 / rows[local]))
        cones = np.zeros((n, self.cone_place[1].max(initial=0) + 1, 16, 10))
        cones[self.cone_place] = np.sqrt(mu) * white
        walls = np.zeros((n, self.place[1].max(initial=0) + 1, 10))
        walls[self.place] = np.sqrt(mu) * self.normals / rows[self.inertial, None]
        # roots instead of squares: near a boundary the barrier's curvature is 1e16 times the prior's
        root = np.asarray(np.linalg.qr(np.concatenate([metric, cones.reshape(n, -1, 10), walls], axis=1), mode="r"))
        walls = np.zeros((self.groups[0], self.joint_place[1].max(initial=0) + 1, self.groups[1]))
        walls[self.joint_place] = np.sqrt(mu) * self.joint_normals / rows[self.joint, None]
        metric = np.tile(np.sqrt(2.0) * np.eye(self.groups[1]), (self.groups[0], 1, 1))
        joints = np.asarray(np.linalg.qr(np.concatenate([metric, walls], axis=1), mode="r"))
        return gradient, _Blocks(root, joints, self.slots)


def _ends(G: Array) -> tuple[Array, Array]:
    """First and last non-zero column of every row."""
    used = G != 0
    return used.argmax(axis=1), G.shape[1] - 1 - used[:, ::-1].argmax(axis=1)


def _count(owners: IntArray) -> IntArray:
    """Number of equal entries before each entry."""
    order = np.argsort(owners, kind="stable")
    begins = np.searchsorted(owners[order], owners)
    found = np.empty(len(owners), dtype=np.intp)
    found[order] = np.arange(len(owners))
    return found - begins


def _solve(matrix: Array, right: Array) -> Array:
    """Solves a system with a matrix that is positive definite up to rounding."""
    if not len(matrix):
        return right
    _, found, info = lapack().dposv(matrix, right)
    return np.asarray(found if info == 0 else lstsq(matrix, right, rcond=None)[0])
