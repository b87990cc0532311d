"""``friction: auto``: selects the friction laws of each joint, their shape parameters, and the torque that loads them.

On well-excited logs all estimators agree within a few per cent, whereas the friction model changes the error by about thirty
per cent. Most computing time is therefore spent on its selection, with factors that are computed once and then recombined.
"""
