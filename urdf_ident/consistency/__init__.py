"""From what the data say to a physically consistent robot.

Why it is as it is. Data fix some combinations of the parameters; physics and a prior decide the rest, and that they
did is written beside every number (``from_data``, ``posterior_std``). The weight of the prior is the only number
that somebody would have to tune: on a real UR10e and a real Panda, with logs of 8 s to minutes, 10 was within a few
percent of the best held-out error, while the smallest error over a few folds was mostly chance. So 10 it is, unless
held-out data speak against it by more than two standard errors. Masses have a prior of their own, because torques
hardly see them. Boxes around the URDF's geometry hardly change held-out errors, but keep centres of mass inside the
robot; they are on where the URDF draws all of a body. Weights of links behind fixed joints are not held by default:
URDFs carry tools that the robot did not wear.
"""
