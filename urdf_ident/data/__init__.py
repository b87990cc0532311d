"""Logs: reading, judging, repairing, conditioning.

Three steps, kept apart so that each can be tested. ``readers`` bring a log to SI units and model order and change
nothing else; a row that cannot be read stays, as NaN, with its row number. ``quality`` repairs what can be
repaired without loss, lists it, and refuses the rest with the remedy. ``signals`` turns what is left into
continuous motion at a constant rate, and explains each of its choices.

Two choices came from real robots. The stamps of a computer beside the robot jitter by a third of a period, but the motion
itself shows the device's even clock: using it took the noise of a Panda's positions from 200 to 3 µrad (``clock``).
And standstill is cut out wherever it is longer than a quarter of a second, not only at the ends: friction at rest is
whatever balances the rest of the torque, and on a UR10e those rows cost a fifth of the accuracy.
"""
