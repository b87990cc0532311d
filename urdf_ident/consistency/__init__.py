"""Physically consistent standard parameters from the identified base parameters.

Design rationale. The data determine some combinations of the parameters; physical constraints and a prior determine the
rest, and every number records which (``from_data``, ``posterior_std``). The weight of the prior is the only tuning
parameter: on a real UR10e and a real Panda, with logs of 8 s to minutes, 10 was within a few percent of the best
held-out error, while the smallest error over a few folds was mostly chance. The default is therefore 10, unless
held-out data contradict it by more than two standard errors. Masses have a separate prior, because torques are
hardly sensitive to them. Boxes around the URDF's geometry hardly change held-out errors, but keep centres of mass
inside the robot; they are used where the URDF has geometry for the whole body. Masses of links behind fixed joints are
not enforced by default: URDFs often contain tools that were not mounted.
"""
