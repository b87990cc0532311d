"""What the data say: from prepared logs to base parameters with their uncertainty.

Here lie the currency (:mod:`.rows` makes it, :mod:`.statistic` is it) and its plain uses: least squares, the fit, held-out
error. Three rooms build on them, each on the ones before it: :mod:`.friction` finds the structure of the model,
:mod:`.uncertainty` says how far the estimate can be believed, :mod:`.estimators` are the other ways to estimate.
"""
