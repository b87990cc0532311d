"""One test of all families of faults: scores of the mixed model, judged by their scatter between blocks of time.

The score of a family is the product of its columns with what the null model leaves of the efforts (Rao 1948); no family needs
a fit of its own. Misfit is alike within a stretch of time, so that a size is compared with the scatter of the scores between
blocks about it, as in cluster-robust inference (Cameron and Miller 2015). That of a window is compared with all other blocks.
A family is significant if its probability by chance, times the number of all that were tested, is below one level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..judgements.catalogue import Id
from ..linalg import Array, IntArray, lstsq, orthogonal_part, positive, rms
from ..samples import turns
from .evidence import CALIBRATED, DOUBTFUL, EXACT, MATERIAL, RIVAL, remaining_doubt
from .kinds.catalogue import changes, faults
from .kinds.families import FaultFamily
from .linearized import LinearizedCase
from .motion_samples import COMPARED
from .null_model import BlockScores, NullModel

#: Twice the probability that any fault is significant in sound logs; the same for any change, and for any column that was
#: chosen as the best of many.
LEVEL = 3e-3
#: Least change of the model's torques over the error that remains: what is smaller does not matter.
_MATTERS = 0.5
#: Blocks of time of all logs together, and fewest of a log whose windows are tested; largest part of a log in a window.
_BLOCKS, _FEWEST, _MOST = 45, 5, 0.6
#: Part of a fault's effect in one log below which there is none in another.
_FELT = 0.1
#: Number of significant scores whose gains are computed.
_CLOSE = 30
#: Part of a column's square that the model must leave for its size to be determined.
_DETERMINED = 1e-5
#: Number of scores as large that are expected by chance, below which a large fault is looked for.
_SUSPECT = 1.0
#: Largest correlation of blocks in succession.
_ALIKE = 0.9
#: Number of faults that are searched for, one after the other.
_ROUNDS = 3


@dataclass(frozen=True)
class When:
    """When a fault acts.

    Attributes:
        begin, end: Fractions of the log's motion.
        log: The log in which it acts, or None for all of them.
        drift: Whether it grows along each log, or, if it is by log, from the first log to the last.
    """

    begin: float = 0.0
    end: float = 1.0
    log: int | None = None
    drift: bool = False
    by_log: bool = False

    @property
    def window(self) -> bool:
        """Whether it is a part of a log."""
        return self.end - self.begin < 1.0


ALWAYS = When()


@dataclass(frozen=True, eq=False)
class Fault:
    """A fault that was found.

    Attributes:
        size: In the unit of its family.
        chance: Probability of as large a score, times the number of tests.
        gain: Gain in the sum of the logarithms of the rows' residuals without random effects, while it acts.
        rank: Gain in the quasi-likelihood of the mixed model less the Bayesian information criterion's penalty, where each
            block of a joint counts as one sample.
        left: Relative residuals of the joints without and with it and without random effects, while it acts, shape (2, n).
        matters: RMS change of a joint's torques of bodies and simple friction by its correction, over the error that remains;
            the largest of the joints.
        share: Torques by which it changes each joint over its effort, RMS while it acts; root of the sum of squares.
        effect: What corrects it if added to the efforts, shape (N, n) [N·m or N].
        rivals: Others that explain as much.
    """

    family: FaultFamily
    when: When
    size: float
    chance: float
    gain: float
    rank: float
    left: Array
    matters: float
    share: float
    effect: Array
    rivals: tuple[Fault, ...] = ()

    @property
    def certainty(self) -> float:
        """Certainty that it is there, 0 to 1."""
        return 1 - remaining_doubt(self.gain)

    @property
    def joint(self) -> int:
        """The joint that shows it most."""
        return self.family.joints[0] if self.family.joints else self.joint_explained

    @property
    def joint_explained(self) -> int:
        """The joint whose effort it explains most of."""
        return int(np.argmax(self.left[0] / self.left[1]))

    def logs(self, log: IntArray) -> list[int]:
        """Logs in which it acts, more than by errors of its size; all in which it grows.

        Args:
            log: Log of each sample, shape (N,).
        """
        sizes = {int(k): rms(self.effect[log == k]) for k in np.unique(log)}
        return [k for k, size in sizes.items() if self.when.drift or size > _FELT * max(sizes.values())]

    @property
    def material(self) -> bool:
        """Whether it matters for the model, beyond calibration errors; a change beyond what unmodelled friction may change."""
        # friction that the model lacks changes a joint's torque by a material part, in either direction
        uncalibrated = self.family.id.entry.geometric or self.family.id == Id.EFFORT_DELAY
        least = 2 * MATERIAL if self.family.change else 0.0 if uncalibrated else CALIBRATED
        return self.gain > DOUBTFUL and self.matters > _MATTERS and self.share > least


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of one family at several times.

    Attributes:
        support: Squares of the whitened sizes, shape (T,): twice the gain in log-likelihood, times the noise's variance.
        numbers: Numbers of which the sizes consist, shape (T,); 0 where they are not determined.
        scatter: Variances of the scores between blocks about these sizes, shape (T,).
        free: Degrees of freedom of the scatter, shape (T,).
        coefficients: Those of the columns, shape (T, k).
    """

    family: FaultFamily
    times: _Times
    support: Array
    numbers: Array
    scatter: Array
    free: Array
    coefficients: Array


def find_faults(at: LinearizedCase, null: NullModel) -> tuple[list[Fault], list[FaultFamily]]:
    """Searches for faults by forward selection: the best that is significant and matters, then the next beside it.

    Args:
        at: The robot identified from the logs.
        null: The model without faults.

    Returns:
        The faults, in the order in which they were found, and the families of lasting ones of which less than one score as
        large is expected by chance, even if they do not matter.
    """
    out, suspects = list[Fault](), list[FaultFamily]()
    penalty = float(np.log(_BLOCKS * len(at.moving)))  # of a number (Schwarz 1978), where a block of a joint is one sample
    lasting, temporary = list(faults(at)), list(changes(at))
    found = np.empty((len(at.samples), at.n, 0))
    for _ in range(_ROUNDS):
        # what a delay or a filter leaves varies with the motion, as a change does; and what a change leaves is another
        some = [] if any(item.family.only_competes or item.family.change for item in out) else temporary
        tested = _tested(at, null, lasting, some)
        suspects += [item.scores.family for item in tested if item.chance < _SUSPECT and not item.scores.family.change]
        possible = [_fault(at, null, item, rank) for rank, item in _promising(tested, penalty)[:_CLOSE]]
        possible = [item for item in possible if item.material]
        if not possible:
            break
        # the rank is to first order: of those with nearly the best the one that explains most, in terms of the rank
        near = [item for item in possible if item.rank > (1 - RIVAL) * possible[0].rank]
        alike = [item for item in near if item.when == possible[0].when]
        best = max(alike, key=lambda item: 2 * _BLOCKS * item.gain - penalty * item.family.columns.shape[2])
        out.append(replace(best, rivals=tuple(item for item in near if item is not best)))
        lasting = [family for family in lasting if not _left_by(best.family, family)]
        if best.when.log is not None and not best.when.window:  # the others are examined without this log
            break
        found = np.concatenate([found, best.family.together if best.when == ALWAYS else best.effect[:, :, None]], axis=2)
        null = NullModel.of(at, found)
    return out, suspects


def _left_by(named: FaultFamily, family: FaultFamily) -> bool:
    """Whether what the first-order correction of a fault leaves may look like another: positions or axes of one joint."""
    return named.id.entry.geometric and family.id.entry.geometric and bool({*named.joints} & {*family.joints})


def _usual_scatter(scores: Sequence[_Scores]) -> tuple[float, float]:
    """Variance of block scores that families have in common, and the degrees of freedom it is worth (Smyth 2004).

    These are at most those of one family: all scores are functions of the same residuals.
    """
    from scipy.special import digamma, polygamma

    none = np.empty(0)
    scatter, free = (
        np.concatenate([none, *(getattr(item, name)[item.numbers > 0] for item in scores)]) for name in ("scatter", "free")
    )
    if len(scatter) < 2:
        return 1.0, 0.0
    logs = np.log(scatter) - digamma(free / 2) + np.log(free / 2)
    beyond = max(float(np.var(logs, ddof=1) - np.mean(polygamma(1, free / 2))), 1e-3)
    worth = min(2 / beyond, float(np.median(free)))  # trigamma(d / 2) is nearly 2 / d
    return float(np.exp(np.mean(logs) + digamma(worth / 2) - np.log(worth / 2))), worth


def least_chance(at: LinearizedCase, null: NullModel) -> float:
    """Probability by chance of the most significant score of all families, before it is asked whether that matters.

    Args:
        at, null: As for :func:`find_faults`.
    """
    tested = _tested(at, null, list(faults(at)), list(changes(at)))
    return min((item.chance for item in tested), default=1.0)


class _Tested(NamedTuple):
    """A score as a test.

    Attributes:
        kind: Whether of a change, and whether of columns that were sought among many.
        chance: Probability of as large a score, times the number of tests of its kind.
        scatter: Variance of the scores between blocks, its own and that of all families.
    """

    scores: _Scores
    t: int
    kind: tuple[bool, bool]
    chance: float
    scatter: float

    @property
    def support(self) -> float:
        return float(self.scores.support[self.t])


def _tested(
    at: LinearizedCase, null: NullModel, lasting: Sequence[FaultFamily], temporary: Sequence[FaultFamily]
) -> list[_Tested]:
    """All scores whose size is determined, with their probability by chance."""
    from scipy.special import fdtrc

    scores = _scores(at, null, lasting, temporary)
    usual = {
        change: _usual_scatter([item for item in scores if item.family.tries == 1 and bool(item.family.change) == change])
        for change in (False, True)
    }
    # faults, changes, of which windows are many, and what was sought among many have half of the level each
    kinds = [(bool(item.family.change), item.family.tries > 1) for item in scores]
    tests = dict.fromkeys(kinds, 0)
    for kind, item in zip(kinds, scores, strict=True):
        tests[kind] += 2 * item.family.tries * int(np.count_nonzero(item.numbers))
    out = []
    for kind, item in zip(kinds, scores, strict=True):
        numbers, (common, worth) = np.maximum(item.numbers, 1), usual[kind[0]]
        scatter = (worth * common + item.free * item.scatter) / (worth + item.free)
        chance = tests[kind] * fdtrc(numbers, worth + item.free, item.support / numbers / scatter)
        out += [_Tested(item, int(t), kind, float(chance[t]), float(scatter[t])) for t in np.flatnonzero(item.numbers > 0)]
    return out


def _promising(tested: Sequence[_Tested], penalty: float) -> list[tuple[float, _Tested]]:
    """Scores that may be the fault, best first, with their rank.

    Whether there is one is decided by the level; which it is, by the likelihood: a suspect that explains as much as the best
    that is beyond chance may be the fault as well. Likelihoods are compared with one scatter, that beside what explains most.
    """
    beyond = [item for item in tested if item.chance < LEVEL]
    scale = max(beyond, key=lambda item: item.support).scatter if beyond else 1.0
    ranked = [(item.support / scale - penalty * item.scores.numbers[item.t], item) for item in tested]
    best = {item.kind: rank for rank, item in sorted(ranked, key=lambda entry: entry[0]) if item.chance < LEVEL}
    out = [
        (rank, item)
        for rank, item in ranked
        if rank > 0 and (item.chance < LEVEL or (item.chance < _SUSPECT and rank >= best.get(item.kind, np.inf)))
    ]
    return sorted(out, key=lambda entry: -entry[0])


def _scores(
    at: LinearizedCase, null: NullModel, lasting: Sequence[FaultFamily], temporary: Sequence[FaultFamily]
) -> list[_Scores]:
    """Scores of faults throughout all logs and in single ones, where repetitions of a motion are one block, and of changes."""
    windows = _windows(at)
    throughout = windows.throughout(at)
    of_faults = [[family.throughout, *[family.of_single_logs] * (len(throughout.whens) - 1)] for family in lasting]
    tried = [(family, throughout.some(which)) for family, which in zip(lasting, of_faults, strict=True) if any(which)]
    out = []
    for times, some in ((throughout, tried), (windows, [(family, windows) for family in temporary])):
        of_blocks = null.scores([family.together for family, _ in some], times.block, times.sets)
        out += [_score(at, null, *one, scores) for one, scores in zip(some, of_blocks, strict=True)]
    return out


def _score(at: LinearizedCase, null: NullModel, family: FaultFamily, times: _Times, of_blocks: BlockScores) -> _Scores:
    """Scores of a family at several times.

    With its scores ``s_b`` and information ``I_bc`` in blocks of time, and ``w_b`` how much it acts in each, its score is
    ``s = Σ w_b s_b``, the information ``I = Σ w_b w_c I_bc``, and the size ``x = I⁻¹ s``. What resembles the family acts at the
    same times and may have any size: it is eliminated from both. All blocks give one scatter of the scores about the size,
    ``e_b = s_b − Σ w_c I_bc x``, in units of their information: ``Σ e_bᵀ (Σ I_bb)⁻¹ e_b · B / (B − 1)``, over its numbers.
    """
    weights, known, blocks = times.weights, family.known, len(of_blocks.score)
    along = np.tensordot(times.of_sets, of_blocks.information, axes=1)  # Σ w_c I_bc, shape (T, B, k, k)
    square = np.sum(weights**2, axis=1)[:, None] * of_blocks.squares.mean(axis=0)
    score, alone = of_blocks.score, of_blocks.alone[None]
    if known:  # the family beside what resembles it, shape (T, k, m)
        total = np.einsum("tb,tbkl->tkl", weights, along)
        explained = _inverse(total[:, :known, :known], square[:, :known])[0] @ total[:, :known, known:]
        own = np.broadcast_to(np.eye(total.shape[1] - known), (len(weights), *explained.shape[2:], explained.shape[2]))
        beside = np.concatenate([-explained, own], axis=1)
        along, alone = (beside.swapaxes(1, 2)[:, None] @ x @ beside[:, None] for x in (along, alone))
        score = score @ beside
    total = np.einsum("tb,tbi->ti", weights, np.broadcast_to(score, along.shape[:3]))
    inverse, numbers = _inverse(np.einsum("tb,tbij->tij", weights, along), square[:, known:])
    x = (inverse @ total[:, :, None])[:, :, 0]
    about = score - (along @ x[:, None, :, None])[..., 0]
    unit, _ = _inverse(alone.sum(axis=1), of_blocks.squares.sum(axis=0)[known:])
    scaled = about @ unit
    squares = np.sum(scaled * about, axis=(1, 2))
    # blocks in succession are alike for a while: as if there were fewer of them, of the scatter of their mean (Bartlett 1946)
    alike = float(np.clip(np.mean(np.sum(scaled[:, 1:] * about[:, :-1], axis=(1, 2)) / positive(squares)), 0.0, _ALIKE))
    fewer = (1 + alike) / (1 - alike)
    scatter = fewer * squares * blocks / max(blocks - 1, 1) / np.maximum(numbers, 1)
    share = np.sum(alone * unit[:, None], axis=(2, 3))  # of each block in the scatter
    worth = share.sum(axis=1) ** 2 / positive(np.sum(share**2, axis=1))  # blocks of equal shares (Kish 1965)
    legs = np.inf if family.change else at.trials.turns  # each shows what friction leaves once, however many blocks it has
    free = np.broadcast_to(np.minimum(worth / fewer, max(legs, 2.0)) - 1, len(weights))
    acting = np.any(family.columns[:, at.moving] != 0, axis=0)
    if len(acting.T) > 1 and np.array_equal(acting, np.eye(*acting.shape)):  # what friction leaves is each row's own
        rows = np.maximum(x * total, 0.0)
        free = free * rows.sum(axis=1) ** 2 / positive(np.sum(rows**2, axis=1))
    for j in family.joints if family.change else ():  # what a leg leaves looks like a change
        turned = np.bincount(times.block[turns(at.samples.v[:, j])[0]], minlength=blocks)
        numbers = np.where((weights != 0) @ turned >= x.shape[1], numbers, 0)
    numbers = np.where(family.impossible_sign * x[:, 0] > 0, 0, numbers)
    scatter = np.maximum(scatter, null.solution.noise)
    return _Scores(family, times, np.sum(x * total, axis=1), numbers, scatter, np.maximum(free, 1.0), x)


class _Times(NamedTuple):
    """Times at which faults may act.

    Attributes:
        block: Block of each sample, shape (N,).
        whens: The times, T in number.
        of_sets: Weights in each time of sets of blocks, shape (T, U).
        sets: How much a fault then acts in each block, shape (U, B).
    """

    block: IntArray
    whens: Sequence[When]
    of_sets: Array
    sets: Array

    @property
    def weights(self) -> Array:
        """How much a fault acts in each block, shape (T, B)."""
        return self.of_sets @ self.sets

    def throughout(self, at: LinearizedCase) -> _Times:
        """All logs throughout, and single ones if they are few; the blocks are those in which motion was first shown."""
        block = np.unique(self.block[at.samples.first], return_inverse=True)[1]
        logs, of_block = np.unique(at.samples.log), at.samples.log[np.unique(block, return_index=True)[1]]
        single = logs if 1 < len(logs) <= COMPARED else logs[:0]
        weights = np.concatenate([np.ones((1, len(of_block))), of_block == single[:, None]])
        return _Times(block, [ALWAYS, *(When(log=int(k)) for k in single)], np.eye(len(weights)), weights)

    def some(self, which: Sequence[bool]) -> _Times:
        """Some of the times."""
        whens = [when for when, one in zip(self.whens, which, strict=True) if one]
        return self._replace(whens=whens, of_sets=self.of_sets[list(which)])

    def acts(self, t: int) -> Array:
        """How much a fault acts at each sample at one of the times, shape (N,)."""
        return np.asarray((self.of_sets[t] @ self.sets)[self.block])


def _windows(at: LinearizedCase) -> _Times:
    """Windows of each log and of all at once, single logs, and drifts."""
    samples = at.samples
    logs = np.unique(samples.log)
    each = max(1, round(_BLOCKS / len(logs)))
    epoch, whens = np.empty(len(samples), dtype=np.int64), list[tuple[When, Array]]()
    for k, log in enumerate(logs):
        mine = np.flatnonzero(samples.log == log)
        epoch[mine] = k * each + np.arange(len(mine)) * each // len(mine)
    number = np.arange(each * len(logs))
    if each > 1:
        whens.append((When(drift=True), (number % each + 0.5) / each - 0.5))
    if len(logs) > 2:
        whens.append((When(drift=True, by_log=True), number // each / (len(logs) - 1) - 0.5))
    for k, log in enumerate(map(int, logs)):
        if len(logs) > 1:
            whens.append((When(log=log), (number // each == k).astype(float)))
    for first in range(each if each >= _FEWEST else 0):
        for last in range(first + 1, min(each, first + int(_MOST * each)) + 1):
            begin, end, acts = first / each, last / each, (number % each >= first) & (number % each < last)
            if len(logs) > 1:
                whens.append((When(begin, end), acts.astype(float)))
            for k, log in enumerate(map(int, logs)):
                whens.append((When(begin, end, log), (acts & (number // each == k)).astype(float)))
    weights = np.array([weight for _, weight in whens])
    return _Times(epoch, [when for when, _ in whens], weights, np.eye(len(number)))


def _inverse(information: Array, square: Array) -> tuple[Array, Array]:
    """Inverse of information matrices where they determine sizes, shape (..., k, k), and how many these are, shape (...)."""
    scale = 1 / np.sqrt(np.maximum(square, 1e-12))
    scaled = (information + information.swapaxes(-1, -2)) / 2 * scale[..., :, None] * scale[..., None, :]
    sizes, axes = np.linalg.eigh(scaled)
    seen = sizes > _DETERMINED
    inverse = (axes * (seen / np.where(seen, sizes, 1.0))[..., None, :]) @ axes.swapaxes(-1, -2)
    return inverse * scale[..., :, None] * scale[..., None, :], seen.sum(axis=-1)


def _fault(at: LinearizedCase, null: NullModel, tested: _Tested, rank: float) -> Fault:
    """A score as a fault, with its gain and effect."""
    scores, t, moving, family = tested.scores, tested.t, at.moving, tested.scores.family
    together = null.whitened(family.together * scores.times.acts(t)[:, None, None])
    nuisance, columns = together[:, :, : family.known], together[:, :, family.known :]
    effect = columns @ scores.coefficients[t]
    acts = np.any(effect != 0, axis=0)
    count = np.maximum(np.count_nonzero(null.weights[:, acts], axis=1), 1)
    apart = null.simple.beside(np.concatenate([nuisance, effect[:, :, None]], axis=2))
    beside, before = apart[:, :, -1], null.simple.residual
    if nuisance.size:
        known = apart[:, :, :-1].reshape(before.size, -1)
        before, after = (orthogonal_part(x.ravel(), known, 1e-9).reshape(x.shape) for x in (before, before - beside))
        effect = effect - nuisance @ lstsq(known, beside.ravel(), 1e-9)[0]  # what resembles it may have any size
    else:
        after = before - beside
    pair = [before, after]
    inverse = 1 / positive(null.weights.max(axis=1))
    rows = [np.sqrt(np.sum(x[:, acts] ** 2, axis=1) / count) * inverse / at.size[moving] for x in pair]
    left = np.full((2, at.n), 1.0)
    left[:, moving] = np.maximum(rows, EXACT)
    gains = np.log(left[0] / left[1])
    # on other motions a change may be there or not; of a fault, what it does to bodies and friction remains
    shift = effect if family.change else effect - beside
    matters = float(np.max(rms(shift, axis=1) / positive(rms(pair[1], axis=1))))
    x = -family.unit * scores.coefficients[t]
    size = float(x[0]) if len(x) == 1 else float(np.ptp(x) if family.per_log else np.linalg.norm(x))
    torque = np.zeros((len(at.samples), at.n))
    torque[:, moving] = -(effect / positive(null.weights)).T * (null.weights > 0).T
    when = scores.times.whens[t]
    whole = np.sqrt(12.0) if when.drift else 1.0  # its RMS over one that grows from -1/2 to 1/2
    share = float(np.linalg.norm(whole * rms(torque[acts], axis=0) / at.size)) if acts.any() else 0.0
    return Fault(family, when, size, tested.chance, float(gains.sum()), rank, left, matters, share, torque)
