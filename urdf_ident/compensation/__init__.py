"""Compensation beyond the rigid model (Liu 2023): friction from bidirectional runs, and a residual from two encoders.

If friction and link parameters are estimated from the same data, each absorbs errors of the other. Runs at constant speed
along the same path in both directions separate them: the links' torque is the same both ways, friction is not
(:mod:`.friction_curve`). The remaining torque (hysteresis and losses of a gear under torsion) is not a function of the
joint's motion, but depends on the deformation Δ = θ − q between motor and link. It is learnt from Δ and Δ' alone
(:mod:`.residual`); with positions or accelerations as inputs the network would fit the links' errors on one motion and be
worse on the next. Each of the three is estimated from the residual of the other two, repeatedly until convergence
(:mod:`.three_loop`).

A residual network is purely data-driven: it returns zero outside its training domain.
"""
