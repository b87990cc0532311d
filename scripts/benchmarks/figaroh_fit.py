"""The base fit of FIGAROH on the samples of a file, for speed.py; runs in an environment of its own (``pip install figaroh``).

    python scripts/benchmarks/figaroh_fit.py ROBOT.urdf SAMPLES.npz

Prints its version, how many base parameters it finds, CPU seconds, and the root mean square of what its fit leaves, in a line.
"""

from __future__ import annotations

import sys
import time
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
from figaroh.tools.qrdecomposition import QRDecomposer
from figaroh.tools.regressor import build_regressor_basic, build_regressor_reduced, get_index_eliminate

EXTRAS = ("has_friction", "has_actuator_inertia", "has_joint_offset")


def main() -> None:
    model = pin.buildModelFromUrdf(sys.argv[1])
    samples = np.load(sys.argv[2])
    robot = SimpleNamespace(model=model, data=model.createData())
    config = {"act_idxv": list(range(model.nv)), **dict.fromkeys(EXTRAS, True)}
    names = {f"p{k}": 0.0 for k in range(14 * model.nv)}
    tau = samples["tau"].T.ravel()
    start = time.process_time()
    W = build_regressor_basic(robot, samples["q"], samples["v"], samples["a"], config)
    gone, kept = get_index_eliminate(W, names)
    found = QRDecomposer().double_decomposition(tau, build_regressor_reduced(W, gone), kept)
    seconds = time.process_time() - start
    columns, _, parameters, values = found
    print(version("figaroh"), len(parameters), seconds, float(np.sqrt(np.mean((tau - columns @ values) ** 2))))


if __name__ == "__main__":
    main()
