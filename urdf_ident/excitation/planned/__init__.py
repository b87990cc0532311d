"""Motions that are planned rather than optimised: static poses, sweeps, circles, via points."""
