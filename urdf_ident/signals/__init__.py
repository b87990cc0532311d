"""Recordings to segments: repairs that lose no information, and conditioning to continuous motion at a constant rate.

Two choices follow from measurements on real robots. The time stamps of a computer connected to the robot jitter by a third
of a period, but the motion follows the device's uniform clock; using that clock reduced the position noise of a Panda from
200 to 3 µrad (``clock``). Standstill longer than a quarter of a second is cut out everywhere, not only at the ends: static
friction takes any value that balances the other torques, and on a UR10e those rows cost a fifth of the accuracy.
"""
