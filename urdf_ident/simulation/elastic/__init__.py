"""Simulation of robots with elastic joints: plant, drive, log."""
