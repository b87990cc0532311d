"""Messages between processes: an object that the receiver already has is sent as a reference (its name).

A worker keeps the immutable samples, models and large arrays that it received or created for as long as the client (the
process that sends tasks) has them. A task therefore refers to its logs by name, and they are the same objects in every
task. A worker that lacks an object, because it was restarted or replaces a lost one, reports this and is sent it.
"""

from __future__ import annotations

import io
import os
import pickle
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

#: Size from which an array is sent by name [bytes].
_LARGE = 1 << 12
#: Alignment of arrays in a parcel [bytes].
_ALIGNED = 64


class SentOnce:
    """Base class of immutable records that are sent to each process only once."""


class _MissingObjectError(LookupError):
    """This process does not have the object of a name."""


class _SharedObjects:
    """The objects that this process shares with others.

    Attributes:
        own: Name of the process.
        things: Name → weak reference to the object.
        held: Objects that a worker keeps alive until its client releases them.
        shared: In a worker: names known to the client; in the client: names received in the last answer.
        client: Name of the client that a worker works for; "" in a client.
    """

    def __init__(self) -> None:
        self.process, self.own, self.client = os.getpid(), uuid4().hex, ""
        self.things: dict[str, weakref.ref[Any]] = {}
        self.held: dict[str, Any] = {}
        self.shared: set[str] = set()
        self._names: dict[int, str] = {}

    @classmethod
    def get(cls) -> _SharedObjects:
        """The instance of this process, also after a fork."""
        global _SHARED_OBJECTS
        if _SHARED_OBJECTS is None or _SHARED_OBJECTS.process != os.getpid():
            _SHARED_OBJECTS = cls()
        return _SHARED_OBJECTS

    def name(self, thing: Any) -> str:
        """Name of an object; a new one is assigned if it has none."""
        return self._names.get(id(thing)) or self.take(uuid4().hex, thing)

    def known(self, name: str) -> Any:
        """The object of a name received from the other process; None if this process does not have it."""
        self.shared.add(name)
        thing = self.things.get(name)
        return None if thing is None else thing()

    def take(self, name: str, thing: Any) -> str:
        """Registers an object under a name."""
        place = id(thing)

        def forget(gone: weakref.ref[Any]) -> None:
            if self.things.get(name) is gone:
                del self.things[name]
                self._names.pop(place, None)

        self._names[place], self.things[name] = name, weakref.ref(thing, forget)
        if self.client:
            self.held[name] = thing
        return name

    def forget(self, names: Sequence[str]) -> None:
        """Releases objects that the client no longer has."""
        for name in names:
            self.held.pop(name, None)
            self.shared.discard(name)


_SHARED_OBJECTS: _SharedObjects | None = None


class _Pickler(pickle.Pickler):
    """Writes objects known to the other process as names, and records the names used and the new ones."""

    def __init__(self, file: io.BytesIO, known: set[str]) -> None:
        self.apart: list[Any] = []
        super().__init__(file, 5, buffer_callback=partial(_apart, self.apart))  # a method would keep the pickler alive
        self.here, self.known, self.named = _SharedObjects.get(), known, set[str]()

    def reducer_override(self, thing: Any) -> Any:
        """See :mod:`pickle`."""
        large = isinstance(thing, np.ndarray) and thing.nbytes >= _LARGE and not thing.flags.writeable
        if not large and not isinstance(thing, SentOnce):
            return NotImplemented
        name = self.here.name(thing)
        if name in self.known:
            self.named.add(name)
            return _named, (name,)
        self.known.add(name)
        return _new, (name, *thing.__reduce_ex__(5)[:3])


def _apart(found: list[Any], buffer: pickle.PickleBuffer) -> bool:
    """Whether a buffer is written into the pickle; large ones are collected in ``found`` instead."""
    raw = buffer.raw()
    if raw.nbytes < _LARGE:
        return True
    found.append(np.frombuffer(raw, np.uint8))
    return False


def _named(name: str) -> Any:
    thing = _SharedObjects.get().known(name)
    if thing is None:
        raise _MissingObjectError(name)
    return thing


def _new(name: str, make: Callable[..., Any], arguments: Sequence[Any], state: Any = None) -> Any:
    here = _SharedObjects.get()
    thing = here.known(name)
    if thing is not None:
        return thing
    thing = make(*arguments)
    if state is not None and hasattr(thing, "__setstate__"):
        thing.__setstate__(state)
    elif state is not None:
        vars(thing).update(state)
    if isinstance(thing, np.ndarray):
        thing.setflags(write=False)
    here.take(name, thing)
    return thing


#: A pickle, the sizes of its large arrays [bytes] and their concatenation: hundreds of single arrays take dask four times as
#: long.
Parcel = tuple[bytes, list[int], NDArray[np.uint8]]


def _packed(content: Any, known: set[str]) -> tuple[Parcel, set[str]]:
    """The packed content, and the names that it refers to."""
    file = io.BytesIO()
    pickler = _Pickler(file, known)
    pickler.dump(content)
    sizes = [part.size for part in pickler.apart]
    whole = np.empty(sum(map(_room, sizes)), np.uint8)
    for place, part in zip(_places(sizes, whole), pickler.apart, strict=True):
        place[:] = part
    return (file.getvalue(), sizes, whole), pickler.named


def _unpacked(parcel: Parcel) -> Any:
    head, sizes, whole = parcel
    return pickle.loads(head, buffers=_places(sizes, whole if whole.flags.writeable else whole.copy()))


def _places(sizes: Sequence[int], whole: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    """Views of the arrays of a parcel."""
    ends = np.cumsum([_room(size) for size in sizes], dtype=int)
    return [whole[end - _room(size) : end - _room(size) + size] for size, end in zip(sizes, ends, strict=True)]


def _room(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


class Task:
    """A call of a function with some items on one worker, and its results.

    Args:
        function: A module-level function, or a partial of one.
        items: Its arguments.

    Attributes:
        known: Names that the worker knows once it has answered.
        named: Names that were sent instead of their objects.
    """

    def __init__(self, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
        self.content = (function, list(items))
        self.known: set[str] = set()
        self.named: set[str] = set()

    def message(self, known: set[str]) -> tuple[str, list[str], Parcel]:
        """The message to the worker: arguments of :func:`work`.

        Args:
            known: Names that the worker knows; those that no longer exist here are removed from the set.

        Returns:
            Name of this process, names that no longer exist, and the packed task.
        """
        here = _SharedObjects.get()
        gone = [name for name in known if name not in here.things]
        known.difference_update(gone)
        self.known = set(known)
        parcel, self.named = _packed(self.content, self.known)
        return here.own, gone, parcel

    def results(self, parcel: Parcel) -> list[Any]:
        """Results of the function for the items.

        Args:
            parcel: The second part of the answer; its names are added to :attr:`known`.
        """
        here = _SharedObjects.get()
        if not here.client:
            here.shared = set()
        try:
            found: list[Any] = _unpacked(parcel)
        except _MissingObjectError:  # an object was released in the meantime: compute the results here
            function, items = self.content
            return [function(item) for item in items]
        self.known |= here.shared
        return found


def work(client: str, gone: Sequence[str], parcel: Parcel) -> tuple[str, Parcel | list[str]]:
    """Executes a task on a worker.

    Args:
        client: Name of the process that sent the task.
        gone: Names of objects that this process no longer has.

    Returns:
        Name of the worker, and the packed results; if an object is missing, the names of the available ones instead.
    """
    here = _SharedObjects.get()
    if here.client != client:
        here.held, here.shared, here.client = {}, set(), client
    here.forget(gone)
    try:
        function, items = _unpacked(parcel)
    except _MissingObjectError:
        return here.own, list(here.things)
    return here.own, _packed([function(item) for item in items], here.shared)[0]


def leave(client: str | None = None) -> str:
    """Releases all objects that are held for a client.

    Args:
        client: Its name; None: nothing is released, only the name of this process is returned.

    Returns:
        Name of this process.
    """
    here = _SharedObjects.get()
    if client is not None and here.client == client:
        here.held, here.shared, here.client = {}, set(), ""
    return here.own
