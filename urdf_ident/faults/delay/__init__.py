"""Delay and bandwidth of a log: :mod:`.profile` of the likelihood, from :mod:`.residuals`; low-pass :mod:`.filters`."""
