"""The currency of estimation and its solution: triangular factors instead of rows, least squares, folds.

:mod:`.rows` makes the factors from prepared logs, :mod:`.statistic` holds and merges them, :mod:`.fit` solves them.
"""
