"""Logs: reading, quality checks, repair and conditioning.

The steps are separate, so that each can be tested. ``readers`` convert a log to SI units and model order and change
nothing else; a row that cannot be read is kept as NaN, with its row number. ``quality`` lists and makes the repairs that
lose no information, and refuses other faults with a remedy. ``diagnosis`` tests logs against rigid-body physics.
``conditioning`` turns the rest into continuous motion at a constant rate and reports the reason for each choice.

Two choices follow from measurements on real robots. The time stamps of a computer connected to the robot jitter by a third
of a period, but the motion follows the device's uniform clock; using that clock reduced the position noise of a Panda from
200 to 3 µrad (``clock``). Standstill longer than a quarter of a second is cut out everywhere, not only at the ends: static
friction takes any value that balances the other torques, and on a UR10e those rows cost a fifth of the accuracy.
"""
