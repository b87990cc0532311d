"""How far an estimated payload can be trusted: residuals against the unloaded robot's, other links, and useful motions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np

from ...consistency.payload_quantities import Quantities
from ...errors import EstimationError
from ...estimation.estimators.payload import PayloadFit, PayloadProblem
from ...estimation.uncertainty.identifiability import IDENTIFIABLE, KNOWN, LOST, NOTHING, SECONDS, STATES, WEAK, simple_motions
from ...judgements.catalogue import Id, Severity
from ...judgements.judgement import Judgement, Remedy, Verdict
from ...linalg import Array, positive, triangle
from ...model.row_groups import joint_of
from ..record import Record

#: Relative standard error of the mass below which the verdict is good.
_GOOD = 0.02
#: The same from which it is poor.
_POOR = 0.2
#: Assumed size of a body whose centre of mass or inertia is small [m].
_SIZE = 0.05
#: Number of standard errors from which the centre of a negative mass is reported.
_SIGNIFICANT = 10.0
#: Ratio of the loaded logs' residual to the unloaded logs' from which it is reported.
_NOISIER = 1.5
#: The same ratio from which the verdict is not good, whatever the standard error (one torque constant 3 % off: 5 to 13).
UNEXPLAINED = 4.0
#: Residual of a joint over that with a body on another link, from which the body is said to sit there if that is likelier.
_BETTER_LINK = 2.0
#: Standard error that a motion leaves over the least of all motions up to which it is as useful: the simplest such is advised.
_AS_USEFUL = 1.15
#: Standard error that a motion leaves over the present one from which it is not worth recording.
_NO_HELP = 0.7


def residual_ratios(ident: Record, fit: PayloadFit) -> dict[str, float]:
    """Ratio of the loaded logs' residual to the unloaded logs' per row group; empty where outliers were down-weighted."""
    if ident.estimation.get("down_weighted"):
        return {}
    return {name: value / ident.fit.sigma[name] for name, value in fit.sigma.items() if ident.fit.sigma.get(name)}


def other_link(problem: PayloadProblem, fit: PayloadFit, estimate: Callable[[PayloadProblem], PayloadFit]) -> Judgement | None:
    """Judges whether a body on another link explains the residual that one on this link leaves; None if there is none."""
    better = list[tuple[float, str, str, float]]()
    for k, body in enumerate(problem.model.robot.bodies):
        if k == problem.body:
            continue
        with suppress(EstimationError):  # it loads no joint
            other = estimate(replace(problem, body=k, placement=np.eye(10)))
            gains = {name: value / positive(other.sigma[name]) for name, value in fit.sigma.items()}
            loudest = max(gains, key=lambda name: gains[name])
            if other.massive and gains[loudest] > _BETTER_LINK:
                likelihood = float(np.log(list(gains.values())).sum())
                better.append((likelihood, body.links[0].name, joint_of(loudest), gains[loudest]))
    likelihood, link, joint, gain = max(better, default=(0.0, "", "", 0.0))
    if likelihood <= 0:
        return None
    words = f"explains these logs better: the residual of {joint} is {gain:.3g} times smaller"
    return Judgement(Id.PAYLOAD_ELSEWHERE, f"a body on {link}, or on a link fixed to it, {words}")


def payload_remarks(
    ident: Record, fit: PayloadFit, refit: str, ratios: Mapping[str, float], *, exact_gains: bool
) -> tuple[str, ...]:
    """What the reader of an estimate should know: choices that were made, and assumptions.

    Args:
        refit: The friction that was estimated again, a key of :data:`.REFIT`.
        ratios: See :func:`residual_ratios`.
        exact_gains: Whether torque constants are taken as exact because nothing states their errors.
    """
    notes = []
    if refit == "friction":
        changed = max(fit.changes.items(), key=lambda change: abs(change[1][0]) / positive(change[1][1]), default=None)
        words = "" if changed is None else f", most {changed[0]} by {changed[1][0]:+.3g} ± {changed[1][1]:.2g}"
        notes.append(f"friction of the loaded logs differs from that of the unloaded ones: estimated again{words}")
    if exact_gains:
        notes.append("torque constants are assumed to be exact; an error of 1 % changes the mass by 1 % (--gain-error 0.01)")
    if not fit.converged:
        notes.append("load-dependent friction did not converge: it is too large to be separated from the payload")
    unseen = int((~ident.fit.seen).sum())
    if unseen and fit.method == "held":
        notes.append(
            f"{unseen} base parameters of the unloaded robot are unknown; their effect in these logs is attributed to the body"
        )
    noisy = [joint_of(name) for name, times in ratios.items() if times > _NOISIER]
    if noisy:
        notes.append(
            f"the residual of {', '.join(noisy)} is more than {_NOISIER:g} times the unloaded robot's: a load that is "
            "not rigid, friction or a torque constant that has changed?"
        )
    return tuple(notes)


def payload_verdict(fit: PayloadFit, body: Quantities, ratios: Mapping[str, float], elsewhere: Judgement | None) -> Verdict:
    """Judges an estimate; ratios: see :func:`residual_ratios`."""
    if body.impossible:
        taken, error = -fit.params[0], fit.bse[0]
        words = f"the logs imply a mass of {-taken:.3g} ± {error:.2g} kg, which is impossible: they differ in something else"
        other_cause = ""
        if taken > _SIGNIFICANT * error:
            place = ", ".join(f"{x:.3g}" for x in -fit.params[1:4] / taken)
            other_cause = f" (a tool of {taken:.3g} kg at ({place}) m on the unloaded robot only would explain it)"
        remedy = (
            f"check whether loaded and unloaded logs were exchanged{other_cause}, whether torque constants or offsets have "
            "changed, and how the unloaded model does on another unloaded log (`validate`)"
        )
        return Verdict.of([Judgement(Id.PAYLOAD_IMPOSSIBLE, words, Remedy(remedy))])
    if elsewhere is not None:
        return Verdict.of([elsewhere])
    loudest = max(ratios, key=lambda name: ratios[name], default="")
    odd = ""
    if loudest and ratios[loudest] > UNEXPLAINED:
        times = f"{ratios[loudest]:.2g} times the unloaded robot's"
        odd = f"the residual of {joint_of(loudest)} is {times} and not explained by the body"
    if body.interval[0, 0] <= 0 or not np.isfinite(body.std_error[0]):
        nothing = "the interval includes 0 kg: these logs may contain no payload"
        check = Remedy("check whether it sits on another link (--link), or friction or torque constants have changed")
        unexplained = Judgement(Id.PAYLOAD_UNEXPLAINED, odd, check, "refused")
        return Verdict.of([unexplained if odd else Judgement(Id.PAYLOAD_NOT_SHOWN, nothing)])
    share = float(body.std_error[0] / body.value[0])
    severity: Severity = "info" if share < _GOOD else "warning" if share < _POOR else "refused"
    judged = [Judgement(Id.PAYLOAD_MASS, f"the mass is known to ± {100 * share:.3g} %", severity=severity)]
    if odd:
        words = f"{odd} (another torque constant, contact, a swinging load?); standard errors do not cover this"
        judged.append(Judgement(Id.PAYLOAD_UNEXPLAINED, words))
    return Verdict.of(judged)


def known_quantities(
    problem: PayloadProblem, fit: PayloadFit, body: Quantities, rate: float | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Judges for each quantity how well it is known.

    Args:
        rate: Rate of the samples that were fitted [Hz]; None for static poses.

    Returns:
        Ten verdicts of :mod:`.identifiability`, and for each the simplest motion that would improve it, or nothing.
    """
    value, error = body.value, body.std_error
    gyration = max(float(np.sqrt(max(value[[4, 7, 9]].max(), 0.0) / positive(value[0]))), _SIZE)
    distance = max(float(np.abs(value[1:4]).max()), _SIZE)
    size = np.concatenate([[positive(value[0])], np.full(3, distance), np.full(6, value[0] * gyration**2)])
    levels = tuple(IDENTIFIABLE if share <= KNOWN else WEAK if share <= NOTHING else LOST for share in error / size)
    if all(level == IDENTIFIABLE for level in levels) or not fit.massive:
        return levels, ("",) * 10
    if rate is None:
        more = ("more poses that tilt the body about other axes",) * 4
        moving = ("move the loaded arm: poses at rest show no inertia",) * 6
        return levels, tuple("" if level == IDENTIFIABLE else words for level, words in zip(levels, more + moving, strict=True))
    # simple motions, and the standard errors of the quantities if each were recorded as well
    weights, trials = {name: 1.0 / sigma for name, sigma in fit.sigma.items()}, list[tuple[str, Array]]()
    loaded = problem.loaded(fit.params)
    for motion in simple_motions(problem.model.robot):
        factor = np.zeros((0, 10))
        for _, blocks in loaded.row_blocks(replace(motion.states, reference_torque=None), chunk=STATES):
            for group, block in zip(loaded.groups, blocks, strict=True):
                if loaded.added[0] in group.columns:
                    begin = int(np.flatnonzero(group.columns == loaded.added[0])[0])
                    factor = triangle(factor, block[:, begin : begin + 10] * weights[group.name])
        informed = np.vstack([fit.precision, factor * np.sqrt(SECONDS * rate / STATES)])
        trials.append((motion.words, np.linalg.norm(body.slopes @ np.linalg.pinv(informed, rcond=1e-8), axis=1)))
    advice = []
    for k, level in enumerate(levels):
        best = min(left[k] for _, left in trials)
        words = next(text for text, left in trials if left[k] <= max(_AS_USEFUL * best, KNOWN * size[k]))
        helps = level != IDENTIFIABLE and best < _NO_HELP * error[k]
        advice.append(words if helps else "" if level == IDENTIFIABLE else "a heavier body, or more and faster motion")
    return levels, tuple(advice)
