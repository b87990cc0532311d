"""Groups of one column per joint: runs of equally spaced columns, and which runs are the rates of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...linalg import Array, BoolArray
from .series import Series

#: Minimum correlation of the difference quotient of a column with the mean of its rate.
LINKED = 0.9

Block = tuple[int, ...]


class Rate(NamedTuple):
    """The run of columns that holds the rates of another: lowest correlation and median scale over the moving joints."""

    block: Block | None = None
    correlation: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Links:
    """Relations between columns and their rates.

    Attributes:
        correlation: Shape (W, W): correlation of the slope of column i with column j.
        scale: Shape (W, W): slope of i per unit of j.
        like: Shape (W, W): correlation of the columns themselves.
        moves: Shape (W,): True for columns that are not constant.
    """

    correlation: Array
    scale: Array
    like: Array
    moves: BoolArray


def links_of(series: Series) -> Links:
    """Correlates the slope of every column with every column."""
    mean = series.mean - series.mean.mean(axis=0)
    slope = series.slope - series.slope.mean(axis=0)
    size = np.linalg.norm(mean, axis=0)
    speed = np.linalg.norm(slope, axis=0)
    moves = size > 1e-9 * np.maximum(np.abs(series.mean).max(axis=0), 1e-9) * np.sqrt(len(mean))
    product = slope.T @ mean
    spread, fast = np.where(moves, size, np.inf), np.where(moves & (speed > 0), speed, np.inf)
    return Links(product / fast[:, None] / spread, product / spread**2, (mean.T @ mean) / spread[:, None] / spread, moves)


def blocks(width: int, n: int, taken: Sequence[int]) -> list[Block]:
    """Runs of n equally spaced columns, adjacent or interleaved."""
    if n == 1:
        return [(k,) for k in range(width) if k not in taken]
    runs = []
    for stride in range(1, (width - 1) // (n - 1) + 1):
        for start in range(width - stride * (n - 1)):
            block = tuple(range(start, start + stride * n, stride))
            if not set(block) & set(taken):
                runs.append(block)
    return runs


def rates(links: Links, among: Sequence[Block]) -> dict[Block, Rate]:
    """Finds for each run of columns the run of its rates; runs without one are absent."""
    stride = {block: block[1] - block[0] if len(block) > 1 else 0 for block in among}
    rate_of: dict[Block, Rate] = {}
    for block in among:
        for other in among:
            if other == block or stride[other] != stride[block] or set(other) & set(block):
                continue
            moving = [(i, j) for i, j in zip(block, other, strict=True) if links.moves[i] and links.moves[j]]
            if 2 * len(moving) < len(block):
                continue
            worst = min(float(links.correlation[i, j]) for i, j in moving)
            if worst > max(LINKED, rate_of[block].correlation + 0.02 if block in rate_of else -1.0):
                rate_of[block] = Rate(other, worst, float(np.median([links.scale[i, j] for i, j in moving])))
    return rate_of


def alike(links: Links, first: Block, second: Block) -> bool:
    """Whether two runs, such as a measured value and its target, correlate above 0.98 for every moving joint."""
    pairs = [(i, j) for i, j in zip(first, second, strict=True) if links.moves[i] and links.moves[j]]
    return bool(pairs) and all(abs(links.like[i, j]) > 0.98 for i, j in pairs)
