"""Engines that compute regressor columns from motion. Pinocchio is the reference; faster ones are tested against it."""
