"""The command line: each command reads input, calls the library, prints and writes; nothing is computed here.

One module per group of commands; :data:`.application.ORDER` is the order of ``urdf-ident --help``.
"""

try:
    from . import check, identify, motion, payload  # each registers its commands
    from .application import app, main
except KeyboardInterrupt:  # the first imports take long enough to be interrupted
    raise SystemExit(130) from None

__all__ = ["app", "check", "identify", "main", "motion", "payload"]
