"""Motions that make an identification good, inside the limits of the robot.

Why it is made the way it is. A motion is linear in its unknowns (Fourier coefficients, control points), so limits on q, v
and a are linear constraints, and a point that keeps them all is easy to find: an interior-point method starts there and never
leaves, so the search can be stopped at any moment and what it holds is allowed. The criterion is a function of the singular
values of the planned rows; its gradient runs through the rigid-body regressor in reverse (``rigid``), exact and at twice the
price of an evaluation. Motions have few harmonics, so about a hundred instants a period are enough; whether they were is
tested by doubling them, and the result is checked on a 1 ms grid with an allowance for what lies between.
"""
