"""Quality of one log by itself: findings with remedies, and lossless repairs.

:mod:`.report` assesses a log: :mod:`.repairs` and :mod:`.clock_repairs`, then :mod:`.checks`, :mod:`.channels`,
:mod:`.velocity_checks` and :mod:`.interpolated`. :mod:`.hidden_delays` names delays that a log cannot show.
:mod:`.findings` defines a finding, :mod:`.catalogue` lists all ids.
"""
