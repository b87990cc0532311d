"""Plots of a result: :mod:`.charts` says what is drawn, as records that the report draws as SVG and notebooks by matplotlib."""
