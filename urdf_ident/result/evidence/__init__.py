"""What is measured for and against a result: evidence, its scale, scores on held-out logs, series for plots."""
