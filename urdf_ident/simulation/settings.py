"""The `simulation:` section of a project file: controller, sensors and clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from ..errors import ModelError
from ..linalg import Array, one_each
from ..settings import Section

if TYPE_CHECKING:
    from ..model.robot import Robot
    from .controllers import Controller

Positive = Annotated[float, Field(gt=0)]
PerJoint = float | list[float]


Size = Annotated[float, Field(ge=0)]
Sizes = Size | list[Size]
Steps = Positive | list[Positive]


class Noise(Section):
    """Additive noise: `sigma` in the signal's unit, or `snr` in dB."""

    sigma: Sizes | None = Field(None, description="standard deviation, in the signal's unit")
    snr: PerJoint | None = Field(None, description="signal-to-noise ratio [dB]")
    correlation: float = Field(0.0, ge=0, lt=1, description="correlation of neighbouring samples; 0: white noise")

    @model_validator(mode="after")
    def _one_of_both(self) -> Noise:
        if (self.sigma is None) == (self.snr is None):
            raise ValueError("give sigma or snr, not both or none")
        return self


class Sensors(Section):
    """Errors of the sensors; none by default."""

    counts: Steps | None = Field(None, description="encoder counts per revolution or metre")
    motor_counts: Steps | None = Field(
        None, description="counts of the motor encoders of elastic joints, before the gear; default: as counts"
    )
    position_noise: Noise | None = Field(None, description="noise of the encoders [rad or m]")
    velocity: Literal["measured", "differentiated", "none"] = Field("none", description="differentiated: from the encoders")
    velocity_noise: Noise | None = Field(None, description="noise of measured velocities [rad/s or m/s]")
    torque_noise: Noise | None = Field(None, description="noise of the logged torque [N·m or N]")
    ripple: PerJoint = Field(0.0, description="torque ripple [N·m or N]")
    ripple_cycles: PerJoint = Field(1.0, description="ripple periods per revolution or metre")
    torque_step: Steps | None = Field(None, description="resolution of the torque [N·m or N]")
    jitter: float = Field(0.0, ge=0, description="standard deviation of the sampling instants [s]")
    clock: Literal["true", "nominal"] = Field("true", description="nominal: the time stamps do not show the jitter")
    delay: float = Field(0.0, ge=0, description="delay of positions and velocities [s]")
    torque_delay: float = Field(0.0, ge=0, description="delay of torques [s]")


class ControllerSection(Section):
    """The controller; gains follow from the nominal robot and the bandwidth."""

    type: Literal["pd", "pid", "pd_gravity", "computed_torque"] = Field(
        "pd_gravity", description="pd_gravity: PD with the URDF's gravity"
    )
    bandwidth: Positive = Field(10.0, description="bandwidth of each axis [Hz]")
    damping: Positive = Field(1.0, description="damping ratio")
    rate: Positive | None = Field(None, description="control rate [Hz]; default: continuous")
    kp: PerJoint | None = Field(None, description="position gain of each joint [N·m/rad or N/m], instead of the bandwidth")
    kd: PerJoint | None = Field(None, description="velocity gain of each joint [N·m·s/rad or N·s/m], instead of the damping")
    velocity_reference: bool = Field(True, description="false: kd acts on the velocity alone, not on its error")

    @model_validator(mode="after")
    def _gains_together(self) -> ControllerSection:
        if (self.kp is None) != (self.kd is None):
            raise ValueError("give kp and kd, or neither")
        if self.kp is not None and self.type == "computed_torque":
            raise ValueError("computed_torque has a bandwidth and no kp")
        return self

    def build(self, robot: Robot, rotor: np.ndarray) -> Controller:
        """Builds the controller; rotor: nominal rotor inertia after the gear, shape (n,) [kg·m² or kg]."""
        from .controllers import ComputedTorque, Feedback, tuned_gains

        if self.type == "computed_torque":
            return ComputedTorque(robot, self.bandwidth, self.damping, rotor)
        kp, kd = self.gains(robot) or tuned_gains(robot, bandwidth=self.bandwidth, damping=self.damping, rotor=rotor)
        # kp/ki = 0.5 s: an axis is stable where ki < kp kd / inertia = 2ζω kp, which is from a bandwidth of 0.16 Hz / ζ on
        ki, nominal = 2.0 * kp if self.type == "pid" else None, robot if self.type == "pd_gravity" else None
        return Feedback(kp, kd, ki, nominal, self.velocity_reference)

    def gains(self, robot: Robot) -> tuple[Array, Array] | None:
        """Explicit position and velocity gains, shape (n,) each [N·m/rad, N·m·s/rad or N/m, N·s/m]; None if not set."""
        if self.kp is None or self.kd is None:
            return None
        given, place, joints = {"kp": self.kp, "kd": self.kd}, robot.places_in_order, ", ".join(robot.order)
        named = {f"simulation.controller.{key} (of {joints})": gain for key, gain in given.items()}
        kp, kd = (one_each(name, gain, robot.n, ModelError)[place] for name, gain in named.items())
        return kp, kd


class SimulationSection(Section):
    """How an experiment is simulated."""

    rate: Positive = Field(500.0, description="sampling rate of the log [Hz]")
    step: Positive = Field(1e-3, description="longest integration step [s]")
    seed: int = Field(0, ge=0, description="random seed of the sensors")
    log_target: bool = Field(False, description="log the reference too, as position_target_<joint>")
    controller: ControllerSection = Field(ControllerSection(), description="controller of the robot")
    sensors: Sensors = Field(Sensors(), description="sensor errors in the log")
