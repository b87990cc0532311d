"""What goes from process to process: what the other one has seen already goes as its name.

Samples, models and large arrays that nobody changes stay with a worker that was sent them or made them, for as long as the
process that asks for work has them. So a task names its logs instead of holding them, and they are the same objects in every
task. A worker that lacks one, because it was started anew or does what a lost one was to do, says so and is sent it.
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

#: Bytes of an array that is worth a name.
_LARGE = 1 << 12
#: Arrays of a parcel begin at multiples of so many bytes.
_ALIGNED = 64


class SentOnce:
    """Base of records that nobody changes, and that every process holds once."""


class _NotHereError(LookupError):
    """A name of something that this process does not have."""


class _Here:
    """The objects that this process has in common with others.

    Attributes:
        own: Name of the process.
        things: Name → the object, while somebody uses it.
        held: Objects that stay until the asking process lets go of them; a worker's alone.
        shared: Names that the asking process knows, in a worker; else those that have come in the last answer.
        client: For whom a worker works; "" in a process that asks.
    """

    def __init__(self) -> None:
        self.process, self.own, self.client = os.getpid(), uuid4().hex, ""
        self.things: dict[str, weakref.ref[Any]] = {}
        self.held: dict[str, Any] = {}
        self.shared: set[str] = set()
        self._names: dict[int, str] = {}

    @classmethod
    def get(cls) -> _Here:
        """That of this process, also after a fork."""
        global _HERE
        if _HERE is None or _HERE.process != os.getpid():
            _HERE = cls()
        return _HERE

    def name(self, thing: Any) -> str:
        """Of an object, a new one where it has none."""
        return self._names.get(id(thing)) or self.take(uuid4().hex, thing)

    def known(self, name: str) -> Any:
        """The object of a name that has come from the other process; None where it is not here."""
        self.shared.add(name)
        thing = self.things.get(name)
        return None if thing is None else thing()

    def take(self, name: str, thing: Any) -> str:
        """Gives an object its name."""
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
        """Lets go of what the asking process no longer has."""
        for name in names:
            self.held.pop(name, None)
            self.shared.discard(name)


_HERE: _Here | None = None


class _Pickler(pickle.Pickler):
    """Writes names of what the other process knows, and notes them and what it will know."""

    def __init__(self, file: io.BytesIO, known: set[str]) -> None:
        self.apart: list[Any] = []
        super().__init__(file, 5, buffer_callback=partial(_apart, self.apart))  # a method would keep this and all it wrote
        self.here, self.known, self.named = _Here.get(), known, set[str]()

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
    """Whether an array's numbers are written with the rest; those of large ones go beside it."""
    raw = buffer.raw()
    if raw.nbytes < _LARGE:
        return True
    found.append(np.frombuffer(raw, np.uint8))
    return False


def _named(name: str) -> Any:
    thing = _Here.get().known(name)
    if thing is None:
        raise _NotHereError(name)
    return thing


def _new(name: str, make: Callable[..., Any], arguments: Sequence[Any], state: Any = None) -> Any:
    here = _Here.get()
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


#: A pickle, the sizes of its large arrays [bytes], and these one after the other: hundreds apart take dask four times as long.
Parcel = tuple[bytes, list[int], NDArray[np.uint8]]


def _packed(content: Any, known: set[str]) -> tuple[Parcel, set[str]]:
    """The content, and what of it are names."""
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
    """Where the arrays of a parcel are."""
    ends = np.cumsum([_room(size) for size in sizes], dtype=int)
    return [whole[end - _room(size) : end - _room(size) + size] for size, end in zip(sizes, ends, strict=True)]


def _room(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


class Task:
    """A call of a function with some items, for one worker, and what comes of it.

    Args:
        function: Of a module, or a partial of one.
        items: Its arguments.

    Attributes:
        known: Names that the worker knows once it has answered.
        named: Names that went instead of their objects.
    """

    def __init__(self, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
        self.content = (function, list(items))
        self.known: set[str] = set()
        self.named: set[str] = set()

    def message(self, known: set[str]) -> tuple[str, list[str], Parcel]:
        """What is sent: arguments of :func:`work`.

        Args:
            known: Names that the worker knows; what is gone here is taken out.

        Returns:
            This process, what it no longer has, and the task.
        """
        here = _Here.get()
        gone = [name for name in known if name not in here.things]
        known.difference_update(gone)
        self.known = set(known)
        parcel, self.named = _packed(self.content, self.known)
        return here.own, gone, parcel

    def results(self, parcel: Parcel) -> list[Any]:
        """What the function returned for the items.

        Args:
            parcel: The second part of the answer; :attr:`known` grows by what is in it.

        Returns:
            One result an item.
        """
        here = _Here.get()
        if not here.client:
            here.shared = set()
        try:
            found: list[Any] = _unpacked(parcel)
        except _NotHereError:  # let go of in the meantime
            function, items = self.content
            return [function(item) for item in items]
        self.known |= here.shared
        return found


def work(client: str, gone: Sequence[str], parcel: Parcel) -> tuple[str, Parcel | list[str]]:
    """What a worker does.

    Args:
        client: Name of the process that asks.
        gone: Names of what that process no longer has.
        parcel: The function and its items.

    Returns:
        Name of the worker, and what the function returned; the names of what is here, where something was not.
    """
    here = _Here.get()
    if here.client != client:
        here.held, here.shared, here.client = {}, set(), client
    here.forget(gone)
    try:
        function, items = _unpacked(parcel)
    except _NotHereError:
        return here.own, list(here.things)
    return here.own, _packed([function(item) for item in items], here.shared)[0]


def leave(client: str | None = None) -> str:
    """Lets go of all that is held for a client.

    Args:
        client: Its name; None: only tells that of this process.

    Returns:
        Name of this process.
    """
    here = _Here.get()
    if client is not None and here.client == client:
        here.held, here.shared, here.client = {}, set(), ""
    return here.own
