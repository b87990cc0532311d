"""Diagnosis of logs: tests against the physics of one rigid robot with free parameters.

:mod:`.contradictions` runs the tests: :mod:`.explanations` of a :mod:`.log_group`, :mod:`.arbitration` between them,
:mod:`.reporting`. A :mod:`.case` is a robot with samples of its logs (:mod:`.motion_samples`);
:mod:`.evidence` measures residuals from Gram matrices (:mod:`.grams`, :mod:`.gram_fit`). With these, :mod:`.hypotheses`
compares other interpretations (:mod:`.candidates`: units, signs, orders) and :mod:`.against_urdf` compares with the URDF's
inertial parameters; :mod:`.changes` finds differences within and between logs, :mod:`.small_faults` faults of small effect, and
:mod:`.delay` estimates delays of the efforts. :mod:`.wording` writes the messages.
"""
