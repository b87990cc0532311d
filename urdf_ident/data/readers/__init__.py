"""Readers of log files of all supported formats; they return recordings in SI units and model order."""
