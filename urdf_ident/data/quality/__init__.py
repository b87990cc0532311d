"""Quality checks of logs: findings with remedies, and lossless repairs.

:mod:`.report` assesses one log by itself: :mod:`.repairs` and :mod:`.clock_repairs`, then :mod:`.checks`, :mod:`.channels` and
:mod:`.interpolated`.

:mod:`.contradictions` tests logs against the physics of a rigid robot with free parameters. A :mod:`.case` is a robot with
samples of its logs (:mod:`.motion_samples`); :mod:`.evidence` measures residuals from Gram matrices (:mod:`.grams`,
:mod:`.gram_fit`). With these, :mod:`.hypotheses` compares other readings (:mod:`.candidates`: units, signs, orders),
:mod:`.stationarity` finds changes within and between logs, :mod:`.small_faults` tests faults to first order
(:mod:`.fault_columns`), :mod:`.outlying_logs` finds logs with a larger residual, and :mod:`.against_urdf` compares with the
URDF's inertial parameters. :mod:`.delay` estimates delays of the efforts; :mod:`.hidden_delays` names those that a log cannot
show.

:mod:`.findings` defines a finding, :mod:`.catalogue` lists all ids, :mod:`.wording` and :mod:`.small_fault_wording` write
messages.
"""
