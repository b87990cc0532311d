"""Changes of the robot within and between logs: payload, friction, gains, contact, and logs that differ from the others."""
