#!/bin/sh
# Records what urdf-ident needs: positions, velocities and efforts, at the rate of the controller manager.
# Check first:  ros2 topic hz /joint_states     (100 Hz or more; `update_rate` of the controller manager sets it)
# Effort must be the MEASURED torque [N*m] or current [A], not the command. Stop with Ctrl-C after the robot stands again.
exec ros2 bag record --storage mcap -o "${1:-excitation}" /joint_states
