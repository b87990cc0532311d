"""Quality of one log by itself: findings with remedies, and lossless repairs.

:mod:`.report` holds the tables of repairs and checks, each a function of an :class:`.examination.Examination`, and assesses a
log.
"""
