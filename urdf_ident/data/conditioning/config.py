"""Settings of the conditioning of logs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...errors import LogError
from .filters import ORDER

#: Minimum number of whole periods for automatic averaging; with fewer, separate periods are more useful as held-out data.
FEWEST_PERIODS = 3

#: Longest delay of the efforts that can be compensated [s].
LONGEST_DELAY = 1.0


@dataclass(frozen=True)
class SignalConfig:
    """Settings of the conditioning; ``auto`` is chosen from the log and explained in :attr:`.signals.Conditioned.why`.

    Attributes:
        cutoff: Zero-phase low-pass of positions and velocities [Hz].
        decimate: Rate of the rows (equations) [Hz], at most that of the log.
        velocity: ``"logged"``, ``"differentiated"``, or ``"auto"`` (logged only if it has no lag and less noise).
        periodic: ``"on"``: average the periods of a repeated motion; ``"auto"``: if there are :data:`FEWEST_PERIODS` or
            more; ``"off"``.
        delay: Lag of the efforts behind the positions to compensate [s]; ``"auto"`` is 0 until estimated from the logs.
        order: Order of one pass of the Butterworth filter.
        rest_speed: A joint slower than this is at rest [rad/s or m/s]; lowered for joints that are always slow.
        rest_time: Longer standstill of all joints is cut out [s], because static friction is indeterminate there.
        shortest: Shorter pieces of motion are left out [s], unless the log has no longer ones, or a joint moves much in these.
        reason: Reason for ``cutoff``, for :attr:`.signals.Conditioned.why`.
        velocity_reason: The same for ``velocity``.
        chosen: Which of the settings :func:`.signals.resolve` chose from the logs.
    """

    cutoff: float | str = "auto"
    decimate: float | str = "auto"
    velocity: str = "auto"
    periodic: str = "auto"
    delay: float | str = "auto"
    order: int = ORDER
    rest_speed: float = 0.02
    rest_time: float = 0.25
    shortest: float = 1.0
    reason: str = "as configured"
    velocity_reason: str = "as configured"
    chosen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("cutoff", "decimate"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if value != "auto" and not (number and math.isfinite(value) and value > 0):
                raise LogError(
                    f"unusable {name}", where=f"signals.{name}", got=value, expected="a frequency above 0 [Hz], or auto"
                )
        if self.delay != "auto" and not (isinstance(self.delay, int | float) and abs(self.delay) <= LONGEST_DELAY):
            raise LogError(
                "unusable delay",
                where="signals.delay",
                got=self.delay,
                expected=f"auto or at most {LONGEST_DELAY:g} s either way",
            )
        if self.velocity not in ("auto", "logged", "differentiated"):
            raise LogError(
                "unknown source of velocity",
                where="signals.velocity",
                got=self.velocity,
                expected="auto, logged or differentiated",
            )
        if self.periodic not in ("auto", "on", "off"):
            raise LogError("unknown choice", where="signals.periodic", got=self.periodic, expected="auto, on or off")
