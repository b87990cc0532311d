"""Faults whose effect on the torques is proportional to their size: scales, zeros, crosstalk, saturation, backlash."""
