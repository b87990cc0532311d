"""Inertial regressor of many samples at a time, with the same columns as Pinocchio's.

Angular velocity, angular acceleration and acceleration of the origin are propagated from the base to the tips, in body
axes (Luh, Walker, Paul 1980). The joint torque per unit of a parameter of a carried body is the power of the resulting
force and moment at unit rate of that joint alone (Atkeson, An, Hollerbach 1986), so that a column costs a few products.
Only the requested columns are computed, in the rows of the joints that carry the body. The recursion is recorded once per
robot as a :class:`.Program`, without the terms that vanish for the robot's geometry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...linalg import Array
from ..robot import Robot
from .program import Argument, Program, Row, Tape, Value

#: A matrix of rows and constants.
Matrix = list[list[Value]]
#: Products of inertia in the order of Pinocchio's parameters: Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
_PAIRS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


@dataclass(frozen=True, eq=False)
class _Body:
    """Kinematics of one body in its own axes: angular rates, acceleration of its origin minus gravity, joint axes.

    ``gain`` is the matrix G with acceleration ``a + G r`` at the point r; per joint that moves the body, ``axis`` is its
    direction and ``arm`` the velocity of the origin per unit of its rate.
    """

    turn: list[Value]
    turn_rate: list[Value]
    acceleration: list[Value]
    gain: Matrix
    axis: dict[int, list[Value]]
    arm: dict[int, list[Value]]


def regressor_program(robot: Robot, groups: Sequence[tuple[Array, Sequence[int]]]) -> Program:
    """Builds the program that computes columns of some rows.

    Args:
        groups: Per row group, the weights of the joint rows, shape (n,), and the indices of the inertial parameters, ten
            per body as in ``inertial_parameters``.

    Returns:
        A program whose inputs are :func:`program_inputs` and whose outputs are the groups' columns, one group after the
        other.
    """
    tape = Tape()
    bodies, _ = _moving(tape, robot, arms=True)
    outputs: list[Value] = []
    for mix, columns in groups:
        for column in columns:
            body, k = divmod(int(column), 10)
            total: Value = 0.0
            for joint in np.flatnonzero(mix):
                if int(joint) in bodies[body].axis:
                    part = _column(tape, bodies[body], int(joint), robot.prismatic[joint], k)
                    total = tape.add(total, tape.multiply(float(mix[joint]), part))
            outputs.append(total)
    return tape.program(outputs)


def torque_program(robot: Robot) -> Program:
    """Builds the program that computes joint torques, with the inertial parameters as arguments.

    Returns:
        A program whose inputs are :func:`program_inputs`, whose parameters are the 10·n inertial ones and whose outputs
        are the n torques.
    """
    tape = Tape()
    bodies, inputs = _moving(tape, robot, arms=False)
    wrenches = [_wrench(tape, body, 10 * i) for i, body in enumerate(bodies)]
    torques: list[Value] = [0.0] * robot.n
    for i in reversed(range(robot.n)):
        cosine, sine, q = inputs[i][:3]
        force, moment = wrenches[i]
        torques[i] = tape.dot([float(x) for x in robot.axes[i]], force if robot.prismatic[i] else moment)
        parent = robot.parents[i]
        if parent >= 0:
            down, turned = (_seen(tape, robot, i, cosine, sine, x, back=True) for x in (force, moment))
            lever = tape.cross(_offset(tape, robot, i, q), down)
            before = wrenches[parent]
            wrenches[parent] = tape.plus(before[0], down), tape.plus(tape.plus(before[1], turned), lever)
    return tape.program(torques)


def _wrench(tape: Tape, body: _Body, first: int) -> tuple[list[Value], list[Value]]:
    """Returns force and moment about the origin of a body, from its ten parameters."""
    centre = [Argument(first + 1 + k) for k in range(3)]
    products = {pair: Argument(first + 4 + k) for k, pair in enumerate(_PAIRS)}

    def weighed(terms: Sequence[tuple[Value, Argument]]) -> Value:
        total: Value = 0.0
        for x, parameter in terms:
            if x != 0.0:
                total = tape.add(total, tape.weigh(x, parameter))
        return total

    def turned(x: Sequence[Value]) -> list[Value]:
        return [weighed([(x[j], products[min(i, j), max(i, j)]) for j in range(3)]) for i in range(3)]

    a = body.acceleration
    force = [
        tape.add(weighed([(a[i], Argument(first))]), weighed(list(zip(body.gain[i], centre, strict=True)))) for i in range(3)
    ]
    lever = []
    for i, j in ((1, 2), (2, 0), (0, 1)):
        lever.append(tape.add(weighed([(a[j], centre[i])]), weighed([(a[i], centre[j])]), sign=-1.0))
    spun = tape.cross(body.turn, turned(body.turn))
    return force, tape.plus(tape.plus(turned(body.turn_rate), spun), lever)


def program_inputs(q: Array, v: Array, a: Array) -> Array:
    """Returns the input rows of a program.

    Args:
        q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].

    Returns:
        Cosines, sines, positions, velocities, accelerations, shape (5 n, N).
    """
    return np.concatenate([np.cos(q).T, np.sin(q).T, q.T, v.T, a.T])


def _offset(tape: Tape, robot: Robot, i: int, q: Row) -> list[Value]:
    """Vector from the origin of the parent of body i to its own, in parent axes."""
    offset: list[Value] = [float(x) for x in robot.placements[i, :3, 3]]
    if robot.prismatic[i]:
        offset = tape.plus(offset, [tape.multiply(float(k), q) for k in robot.placements[i, :3, :3] @ robot.axes[i]])
    return offset


def _seen(tape: Tape, robot: Robot, i: int, cosine: Row, sine: Row, x: Sequence[Value], *, back: bool = False) -> list[Value]:
    """Transforms a vector from parent axes to the axes of body i, or back."""
    placed = robot.placements[i, :3, :3]
    if robot.prismatic[i]:
        return tape.transform(placed if back else placed.T, x)
    frame = _frame(robot.axes[i])
    first, last, sign = (frame.T, placed @ frame, -1.0) if back else ((placed @ frame).T, frame, 1.0)
    x0, x1, x2 = tape.transform(first, x)
    c0 = tape.add(tape.multiply(cosine, x0), tape.multiply(sine, x1), sign=sign)
    c1 = tape.add(tape.multiply(cosine, x1), tape.multiply(sine, x0), sign=-sign)
    return tape.transform(last, [c0, c1, x2])


def _moving(tape: Tape, robot: Robot, *, arms: bool) -> tuple[list[_Body], list[tuple[Row, Row, Row, Row, Row]]]:
    """Records the kinematics of all bodies, with the axes and arms of the joints that carry them if asked.

    Returns:
        The bodies; per joint the rows of the program's inputs: cosine, sine, position, rate and its rate.
    """
    rows = [[tape.input() for _ in range(robot.n)] for _ in range(5)]
    inputs = list(zip(*rows, strict=True))
    bodies: list[_Body] = []
    for i in range(robot.n):
        bodies.append(_moved(tape, robot, bodies, i, inputs[i], arms=arms))
    return bodies, inputs


def _moved(
    tape: Tape, robot: Robot, bodies: Sequence[_Body], i: int, inputs: tuple[Row, Row, Row, Row, Row], *, arms: bool
) -> _Body:
    """Computes body i from its parent."""
    cosine, sine, q, v, a = inputs
    prismatic, axis = robot.prismatic[i], robot.axes[i]
    along = [float(k) for k in axis]
    still: list[Value] = [0.0, 0.0, 0.0]
    if robot.parents[i] < 0:
        start: list[Value] = [-float(g) for g in robot.gravity]
        before = _Body(still, still, start, [still, still, still], {}, {})
    else:
        before = bodies[robot.parents[i]]
    offset, seen = _offset(tape, robot, i, q), partial(_seen, tape, robot, i, cosine, sine)
    turn, turn_rate = seen(before.turn), seen(before.turn_rate)
    acceleration = seen(tape.plus(before.acceleration, [tape.dot(row, offset) for row in before.gain]))
    moving: list[Value] = [tape.multiply(k, v) for k in along]
    pushed: list[Value] = [tape.multiply(k, a) for k in along]
    across = tape.cross(turn, moving)
    if prismatic:
        acceleration = tape.plus(tape.plus(acceleration, pushed), [tape.multiply(2.0, x) for x in across])
    else:
        turn_rate = tape.plus(tape.plus(turn_rate, pushed), across)
        turn = tape.plus(turn, moving)
    own: list[Value] = list(along)
    axes, levers = {i: own}, {i: own if prismatic else still}
    for joint, line in before.axis.items() if arms else ():
        base = before.arm[joint]
        axes[joint] = seen(line)
        levers[joint] = seen(base if robot.prismatic[joint] else tape.plus(base, tape.cross(line, offset)))
    return _Body(turn, turn_rate, acceleration, _gain(tape, turn, turn_rate), axes, levers)


def _frame(axis: Array) -> Array:
    """Returns a rotation that maps z to an axis; for x, y and z its entries are zeros and ones."""
    main = int(np.argmax(np.abs(axis)))
    other = np.eye(3)[(main + 1) % 3]
    first = other - axis * (axis @ other)
    first = first / np.linalg.norm(first)
    return np.column_stack([first, np.cross(axis, first), axis])


def _gain(tape: Tape, w: Sequence[Value], rate: Sequence[Value]) -> Matrix:
    """Returns the matrix of ``x → rate × x + w × (w × x)``."""
    square = [tape.multiply(x, x) for x in w]
    matrix: Matrix = [[0.0] * 3 for _ in range(3)]
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        matrix[k][k] = tape.multiply(-1.0, tape.add(square[i], square[j]))
        product = tape.multiply(w[i], w[j])
        matrix[i][j] = tape.add(product, rate[k], sign=-1.0)
        matrix[j][i] = tape.add(product, rate[k])
    return matrix


def _column(tape: Tape, body: _Body, joint: int, prismatic: bool, k: int) -> Value:
    """Returns the torque on a joint per unit of parameter k of a body."""
    axis, arm = body.axis[joint], body.arm[joint]
    if k == 0:
        return tape.dot(arm, body.acceleration)
    if k < 4:
        force = tape.dot(arm, [row[k - 1] for row in body.gain])
        if prismatic:
            return force
        i, j = k % 3, (k + 1) % 3
        moment = tape.add(tape.multiply(body.acceleration[i], axis[j]), tape.multiply(body.acceleration[j], axis[i]), sign=-1.0)
        return tape.add(moment, force) if force != 0.0 else moment
    if prismatic:
        return 0.0
    i, j = _PAIRS[k - 4]
    w, rate, spin = body.turn, body.turn_rate, tape.cross(axis, body.turn)
    pairs = [(i, j)] if i == j else [(i, j), (j, i)]
    return tape.dot([x[i] for i, _ in pairs for x in (axis, spin)], [x[j] for _, j in pairs for x in (rate, w)])
