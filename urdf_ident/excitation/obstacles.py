"""Collision avoidance in the search: a barrier on distances close to the required ones, with its gradient.

Most distances are large most of the time. Each is stored as a lower bound that every step of the search reduces by the
largest possible displacement (lever arms times joint changes), and is computed again only if the bound gets close. The
barrier ``−(1 − s)² log s`` is smooth, zero from ``s = 1`` on and infinite at ``s = 0`` (Li et al. 2020, incremental potential
contact), so that pairs become active without a jump. Its range is 0.1 m while steps are long and shrinks with its weight;
its curvature is passed to the search (:class:`.interior.Push`), which would need many steps to approximate it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ..linalg import Array
from ..motion.collision.clearance import Clearance, SpeedBounds, check_clearance
from ..motion.collision.collisions import Collisions
from ..motion.collision.find import CONSTANT
from ..motion.limits import Limits
from .family import Family
from .interior import Push

#: Largest displacement of a link between two instants at the velocity limit of one joint [m].
TRAVEL = 0.5
#: Fewest and most instants per motion.
INSTANTS = (80, 1200)
#: Allowance beyond the required distance for motion between instants [m], and its largest share of a pair's largest margin.
PAD, PAD_SHARE = 0.004, 0.25
#: Number of random poses for the usual distance of a pair.
POSES = 100
#: Number of tries to free a pose, and the part of the position range that they use.
FREEING, FREE_RANGE = 100, 0.9
#: Final and initial range of the barrier [m], and its largest share of a pair's usual margin, so that the distances of links
#: that are always close need not be computed all the time.
RANGE, FIRST_RANGE, RANGE_SHARE = 0.03, 0.1, 0.25
#: Weights of the barrier at its final and at its initial range.
WEIGHTS = (1e-3, 0.1)
#: Weight relative to the barrier of torque and joint limits, which are always active: a distance is small at few instants
#: only, and a barrier that rises too late lets the search get stuck in corners.
HEAVIER = 10.0
#: Stride of the instants with the initial range of the barrier; the others have the final range.
EVERY = 3
#: Initial spacing of instants for certifying motions during the search [s]; the final motion is checked with a finer one.
CHECKED = 0.06
#: Number of instants added around a violation between instants.
_AROUND = 9


class Obstacles:
    """Barrier on the distances of a family's motions.

    Args:
        collisions: The pairs to keep apart.
        family: The family of motions.
        limits: Finite limits on positions and velocities.

    Attributes:
        collisions: As given.
        violation: The pair that came too close in the last motion rejected by :meth:`is_clear`.
        pad: Allowance beyond the required distance of each pair, shape (P,) [m].
    """

    def __init__(self, collisions: Collisions, family: Family, limits: Limits) -> None:
        self.collisions = collisions
        P = len(collisions.pairs)
        # A wrist that turns close to the forearm must neither block every motion nor be computed at every step.
        q = np.random.default_rng(0).uniform(limits.lower, limits.upper, (POSES, len(limits.joints)))
        margin = collisions.distances(q) - collisions.required if P else np.zeros((1, 0))
        self.pad, self._usual = np.clip(PAD_SHARE * margin.max(axis=0), 0.0, PAD), np.median(margin, axis=0)
        #: Bound of a distance of which nothing is known yet, shape (P,); a constant one need not be computed.
        self._unknown = np.where((np.ptp(margin, axis=0) < CONSTANT) & (margin.min(axis=0) > CONSTANT), np.inf, -np.inf)
        stroke = np.maximum(np.abs(limits.lower), np.abs(limits.upper))
        bounds = SpeedBounds.of(collisions, stroke)
        self._arms = bounds.arms.T
        self.family = single = replace(family, periods=1)
        duration = single.period + 2 * single.lead
        fastest = float((bounds.arms * limits.velocity).max(initial=0.0))  # one joint alone at full speed
        self._even = int(np.clip(np.ceil(duration * fastest / TRAVEL), *INSTANTS))
        self._step = duration / (self._even - 1)
        self.grid = single.grid(np.linspace(0.0, duration, self._even))
        self._last = np.zeros((self._even, len(limits.joints)))
        self._bound = np.tile(self._unknown, (self._even, 1))
        self._least = collisions.required + self.pad
        self._certified: Array | None = None
        self.violation: Clearance | None = None

    def __call__(self, X: Array, weight: float) -> tuple[float, Push | None]:
        """Returns the value of the barrier for unknowns X, shape (d, n), inf if a distance is violated, and its derivatives.

        Args:
            weight: Of the barrier; 0: only check the distances.

        Returns:
            The value, and the contributions of the distances within range; None if there are none.
        """
        if not self.collisions.pairs:
            return 0.0, None
        q = self.grid.bases[0] @ X + self.grid.constant[0]
        self._bound -= np.abs(q - self._last) @ self._arms
        self._last = q
        # the range of the barrier, zero where distances are only checked; with a wide one, neighbouring instants are redundant
        part = 0.0 if weight <= 0 else float(np.clip(np.log(weight / WEIGHTS[0]) / np.log(WEIGHTS[1] / WEIGHTS[0]), 0.0, 1.0))
        wide = RANGE * (FIRST_RANGE / RANGE) ** part
        reach = np.clip(RANGE_SHARE * self._usual, min(RANGE, wide), wide) if weight > 0 else np.zeros(len(self._least))
        every = 1 + round(part * (EVERY - 1))
        watched = (np.arange(len(q)) % every == 0) | (np.arange(len(q)) >= self._even)
        spans = np.where(watched[:, None], reach, np.minimum(reach, RANGE))
        rows, pairs = np.nonzero(self._bound < self._least + spans)
        used, where = np.unique(rows, return_inverse=True)
        poses = self.collisions.kinematics.evaluate(q[used])
        span = spans[rows, pairs]
        rough = self.collisions.rough(poses, where, pairs)
        self._bound[rows, pairs] = rough
        near = np.flatnonzero(rough < self._least[pairs] + span)
        rows, pairs, where, span = rows[near], pairs[near], where[near], span[near]
        within = float((self._least[pairs] + span).max(initial=0.0))
        distance, first, second = self.collisions.exact(poses, where, pairs, within)
        self._bound[rows, pairs] = distance
        margin = distance - self._least[pairs]
        if not margin.min(initial=np.inf) > 0:
            return np.inf, None
        close = np.flatnonzero(margin < span)
        instants, span, s = rows[close], span[close], margin[close] / span[close]
        by_distance = self.collisions.gradients(poses, where[close], pairs[close], first[close], second[close], distance[close])
        if weight == 0 or not len(s):
            return 0.0, None
        share, basis = HEAVIER * weight / len(q), self.grid.bases[0]
        slope = share * (2 * (1 - s) * np.log(s) - (1 - s) ** 2 / s) / span
        gradient = np.asarray(basis[instants].T @ (slope[:, None] * by_distance))
        approach = (by_distance[:, :, None] * basis[instants][:, None, :]).reshape(len(s), -1)
        curvature = share * (-2 * np.log(s) + 4 * (1 - s) / s + ((1 - s) / s) ** 2) / span**2
        return -share * float(((1 - s) ** 2 * np.log(s)).sum()), Push(gradient, approach, curvature, s * span)

    def is_clear(self, X: Array) -> bool:
        """Certifies all distances of a motion, also between instants; adds instants to the grid near violations.

        Args:
            X: The unknowns, shape (d, n).
        """
        if self._certified is not None and np.array_equal(X, self._certified):
            return True
        motion = self.family.trajectory(X)
        report = check_clearance(motion, self.collisions, CHECKED)
        if report.feasible:
            self._certified = X.copy()
            return True
        self.violation = report.worst
        times = np.unique([pair.time for pair in report.pairs if pair.margin < 0])
        around = (times[:, None] + self._step * np.linspace(-1.0, 1.0, _AROUND)).ravel()
        self.grid = self.family.grid(np.concatenate([self.grid.time, np.clip(around, 0.0, motion.duration)]))
        self._last = np.concatenate([self._last, np.zeros((len(around), self._last.shape[1]))])
        self._bound = np.concatenate([self._bound, np.tile(self._unknown, (len(around), 1))])
        return False

    def violated_pair(self, pose: Array) -> str:
        """Returns the names of the pair that is too close at a pose, shape (n,); empty if there is none."""
        margin = self._margin(pose)
        return "" if margin.min(initial=np.inf) > 0 else " and ".join(self.collisions.pairs[int(np.argmin(margin))].names)

    def freed(self, pose: Array, limits: Limits, rng: np.random.Generator) -> Array:
        """Moves the joints between links that are too close until none are (see :meth:`.Collisions.freed`).

        Args:
            pose: Shape (n,) [rad or m].
        """
        draw = partial(limits.random_pose, rng, FREE_RANGE * limits.half_range)
        return self.collisions.freed(pose, self._margin, draw, FREEING)

    def _margin(self, pose: Array) -> Array:
        """Distances less those that are required, shape (P,) [m]."""
        return self.collisions.distances(pose)[0] - self._least if self.collisions.pairs else np.zeros(0)
