"""``friction: auto``: which friction laws each joint needs, the shapes of those laws, and the torque that loads them.

On well-excited logs all estimators are within a few per cent of each other; the structure of friction is worth thirty. So the
search spends its time here, on factors that are made once and then only re-combined.
"""
