"""What the data say: from statistics to base parameters with their uncertainty.

:mod:`.friction_selection` finds the structure of the model, :mod:`.uncertainty` gives standard errors that cover,
:mod:`.estimators` are the other ways to estimate.
"""
