"""The result of an identification: its records, and what is measured, concluded, computed, printed and written of it.

:class:`.record.Record` holds the data, to which :class:`.identification.Identification` adds dynamics, intervals, tables, plots
and text. What is measured is in :mod:`.evidence`; :mod:`.verdict` draws the conclusion. :mod:`.dynamics` are its functions,
:mod:`.files` its files, :mod:`.text` its summaries. The
records of the other workflows (payload, comparison, fleet) are beside it.
"""
