"""Result of a payload identification: mass, centre of mass and inertia with uncertainty, and controller commands."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..files.documents import json_text, plain
from ..files.read_write import write_text
from ..judgements.judgement import Verdict
from ..linalg import Array
from ..model.inertia import from_com, symmetric
from ..samples import ReadOnly

SCHEMA = "urdf-ident-payload/1"
#: Names of the ten numbers, in this order, and their units.
QUANTITIES = ("mass", "com_x", "com_y", "com_z", "ixx", "ixy", "ixz", "iyy", "iyz", "izz")
UNITS = ("kg", "m", "m", "m", *("kg·m²",) * 6)
#: Density of the sphere that replaces an unknown inertia [kg/m³], between plastics and aluminium.
DENSITY = 2000.0
#: Decimals of metres in controller commands, to suppress rounding errors such as 1e-34.
_DIGITS = 9
#: The six numbers of an inertia in the order of :func:`.symmetric`.
_SYMMETRIC = [0, 1, 3, 2, 4, 5]
_PARTS = {"mass": slice(0, 1), "com": slice(1, 4), "inertia": slice(4, 10)}


@dataclass(frozen=True, eq=False)
class PayloadResult(ReadOnly):
    """An identified payload on a link.

    Attributes:
        link: The link whose frame all values refer to.
        value: Mass, centre of mass, inertia about it along the link's axes (ixx, ixy, ixz, iyy, iyz, izz), shape (10,)
            [kg, m, kg·m²]; of a physically consistent body.
        std_error: Shape (10,); inf where the data do not determine the value.
        interval: 95 % intervals, shape (10, 2).
        verdicts: For each value "identifiable", "weak" or "not identifiable".
        advice: For each value the motion that would determine it, or nothing.
        sources: Standard error of the mass by source: noise, unloaded model, torque constants; contradiction, if the data
            give a negative mass [kg].
        mode: "motion" or "static".
        logs: Names of the loaded logs.
        friction: Change of friction in the loaded logs: parameter → value and standard error.
        sigma: Row group → standard deviation of the residual [unit of torque].
    """

    robot: str
    link: str
    value: Array
    std_error: Array
    interval: Array
    verdicts: tuple[str, ...]
    advice: tuple[str, ...]
    sources: Mapping[str, float]
    method: str
    mode: str
    logs: tuple[str, ...]
    notes: tuple[str, ...] = ()
    friction: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    sigma: Mapping[str, float] = field(default_factory=dict)
    verdict: Verdict = field(default_factory=Verdict)

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self.value[0])

    @property
    def shown(self) -> bool:
        """Whether the data show a payload at all: 0 kg lies outside the interval."""
        return bool(self.interval[0, 0] > 0)

    @property
    def com(self) -> Array:
        """Centre of mass in the link's frame, shape (3,) [m]."""
        return np.array(self.value[1:4])

    @property
    def inertia(self) -> Array:
        """Inertia about the centre of mass, along the link's axes, shape (3, 3) [kg·m²]."""
        return symmetric(self.value[4:][_SYMMETRIC])

    @property
    def exported_inertia(self) -> Array:
        """Inertia about the centre of mass, shape (3, 3) [kg·m²]; undetermined parts are those of a solid sphere of the mass.

        Each entry is the mean of estimate and sphere with inverse-variance weights; the sphere's standard error is its own
        moment of inertia. Simulators and controllers need a value where the data give none, and zero is the worst guess.
        """
        if not self.mass > 0:
            return self.inertia
        sphere = 0.4 * self.mass * (self.mass / (4 / 3 * np.pi * DENSITY)) ** (2 / 3)
        usual = sphere * np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
        trust = sphere**2 / (sphere**2 + self.std_error[4:] ** 2)  # 0 where the standard error is infinite
        mixed = symmetric((trust * self.value[4:] + (1 - trust) * usual)[_SYMMETRIC])
        moments = np.linalg.eigvalsh(mixed)
        return mixed if (moments[0] > 0 and moments[0] + moments[1] > moments[2]) else self.inertia

    @property
    def theta(self) -> Array:
        """Exported parameters, about the origin of the link's frame, shape (10,) [kg, kg·m, kg·m²]."""
        return from_com(self.mass, self.com, self.exported_inertia)

    @property
    def assumed(self) -> str:
        """Exported values that were not identified, in words; empty if the data determine all or none of the payload."""
        unknown = [name for name, verdict in zip(QUANTITIES, self.verdicts, strict=True) if verdict == "not identifiable"]
        if not (unknown and self.shown):
            return ""
        held = {"com": "the centre of mass as listed", "i": f"the inertia of a solid sphere of {DENSITY:g} kg/m³"}
        instead = [words for start, words in held.items() if any(name.startswith(start) for name in unknown)]
        return f"not identified: {', '.join(unknown)}; URDF, MJCF and set_payload hold {' and '.join(instead)}"

    def as_dict(self) -> dict[str, Any]:
        """The content of payload.json."""
        out: dict[str, Any] = {
            "schema": SCHEMA,
            "verdict": self.verdict.as_dict(),
            "robot": self.robot,
            "link": self.link,
            "mode": self.mode,
            "method": self.method,
            "logs": list(self.logs),
        }
        for name, rows in _PARTS.items():
            low, high = self.interval[rows].T
            entry: dict[str, Any] = {"value": self.value[rows], "std_error": self.std_error[rows], "low": low, "high": high}
            entry["verdict"], entry["advice"] = list(self.verdicts[rows]), list(self.advice[rows])
            if name == "mass":
                entry = {key: values[0] for key, values in entry.items()}
            out[name] = {**entry, "unit": UNITS[rows.start]}
            if name == "inertia":
                ixx, ixy, ixz, _, iyy, iyz, _, _, izz = self.exported_inertia.ravel()
                out[name].update(order=list(QUANTITIES[rows]), about="centre of mass, along the link's axes")
                out[name].update(exported=[ixx, ixy, ixz, iyy, iyz, izz], assumed=self.assumed)
        out["mass"]["error_from"] = dict(self.sources)
        out["friction"] = {name: {"change": v, "std_error": e} for name, (v, e) in self.friction.items()}
        out["residual"] = dict(self.sigma)
        out["set_payload"] = _controller_lines(self)
        out["notes"] = list(self.notes)
        return dict(plain(out))

    def save(self, path: str | Path) -> Path:
        """Writes payload.json.

        Raises:
            OutputError: It cannot be written.
        """
        return write_text(path, json_text(self.as_dict()) + "\n")

    def summary(self) -> str:
        """The payload on one screen, with the commands that tell it to controllers."""
        head = f"payload on {self.link}, {self.mode} ({', '.join(self.logs)}): {self.verdict.level}"
        lines = [head, f"  {self.method}"]
        lines += [f"  {reason}" for reason in self.verdict.judgements]
        names = ("mass", "centre x", "centre y", "centre z", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
        for k, name in enumerate(names):
            low, high = self.interval[k]
            known = np.isfinite(self.std_error[k])
            value = f"{self.value[k]:>11.5g} ± {self.std_error[k]:<9.2g}" if known else f"{'not known':>11}   {'':<9}"
            known = "" if self.verdicts[k] == "identifiable" else f"  {self.verdicts[k]}"
            lines.append(f"  {name:<9}{value} {UNITS[k]:<6} [{low:.5g}, {high:.5g}]{known}")
        sources = ", ".join(f"{name} {value:.2g}" for name, value in self.sources.items())
        lines.append(f"  error of the mass from: {sources} kg; inertia about the centre of mass, axes of {self.link}")
        lines += [f"  {self.assumed}"] if self.assumed else []
        lines += [f"  to see more: {text}" for text in dict.fromkeys(text for text in self.advice if text)]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join([*lines, *(f"  {name}: {line}" for name, line in _controller_lines(self).items())])


def _controller_lines(body: PayloadResult) -> dict[str, str]:
    """Returns the payload commands of common controllers, with the centre of mass in the frame of the link."""
    if not body.shown:
        return {}
    from scipy.spatial.transform import Rotation

    m, (x, y, z) = body.mass, body.com.round(_DIGITS) + 0.0
    xx, xy, xz, _, yy, yz, _, _, zz = body.exported_inertia.ravel()
    column = [xx, xy, xz, xy, yy, yz, xz, yz, zz]  # column-major; the matrix is symmetric
    (px, py, pz), axes = np.linalg.eigh(body.exported_inertia)
    axes[:, 2] *= np.linalg.det(axes)  # a rotation, not a reflection
    turn = Rotation.from_matrix(axes)
    i, j, k, w = turn.as_quat()
    with warnings.catch_warnings():  # gimbal lock: at b = ± 90° only a sum of a and c is defined
        warnings.simplefilter("ignore", UserWarning)
        a, b, c = turn.as_euler("ZYX", degrees=True)
    return {
        "universal_robots": f"set_target_payload({m:.6g}, [{x:.6g}, {y:.6g}, {z:.6g}], "
        f"[{xx:.6g}, {yy:.6g}, {zz:.6g}, {xy:.6g}, {xz:.6g}, {yz:.6g}])",
        "universal_robots_old": f"set_payload({m:.6g}, [{x:.6g}, {y:.6g}, {z:.6g}])",
        "franka": f"robot.setLoad({m:.6g}, {{{x:.6g}, {y:.6g}, {z:.6g}}}, {{{', '.join(f'{v:.6g}' for v in column)}}});",
        "kuka": f"LOAD_DATA[1]={{M {m:.6g},CM {{X {1e3 * x:.6g},Y {1e3 * y:.6g},Z {1e3 * z:.6g},"
        f"A {a:.6g},B {b:.6g},C {c:.6g}}},J {{X {px:.6g},Y {py:.6g},Z {pz:.6g}}}}}",
        "abb": f"PERS loaddata load1 := [{m:.6g}, [{1e3 * x:.6g}, {1e3 * y:.6g}, {1e3 * z:.6g}], "
        f"[{w:.6g}, {i:.6g}, {j:.6g}, {k:.6g}], {px:.6g}, {py:.6g}, {pz:.6g}];",
    }
