"""The command line: each command reads, calls the library, prints and writes; nothing is computed here.

One module a group of commands; ``urdf-ident --help`` lists the groups in the order of the imports below.
"""

from . import demo, fleet, judge, motion, payload, report, result  # each registers its commands
from .common import app, main

__all__ = ["app", "demo", "fleet", "judge", "main", "motion", "payload", "report", "result"]
