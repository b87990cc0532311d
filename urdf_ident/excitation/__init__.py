"""Exciting motions for identification within the limits of the robot.

Design decisions. A motion is linear in its unknowns (Fourier coefficients, control points), so limits on q, v and a are
linear constraints and a feasible point is easy to find. The interior-point method starts there and stays feasible, so the
search can be stopped at any time. The criterion is a function of the singular values of the planned rows; its exact
gradient is the reverse mode of the rigid-body regressor (``rows``) and costs twice as much as an evaluation. Motions have
few harmonics, so about a hundred instants per period suffice; this is tested by doubling them, and the result is checked on
a 1 ms grid with an allowance for what may happen between grid points.
"""
