"""Diagnosis of logs: tests against the physics of one rigid robot with free parameters.

:mod:`.contradictions` is the entry: :mod:`.explanations` of a :mod:`.log_group`, said in :mod:`.words`. Large faults (units,
signs, orders, gravity: :mod:`.candidates`) are found by :mod:`.hypotheses`, which compares interpretations (:mod:`.trials`) of
the samples of a :mod:`.case` by held-out :mod:`.evidence`. All others, and all changes of the robot, are :mod:`.families` of
columns in the linear model of the torques (:mod:`.linearized`): :mod:`.score_test` tests them at once against one
:mod:`.null_model` and selects the best, one after the other. All fits are one :mod:`.regression`. :mod:`.against_urdf` and
:mod:`.part_of_gravity` compare with the URDF's inertial parameters, :mod:`.oscillation` and :mod:`.tip_forces` find what has a
course of its own in time, and :mod:`.delay` estimates delays.
"""
