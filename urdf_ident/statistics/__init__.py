"""Triangular factors that replace the rows of the data, least squares on these factors, and cross-validation folds.

:mod:`.rows` makes the rows from prepared logs, :mod:`.accumulate` reduces them to factors, :mod:`.statistic` stores and merges
the factors, :mod:`.fit` solves for the base parameters.
"""
