"""Triangular factors that replace the rows of the data, least squares on them, and folds.

:mod:`.rows` makes the factors from prepared logs, :mod:`.statistic` holds and merges them, :mod:`.fit` solves them.
"""
