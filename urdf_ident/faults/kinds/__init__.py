"""All kinds of faults, one class each, in one :mod:`.catalogue`."""
