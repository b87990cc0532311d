"""Comparing results: quantities they have in common, tests of changes, pooled robots of one model."""
