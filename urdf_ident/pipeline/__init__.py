"""The workflows, which define the order of the steps: identify, validate, check, compensate, experiment, demo."""
