"""The result of an identification: its records, verdict, summary and files.

:class:`.record.Record` holds the data, to which :class:`.identification.Identification` adds dynamics, intervals, tables, plots
and text.
:mod:`.evidence` and :mod:`.scores` are measured, :mod:`.verdict` judges them. :mod:`.file` writes identification.json,
:mod:`.load` and :mod:`.checks` read it, :mod:`.exports` writes all other files.
"""
