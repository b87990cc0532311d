"""``friction: auto``: selects the friction laws of each joint, their shape parameters, and the torque that loads them.

On well-excited logs all estimators agree within a few per cent; the structure of the friction model matters by thirty. Most of
the computing time is therefore spent on its selection, with factors that are computed once and then recombined.
"""
