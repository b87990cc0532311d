"""Parallel map over logs: processes, clusters, messages between them, and samples in files that they share.

:mod:`.mapping` is what other layers call; :mod:`.pool` divides the items among the workers, which are :mod:`.processes` or a
:mod:`.cluster`; :mod:`.messages` sends each object once; :mod:`.scratch` keeps samples in memory-mapped files.
"""

from __future__ import annotations

from .mapping import each, one_thread, shared, start_each, workers

__all__ = ["each", "one_thread", "shared", "start_each", "workers"]
