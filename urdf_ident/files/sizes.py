"""Upper limits on the size of inputs; a larger input is refused with a one-line error before it costs memory or time.

The limits are far above what robots need.
"""

from __future__ import annotations

_MEGA = 2**20

#: Largest size in bytes by kind of file; :data:`LARGEST_FILE` for all others.
LARGEST = {
    "URDF": 64 * _MEGA,
    "project file": 1 * _MEGA,
    "world file": 1 * _MEGA,
    "truth file": 1 * _MEGA,
    "side-car": 1 * _MEGA,
    "identification": 1024 * _MEGA,
    "mesh": 1024 * _MEGA,
    "log": 64 * 1024 * _MEGA,
}
LARGEST_FILE = 64 * _MEGA
#: Unpacked size of a packed log in bytes: what is always accepted, the largest ratio to its packed size, and the most.
UNPACKED_FREE, UNPACKED_RATIO, UNPACKED = 256 * _MEGA, 200, 16 * 1024 * _MEGA
#: Nesting depth of lists and mappings in YAML and JSON.
DEEPEST = 64
#: Values in a YAML document with its aliases expanded.
MOST_VALUES = 1_000_000
#: Digits of an integer in YAML or JSON.
MOST_DIGITS = 300
#: Nesting depth and number of elements of a URDF.
DEEPEST_XML, MOST_ELEMENTS = 64, 1_000_000
#: Magnitude of a number in a URDF: lengths in m, masses in kg, inertias in kg·m².
LARGEST_NUMBER = 1e12
#: Moving joints of one model; the regressor's columns grow linearly with them, the cost of its reduction cubically.
MOST_JOINTS = 512
#: Links, to which Pinocchio compares the name of every new one.
MOST_LINKS = 5_000
#: Joints of any kind one behind the other; at some thousands the engines' recursion exceeds the stack.
LONGEST_CHAIN = 512
#: Samples of a log after resampling to a constant rate; samples and steps of a simulation.
MOST_SAMPLES = 200_000_000
#: Duration of a motion read from a file [s]: twenty times that of usual experiments; it is checked and sent at 1000 Hz.
LONGEST_MOTION = 14_400.0


def most_unpacked(packed: int) -> int:
    """The largest accepted unpacked size of a log with this size [bytes]."""
    return min(UNPACKED, max(UNPACKED_FREE, UNPACKED_RATIO * packed))
