"""Delay and bandwidth of the efforts: :mod:`.profile` of the likelihood, from :mod:`.residuals` of shifted efforts."""
