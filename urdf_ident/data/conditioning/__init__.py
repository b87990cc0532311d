"""From a repaired log to continuous pieces of motion at a constant rate: clock, velocities, filters, periods."""
