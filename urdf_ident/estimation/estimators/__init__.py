"""``estimation.method``: estimators other than weighted least squares, and the automatic choice between them.

All return the same types as least squares, so that subsequent steps do not depend on the estimator.
"""
