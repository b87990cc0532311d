"""Interpretations explained by the URDF's own bodies, times one factor, with random errors whose size the logs show.

Friction, rotors and offsets are free; the likelihood is that of :func:`.scaled_bodies`. Errors of a model are alike
within a block of time: the noise is the scatter of what is left between blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..linalg import Array, lstsq, positive, rms
from ..model.prior import USUAL_WEIGHT, ScaledBodies, inertial_prior, scaled_bodies
from ..model.row_groups import spanning_anywhere
from .evidence import EXACT, TRUSTED
from .interpretation import Interpretation
from .regression import LEAST_RIDGE
from .trials import Trials


class _Rows(NamedTuple):
    """Moving rows of a limb, and vectors of bodies in them.

    Attributes:
        gram: Columns of each row and its effort in each block, shape (B, joints, p, p).
        samples: Their number.
        own: The columns of each row alone.
        columns: Torques of the bodies and the effort in these, shape (joints, p, k + 1).
        size: Of the efforts, shape (joints,).
        left: Relative residuals by which the rows are weighted, shape (joints,).
    """

    gram: Array
    samples: float
    own: slice
    columns: Array
    size: Array
    left: Array

    @property
    def weighted(self) -> Array:
        """The columns over the squares of the residuals by which the rows are weighted, shape (joints, p, k + 1)."""
        return np.asarray(self.columns / (self.left * self.size)[:, None, None] ** 2)

    def residuals(self, factor: float) -> Array:
        """RMS of the efforts less the first body times a factor, over their size, shape (joints,)."""
        x = self.columns[:, :, -1] - factor * self.columns[:, :, 0]
        squares = np.einsum("ip,ipq,iq->i", x, self.gram.sum(axis=0), x)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) / self.samples) / self.size)


@dataclass(frozen=True, eq=False)
class UrdfBodies:
    """The bodies of the URDF, and the interpretations that they explain.

    Attributes:
        reference: The interpretation that shows the noise.
    """

    trials: Trials
    reference: Interpretation

    def fit(self, interpretation: Interpretation) -> ScaledBodies:
        """The factor that the bodies have in common, the size of their errors, and the likelihood."""
        sizes, axes = np.linalg.eigh(self._gram(interpretation))
        rows = np.sqrt(sizes.clip(0.0))[:, None] * axes.T
        return scaled_bodies(rows[:, 0], rows[:, 1:-1], rows[:, -1], self._noise)

    def costs(self, interpretations: Sequence[Interpretation]) -> list[float]:
        """Negative log-likelihoods, up to a constant."""
        return [self.fit(item).cost / 2 for item in interpretations]

    def left(self, interpretation: Interpretation, factor: float | None = None) -> Array:
        """Relative residuals of the moving rows with the bodies times a factor and no errors, shape (moving joints,).

        Args:
            factor: By default that of the fit.
        """
        scale = self.fit(interpretation).factor if factor is None else factor
        every = [rows.residuals(scale) for rows in self._beside_friction(interpretation)]
        return np.asarray(np.maximum(np.concatenate(every), EXACT))

    def left_alone(self, interpretation: Interpretation) -> float:
        """RMS relative residual of the moving joints with the bodies as the URDF states them, without friction and rotors."""
        every = self._rows(interpretation, self.trials.robot.inertials.reshape(-1, 1))
        return rms(np.concatenate([rows.residuals(1.0) for rows in every]))

    @cached_property
    def _bodies(self) -> Array:
        """The bodies, and independent deviations of one standard deviation of them, shape (10 n, 1 + 10 n)."""
        prior = inertial_prior(self.trials.robot)
        return np.column_stack([prior.theta0, prior.deviations])

    def _rows(self, interpretation: Interpretation, bodies: Array) -> list[_Rows]:
        """Rows of each limb for an interpretation.

        Args:
            bodies: Inertial parameters, shape (10 n, k).
        """
        out, left = list[_Rows](), np.clip(self.trials.score(self.reference).left, *TRUSTED)
        for limb in self.trials.limbs:
            found, joints = self.trials.evidence(interpretation, limb), np.array(limb.joints)
            moves, m, efforts = self.trials.moves[joints], found.regression.shared, found.read([interpretation])
            gram = found.regression.beside(found.efforts.read(efforts))[:, moves]
            columns = np.zeros((*gram.shape[1:3], bodies.shape[1] + 1))
            made = spanning_anywhere(limb.robot)[1] @ bodies[limb.columns]
            columns[:, :m, :-1] = made * np.where(np.isfinite(found.scale), found.scale, 0.0)[:, None]
            columns[:, -1, -1] = 1.0
            size, count = found.size_of(efforts)[moves, 0], float(found.regression.count.sum())
            out.append(_Rows(gram, count, slice(m, -1), columns, size, left[joints[moves]]))
        return out

    def _beside_friction(self, interpretation: Interpretation) -> list[_Rows]:
        """The same of the bodies and their deviations, orthogonal to each row's friction, rotor and offset.

        What these explain but for the rounding of a Gram matrix is no torque of a body: the weight and the mass of a slide that
        moves alone are an offset and a rotor.
        """
        if interpretation == self.reference:
            return self._reference
        return self._orthogonal_to_friction(interpretation)

    @cached_property
    def _reference(self) -> list[_Rows]:
        return self._orthogonal_to_friction(self.reference)

    def _orthogonal_to_friction(self, interpretation: Interpretation) -> list[_Rows]:
        every = self._rows(interpretation, self._bodies)
        for rows in every:
            for gram, some in zip(rows.gram.sum(axis=0), rows.columns, strict=True):
                bodies = some[:, :-1]
                whole = np.sum(bodies * (gram @ bodies), axis=0)
                some[rows.own] = -lstsq(gram[rows.own, rows.own], gram[rows.own] @ some, rcond=LEAST_RIDGE)[0]
                bodies[:, np.sum(bodies * (gram @ bodies), axis=0) <= LEAST_RIDGE * whole] = 0.0
        return every

    def _gram(self, interpretation: Interpretation) -> Array:
        """Products of the torques of the bodies, of their deviations, and of the efforts, weighted by row."""
        every = [(rows.weighted, rows.gram.sum(axis=0) @ rows.columns) for rows in self._beside_friction(interpretation)]
        return np.asarray(np.sum([np.tensordot(x, y, ((0, 1), (0, 1))) for x, y in every], axis=0))

    @cached_property
    def _noise(self) -> float:
        """Variance of a sample of the weighted rows as the scatter between blocks shows it."""
        within = self._gram(self.reference)
        penalty = USUAL_WEIGHT * np.diag(np.append(0.0, np.ones(len(within) - 2)))
        root = within[:-1, :-1] + penalty
        x = np.append(-lstsq(root, within[:-1, -1])[0], 1.0)
        every = [(rows.weighted, rows.gram @ (rows.columns @ x)[..., None]) for rows in self._beside_friction(self.reference)]
        scores = np.sum([np.tensordot(x[:, :, :-1], y[..., 0], ((0, 1), (1, 2))) for x, y in every], axis=0)
        between = float(np.sum(lstsq(root, scores)[0] * scores))
        inside = float(np.trace(lstsq(root, within[:-1, :-1])[0]))
        blocks = scores.shape[1]
        return float(max(1.0, between / positive(inside) * blocks / max(blocks - 1, 1)))
