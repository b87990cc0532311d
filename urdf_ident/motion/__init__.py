"""How a robot should move: trajectories, their limits, and paths of a tool.

Every trajectory knows its velocity and acceleration analytically, and a bound on its derivatives, so that a limit can be
certified between samples. Composition (ramps, repetition, sequences) refuses jumps in position, velocity or acceleration.
"""
