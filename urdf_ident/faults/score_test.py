"""One test of all families of faults: scores of the mixed model, judged by their scatter between blocks of time.

The score of a family is the product of its columns with what the null model leaves of the efforts (Rao 1948); no family needs
a fit of its own. Misfit is alike within a stretch of time, so that a size is compared with the scatter of the scores between
blocks about it, as in cluster-robust inference (Cameron and Miller 2015). That of a window is compared with all other blocks.
A family is significant if its probability by chance, times the number of all that were tested, is below one level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..grouping import batches
from ..judgements.catalogue import Id
from ..linalg import Array, IntArray, lstsq, orthogonal_part, positive, rms
from ..samples import turns
from .evidence import CALIBRATED, DOUBTFUL, EXACT, MATERIAL, RIVAL, remaining_doubt
from .kinds.catalogue import changes, faults
from .kinds.families import FaultFamily
from .linearized import LinearizedCase
from .motion_samples import COMPARED
from .null_model import AT_ONCE, BlockScores, NullModel

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
        coefficients: Those of the columns, shape (k,) each.
        acts: How much it acts at each sample, shape (N,) each.
    """

    family: FaultFamily
    whens: Sequence[When]
    support: Array
    numbers: Array
    scatter: Array
    free: Array
    coefficients: Sequence[Array] | Array
    acts: Sequence[Array] | Array


def find_faults(at: LinearizedCase, null: NullModel) -> tuple[list[Fault], bool]:
    """Searches for faults by forward selection: the best that is significant and matters, then the next beside it.

    Args:
        at: The robot identified from the logs.
        null: The model without faults.

    Returns:
        The faults, in the order in which they were found, and whether any score is beyond chance, even if it does not matter.
    """
    out, beyond_chance = list[Fault](), False
    lasting, temporary = list(faults(at)), list(changes(at))
    windows, found = _windows(at), np.empty((len(at.samples), at.n, 0))
    for _ in range(_ROUNDS):
        # what a delay or a filter leaves varies with the motion, as a change does; and what a change leaves is another
        some = [] if any(item.family.only_competes or item.family.change for item in out) else temporary
        promising = _significant(at, null, lasting, some, windows, LEVEL)[:_CLOSE]
        beyond_chance |= bool(promising)
        tested = [_fault(at, null, item, t, chance, rank) for rank, chance, item, t in promising]
        tested = sorted((item for item in tested if item.material), key=lambda item: -item.rank)
        if not tested:
            break
        best = tested[0]
        out.append(replace(best, rivals=tuple(item for item in tested[1:] if item.rank > (1 - RIVAL) * best.rank)))
        lasting = [family for family in lasting if not _left_by(best.family, family)]
        if best.when.log is not None and not best.when.window:  # the others are examined without this log
            break
        found = np.concatenate([found, best.family.together if best.when == ALWAYS else best.effect[:, :, None]], axis=2)
        null = NullModel.of(at, found)
    return out, beyond_chance


def _left_by(named: FaultFamily, family: FaultFamily) -> bool:
    """Whether what the first-order correction of a fault leaves may look like another: positions or axes of one joint."""
    return named.id.entry.geometric and family.id.entry.geometric and bool({*named.joints} & {*family.joints})


def _usual_scatter(scores: Sequence[_Scores]) -> tuple[float, float]:
    """Variance of block scores that families have in common, and the degrees of freedom it is worth (Smyth 2004).

    These are at most those of one family: all scores are functions of the same residuals.
    """
    from scipy.special import digamma, polygamma

    scatter, free = (np.concatenate([getattr(item, name)[item.numbers > 0] for item in scores]) for name in ("scatter", "free"))
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
    found = _significant(at, null, list(faults(at)), list(changes(at)), _windows(at), np.inf)
    return min((chance for _, chance, _, _ in found), default=1.0)


def _significant(
    at: LinearizedCase,
    null: NullModel,
    lasting: Sequence[FaultFamily],
    temporary: Sequence[FaultFamily],
    windows: _Windows,
    level: float,
) -> list[tuple[float, float, _Scores, int]]:
    """Scores beyond chance, best first: their rank, the probability of as large a one among all, and which they are."""
    from scipy.special import fdtrc

    scores = list(_lasting(at, null, lasting, windows.block))
    usual, worth = _usual_scatter([item for item in scores if item.family.tries == 1])
    of_blocks = null.scores([family.columns[:, at.moving] for family in temporary], windows.block)
    scores += [_temporary(at, null, family, some, windows) for family, some in zip(temporary, of_blocks, strict=True)]
    penalty = np.log((int(at.block.max()) + 1) * len(at.moving))
    # faults, changes, of which windows are many, and what was sought among many have half of the level each
    kinds = [(bool(item.family.change), item.family.tries > 1) for item in scores]
    tests = dict.fromkeys(kinds, 0)
    for kind, item in zip(kinds, scores, strict=True):
        tests[kind] += 2 * item.family.tries * int(np.count_nonzero(item.numbers))
    found = []
    for kind, item in zip(kinds, scores, strict=True):
        numbers = np.maximum(item.numbers, 1)
        scatter = (worth * usual + item.free * item.scatter) / (worth + item.free)
        chance = tests[kind] * fdtrc(numbers, worth + item.free, item.support / numbers / scatter)
        rank = item.support / scatter - penalty * numbers
        some = np.flatnonzero((chance < level) & (item.numbers > 0))
        found += [(float(rank[t]), float(chance[t]), item, int(t)) for t in some]
    return sorted(found, key=lambda entry: -entry[0])


def _lasting(at: LinearizedCase, null: NullModel, families: Sequence[FaultFamily], epoch: IntArray) -> Iterator[_Scores]:
    """Yields scores of faults throughout all logs, where repetitions of a motion are one block, and in single ones.

    What the model explains of the columns is found for several families together, once for each time at which they act.
    """
    samples, logs = at.samples, np.unique(at.samples.log)
    whens = [ALWAYS, *(When(log=int(k)) for k in logs if 1 < len(logs) <= COMPARED)]
    acts = [np.ones(len(samples)) if when.log is None else np.array(samples.log == when.log, dtype=float) for when in whens]
    for some in batches(families, AT_ONCE, lambda family: family.together.shape[2]):
        ends = np.cumsum([family.together.shape[2] for family in some])
        together = null.whitened(np.concatenate([family.together for family in some], axis=2)[:, at.moving])
        scored: list[list[tuple[When, Array, tuple[float, ...], Array]]] = [[] for _ in some]
        for when, acting in zip(whens, acts, strict=True):
            columns = together * acting[None, :, None]
            apart = null.beside(columns)
            for family, scores, end in zip(some, scored, ends, strict=True):
                if family.throughout if when.log is None else family.of_single_logs:
                    both, beside = (x[:, :, end - family.together.shape[2] : end] for x in (columns, apart))
                    score = _lasting_score(at, null, family, both, beside, at.block if when.log is None else epoch)
                    scores += [] if score is None else [(when, acting, *score)]
        for family, scores in zip(some, scored, strict=True):
            if scores:
                times, active, statistics, coefficients = zip(*scores, strict=True)
                support, numbers, scatter, free = np.array(statistics).T
                yield _Scores(family, times, support, numbers, scatter, free, coefficients, active)


def _lasting_score(
    at: LinearizedCase, null: NullModel, family: FaultFamily, both: Array, beside: Array, block: IntArray
) -> tuple[tuple[float, ...], Array] | None:
    """Score of a fault while it acts: support, numbers, scatter and its degrees of freedom; and the coefficients.

    Args:
        both: Columns [nuisance | family], whitened, shape (a, N, k).
        beside: What the model does not explain of them.

    Returns:
        None where the size is not determined, or has the impossible sign.
    """
    known = family.known
    beside_guard, some, beside = beside[:, :, :known], both[:, :, known:], beside[:, :, known:]
    square = np.einsum("ank,ank->k", some, some)
    if known:
        given = both[:, :, :known]
        K = lstsq(_products(given, beside_guard), _products(given, beside), 1e-9)[0]
        some, beside = some - given @ K, beside - beside_guard @ K
    inverse, determined = _inverse(_products(some, beside), square)
    numbers = int(determined)
    if not numbers:
        return None
    x = inverse @ _products(beside, null.residual[:, :, None])[:, 0]
    if family.impossible_sign * x[0] > 0:
        return None
    sizes, turned = np.linalg.eigh(inverse)
    unit = beside @ (turned[:, -numbers:] * np.sqrt(np.maximum(sizes[-numbers:], 0.0)))
    size = _products(unit, null.residual[:, :, None])[:, 0]
    about = _by_block((unit * (null.residual - unit @ size)[:, :, None]).sum(axis=0), block)
    share = _by_block(np.sum(unit**2, axis=(0, 2))[:, None], block)[:, 0]
    free = min(share.sum() ** 2 / np.sum(share**2), max(at.trials.turns, 2.0)) - 1
    scatter = max(float(np.sum(about**2) / numbers * len(share) / max(len(share) - 1, 1)), null.solution.noise)
    return (float(size @ size), numbers, scatter, max(free, 1.0)), x


def _temporary(at: LinearizedCase, null: NullModel, family: FaultFamily, of_blocks: BlockScores, windows: _Windows) -> _Scores:
    """Scores of a change in windows, in single logs, and as a drift, each compared with all other blocks."""
    (score, information, squares), (epoch, whens, weights, acts) = of_blocks, windows
    blocks, count = score.shape
    along = np.tensordot(weights, information, axes=(1, 2))  # shape (T, B, k, l)
    square = squares.sum(axis=0) / blocks
    inverse, numbers = _inverse(np.einsum("tb,tbkl->tkl", weights, along), square * np.sum(weights**2, axis=1)[:, None])
    total = weights @ score
    x = (inverse @ total[:, :, None])[:, :, 0]
    about = score - (along @ x[:, None, :, None])[..., 0]
    sizes, axes = np.linalg.eigh(information[range(blocks), :, range(blocks)])
    seen = sizes > _DETERMINED * positive(float(sizes.max()))
    standardized = np.einsum("bkl,tbk->tbl", axes, about) ** 2 * (seen / np.where(seen, sizes, 1.0))
    scatter = np.maximum(standardized.sum(axis=(1, 2)) / np.maximum(seen.sum() - numbers, 1), null.solution.noise)
    free = np.full(len(weights), max(min(blocks, max(at.trials.turns, 2.0)) - 2.0, 1.0))
    acting = np.any(family.columns[:, at.moving] != 0, axis=0)
    if count > 1 and np.array_equal(acting, np.eye(len(acting), count)):  # what friction leaves is each row's own
        own = np.maximum(x * total, 0.0)
        free *= own.sum(axis=1) ** 2 / positive(np.sum(own**2, axis=1))
    for j in family.joints:  # what a leg leaves unexplained looks like a change in as many legs as it has numbers
        turned = np.bincount(epoch[turns(at.samples.v[:, j])[0]], minlength=blocks)
        numbers = np.where((weights != 0) @ turned >= count, numbers, 0)

    return _Scores(family, whens, np.sum(x * total, axis=1), numbers, scatter, free, x, acts)


class _Windows(NamedTuple):
    """Times at which changes may act.

    Attributes:
        block: Block of each sample, in order of time, shape (N,).
        whens: The times, T in number.
        weights: How much a change then acts in each block, shape (T, B).
        acts: The same at each sample, shape (T, N).
    """

    block: IntArray
    whens: Sequence[When]
    weights: Array
    acts: Array


def _windows(at: LinearizedCase) -> _Windows:
    """Windows of logs, single logs, and drifts."""
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
                acts = (number >= k * each + first) & (number < k * each + last)
                whens.append((When(first / each, last / each, log), acts.astype(float)))
    weights = np.array([weight for _, weight in whens])
    return _Windows(epoch, [when for when, _ in whens], weights, weights[:, epoch])


def _inverse(information: Array, square: Array) -> tuple[Array, Array]:
    """Inverse of information matrices where they determine sizes, shape (..., k, k), and how many these are, shape (...)."""
    scale = 1 / np.sqrt(np.maximum(square, 1e-12))
    scaled = (information + information.swapaxes(-1, -2)) / 2 * scale[..., :, None] * scale[..., None, :]
    sizes, axes = np.linalg.eigh(scaled)
    seen = sizes > _DETERMINED
    inverse = (axes * (seen / np.where(seen, sizes, 1.0))[..., None, :]) @ axes.swapaxes(-1, -2)
    return inverse * scale[..., :, None] * scale[..., None, :], seen.sum(axis=-1)


def _products(a: Array, b: Array) -> Array:
    """Products of columns of all rows, shape (k, l)."""
    return np.asarray(a.reshape(-1, a.shape[2]).T @ b.reshape(-1, b.shape[2]))


def _by_block(values: Array, block: IntArray) -> Array:
    """Sums over the samples of each block, shape (B, k)."""
    return np.stack([np.bincount(block, weights=column) for column in values.T], axis=1)


def _fault(at: LinearizedCase, null: NullModel, scores: _Scores, t: int, chance: float, rank: float) -> Fault:
    """A score as a fault, with its gain and effect."""
    moving, family = at.moving, scores.family
    together = null.whitened((family.together * scores.acts[t][:, None, None])[:, moving])
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
    when = scores.whens[t]
    whole = np.sqrt(12.0) if when.drift else 1.0  # its RMS over one that grows from -1/2 to 1/2
    share = float(np.linalg.norm(whole * rms(torque[acts], axis=0) / at.size)) if acts.any() else 0.0
    return Fault(family, when, size, chance, float(gains.sum()), rank, left, matters, share, torque)
