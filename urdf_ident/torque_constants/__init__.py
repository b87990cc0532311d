"""Torque constants from the target torques and target currents logged by a controller."""
