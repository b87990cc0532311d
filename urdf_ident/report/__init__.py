"""``report.html``: one self-contained page that shows a result, each figure with an explanation; ``fleet.html`` for a fleet.

Figures are SVG whose colours are CSS variables, so that one page works for light and dark themes and print. Nothing is
loaded from the network; a short script sorts the table of parameters, shows values under the pointer and zooms into time, and
the page is complete without it.
"""

from .page import report_html, write_fleet, write_report

__all__ = ["report_html", "write_fleet", "write_report"]
