"""Simulation of robots with known parameters and with effects beyond the identified model.

Friction is evaluated independently of the identification's regressor columns, so that an estimator is not tested against
its own formula. It acts on *sliders* (joints or motors), and the direction of slip is part of the state, because the sign
of the velocity is undefined for a joint that sticks.
"""
