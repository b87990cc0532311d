"""Good logs of every kind that is read, and their bytes damaged at random but by seed, for ``fuzz.py``."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import numpy as np

ROWS, JOINTS = 40, ("j1", "j2")
URDF = """<robot name="two"><link name="base"/><link name="l1"/><link name="l2"/>
<joint name="j1" type="revolute"><parent link="base"/><child link="l1"/><axis xyz="0 0 1"/>
  <limit lower="-3" upper="3" velocity="5" effort="50"/></joint>
<joint name="j2" type="revolute"><parent link="l1"/><child link="l2"/><axis xyz="0 1 0"/>
  <limit lower="-3" upper="3" velocity="5" effort="50"/></joint></robot>"""


def columns() -> dict[str, np.ndarray]:
    """A small log: t, q, v, tau of two joints."""
    generator = np.random.default_rng(0)
    values = generator.standard_normal((ROWS, 6)).round(4)
    names = [f"{prefix}_{joint}" for prefix in ("q", "v", "tau") for joint in JOINTS]
    return {"t": np.arange(ROWS) * 0.01, **{name: values[:, k] for k, name in enumerate(names)}}


def _csv(quoted: bool = False) -> bytes:
    data = columns()
    mark = '"' if quoted else ""
    lines = [",".join(f"{mark}{name}{mark}" for name in data)]
    lines += [",".join(f"{mark}{value:g}{mark}" for value in row) for row in zip(*data.values(), strict=True)]
    return "\n".join(lines).encode()


def _bag(folder: Path, kind: str) -> Path:
    from rosbags.rosbag1 import Writer as Writer1
    from rosbags.rosbag2 import StoragePlugin
    from rosbags.rosbag2 import Writer as Writer2
    from rosbags.typesys import Stores, get_typestore

    ros1 = kind == "bag"
    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    types, name = store.types, "sensor_msgs/msg/JointState"
    path = folder / ("run.bag" if ros1 else f"run_{kind}")
    writer: Any = (
        Writer1(path)
        if ros1
        else Writer2(path, version=9, storage_plugin=StoragePlugin.SQLITE3 if kind == "db3" else StoragePlugin.MCAP)
    )
    data = columns()
    with writer:
        connection = writer.add_connection("/joint_states", name, typestore=store)
        for k in range(ROWS):
            stamp = 10**18 + round(data["t"][k] * 1e9)
            time_ = types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
            header = types["std_msgs/msg/Header"](stamp=time_, frame_id="", **({"seq": k} if ros1 else {}))
            parts = [np.array([data[f"{prefix}_{joint}"][k] for joint in JOINTS]) for prefix in ("q", "v", "tau")]
            message = types[name](header, list(JOINTS), *parts)
            raw = store.serialize_ros1(message, name) if ros1 else store.serialize_cdr(message, name)
            writer.write(connection, stamp, raw)
    return path


def _lerobot(root: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = columns()
    (root / "meta/episodes").mkdir(parents=True)
    (root / "data").mkdir()
    part = {"dtype": "float32", "shape": [2], "names": list(JOINTS)}
    info = {
        "codebase_version": "v3.0",
        "data_path": "data/file-{file_index:03d}.parquet",
        "fps": 100,
        "total_episodes": 2,
        "features": {"observation.state": part, "observation.effort": part},
    }
    (root / "meta/info.json").write_text(json.dumps(info))
    pairs = {prefix: np.column_stack([data[f"{prefix}_{joint}"] for joint in JOINTS]).tolist() for prefix in ("q", "tau")}
    lists = {"observation.state": pairs["q"], "observation.effort": pairs["tau"]}
    pq.write_table(pa.table({**lists, "timestamp": data["t"]}), root / "data/file-000.parquet")
    index = {"episode_index": [0, 1], "dataset_from_index": [0, 20], "dataset_to_index": [20, 40]}
    index.update({"data/chunk_index": [0, 0], "data/file_index": [0, 0]})
    pq.write_table(pa.table(index), root / "meta/episodes/file-000.parquet")
    return root


def seeds(folder: Path) -> dict[str, Path]:
    """Writes a good log of every kind: kind → file or folder."""
    import h5py
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as pq
    from scipy.io import savemat

    data = columns()
    matrices = {"t": data["t"], **{p: np.column_stack([data[f"{p}_j1"], data[f"{p}_j2"]]) for p in ("q", "v", "tau")}}
    files = {"csv": "run.csv", "quoted": "quoted.csv", "gz": "run.csv.gz", "xz": "run.csv.xz", "zst": "run.csv.zst"}
    files |= {"parquet": "run.parquet", "arrow": "run.feather", "npz": "run.npz", "npy": "run.npy"}
    files |= {"mat": "run.mat", "mat-packed": "packed.mat", "h5": "run.h5"}
    found = {kind: folder / name for kind, name in files.items()}
    found["csv"].write_bytes(_csv())
    found["quoted"].write_bytes(_csv(quoted=True))
    found["gz"].write_bytes(gzip.compress(_csv()))
    found["xz"].write_bytes(lzma.compress(_csv()))
    with pa.CompressedOutputStream(str(found["zst"]), "zstd") as stream:
        stream.write(_csv())
    pq.write_table(pa.table(data), found["parquet"])
    feather.write_feather(pa.table(data), str(found["arrow"]), compression="lz4")
    np.savez_compressed(found["npz"], **matrices)
    np.save(found["npy"], np.rec.fromarrays(list(data.values()), names=list(data)))
    savemat(found["mat"], matrices)
    savemat(found["mat-packed"], {"run": matrices}, do_compression=True)
    with h5py.File(found["h5"], "w") as file:
        for name, value in matrices.items():
            file.create_dataset(name, data=value, compression="gzip")
    for kind in ("db3", "mcap", "bag"):
        found[kind] = _bag(folder, kind)
    found["lerobot"] = _lerobot(folder / "lerobot")
    return found


def mutated(data: bytes, generator: np.random.Generator) -> bytes:
    """Changes a file's bytes as disks, programs and people do."""
    changed = bytearray(data)
    for _ in range(int(generator.integers(1, 5))):
        size = max(1, len(changed))
        at, length = int(generator.integers(size)), int(2 ** generator.uniform(0, 8))
        way = int(generator.integers(9))
        if way == 0:
            del changed[at:]
        elif way == 1:
            del changed[at : at + length]
        elif way == 2:
            changed[at:at] = changed[at : at + length]
        elif way == 3:
            changed[at : at + length] = bytes(length)
        elif way == 4:
            changed[at : at + length] = b"\xff" * length
        elif way == 5:
            changed[at : at + length] = generator.bytes(length)
        elif way == 6 and at < len(changed):
            changed[at] ^= 1 << int(generator.integers(8))
        elif way == 7:
            changed[at : at + 1] = generator.choice(
                [b",", b"\n", b"nan", b"1e999", b'"', b"-", b"{", b"q_j1", b"\0", b"99999999999"]
            ).item()
        else:
            other = int(generator.integers(size))
            changed[at : at + length], changed[other : other + length] = (
                changed[other : other + length],
                changed[at : at + length],
            )
    return bytes(changed)


def damaged(found: dict[str, Path], folder: Path, generator: np.random.Generator) -> Path:
    """Writes one of the good logs, damaged, into a folder; its path."""
    source = found[str(generator.choice(list(found)))]
    target = folder / source.name
    shutil.rmtree(target, ignore_errors=True) if target.is_dir() else target.unlink(missing_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
        files = sorted(p for p in target.rglob("*") if p.is_file())
        victim = files[int(generator.integers(len(files)))]
        victim.write_bytes(mutated(victim.read_bytes(), generator))
    else:
        target.write_bytes(mutated(source.read_bytes(), generator))
    return target
