"""The dynamic model of a robot: URDF, inertias, drive, terms, base parameters, and the prior of its parameters."""
