"""``report.html``: one self-contained page that shows a result, in plain words beside each picture; ``fleet.html`` of a fleet.

Pictures are SVG whose colours are CSS variables, so that one page serves light and dark screens and paper. Nothing is loaded
from a network, and no script is needed to read it; a few lines sort the table of parameters.
"""

from .fleet import fleet_html, write_fleet
from .page import report_html, write_report

__all__ = ["fleet_html", "report_html", "write_fleet", "write_report"]
