"""Findings of each log from the explanations that remain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..judgements.catalogue import SEVERITIES, Id
from ..judgements.judgement import Judgement
from ..model.robot import Robot
from ..samples import FEWEST_REVERSALS
from .against_urdf import against_the_urdf
from .candidates import Interpretation
from .case import Case
from .change_wording import changes, differs, worse_explained
from .evidence import SEVERE
from .explanations import Explanations
from .fault_wording import fault_finding
from .hypotheses import Step, open_clock, open_scales, search
from .linearized import LinearizedCase
from .part_of_gravity import part_of_gravity
from .score_test import ALWAYS
from .tip_forces import tip_force
from .trials import Trials
from .wording import doubt, named, open_scale, open_time

#: Relative residual of the moving joints up to which it is noise and unmodelled friction: an eighth of the torque's square.
_SOUND = 0.35


def findings(found: Explanations) -> list[list[Judgement]]:
    """Reports what was found.

    Returns:
        Findings of each log of the group: only those of the differing ones where logs differ.
    """
    return _of_differing(found) if found.differing else _of_all(found)


def _of_differing(found: Explanations) -> list[list[Judgement]]:
    """How the logs that differ from the others do, and what is wrong with each by itself."""
    robot, differing = found.group.robot, found.differing
    out: list[list[Judgement]] = [[] for _ in found.group.logs]
    for k, fault in differing.items():
        case = found.group.some([k]).case()
        trials = None if case is None else Trials(case)
        own = () if trials is None else _downgraded(trials.case, _steps_in_words(trials, *search(trials)))
        judgement = differs(robot, fault, len(differing) == 1, own)
        out[k] = [*_downgraded(found.case, [judgement], FEWEST_REVERSALS * len(out)), *own]
    return out


def _of_all(found: Explanations) -> list[list[Judgement]]:
    robot, common = found.group.robot, _downgraded(found.case, _of_interpretation(found))
    reported = {(item.id, item.joint) for item in common}
    # a fault of one joint's effort may be made of a part of a force; other faults act on all joints as a force does
    alone = all(item.family.joints and item.when == ALWAYS and not item.family.id.entry.geometric for item in found.faults)
    sought = alone and not (found.steps or _grave(common)) and found.case.turns >= FEWEST_REVERSALS
    force = tip_force(LinearizedCase.of(found.corrected)) if sought else None
    out = [[*common, *([] if force is None else [force])] for _ in found.group.logs]
    for fault in found.faults:
        item = changes(robot, fault) if fault.family.change else fault_finding(robot, fault)
        for k in range(len(out)) if fault.when.log is None else [fault.when.log]:
            out[k] += [item] if (item.id, item.joint) not in reported else []
    for k, outlier in found.outlying.items():
        out[k].append(worse_explained(robot, *outlier))
    return out


def _grave(found: Sequence[Judgement]) -> bool:
    return any(item.severity != "info" for item in found)


def _of_interpretation(found: Explanations) -> tuple[Judgement, ...]:
    robot, trials, steps = found.group.robot, found.trials, found.steps
    interpretation = found.interpretation if not steps or steps[-1].decided else Interpretation.as_logged(robot.n)
    weak = bool(steps) and not steps[-1].decided and steps[-1].gain < SEVERE
    if steps and not steps[-1].decided and not weak:
        return _steps_in_words(trials, interpretation, steps)
    loaded = any(part.external is not None for parts, _ in found.group.logs for part in parts)
    reported = against_the_urdf(found.corrected, interpretation, loaded, found.group.noise)
    if not (reported or steps or found.faults):
        reported = part_of_gravity(found.at)
    out = _before_parts(_steps_in_words(trials, interpretation, steps[:-1] if weak and reported else steps), reported)
    if steps:
        return out
    scaled = {item.joint for item in out if item.id == Id.EFFORT_SCALE}
    open_ = open_scales(trials, interpretation)
    scales = {joints: ends for joints, ends in open_.items() if not {robot.joints[j] for j in joints} & scaled}
    clock = open_clock(trials, interpretation)
    return (*out, *([open_scale(robot, scales)] if scales else []), *([] if clock is None else [open_time(*clock)]))


def _before_parts(steps: Sequence[Judgement], reported: Sequence[Judgement]) -> tuple[Judgement, ...]:
    """What the steps and the URDF tell; a scale of all efforts comes first, with those of single joints among its factors."""
    if not any(item.id == Id.EFFORT_SCALE and item.joint is None for item in reported):
        return (*steps, *reported)
    scales = [item for item in steps if item.id == Id.EFFORT_SCALE]
    severity = max((item.severity for item in (*reported, *scales)), key=SEVERITIES.index)
    others = (item for item in steps if item.id != Id.EFFORT_SCALE)
    return (*(replace(item, severity=severity) for item in reported), *others)


def _steps_in_words(trials: Trials, interpretation: Interpretation, steps: Sequence[Step]) -> tuple[Judgement, ...]:
    """Findings of the steps; they name causes, and refuse the log, only if it is explained well after all corrections."""
    robot, last = trials.robot, interpretation if not steps or steps[-1].decided else steps[-1].found.interpretation
    sound = trials.score(last).part < _SOUND
    return tuple(
        item
        for step in steps
        for item in (
            [named(robot, own, sound) for own in _by_joint(robot, step)]
            if step.decided and sound
            else [doubt(robot, step, sound)]
        )
    )


def _downgraded(case: Case, found: Sequence[Judgement], fewest: float = FEWEST_REVERSALS) -> tuple[Judgement, ...]:
    """Downgrades findings to warnings for motions with few reversals, whose held-out parts are extrapolated.

    Args:
        fewest: Reversals needed in all logs of the case together; as many in each where logs are compared.
    """
    if case.turns >= fewest:
        return tuple(found)
    return tuple(replace(item, severity="warning") if item.severity == "refused" else item for item in found)


def _by_joint(robot: Robot, step: Step) -> list[Step]:
    """Splits a step with the signs of several joints into one step per joint."""
    joints = step.found.joints
    if step.found.id != Id.EFFORT_SIGN or len(joints) in (1, robot.n):
        return [step]
    return [replace(step, found=replace(step.found, joints=(j,))) for j in joints]
