"""Plots of a result, drawn into given axes: the same for a notebook, a file and the report.

Drawing functions take axes and records; the accessor ``ident.plot`` (:mod:`.accessor`) makes the axes.
"""
