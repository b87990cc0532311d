"""Cross-validation of a residual: its error on held-out motions, compared with that of friction and links alone.

Every motion is held out in turn with all logs that repeat it (motions are distributed to at most as many folds as a single log
has), and all three loops run on the others. A single motion is split into parts in time, which is a weaker test; if it is
periodic, a part is the same stretch of every period, because other periods would repeat the held-out data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np

from ..errors import EstimationError
from ..linalg import Array, rms
from ..model.dynamic_model import DynamicModel
from ..progress import Progress
from ..samples import ReadOnly, Segment
from ..signals.periods import find_repetition
from ..signals.prepare import PreparedLog
from ..statistics.accumulate import build_statistics
from ..statistics.folds import PARTS, TIME_FOLDS, CrossValidation, chosen, relative_gains, standard_error
from ..statistics.motions import motions
from ..units import percent
from .residual import candidate
from .three_loop import three_loop


@dataclass(frozen=True, eq=False)
class HeldOutComparison(ReadOnly):
    """Held-out errors of the candidate compensations.

    Attributes:
        folds: Names of the held-out logs of each fold.
        plain: RMSE of plain WLS before any loop, shape (folds, n) [N·m or N].
        errors: Name from :func:`candidate` → RMSE after the last loop, shape (folds, n) each [N·m or N].
        laws: Source of the friction laws to use: "logs" or "sweeps".
    """

    joints: tuple[str, ...]
    folds: tuple[str, ...]
    plain: Array
    errors: Mapping[str, Array]
    laws: str
    chosen: str
    why: str

    def rmse(self, kind: str | None = None) -> Array:
        """Root mean square over the folds, shape (n,) [N·m or N]; kind: a key of :attr:`errors`, plain WLS if None."""
        return rms(self.plain if kind is None else self.errors[kind], 0)

    def as_dict(self) -> dict[str, Any]:
        return {
            "chosen": self.chosen,
            "laws": self.laws,
            "why": self.why,
            "folds": list(self.folds),
            "joints": list(self.joints),
            "wls": self.rmse().tolist(),
            **{kind: self.rmse(kind).tolist() for kind in self.errors},
        }

    def cross_validation(self, torque: Array) -> CrossValidation:
        """Errors of the chosen friction and links without the residual, which a URDF cannot hold.

        Args:
            torque: RMS of each joint's torque, shape (n,) [N·m or N].
        """
        rmse = self.errors[candidate(self.laws, "none")]
        groups = tuple(f"joint:{joint}" for joint in self.joints)
        return CrossValidation(self.folds, groups, rmse, np.tile(torque, (len(rmse), 1)))


def compare_loops(
    model: DynamicModel,
    logs: Sequence[PreparedLog],
    sweeps: Sequence[PreparedLog],
    *,
    kinds: Sequence[str],
    beside: Sequence[PreparedLog] = (),
    rounds: int = 20,
    seed: int = 0,
    progress: Progress | None = None,
) -> HeldOutComparison:
    """Cross-validates the loops for every combination of friction laws and residual.

    Friction measured in runs of one joint can differ from friction in fast motions of all joints. Where it predicts them
    worse, the laws identified from the logs are kept, with or without a residual.

    Args:
        kinds: Residuals to try: "rbf", "gmr"; a single kind is chosen regardless of the result.
        beside: The same logs prepared together with the sweeps, which improve the gears' kinematic error; as ``logs`` if empty.

    Returns:
        The comparison. It chooses no residual unless a kind gains, and the laws of the sweeps, which are less representative,
        only if they gain over the best choice from the logs alone, each by the paired test of :mod:`.statistics.folds`.
    """
    pieces, folds = _folds(model, logs)
    both = {"logs": pieces, "sweeps": _folds(model, beside, folds)[0] if beside else pieces}
    tried = [(laws, kind) for laws in ("logs", "sweeps")[: 2 if sweeps else 1] for kind in dict.fromkeys(("none", *kinds))]
    errors: dict[str, list[Array]] = {candidate(*pair): [] for pair in tried}
    plain: list[Array] = []
    for done, (fold, (laws, kind)) in enumerate(product(folds, tried), 1):
        driven = sweeps if laws == "sweeps" else ()
        most = rounds if kind != "none" or driven else 1  # without residual and sweeps nothing is repeated
        learn, unseen = ([log for log in both[laws] if (log.name in fold) == out] for out in (False, True))
        gains = three_loop(model, learn, driven, kind=kind, held_out=unseen, rounds=most, seed=seed).gains
        first, last = gains[0].held_out, gains[-1].held_out
        if first is None or last is None:
            raise EstimationError("nothing was held out", got=fold)
        errors[candidate(laws, kind)].append(last)
        if (laws, kind) == ("logs", "none"):
            plain.append(first)
        if progress is not None:
            progress("compensation judged on held-out motions", done, len(folds) * len(tried))
    in_time = f"parts in time of {'one log' if len(logs) == 1 else 'one motion'}"
    what = f"{len(folds)} {in_time if len(pieces) > len(logs) else 'held-out motions'}"
    stacked = {name: np.array(folded) for name, folded in errors.items()}
    names = tuple(" + ".join(fold) for fold in folds)
    return HeldOutComparison(model.robot.joints, names, np.array(plain), stacked, *_choice(stacked, kinds, bool(sweeps), what))


def _choice(errors: Mapping[str, Array], kinds: Sequence[str], swept: bool, what: str) -> tuple[str, str, str]:
    """The friction laws to use ("logs" or "sweeps"), the residual, and why.

    Args:
        errors: Those of every candidate, shape (folds, n) each [N·m or N].
        swept: Whether friction from sweeps was tried.
        what: On what the candidates were judged, in words.
    """
    laws, kind, why = "logs", "none", f"friction and links judged on {what}"
    asked = len(kinds) == 1  # a single kind was requested
    if kinds:
        taken, best, gain, error = _compared(errors, "none", kinds)
        why = f"{best} lowers the squared error on {what} by {100 * gain:.3g} ± {percent(100 * error)} %"
        if taken != best:
            why += f": not significant, {'used because it was requested' if asked else 'not used'}"
        kind = best if asked else taken
    if not swept:
        return laws, kind, why
    offered = {candidate("sweeps", one): one for one in (kinds if asked else ("none", *kinds))}
    taken, best, _, _ = _compared(errors, kind, tuple(offered))
    before, after = (float(rms(errors[name], 0).mean()) for name in (kind, best))
    verb, more = ("raises", "are better") if after > before else ("lowers", "are not significantly worse")
    why += f"; friction from the sweeps {verb} the error from {before:.3g} to {after:.3g}"
    if taken != best:
        return laws, kind, f"{why}: the laws found in the logs {more} and are kept"
    return "sweeps", offered[best], why


def _compared(errors: Mapping[str, Array], simplest: str, others: Sequence[str]) -> tuple[str, str, float, float]:
    """The candidate to use, the best of the others, its relative gain over the simplest one and the standard error."""
    squares = np.array([errors[name] ** 2 for name in (simplest, *others)])
    gains = relative_gains(squares[0], squares[1:])
    best = int(np.argmax(gains.mean(axis=1)))
    taken = (simplest, *others)[chosen(squares)]
    return taken, others[best], float(gains[best].mean()), float(standard_error(gains[best]))


def _folds(
    model: DynamicModel, logs: Sequence[PreparedLog], known: Sequence[tuple[str, ...]] | None = None
) -> tuple[list[PreparedLog], list[tuple[str, ...]]]:
    """Logs or parts of them, and the names in each fold; ``known``: folds of the same logs."""
    if known is not None:
        whole = {log.name for log in logs} == {name for fold in known for name in fold}
        return (list(logs) if whole else [piece for log in logs for piece in _cut(log)]), list(known)
    independent = motions(build_statistics(model, logs))
    if len(independent) > 1:
        count = min(TIME_FOLDS, len(independent))
        return list(logs), [tuple(name for names in independent[k::count] for name in names) for k in range(count)]
    cut = [_cut(log) for log in logs]
    count = min(map(len, cut))
    if count < 2:
        raise EstimationError(
            "too little motion to hold anything out", where=logs[0].name, remedy="record longer, or other motions"
        )
    return [piece for pieces in cut for piece in pieces], [tuple(pieces[k].name for pieces in cut) for k in range(count)]


def _cut(log: PreparedLog) -> list[PreparedLog]:
    """Parts in time with about the same number of samples; for a periodic motion, stretches of its period."""
    total, begin_of_segment = sum(len(stretch) for stretch in log.segments), 0
    pieces: list[list[Segment]] = [[] for _ in range(PARTS)]
    for segment in log.segments:
        place = np.arange(begin_of_segment, begin_of_segment + len(segment)) / total
        repetition = find_repetition(segment.q)
        if repetition is not None:
            place = (np.arange(len(segment)) - repetition.first) / repetition.length % 1.0
        stretch = np.minimum((PARTS * place).astype(int), PARTS - 1)
        for begin, end in pairwise([0, *(np.flatnonzero(np.diff(stretch)) + 1).tolist(), len(segment)]):
            pieces[stretch[begin]].append(segment.slice(begin, end))
        begin_of_segment += len(segment)
    return [
        replace(log.with_segments(segments), recording=replace(log.recording, name=f"{log.name}[{k + 1}/{PARTS}]"))
        for k, segments in enumerate(pieces)
        if segments
    ]
