"""Division of calls among workers; what a lost worker had not finished is sent to others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, cycle, pairwise
from typing import Any
from weakref import WeakSet

from ..errors import SchedulerError
from .messages import Task

#: Number of parts in which a worker's share of the items is sent: the next is packed while one is processed, and a lost
#: worker costs only what it had not finished. Background work has smaller parts, so that urgent work can go in between.
_PARTS, _LATER = 2, 4


#: Number of workers that may be lost with a task.
_TRIES = 4


class LostError(Exception):
    """A worker was lost, of this task or of another one."""


@dataclass(eq=False)
class _Sent:
    """A task that was sent.

    Attributes:
        place: The worker it was sent to; None: any.
        turn: 0 for awaited work, which is first; number of the call for work in the background.
        lost: Number of times that it was lost with a worker.
    """

    task: Task
    begin: int
    place: Hashable
    turn: int
    answer: Any
    lost: int = 0


class WorkerPool:
    """Workers among which the items of every call are divided in the same way.

    Args:
        submit: Sends a message to a worker (None: any) with its turn among waiting ones, smaller numbers first; returns the
            future answer.
        places: Returns the available workers.
    """

    def __init__(self, submit: Callable[..., Any], places: Callable[[], Sequence[Hashable]]) -> None:
        self.submit, self.places = submit, places
        self.known: dict[str, set[str]] = {}  # worker → names of the objects that it has
        self.at: dict[Hashable, str] = {}  # place → last worker seen there
        self.before: Sequence[Hashable] = ()  # the available workers when last seen
        self.waiting: WeakSet[_Sent] = WeakSet()  # tasks whose results have not been collected
        self.turns = count(1)  # of calls in the background: what is lost of one is repeated before the next one

    def __call__(self, function: Callable[[Any], Any], items: Sequence[Any], later: bool) -> Callable[[], list[Any]]:
        places = self._available()
        parts = min(len(places) * (_LATER if later else _PARTS), len(items))
        edges, turn = [k * len(items) // parts for k in range(parts + 1)], next(self.turns) if later else 0
        sent = [
            self._send(Task(function, items[begin:end]), begin, places[k * len(places) // parts], turn)
            for k, (begin, end) in enumerate(pairwise(edges))
        ]
        return partial(self._collected, sent, len(items))

    def _send(self, task: Task, begin: int, place: Hashable, turn: int) -> _Sent:
        known = set() if place is None else self.known.get(self.at.get(place, ""), set())
        part = _Sent(task, begin, place, turn, self.submit(place, turn, *task.message(known)))
        self.waiting.add(part)
        return part

    def _available(self) -> Sequence[Hashable]:
        """The available workers; all that lost ones had not finished, awaited or not, is divided among them."""
        before, places = self.before, self.places()
        others = cycle(places)
        self.before = places
        gone = {place for place in before if place is not None and place not in places}
        for part in sorted(self.waiting, key=lambda part: (part.turn, part.begin)) if gone else ():
            if (part.place is None or part.place in gone) and not part.answer.arrived():
                part.answer.cancel()
                if (lost := part.lost + 1) >= _TRIES:
                    raise SchedulerError(
                        "every worker that was given a certain part of the logs was lost",
                        got=f"{lost} workers",
                        remedy="mostly there was not enough memory: start fewer and larger ones (--memory-limit)",
                    )
                part.place, part.lost = next(others), lost
                part.answer = self.submit(part.place, part.turn, *part.task.message(set()))
        return places

    def _collected(self, sent: list[_Sent], count: int) -> list[Any]:
        results: list[Any] = [None] * count
        sent.reverse()
        while sent:  # answers are released once read: together they may be as large as all results
            part = sent.pop()
            found = self._done(part)
            self.waiting.discard(part)
            results[part.begin : part.begin + len(found)] = found
        return results

    def _done(self, part: _Sent) -> list[Any]:
        """Results of a task; it is sent again in full if the worker lacked an object."""
        while True:
            try:
                worker, data = part.answer.result()
            except LostError:
                self._available()
                continue
            if not isinstance(data, list):
                break
            self.known.setdefault(worker, set()).difference_update(part.task.named.difference(data))
            part.answer = self.submit(part.place, 0, *part.task.message(set()))
        results = part.task.results(data)
        if part.place is not None:
            self.at[part.place] = worker
        self.known.setdefault(worker, set()).update(part.task.known)
        return results
