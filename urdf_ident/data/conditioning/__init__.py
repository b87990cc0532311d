"""Conditioning of a repaired log to continuous motion at a constant rate: clock, velocities, filters, periods."""
