"""Logs: files of all formats and columns by name to recordings in SI units and model order; recognition of unknown columns.

A row that cannot be read is kept as NaN, with its row number; nothing else is changed.
"""
