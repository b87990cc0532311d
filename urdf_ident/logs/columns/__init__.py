"""Columns of a log: their names, assignment to quantities and joints, and conversion to SI units."""
