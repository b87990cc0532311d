"""Engines: what turns motion into columns. Pinocchio is the reference; faster ones are tested against it."""
