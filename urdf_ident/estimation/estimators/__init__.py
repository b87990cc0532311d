"""``estimation.method``: ways to estimate besides weighted least squares, and which of them the data ask for.

All give the same types as least squares, so that whatever follows need not know which of them was at work.
"""
