"""Torque constants from what a controller logged as its target torque and target current."""
