"""The search for an exciting motion: multi-start local search within the limits, from a global start."""
