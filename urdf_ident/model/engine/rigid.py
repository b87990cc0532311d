"""Rigid-body columns and torques of many samples, computed by the engine that suits the robot and the job size.

The programs of :mod:`.batched` compute them, in numba or NumPy (:mod:`.compiled`); Pinocchio is used for few samples, where
a program does not pay off.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ...errors import check_shape
from ...linalg import Array, BoolArray, IntArray, independent_columns, lstsq, positive, triangle
from ..robot import Robot
from . import pinocchio
from .batched import program_inputs, regressor_program, torque_program
from .compiled import runner, wanted_engine
from .program import Program
from .resting import columns_of_few, moving_joints

#: Samples per chunk of columns.
CHUNK = 1024
#: Samples per run of a program, in NumPy, where each operation is a call, and in numba.
NUMPY_CHUNK, COMPILED_CHUNK = 4096, 256
#: Largest workspace of a program in numbers, unless the chunk would be shorter than 64.
_WORKSPACE = 1_000_000
#: Number of models above which one regressor is cheaper than a torque for each.
_MODELS = 8
#: Chunks with fewer samples, and shorter motions, are left to Pinocchio: building a program takes as long as Pinocchio
#: takes for twenty of these.
FEW, SHORT = 96, 256
#: Without numba, so are robots whose joints together carry more bodies than this (chains of more than twelve joints):
#: the workspace exceeds the cache, and 32 joints take 1.2 ms per sample where Pinocchio takes 0.2 ms.
_CARRIED = 80
#: Number of joints from which on rigid groups pay off where Pinocchio would compute, and of moving joints up to which they do.
MANY, _FEW_MOVE = 24, 2
#: A column is dependent, or zero, if its independent share on random motion is below this.
_SAME, _ZERO = 1e-10, 1e-13
#: Tolerance of the reduction to base parameters; columns that it keeps are chosen first, so that they are preserved.
_COARSE = 1e-4

#: Weights of the joint rows in a row, and the inertial columns to compute in it.
Group = tuple[Array, IntArray]


class Rigid:
    """The engine of one robot.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._programs: dict[Any, Program] = {}
        self._used = "pinocchio"

    @property
    def used(self) -> str:
        """The engine that computed columns or torques last."""
        return self._used

    def name(self, samples: int) -> str:
        """Returns the name of the engine that computes the columns.

        Returns:
            "numba", "numpy" or "pinocchio", with a reason if it is not the expected one.
        """
        wanted = wanted_engine()
        if wanted == "pinocchio":
            return wanted
        name = runner(100.0 * self.robot.n * samples)[1]
        large = sum(map(len, self.robot.subtrees)) > _CARRIED
        return "pinocchio" if large and wanted == "auto" and name.startswith("numpy") else name

    def _by_pinocchio(self, samples: int, total: int | None) -> bool:
        """Whether Pinocchio computes this number of samples out of a total."""
        if samples < FEW or (total or samples) < SHORT:
            return True
        if self.name(total or samples) != "pinocchio":
            return False
        self._used = "pinocchio"
        return True

    def columns(
        self,
        groups: Sequence[Group],
        q: Array,
        v: Array,
        a: Array,
        total: int | None = None,
        spare: Sequence[int] = (),
    ) -> list[Array]:
        """Computes inertial columns of some rows.

        Args:
            q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].
            total: Total number of samples of the job, for the choice of the engine; N if None.
            spare: Number of additional columns per group, to be filled by the caller; none if empty.

        Returns:
            Per group, shape (columns and spare ones, N) [unit of torque per unit of parameter].

        Raises:
            ShapeError: The arrays disagree.
        """
        pinocchio.check_motion(self.robot, q, v, a)
        counts = np.array([len(columns) for _, columns in groups], dtype=np.intp)
        widths = counts + np.asarray(spare or np.zeros_like(counts), dtype=np.intp)
        out = np.empty((int(widths.sum()), len(q)))
        parts = np.split(out, np.cumsum(widths)[:-1])
        if self._by_pinocchio(len(q), total):
            if self.robot.n >= MANY and moving_joints(q, v, a).sum() <= _FEW_MOVE:
                columns_of_few(self.robot, groups, q, v, a, parts)
                return parts
            made = pinocchio.regressor(self.robot, q, v, a)
            for part, (mix, columns) in zip(parts, groups, strict=True):
                part[: len(columns)] = _mixed(made, mix, columns)
            return parts
        key = tuple((mix.tobytes(), columns.tobytes()) for mix, columns in groups)
        if key not in self._programs:
            self._programs[key] = regressor_program(self.robot, [(mix, [int(k) for k in columns]) for mix, columns in groups])
        places = np.arange(counts.sum()) + np.repeat(np.cumsum(widths - counts) - (widths - counts), counts)
        self._run(self._programs[key], q, v, a, total, out, places)
        return parts

    def regressor(self, columns: IntArray, q: Array, v: Array, a: Array, total: int | None = None) -> Array:
        """Computes inertial columns of the joint torques.

        Args:
            columns: Their indices, shape (k,).
            q, v, a, total: As for :meth:`columns`.

        Returns:
            Shape (N, n, k) [unit of torque per unit of parameter], samples contiguous in memory.

        Raises:
            ShapeError: The arrays disagree.
        """
        return np.stack(self.columns([(row, columns) for row in np.eye(self.robot.n)], q, v, a, total)).transpose(2, 0, 1)

    def torque(self, theta: Array, q: Array, v: Array, a: Array) -> Array:
        """Computes the rigid-body torque, including gravity, shape (N, n) or (N, n, k) [N·m or N].

        Args:
            theta: Inertial parameters, shape (10·n,) or (10·n, k).
            q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].

        Raises:
            ShapeError: The arrays disagree.
        """
        pinocchio.check_motion(self.robot, q, v, a)
        theta = np.asarray(theta, dtype=float)
        if theta.ndim == 2 and theta.shape[1] > _MODELS:
            return self._torques(theta, q, v, a)
        if theta.ndim == 2:
            return np.stack([self.torque(one, q, v, a) for one in theta.T], axis=2)
        check_shape("theta", theta.shape, (10 * self.robot.n,))
        if self._by_pinocchio(len(q), None):
            out = np.empty(np.shape(q))
            for part in (slice(k, k + CHUNK) for k in range(0, len(q), CHUNK)):
                out[part] = pinocchio.regressor(self.robot, q[part], v[part], a[part]) @ theta
            return out
        if "torque" not in self._programs:
            self._programs["torque"] = torque_program(self.robot)
        out = np.empty((self.robot.n, len(q)))
        self._run(self._programs["torque"].with_parameters(theta), q, v, a, None, out, slice(None))
        return out.T

    def _torques(self, theta: Array, q: Array, v: Array, a: Array) -> Array:
        """Computes the torques of many models from one regressor, shape (N, n, k)."""
        out, every = np.empty((*np.shape(q), theta.shape[1])), np.arange(len(theta))
        for begin in range(0, len(q), CHUNK):
            part = slice(begin, begin + CHUNK)
            out[part] = self.regressor(every, q[part], v[part], a[part], len(q)) @ theta
        return out

    def _run(
        self, program: Program, q: Array, v: Array, a: Array, total: int | None, out: Array, places: IntArray | slice
    ) -> None:
        """Writes the outputs of a program to some rows of an array, shape (rows, N)."""
        run, name = runner(float(len(program.code)) * (total or len(q)))
        self._used = name
        most = max(64, _WORKSPACE // max(program.rows, 1))
        chunk = min(most, COMPILED_CHUNK if name.startswith("numba") else NUMPY_CHUNK, len(q))
        work = np.empty((program.rows, chunk))
        for begin in range(0, len(q), chunk):
            part = slice(begin, begin + chunk)
            inputs = program_inputs(q[part], v[part], a[part])
            values = work[:, : inputs.shape[1]]
            if inputs.shape[1] < chunk:
                values = np.empty((program.rows, inputs.shape[1]))
            values[program.inputs] = inputs
            run(program, values)
            out[places, part] = values[: program.outputs]

    @cached_property
    def spanning(self) -> tuple[IntArray, Array]:
        """Inertial columns that span all others for every motion, and the combinations.

        Returns:
            Their indices, shape (b,), and E with ``Y = Y[:, indices] E``, shape (b, 10·n).
        """
        return _spanning(self._sample, np.arange(10 * self.robot.n))

    @cached_property
    def spanning_anywhere(self) -> tuple[IntArray, Array]:
        """:attr:`spanning` for every motion and direction of gravity; columns of the last bodies are preferred."""
        q, still = self._states[0], np.zeros_like(self._states[0])
        sides = [pinocchio.regressor(self.robot.with_gravity(list(side)), q, still, still) for side in np.eye(3)]
        tips_first = np.arange(10 * self.robot.n).reshape(-1, 10)[::-1].ravel()
        return _spanning(np.concatenate([self._sample, *sides]), tips_first)

    @cached_property
    def _states(self) -> tuple[Array, Array, Array]:
        """Random motion without regard to limits, shape (N, n) each."""
        n, generator = self.robot.n, np.random.default_rng(0)
        count = 40 + 2 * n
        reach = np.where(self.robot.prismatic, 1.0, np.pi)
        q = generator.uniform(-reach, reach, (count, n))
        v, a = (scale * generator.standard_normal((count, n)) for scale in (2.0, 5.0))
        return q, v, a

    @cached_property
    def _sample(self) -> Array:
        """The regressor on that motion, shape (N, n, 10 n)."""
        return pinocchio.regressor(self.robot, *self._states)

    def present(self, mix: Array, columns: IntArray) -> BoolArray:
        """Finds the columns that are not structurally zero in a row, shape (k,).

        Args:
            mix: Weights of the joint rows in the row, shape (n,).
            columns: Inertial columns, shape (k,).
        """
        made = self._sample[:, :, columns]
        size, most = np.linalg.norm(np.tensordot(mix, made, axes=(0, 1)), axis=0), np.linalg.norm(made, axis=(0, 1))
        return np.asarray(size > _ZERO * np.abs(mix).max() * positive(most))


def _spanning(made: Array, order: IntArray) -> tuple[IntArray, Array]:
    """Returns columns of a regressor (N, n, p) that span all others, in order of preference, and the combinations."""
    R = triangle(made.reshape(-1, made.shape[2]))
    norms = np.linalg.norm(R, axis=0)
    scaled = R / np.where(norms > 0, norms, 1.0)
    coarse = independent_columns(scaled[:, order], _COARSE)[0]
    kept, rest = order[coarse], order[~coarse]
    fine = independent_columns(scaled[:, rest], _SAME, np.linalg.qr(scaled[:, kept])[0])[0]
    kept = np.sort(np.concatenate([kept, rest[fine]]))
    others = np.setdiff1d(order, kept)
    E = np.zeros((len(kept), len(norms)))
    E[np.arange(len(kept)), kept] = 1.0
    E[:, others] = lstsq(scaled[:, kept], scaled[:, others], rcond=None)[0]
    E[:, others] *= norms[others] / norms[kept][:, None]
    return kept, E


def _mixed(made: Array, mix: Array, columns: IntArray) -> Array:
    """Combines the joint rows of a regressor (N, n, p) to one row, shape (columns, N)."""
    joints = np.flatnonzero(mix)
    out = np.zeros((len(columns), len(made)))
    for joint in joints:
        out += mix[joint] * made[:, joint][:, columns].T
    return out


_ENGINES: WeakKeyDictionary[Robot, Rigid] = WeakKeyDictionary()


def rigid_of(robot: Robot) -> Rigid:
    """Returns the cached engine of a robot."""
    if robot not in _ENGINES:
        _ENGINES[robot] = Rigid(robot)
    return _ENGINES[robot]
