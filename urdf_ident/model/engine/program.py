"""Straight-line programs over vectors: arithmetic recorded once, folded, and run on many samples at a time.

A :class:`Tape` records sums and products, with constant folding, common-subexpression elimination and dead-code
elimination, so that a recursion over a robot exploits its geometry: an axis along z, a base at rest, a right angle between
two joints. A :class:`Program` is the remaining list of operations, with workspace rows reused as they become free. It runs
in NumPy with one call per operation; :mod:`.compiled` runs it in numba. Both do the same operations in the same order and
agree bitwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Union

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array, BoolArray, IntArray

#: Operations: ``x + y``, ``x − y``, ``x y``, ``x k``, ``z + x y``, ``z − x y``, ``z + x k``, and ``k`` itself.
ADD, SUBTRACT, MULTIPLY, SCALE, MULTIPLY_ADD, MULTIPLY_SUBTRACT, SCALE_ADD, FILL = range(8)
_INPUT = -1
#: Constants this close to 0, 1 or −1 are rounded to them.
_ROUNDING = 1e-15

#: A constant, or a row computed at run time.
Value = Union[float, "Row"]


@dataclass(frozen=True)
class Row:
    """One number per sample: the place of its operation on the tape."""

    place: int


@dataclass(frozen=True)
class Argument:
    """A number common to all samples that is given when the program runs."""

    index: int


#: Operation, up to three operand places (−1: none), and its constant.
_Node = tuple[int, int, int, int, float | Argument]


class Tape:
    """Records arithmetic on rows and constants."""

    def __init__(self) -> None:
        self._nodes: list[_Node] = []
        self._known: dict[_Node, Row] = {}

    def input(self) -> Row:
        """Returns a new input row; inputs are given at run time in the order of these calls."""
        self._nodes.append((_INPUT, -1, -1, -1, 0.0))
        return Row(len(self._nodes) - 1)

    def _put(self, kind: int, x: int, y: int = -1, z: int = -1, k: float | Argument = 0.0) -> Row:
        key = (kind, x, y, z, k)
        if key not in self._known:
            self._nodes.append(key)
            self._known[key] = Row(len(self._nodes) - 1)
        return self._known[key]

    def multiply(self, x: Value, y: Value) -> Value:
        """Returns the product.

        Args:
            x, y: Factors.

        Returns:
            A number if it is constant, else a row.
        """
        if isinstance(x, Row):
            if isinstance(y, Row):
                return self._put(MULTIPLY, min(x.place, y.place), max(x.place, y.place))
            x, y = y, x
        k = next((whole for whole in (0.0, 1.0, -1.0) if abs(x - whole) < _ROUNDING), float(x))
        if not isinstance(y, Row):
            return k * y
        if k == 0.0 or k == 1.0:
            return y if k else 0.0
        return self._put(SCALE, y.place, k=k)

    def weigh(self, x: Value, k: Argument) -> Row:
        """Returns the product with a number that is given when the program runs."""
        return self._put(SCALE, (x if isinstance(x, Row) else self._put(FILL, -1, k=float(x))).place, k=k)

    def add(self, x: Value, y: Value, *, sign: float = 1.0) -> Value:
        """Returns the sum, or the difference for ``sign=-1``.

        Args:
            x, y: The two.
            sign: Of y.

        Returns:
            A number if it is constant, else a row.
        """
        if not isinstance(y, Row):
            if not isinstance(x, Row):
                return x + sign * y
            return x if y == 0.0 else self.add(x, self._put(FILL, -1, k=sign * y))
        if not isinstance(x, Row):
            if x == 0.0:
                return y if sign > 0 else self.multiply(-1.0, y)
            return self.add(self._put(FILL, -1, k=x), y, sign=sign)
        kind, first, second, _, k = self._nodes[y.place]
        if kind == MULTIPLY:
            return self._put(MULTIPLY_ADD if sign > 0 else MULTIPLY_SUBTRACT, first, second, x.place)
        if kind == SCALE and (sign > 0 or not isinstance(k, Argument)):
            return self._put(SCALE_ADD, first, -1, x.place, k if isinstance(k, Argument) else sign * k)
        other = self._nodes[x.place]
        if sign > 0 and other[0] == MULTIPLY:
            return self._put(MULTIPLY_ADD, other[1], other[2], y.place)
        if sign > 0 and other[0] == SCALE:
            return self._put(SCALE_ADD, other[1], -1, y.place, other[4])
        return self._put(ADD if sign > 0 else SUBTRACT, x.place, y.place)

    def dot(self, x: Sequence[Value], y: Sequence[Value]) -> Value:
        """Returns the inner product.

        Args:
            x, y: Vectors of equal length.

        Returns:
            A number if it is constant, else a row.
        """
        total: Value = 0.0
        for one, other in zip(x, y, strict=True):
            total = self.add(total, self.multiply(one, other))
        return total

    def cross(self, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        """Returns the cross product.

        Args:
            x, y: Vectors of length 3.

        Returns:
            Length 3.
        """
        pairs = ((1, 2), (2, 0), (0, 1))
        return [self.add(self.multiply(x[i], y[j]), self.multiply(x[j], y[i]), sign=-1.0) for i, j in pairs]

    def plus(self, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        """Returns the sum of two vectors.

        Args:
            x, y: Vectors of equal length.

        Returns:
            The same length.
        """
        return [self.add(one, other) for one, other in zip(x, y, strict=True)]

    def transform(self, matrix: Array, x: Sequence[Value]) -> list[Value]:
        """Returns a constant matrix times a vector.

        Args:
            matrix: Shape (m, k).

        Returns:
            Length m.
        """
        return [self.dot([float(k) for k in row], x) for row in matrix]

    def program(self, outputs: Sequence[Value]) -> Program:
        """Builds the program that computes the given results.

        Args:
            outputs: The results; a number is the same for all samples.
        """
        rows = [value if isinstance(value, Row) else self._put(FILL, -1, k=float(value)) for value in outputs]
        last: dict[int, int] = {}
        needed = np.zeros(len(self._nodes), dtype=bool)
        needed[[row.place for row in rows]] = True
        for place in range(len(self._nodes) - 1, -1, -1):
            if needed[place]:
                for source in self._nodes[place][1:4]:
                    if source >= 0:
                        needed[source] = True
                        last.setdefault(source, place)
        return _scheduled(self._nodes, needed, last, [row.place for row in rows])


def _scheduled(nodes: Sequence[_Node], needed: BoolArray, last: dict[int, int], outputs: Sequence[int]) -> Program:
    """Assigns workspace rows: results first, then inputs, then rows reused after their last use."""
    rows = len(outputs)
    given = []
    at: dict[int, int] = {}
    for place, node in enumerate(nodes):
        if node[0] == _INPUT:
            at[place] = rows
            given.append(rows)
            rows += 1
    for row, place in enumerate(outputs):
        at.setdefault(place, row)
    copies = [(row, at[place]) for row, place in enumerate(outputs) if at[place] != row]  # inputs and repeated results
    code: list[tuple[int, ...]] = []
    numbers: list[float] = []
    given_numbers: list[tuple[int, int]] = []
    free: list[int] = []
    kept = set(outputs)
    for place, (kind, x, y, z, k) in enumerate(nodes):
        if not needed[place] or kind == _INPUT:
            continue
        if place not in at:
            if free:
                at[place] = free.pop()
            else:
                at[place], rows = rows, rows + 1
        code.append((kind, at[place], *(at[source] if source >= 0 else 0 for source in (x, y, z))))
        if isinstance(k, Argument):
            given_numbers.append((len(numbers), k.index))
        numbers.append(0.0 if isinstance(k, Argument) else k)
        for source in {x, y, z} - {-1}:
            if last[source] == place and source not in kept and nodes[source][0] != _INPUT:
                free.append(at[source])
    for target, source in copies:
        code.append((SCALE, target, source, 0, 0))
        numbers.append(1.0)
    table, places = np.array(code, dtype=np.int32).reshape(-1, 5), np.array(given_numbers, dtype=np.intp).reshape(-1, 2)
    return Program(table, np.array(numbers, dtype=float), places, np.array(given, dtype=np.intp), len(outputs), rows)


@dataclass(frozen=True, eq=False)
class Program:
    """Operations to run on a chunk of samples.

    Attributes:
        code: Operation, target and up to three sources (rows of the workspace), shape (m, 5).
        numbers: The constant of each operation, shape (m,).
        parameters: Operations whose constant is a parameter, and its index, shape (k, 2).
        inputs: Rows of the workspace that hold the inputs.
        outputs: Number of results; they are in the first rows.
    """

    code: NDArray[np.int32]
    numbers: Array
    parameters: IntArray
    inputs: IntArray
    outputs: int
    rows: int

    def with_parameters(self, values: Array) -> Program:
        """Returns the program for given parameters.

        Args:
            values: One number per parameter.
        """
        numbers = self.numbers.copy()
        numbers[self.parameters[:, 0]] = values[self.parameters[:, 1]]
        return replace(self, numbers=numbers)

    def run(self, work: Array) -> None:
        """Runs the program in NumPy.

        Args:
            work: Shape (rows, N), with the inputs in their rows; afterwards the results are in the first rows.
        """
        spare, rows = np.empty(work.shape[1]), list(work)
        for (kind, target, x, y, z), k in zip(self._steps, self.numbers.tolist(), strict=True):
            if kind == MULTIPLY:
                np.multiply(rows[x], rows[y], rows[target])
            elif kind == MULTIPLY_ADD:
                np.add(rows[z], np.multiply(rows[x], rows[y], spare), rows[target])
            elif kind == SCALE:
                np.multiply(rows[x], k, rows[target])
            elif kind == SCALE_ADD:
                np.add(rows[z], np.multiply(rows[x], k, spare), rows[target])
            elif kind == ADD:
                np.add(rows[x], rows[y], rows[target])
            elif kind == SUBTRACT:
                np.subtract(rows[x], rows[y], rows[target])
            elif kind == MULTIPLY_SUBTRACT:
                np.subtract(rows[z], np.multiply(rows[x], rows[y], spare), rows[target])
            else:
                rows[target].fill(k)

    @cached_property
    def _steps(self) -> list[list[int]]:
        return [list(step) for step in self.code.tolist()]
