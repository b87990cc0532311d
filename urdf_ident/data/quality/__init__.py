"""Is a log good enough: checks, findings with remedies, and repairs that lose nothing."""
