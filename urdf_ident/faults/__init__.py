"""Diagnosis of logs: tests against the physics of one rigid robot with free parameters.

:mod:`.contradictions` is the entry: what explains the logs is said in :mod:`.words`. What may be wrong is one class
each in :mod:`.kinds`, for large sizes, small ones, or both. Large faults are found by :mod:`.hypotheses`, which compares
interpretations of the samples (:mod:`.trials`) by held-out :mod:`.evidence`. Small ones, and all changes of the robot, are
families of columns in the linear model of the torques (:mod:`.linearized`): :mod:`.score_test` tests them at once against one
:mod:`.null_model` and selects the best, one after the other; where it finds nothing beyond chance and little is left
unexplained, no large fault is tried. All fits are one :mod:`.regression`. What is no family
(docs/architecture.md): :mod:`.against_urdf` compares interpretations with the URDF's bodies, and :mod:`.delay` estimates
delays.

Of what may explain the same torques, one is told, in this order:

1. Another interpretation, unless a fault explains decisively more.
2. Faults and changes that the score test selects. If the first is a log in which the robot is another one, that log is
   examined alone, and the others again without it.
3. What only the URDF's own bodies show: computed efforts, weight, another interpretation, unit.
4. As information, scales and a clock that the logs leave open.
"""
