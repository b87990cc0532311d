"""Estimation of base parameters and their uncertainty from the statistics.

:mod:`.friction_selection` selects the structure of the friction model, :mod:`.uncertainty` computes standard errors that are
valid for autocorrelated residuals, :mod:`.estimators` contains the estimators other than weighted least squares.
"""
