"""What no rigid model explains (Liu 2023): friction from runs both ways, and a residual that is read from two encoders.

Friction by regression shares its data with the links, and what one gets wrong the other absorbs. Runs at constant speed,
the same path there and back, separate them: the links' torque is the same both ways, friction is not
(:mod:`.bidirectional`). What is left after friction and links (hysteresis and losses of a gear that winds up) is no
function of the joint's motion, but shows in the deformation Δ = θ − q between motor and link, so it is learnt from Δ and
Δ' alone (:mod:`.residual`): with positions or accelerations as inputs it would learn the links' errors on one motion, and
be worse on the next. Each of the three is measured on what the other two leave over, so they are repeated until nothing
changes (:mod:`.three_loop`).

A residual is data, not physics: it knows where it was taught, and outside of that it is silent.
"""
