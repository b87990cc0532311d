"""Factors of efforts, and of the clock, that logs leave open, as information: other masses and friction would explain them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement
from .evidence import DOUBTFUL
from .interpretation import Interpretation
from .kinds.clock_and_gravity import STRETCHES
from .kinds.efforts import COMMON_GAINS, GAINS
from .trials import Trials


def open_factors(trials: Trials, interpretation: Interpretation, told: Collection[str | None]) -> list[Judgement]:
    """Tells the joints whose effort scale the logs do not determine, alone or with all that they carry, and an open clock.

    The torque of a last joint that turns about its body's own axis, or of a light wrist, is independent of the other efforts:
    friction and inertia absorb any factor. The joints of a wrist determine each other's scale, and may still have another
    unit than the arm: of their masses the arm sees only combinations with its own. Without gravity, another clock is another
    mass and other friction.

    Args:
        told: Joints of which something else is told.
    """
    names, moving, place = trials.robot.joints, trials.moving, trials.robot.place_in_tree
    carried = [tuple(k for k in moving if place[k] in trials.robot.subtrees[j]) for j in moving]
    several = dict.fromkeys(joints for joints in carried if 1 < len(joints) < len(moving))
    found = dict[tuple[str, ...], str]()
    for joints in [*((j,) for j in moving), *several]:
        own = tuple(names[j] for j in joints)
        if {*own} & {*told}:
            continue
        gains = GAINS if len(joints) == 1 else COMMON_GAINS
        range_ = _alike(trials, interpretation, {by: interpretation.scaled("effort_factor", joints, by) for by in gains})
        found |= {own: range_} if range_ else {}
    out = []
    if found:
        joints_ = [name for name in names if any(name in own for own in found)]
        shown = ", ".join(f"{' + '.join(own)} ({range_})" for own, range_ in found.items())
        words = f"the log does not determine the scale of these efforts (possible factors): {shown}; it depends on "
        out.append(
            Judgement(
                Id.EFFORT_SCALE_OPEN,
                f"{words}`drive.gain` and the unit of the log",
                joint=joints_[0] if len(joints_) == 1 else None,
                candidates=(Id.EFFORT_SCALE,),
                joints=tuple(joints_),
            )
        )
    clock = {by: replace(interpretation, stretch=by * interpretation.stretch) for by in STRETCHES}
    if range_ := _alike(trials, interpretation, clock):
        words = (
            f"the log does not determine the scale of its time (possible factors: {range_}): other masses and friction would "
        )
        out.append(Judgement(Id.TIME_SCALE_OPEN, f"{words}explain it as well", candidates=(Id.TIME_SCALE,)))
    return out


def _alike(trials: Trials, interpretation: Interpretation, tries: Mapping[float, Interpretation]) -> str:
    """The range of factors around 1 whose interpretations explain the log as well, in words; empty if there is none."""
    before, scores = trials.score(interpretation).score, trials.scores(list(tries.values()))
    worse = [factor for factor, item in zip(tries, scores, strict=True) if item.score - before >= DOUBTFUL]
    below, above = max((k for k in worse if k < 1), default=0.0), min((k for k in worse if k > 1), default=np.inf)
    alike = [1.0, *(factor for factor in tries if below < factor < above)]
    low, high = min(alike), max(alike)
    if low == high:
        return ""
    if low == min(tries):
        return "any" if high == max(tries) else f"up to {high:.3g}"
    return f"from {low:.3g}" if high == max(tries) else f"{low:.3g} to {high:.3g}"
