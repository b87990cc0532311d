"""The `simulation:` section of a project file: which controller, which sensors, which clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ..model.robot import Robot
from ..section import Section
from .controllers import PD, PID, ComputedTorque, Controller, PDGravity
from .sensors import Noise, Sensors

Positive = Annotated[float, Field(gt=0)]
PerJoint = float | list[float]


class NoiseSection(Section):
    """Additive noise: `sigma` in the signal's unit, or `snr` in dB."""

    sigma: PerJoint | None = Field(None, description="standard deviation, in the signal's unit")
    snr: PerJoint | None = Field(None, description="signal-to-noise ratio [dB]")
    correlation: float = Field(0.0, ge=0, lt=1, description="of neighbouring samples; 0 is white")

    def build(self) -> Noise:
        """The noise."""
        return Noise(**self.model_dump())


class SensorSection(Section):
    """What the log shows of the truth; perfect by default."""

    counts: PerJoint | None = Field(None, description="encoder counts per revolution or metre")
    motor_counts: PerJoint | None = Field(None, description="of motors with elastic joints, before the gear; none: as counts")
    position_noise: NoiseSection | None = None
    velocity: Literal["measured", "differentiated", "none"] = "none"
    velocity_noise: NoiseSection | None = None
    torque_noise: NoiseSection | None = None
    ripple: PerJoint = Field(0.0, description="torque ripple [N·m or N]")
    ripple_cycles: PerJoint = Field(1.0, description="ripple periods per revolution or metre")
    torque_step: PerJoint | None = Field(None, description="resolution of the torque [N·m or N]")
    jitter: float = Field(0.0, ge=0, description="standard deviation of the sampling instants [s]")
    clock: Literal["true", "nominal"] = "true"
    delay: float = Field(0.0, ge=0, description="age of positions and velocities [s]")
    torque_delay: float = Field(0.0, ge=0, description="age of torques [s]")

    def build(self) -> Sensors:
        """The sensors."""
        values: dict[str, Any] = self.model_dump()
        for key in ("position_noise", "velocity_noise", "torque_noise"):
            section = getattr(self, key)
            values[key] = None if section is None else section.build()
        return Sensors(**values)


class ControllerSection(Section):
    """What drives the robot; gains follow from the nominal robot and the bandwidth."""

    type: Literal["pd", "pid", "pd_gravity", "computed_torque"] = "pd_gravity"
    bandwidth: Positive = Field(10.0, description="of each axis [Hz]")
    damping: Positive = Field(1.0, description="damping ratio")
    rate: Positive | None = Field(None, description="control instants per second [Hz]; none: continuous")

    def build(self, robot: Robot, rotor: np.ndarray) -> Controller:
        """The controller.

        Args:
            robot: The nominal robot.
            rotor: Nominal rotor inertia after the gear, shape (n,) [kg·m² or kg].

        Returns:
            The controller.
        """
        if self.type == "computed_torque":
            return ComputedTorque(robot, self.bandwidth, self.damping, rotor)
        kinds: Mapping[str, Any] = {"pd": PD, "pid": PID, "pd_gravity": PDGravity}
        controller: Controller = kinds[self.type].tuned(robot, bandwidth=self.bandwidth, damping=self.damping, rotor=rotor)
        return controller


class SimulationSection(Section):
    """How an experiment is simulated."""

    rate: Positive = Field(500.0, description="samples per second of the log [Hz]")
    step: Positive = Field(1e-3, description="longest integration step [s]")
    seed: int = Field(0, ge=0, description="of the sensors' random numbers")
    controller: ControllerSection = Field(ControllerSection(), description="what drives the robot")
    sensors: SensorSection = Field(SensorSection(), description="what the log shows of the truth")
