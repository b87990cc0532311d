"""A small fault as measured, and whether it is significant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...judgements.catalogue import Id
from ...linalg import Array

#: Least size of a fault in standard errors, least gain, and least gain in standard errors between blocks. Both must be beyond
#: chance: errors of the size are too small where unmodelled friction is not white, errors of the gain where blocks are few. A
#: gain that is equal in all blocks needs fewer errors of the size, which varies between blocks with the motion; so does a gain
#: above `_MORE`.
_ERRORS, _GAIN, _SIGNIFICANT = 5.0, 0.12, 3.0
_FEWER_ERRORS, _IN_ALL, _OF_LARGE = 3.0, 8.0, 5.0
#: Least size in errors, and least gain in standard errors, where repetitions of a motion are held out together: whole
#: repetitions are few and independent, so that a level of about 1 % is enough.
_APART, _GAIN_APART = 2.0, 2.5
#: Least gain, or least explained part of some torque, of faults that resemble unmodelled friction, which is up to some per cent
#: of a joint's torque: backlash delays friction at reversals, saturation and crosstalk bend it.
_MORE, _LIKE_FRICTION = 0.8, {Id.POSITION_PLAY: 0.06, Id.EFFORT_SATURATES: 0.04, Id.EFFORT_CROSSTALK: 0.02}
#: Least ratio of improved to worsened rows for a saturation of all efforts: friction bends that of one joint. The opposite bend
#: is load-dependent friction.
_OFTENER = 2.0
#: Least part of some torque that another axis placement must explain: published URDFs round
#: lengths to millimetres and angles to hundredths, about 1 % of a torque.
_PLACED = 0.015
#: Size of a fault of positions or axes (fraction, rad or m) above which the first-order approximation is invalid; an effort's
#: factor may be as far from 1 either way.
_FIRST_ORDER = 0.5
#: Least fraction by which scales of efforts must be wrong: torque constants and sensors are calibrated to a few per cent.
_CALIBRATED = 0.03
#: Fraction of the URDF's gravity if all of it was subtracted or added; others may be a clock or direction fault.
_WHOLE = (0.8, 1.25)


@dataclass(frozen=True, eq=False)
class SmallFault:
    """A small fault and its effect.

    Attributes:
        joints: Its joints; for crosstalk the joint with the wrong effort, then the joint whose effort leaks into it.
        size: [rad or m]; delay [s], negative if positions are early; crosstalk: fraction of the other effort; saturation: the
            bend; scale: fraction by which the effort is too large; asymmetry: the same of positive efforts, while negative ones
            are too small; gravity: the missing fraction of the URDF's, negative if it was added.
        errors: The size over its standard error.
        gain: Gain in the sum of the log relative residuals on held-out blocks.
        significance: The gain over its standard error between blocks.
        left: Held-out relative residuals of the rows without and with the fault, shape (2, n).
        logs: Logs in which it is, by their index: of several, in each with its own size; none if it is in all with one size.
        slope: Growth of a position's error along its travel over the size, at most [1/rad or 1/m].
    """

    id: Id
    joints: tuple[int, ...]
    size: float
    errors: float
    gain: float
    significance: float
    left: Array
    numbers: int = 1
    logs: tuple[int, ...] = ()
    slope: float = 1.0

    @property
    def _explains(self) -> float:
        """Largest part of the square of some torque that it explains."""
        return float((self.left[0] ** 2 - self.left[1] ** 2).max())

    @property
    def far(self) -> bool:
        """Whether the first-order approximation is invalid and the size unknown."""
        return self.id.entry.geometric and self.slope * abs(self.size) > _FIRST_ORDER

    @property
    def whole(self) -> bool:
        """Whether all of the URDF's gravity is missing, or was added."""
        return _WHOLE[0] < abs(self.size) < _WHOLE[1]

    @property
    def gains_apart(self) -> bool:
        """Whether it is significant where repetitions of a motion are held out together; its size is less certain there."""
        return self.gain > _GAIN and self.significance > _GAIN_APART and self.errors > _APART

    @property
    def decided(self) -> bool:
        """Whether it is significant, and larger than unmodelled friction explains."""
        enough = _OF_LARGE if self.gain > _MORE else _IN_ALL
        steady = self.errors > _FEWER_ERRORS and self.significance > enough
        sure = self.gain > _GAIN and (steady or (self.errors > _ERRORS and self.significance > _SIGNIFICANT))
        if not self.joints and self.id == Id.EFFORT_SATURATES:
            return sure and np.sum(self.left[1] < self.left[0]) > _OFTENER * np.sum(self.left[1] > self.left[0])
        if self.id.entry.placement:
            return sure and self._explains > _PLACED**2
        if self.id == Id.POSITION_SCALE and abs(self.size) > _FIRST_ORDER:
            return False
        if self.id == Id.EFFORT_SCALE and not _FIRST_ORDER < 1 + self.size < 1 / _FIRST_ORDER:
            return False
        if self.id.entry.scales and abs(self.size) < _CALIBRATED:
            return False
        return sure and (self.gain > _MORE or self._explains > _LIKE_FRICTION.get(self.id, 0.0) ** 2)
