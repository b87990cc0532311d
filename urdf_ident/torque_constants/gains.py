"""``gain: auto``: torque constants from the target torque and target current logged by a controller.

At rest the controller's feed-forward contains no friction compensation, so ``target torque / target current`` is the
torque constant to four digits. In motion the target current also contains the controller's friction model, and the ratio
is meaningless: the constant is then estimated together with a free function of speed for each direction. This is used for
joints that carry no torque at rest. If such an estimate agrees with a joint that is known at rest, the two are assumed to
have the same motor (twins), and the more precise value is used for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..errors import LogError
from ..grouping import grouped
from ..linalg import Array
from ..logs.recording import Recording
from ..logs.refusals import each_usable
from ..model.drive import Drive
from ..samples import ReadOnly
from ..units import percent
from .targets import TWINS, Estimate, Targets, at_rest, check_targets, in_motion, ratio_at_rest

#: Largest relative difference between estimates of one joint (at rest, in motion, in several logs).
CONSTANT = 0.1


@dataclass(frozen=True, eq=False)
class TorqueConstants(ReadOnly):
    """Torque constants found in logs.

    Attributes:
        gain: Shape (n,) [N·m or N per unit of effort].
        relative_error: Relative standard error of each, shape (n,), a fraction.
        origin: How each was found.
        source: What they were found from.
    """

    joints: tuple[str, ...]
    gain: Array
    relative_error: Array
    origin: tuple[str, ...]
    source: str = "auto, target torque / target current"

    def of(self, drive: Drive) -> Drive:
        """The drive with these constants; its ``gain_origin`` tells how each was found."""
        each = zip(self.origin, self.joints, self.gain, self.relative_error, strict=True)
        by_origin = grouped((text, f"{joint} {value:.5g} (± {percent(100 * error)} %)") for text, joint, value, error in each)
        origins = (f"{text}: {', '.join(joints)}" for text, joints in by_origin.items())
        origin = "; ".join([self.source, *origins])
        return replace(drive, gain=self.gain, gain_origin=origin, gain_error=self.relative_error)


def resolve_gain(drive: Drive, recordings: Sequence[Recording]) -> Drive:
    """The drive with its torque constants, estimated from the logs if they are not given.

    Args:
        drive: The drive as described in the project.
        recordings: The logs, as read.

    Returns:
        The same drive, or one with gains whose ``gain_origin`` tells how each constant was estimated.

    Raises:
        LogError: See :func:`torque_constants`.
    """
    if all(log.effort_is_torque for log in recordings) or drive.gain_origin not in ("auto", "effort is a torque"):
        return drive
    targets_logged = all(log.effort_target is not None and log.torque_target is not None for log in recordings)
    if drive.gain_origin != "auto" and not targets_logged:
        return drive
    return torque_constants(recordings, drive).of(drive)


def torque_constants(recordings: Sequence[Recording], drive: Drive) -> TorqueConstants:
    """Estimates the torque constant of every joint from target torque and target current.

    Args:
        recordings: Logs of one robot, as read; all samples, including standstill.
        drive: Gears and couplings, for efforts logged on the motor side.

    Raises:
        LogError: A target is missing or constant, the two currents differ in unit, or the ratio is not constant.
    """
    if not recordings:
        raise LogError("no log to find torque constants in", remedy="give at least one log, or drive.gain")
    signals = each_usable(partial(Targets.of, drive=drive), recordings)
    joints = recordings[0].joints
    for j, joint in enumerate(joints):
        check_targets(signals, j, joint)
    ratios = [[ratio_at_rest(log, j) for log in signals] for j in range(len(joints))]
    rest = list(map(at_rest, ratios))
    moving = in_motion(signals, rest)
    places = [*(f"at rest in {log.name}" for log in signals), "in motion"]
    for joint, still, moved in zip(joints, ratios, moving, strict=True):
        known = [(x.value, at) for x, at in zip([*still, moved], places, strict=True) if x.error < 0.2 * CONSTANT]
        for value, at in known:
            if abs(value - known[0][0]) > CONSTANT * abs(known[0][0]):
                raise LogError(
                    f"target torque over target current of {joint} is no constant",
                    where=signals[0].name,
                    got=f"{known[0][0]:.5g} {known[0][1]}, {value:.5g} {at}",
                    remedy="check the columns effort_target and torque_target, or give drive.gain",
                )
    # joints known at rest keep that constant; the others use the constant of a twin if there is one, else their own
    best, origins = list(rest), ["at rest"] * len(joints)
    for j, (at_rest_only, moved) in enumerate(zip(rest, moving, strict=True)):
        if at_rest_only.known or not np.isfinite(moved.error):
            continue
        weights = np.array([at_rest_only.error, moved.error]) ** -2.0
        if weights[0] < 0.01 * weights[1]:
            best[j], origins[j] = moved, "by regression in motion"
        else:
            value = float(weights @ np.nan_to_num([at_rest_only.value, moved.value]) / weights.sum())
            best[j] = Estimate(value, float(weights.sum() ** -0.5))
            origins[j] = "at rest and by regression in motion"
    for joint, estimate in zip(joints, best, strict=True):
        if not estimate.error < 0.2:
            raise LogError(
                f"no torque constant can be found for {joint}: it carries no torque at rest and hardly any in motion",
                remedy="log a motion that loads it, standstill included, or give drive.gain",
            )
    gain, error, origin = [estimate.value for estimate in best], [estimate.error for estimate in best], list(origins)
    for j, estimate in enumerate(best):
        if rest[j].known:
            continue
        reach = max(TWINS, 3.0 * estimate.error)
        near = [k for k, other in enumerate(best) if k != j and abs(abs(estimate.value / other.value) - 1.0) < reach]
        twins = [k for k in near if rest[k].known] or near
        model = min(twins, key=lambda k: best[k].error, default=j)
        if best[model].error < estimate.error:
            gain[j], error[j] = float(np.copysign(best[model].value, estimate.value)), best[model].error
            origin[j] = f"motor twin of {joints[model]} ({origins[model]}; own value agrees within {percent(100 * reach)} %)"
    return TorqueConstants(joints, np.array(gain), np.array(error), tuple(origin))
