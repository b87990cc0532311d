"""The result of an identification: its records, and what is measured, concluded, computed, printed and written of it.

:class:`.record.Record` holds the data, to which :class:`.identification.Identification` adds dynamics, intervals, tables, plots
and text. What is measured is in :mod:`.evidence` and :mod:`.scores`; :mod:`.verdict` draws the conclusion. :mod:`.dynamics` and
:mod:`.intervals` are its functions, :mod:`.write` its files, :mod:`.summary` its text. The records that
other commands return are beside it.
"""
