"""Exciting motions for identification within the limits of the robot.

Design decisions. A motion is linear in its unknowns (Fourier coefficients, control points), so limits on q, v and a are
linear constraints and a feasible point is easy to find. The interior-point method starts there and stays feasible, so the
search can be stopped at any time. The criterion is a function of the singular values of the planned rows; its exact
gradient is the reverse mode of the rigid-body regressor (``rows``) and costs twice as much as an evaluation. Motions have
few harmonics, so about a hundred instants per period suffice; this is tested by doubling them, and the result is checked on
a 1 ms grid with an allowance for what may happen between grid points.

Tried for motions between a table and a wall, and no better in as many evaluations: starts that ignore obstacles, whose
required distances then grow from below (of the UR10e's, one in 58 got free: gradients of distances do not lead links out of
a table that they cross), and starts of which every joint is enlarged as far as there is room (one of eleven got stuck beside
obstacles). The generic arm's condition of 22 there is that of five harmonics: it is 21
without any obstacle, and 14 with ten harmonics.
"""
