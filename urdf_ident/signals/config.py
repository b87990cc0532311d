"""Settings of the conditioning of logs."""

from __future__ import annotations

from dataclasses import dataclass

from .filters import ORDER

#: Minimum number of whole periods for automatic averaging; with fewer, separate periods are more useful as held-out data.
FEWEST_PERIODS = 3

#: Longest delay of the efforts that can be compensated [s].
LONGEST_DELAY = 1.0


@dataclass(frozen=True)
class SignalConfig:
    """Settings of the conditioning, checked by :class:`.SignalsSection`; ``auto`` is chosen from the log, see
    :attr:`.signals.Conditioned.why`.

    Attributes:
        cutoff: Zero-phase low-pass of positions and velocities [Hz].
        scale: Multiple of an automatic cut-off, for predictions (:func:`.filters.prediction_cutoff`).
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
    scale: float = 1.0
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
