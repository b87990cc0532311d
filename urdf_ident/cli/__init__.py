"""The command line: each command reads input, calls the library, prints and writes; nothing is computed here.

One module per group of commands; :data:`.help.ORDER` is the order of ``urdf-ident --help``.
"""

from . import demo, fleet, judge, motion, payload, report, result  # each registers its commands
from .common import app, main

__all__ = ["app", "demo", "fleet", "judge", "main", "motion", "payload", "report", "result"]
