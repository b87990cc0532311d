"""Largest inputs that are read, in one place; what is larger is refused in one line before memory or time are spent.

They are far above what robots need. A program that needs more may set them before it reads.
"""

from __future__ import annotations

_MEGA = 2**20

#: Bytes of a file by what it is; other files have :data:`LARGEST_FILE`.
LARGEST = {
    "URDF": 64 * _MEGA,
    "project file": 1 * _MEGA,
    "world file": 1 * _MEGA,
    "truth file": 1 * _MEGA,
    "side-car": 1 * _MEGA,
    "identification": 1024 * _MEGA,
    "trajectory": 1024 * _MEGA,
    "mesh": 1024 * _MEGA,
    "log": 64 * 1024 * _MEGA,
}
LARGEST_FILE = 64 * _MEGA
#: Nested lists and mappings of YAML and JSON.
DEEPEST = 64
#: Values in a YAML document, those of repeated aliases counted each time.
MOST_VALUES = 1_000_000
#: Digits of an integer in YAML or JSON.
MOST_DIGITS = 300
#: Levels and elements of a URDF.
DEEPEST_XML, MOST_ELEMENTS = 64, 1_000_000
#: Size of a number in a URDF: lengths in m, masses in kg, inertias in kg·m².
LARGEST_NUMBER = 1e12
#: Moving joints of one model; the columns of its regressor grow with them, and its reduction with their cube.
MOST_JOINTS = 512
#: Samples of a log whose clock was made even, samples and steps of a simulation.
MOST_SAMPLES = 200_000_000
#: Seconds of a motion in a file: twenty times what experiments last; it is checked and sent at 1000 Hz.
LONGEST_MOTION = 14_400.0
