"""Interpretations explained by the URDF's own bodies, times one factor, with random errors whose size the logs show.

Friction, rotors and offsets are free; the likelihood is that of :func:`.scaled_bodies`. Errors of a model are alike
within a block of time: the noise is the scatter of what is left between blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..linalg import Array, lstsq, rms
from ..model.prior import USUAL_WEIGHT, ScaledBodies, inertial_prior, scaled_bodies
from ..model.row_groups import spanning_anywhere
from .evidence import EXACT, TRUSTED
from .interpretation import Interpretation
from .trials import Trials


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
        total, columns, size = self._beside_friction(interpretation)
        scale = self.fit(interpretation).factor if factor is None else factor
        return np.maximum(_rms(total, columns[:, :, -1] - scale * columns[:, :, 0]) / size, EXACT)

    def left_alone(self, interpretation: Interpretation) -> float:
        """RMS relative residual of the moving joints with the bodies as the URDF states them, without friction and rotors."""
        total, columns, size = self._columns(interpretation, self.trials.robot.inertials.reshape(-1, 1))
        return rms(_rms(total, columns[:, :, -1] - columns[:, :, 0]) / size)

    @cached_property
    def _bodies(self) -> Array:
        """The bodies, and independent deviations of one standard deviation of them, shape (10 n, 1 + 10 n)."""
        prior = inertial_prior(self.trials.robot)
        return np.column_stack([prior.theta0, prior.deviations])

    @cached_property
    def _left(self) -> Array:
        """Relative residuals of the moving joints by which their rows are weighted, shape (moving joints,)."""
        return np.clip(self.trials.score(self.reference).left[self.trials.moves], *TRUSTED)

    def _columns(self, interpretation: Interpretation, bodies: Array) -> tuple[Array, Array, Array]:
        """Moving rows of an interpretation.

        Args:
            bodies: Inertial parameters, shape (10 n, k).

        Returns:
            Mean products of all columns of each row, shape (joints, p, p); the torques of the bodies and the effort in these,
            shape (joints, p, k + 1); and the sizes of the efforts, shape (joints,).
        """
        found, efforts = self.trials.evidence(interpretation), interpretation.effort_map()
        kept, expansion = spanning_anywhere(self.trials.robot)
        made = np.zeros((len(found.active), bodies.shape[1]))
        made[kept] = expansion @ bodies
        moving, m, n = self.trials.moving, found.regression.shared, len(efforts)
        total = found.regression.total[moving] / found.regression.count.sum()
        columns = np.zeros((len(moving), total.shape[1], bodies.shape[1] + 1))
        columns[:, :m, :-1] = made[found.active] * found.scale[:, None]
        columns[:, -n:, -1] = efforts[moving]
        return total, columns, found.size_of(efforts[:, :, None])[moving, 0]

    def _beside_friction(self, interpretation: Interpretation) -> tuple[Array, Array, Array]:
        """The same of the bodies and their deviations, orthogonal to each row's friction, rotor and offset."""
        if interpretation == self.reference:
            return self._reference
        return self._orthogonal_to_friction(interpretation)

    @cached_property
    def _reference(self) -> tuple[Array, Array, Array]:
        return self._orthogonal_to_friction(self.reference)

    def _orthogonal_to_friction(self, interpretation: Interpretation) -> tuple[Array, Array, Array]:
        total, columns, size = self._columns(interpretation, self._bodies)
        own = slice(self.trials.evidence(interpretation).regression.shared, -self.trials.robot.n)
        for gram, some in zip(total, columns, strict=True):
            some[own] = -lstsq(gram[own, own], gram[own] @ some, rcond=1e-9)[0]
        return total, columns, size

    def _gram(self, interpretation: Interpretation) -> Array:
        """Products of the torques of the bodies, of their deviations, and of the efforts, weighted by row."""
        total, columns, size = self._beside_friction(interpretation)
        weights = self.trials.evidence(interpretation).regression.count.sum() / (self._left * size) ** 2
        return np.asarray(np.einsum("ipk,ipl,i->kl", columns, total @ columns, weights, optimize=True))

    @cached_property
    def _noise(self) -> float:
        """Variance of a sample of the weighted rows as the scatter between blocks shows it."""
        shown = self.reference
        _, columns, size = self._beside_friction(shown)
        within = self._gram(shown)
        penalty = USUAL_WEIGHT * np.diag(np.append(0.0, np.ones(len(within) - 2)))
        root = within[:-1, :-1] + penalty
        x = np.append(-lstsq(root, within[:-1, -1])[0], 1.0)
        gram = self.trials.evidence(shown).regression.gram[:, self.trials.moving]
        weighted = columns[:, :, :-1] / (self._left * size)[:, None, None] ** 2
        scores = np.einsum("ipk,bip->kb", weighted, np.einsum("bipq,iq->bip", gram, columns @ x), optimize=True)
        between, inside = (np.sum(lstsq(root, y)[0] * z) for y, z in ((scores, scores), (within[:-1, :-1], np.eye(len(root)))))
        return max(1.0, float(between / inside) * len(gram) / max(len(gram) - 1, 1))


def _rms(total: Array, x: Array) -> Array:
    """RMS of a combination of columns of each row, shape (joints,)."""
    return np.asarray(np.sqrt(np.maximum(np.einsum("ip,ipq,iq->i", x, total, x), 0.0)))
