"""Motions of a robot: trajectories, their limits, and tool paths.

Every trajectory has analytic velocity and acceleration and a bound on its derivatives, so that limits can be certified
between samples. Composition (ramps, repetition, sequences) raises an error on jumps in position, velocity or acceleration.
"""
