"""Values collected by key, words in a sentence or a table, and samples collected in runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from .linalg import Array, BoolArray, IntArray

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Collects the values of each key; keys may come in any order and several times.

    Returns:
        Key → its values. Keys are in the order of their first value.
    """
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def batches(values: Iterable[V], most: int, size: Callable[[V], int]) -> Iterator[list[V]]:
    """Yields values in order, together up to some size; one that is larger alone.

    Args:
        size: Returns the size of a value.
    """
    some, whole = list[V](), 0
    for value in values:
        if some and whole + size(value) > most:
            yield some
            some, whole = [], 0
        some.append(value)
        whole += size(value)
    if some:
        yield some


def abbreviated(words: Sequence[str], most: int = 6) -> str:
    """Joins words with commas, at most some of them: a humanoid has hundreds of links.

    Args:
        most: Number of words up to which all are named.
    """
    return ", ".join(words) if len(words) <= most else f"{', '.join(words[:most])} and {len(words) - most} more"


def runs(mask: BoolArray) -> list[tuple[int, int]]:
    """Finds the stretches in which a condition holds.

    Args:
        mask: Whether it holds at each sample, shape (N,).

    Returns:
        The first sample of each stretch and the sample after its last one.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int))).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def equal_runs(x: Array) -> tuple[IntArray, IntArray]:
    """Finds runs of equal samples.

    Args:
        x: One channel, shape (N,).

    Returns:
        Their first rows and their lengths, shape (R,) each.
    """
    begins = np.concatenate([[0], np.flatnonzero(np.diff(x) != 0) + 1])
    return begins, np.diff(np.concatenate([begins, [len(x)]]))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Formats a table with aligned columns, the first one left-aligned."""
    widths = [max(len(str(row[k])) for row in [header, *rows]) for k in range(len(header))]
    cells = [[str(cell).rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)] for row in [header, *rows]]
    firsts = [str(row[0]).ljust(widths[0]) for row in [header, *rows]]
    return ["  " + "  ".join([first, *rest]).rstrip() for first, rest in zip(firsts, cells, strict=True)]
