"""The only place where the order of the steps is written: identify, validate, check, compensate, experiment, demo."""
