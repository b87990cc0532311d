"""Runs the search in one or several processes, with a deadline, progress, and Ctrl-C that keeps the best motion."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import LimitError, UrdfIdentError
from ...parallel import one_thread
from .multi_start import FoundMotion, Problem, Search

#: Budget from which several processes are used [s].
LARGE_BUDGET = 4.0
#: Number of best motions kept for the final verification.
KEPT = 6


@dataclass
class Outcome:
    """Result of a search: best motions first, improvements over time, and notes."""

    candidates: list[FoundMotion] = field(default_factory=list)
    starts: int = 0
    history: tuple[tuple[float, float], ...] = ()
    notes: tuple[str, ...] = ()

    def add(self, candidate: FoundMotion) -> bool:
        """Adds a motion.

        Returns:
            True if it is the best so far.
        """
        best = not self.candidates or candidate.value < self.candidates[0].value
        self.candidates = sorted([*self.candidates, candidate], key=lambda item: item.value)[:KEPT]
        if best:
            self.history = (*self.history, (candidate.elapsed, candidate.value))
        return best


def search(
    problem: Problem,
    *,
    seed: int,
    budget: float,
    starts: int | None,
    jobs: int | None,
    progress: Callable[[float], None] | None,
) -> Outcome:
    """Searches until the time or the starts are used up.

    Args:
        seed: Of the random starts; process k uses child k of it.
        budget: Time [s].
        starts: Total number of random starts; None: limited by the budget.
        jobs: Number of processes; None: the available cores if the budget is large, else 1.
        progress: Called with the best value so far, at every improvement and a few times a second.

    Raises:
        LimitError: No motion was found; the message gives the cause.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if jobs is None:
        jobs = cores if budget >= LARGE_BUDGET and "fork" in multiprocessing.get_all_start_methods() else 1
    if starts is not None:
        jobs = min(jobs, starts)
    seeds = np.random.SeedSequence(seed).spawn(max(1, jobs))
    deadline = time.monotonic() + budget
    with one_thread():
        if jobs > 1 and sys.platform != "win32":
            return _several(problem, seeds, deadline, starts, progress)
        return _alone(problem, seeds[0], deadline, starts, progress)


def _alone(
    problem: Problem,
    seed: np.random.SeedSequence,
    deadline: float,
    starts: int | None,
    progress: Callable[[float], None] | None,
) -> Outcome:
    outcome = Outcome()

    def found(candidate: FoundMotion) -> None:
        if outcome.add(candidate) and progress is not None:
            progress(candidate.value)

    worker = Search(problem, seed, deadline)
    try:
        worker.run(starts, found)
    except KeyboardInterrupt:
        if not outcome.candidates:
            raise
        outcome.notes = ("interrupted: the best motion so far",)
    outcome.starts = worker.starts
    if worker.out_of_time and not worker.improved:
        outcome.notes = (*outcome.notes, "the time was over before the first motion was improved: allow a longer budget")
    return outcome


def _several(
    problem: Problem,
    seeds: list[np.random.SeedSequence],
    deadline: float,
    starts: int | None,
    progress: Callable[[float], None] | None,
) -> Outcome:
    """Runs forked processes that report over a queue; the parent handles the deadline and Ctrl-C."""
    context = multiprocessing.get_context("fork")
    reports: Any = context.Queue()
    shares = [None if starts is None else starts // len(seeds) + (k < starts % len(seeds)) for k in range(len(seeds))]
    workers = [
        context.Process(target=_work, args=(problem, seed, deadline, share, reports, k), daemon=True)
        for k, (seed, share) in enumerate(zip(seeds, shares, strict=True))
    ]
    for worker in workers:
        worker.start()
    outcome, counts, blocked, running = Outcome(), [0] * len(seeds), None, set(range(len(seeds)))
    try:
        while running:
            try:
                kind, k, item = reports.get(timeout=0.25)
            except queue.Empty:
                running -= {k for k in running if not workers[k].is_alive()}
                if time.monotonic() > deadline + 5.0:
                    break
            else:
                if kind == "found":
                    outcome.add(item)
                    counts[k] = item.starts + 1
                else:
                    running.discard(k)
                    blocked = item if isinstance(item, UrdfIdentError) else blocked
                    counts[k] = item if isinstance(item, int) else counts[k]
            if progress is not None and outcome.candidates:
                progress(outcome.candidates[0].value)
    except KeyboardInterrupt:
        if not outcome.candidates:
            raise
        outcome.notes = ("interrupted: the best motion so far",)
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()
        reports.close()
    if not outcome.candidates:
        raise blocked or LimitError(
            "no motion inside the limits was found in the time given", remedy="allow more time in excitation.budget"
        )
    outcome.starts = sum(counts)
    return outcome


def _work(problem: Problem, seed: np.random.SeedSequence, deadline: float, starts: int | None, reports: Any, k: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    search = Search(problem, seed, deadline)
    done: object = 0
    try:
        search.run(starts, lambda candidate: reports.put(("found", k, candidate)))
        done = search.starts
    except UrdfIdentError as error:
        done = error
    with contextlib.suppress(OSError, ValueError):
        reports.put(("done", k, done))
        reports.close()
        reports.join_thread()
