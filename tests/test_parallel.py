"""Work on logs in processes and on a cluster: the same numbers, in the same order, whoever did it."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from conftest import arm_urdf
from logs import make_log

import urdf_ident
from urdf_ident import parallel
from urdf_ident.errors import MissingFileError, SchedulerError
from urdf_ident.logs.read import read_readable
from urdf_ident.model.robot import Robot


@contextmanager
def cluster(folder: Path, **options: object) -> Iterator[tuple[str, list[int]]]:
    """Address of the scheduler of two workers on this machine, and their process ids."""
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    given = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "local_directory": str(folder / "dask")}
    with distributed.LocalCluster(**given | options) as local:
        yield local.scheduler_address, [worker.process.pid for worker in local.workers.values() if hasattr(worker, "process")]


def square(x: float) -> tuple[float, int]:
    return x * x, os.getpid()


def slowly(folder: str, k: int) -> np.ndarray:
    Path(folder, f"{k}-{os.getpid()}").touch()
    time.sleep(0.05)
    return np.random.default_rng(k).normal(size=4)


def kills_its_process(folder: str, k: int) -> int:
    """Once only."""
    mark = Path(folder, "killed")
    if k == 5 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return k


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_urdf(arm_urdf("zyy"))


def test_results_come_in_order_with_every_count() -> None:
    counts: list[int] = []
    with parallel.workers(2):
        together = parallel.each(square, range(20), counts.append)
    assert [value for value, _ in together] == [value for value, _ in parallel.each(square, range(20))]
    assert os.getpid() not in {pid for _, pid in together}
    assert counts == list(range(1, 21))


def test_a_process_that_is_ended_from_outside_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SchedulerError, match=r"ended from outside.*--jobs") as caught, parallel.workers(2):
        parallel.each(partial(kills_its_process, str(tmp_path)), range(8))
    assert "\n" not in str(caught.value)
    with parallel.workers(2):  # others are started for the next work
        assert [value for value, _ in parallel.each(square, range(4))] == [0, 1, 4, 9]


def test_a_log_that_workers_lack_is_read_here(tmp_path: Path, robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(4):
        make_log(tmp_path / f"run{seed}.csv", robot, seed=seed, seconds=3.0)
    with parallel.workers(2):
        parallel.each(square, range(4))  # the processes were started in another folder
        monkeypatch.chdir(tmp_path)
        recordings = read_readable([f"run{seed}.csv" for seed in range(4)], robot, skip=False)[0]
        with pytest.raises(MissingFileError, match="run4"):
            read_readable(["run0.csv", "run4.csv"], robot, skip=False)[0]
    assert [log.name for log in recordings] == ["run0", "run1", "run2", "run3"]


def test_a_full_disk_is_one_line() -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with parallel.workers(2):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            with pytest.raises(SchedulerError, match=r"cannot be passed.*File too large.*JOBLIB_TEMP_FOLDER") as caught:
                parallel.each(np.sum, [np.ones(100_000)] * 4)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(caught.value)


WITH_LITTLE_MEMORY = """
import resource, sys
import numpy, scipy.linalg
from urdf_ident import parallel
size = 1024 * int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1])
resource.setrlimit(resource.RLIMIT_AS, (size + (int(sys.argv[1]) << 20),) * 2)
columns = numpy.full((64, 64), 3.0)
try:
    with parallel.one_thread():
        print(float((columns.T @ columns)[0, 0]))
except MemoryError as error:
    print("MemoryError", error)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.parametrize(("megabytes", "said"), [(20, "MemoryError Unable to allocate"), (500, "576.0")])
def test_missing_memory_for_linear_algebra_is_an_error_and_no_endless_wait(megabytes: int, said: str) -> None:
    command = [sys.executable, "-c", WITH_LITTLE_MEMORY, str(megabytes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert re.search(said, done.stdout), done


def test_a_killed_worker_of_a_cluster_loses_nothing(tmp_path: Path) -> None:
    with cluster(tmp_path) as (address, _), parallel.workers(scheduler=address):
        assert parallel.each(partial(kills_its_process, str(tmp_path)), range(12)) == list(range(12))
        assert (tmp_path / "killed").exists()
        results = parallel.each(partial(slowly, str(tmp_path)), range(12))
    assert all(np.array_equal(x, np.random.default_rng(k).normal(size=4)) for k, x in enumerate(results))


def test_a_cluster_whose_workers_all_end_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_ALONE", 1.0)
    monkeypatch.setattr(parallel, "_LOOK", 0.2)
    with cluster(tmp_path, processes=False) as (address, _), parallel.workers(scheduler=address):
        distributed = pytest.importorskip("distributed")
        with distributed.Client(address, set_as_default=False) as other:
            Thread(target=lambda: (time.sleep(0.5), other.retire_workers(list(other.nthreads())))).start()
            with pytest.raises(SchedulerError, match=r"no workers that can work any more.*none for"):
                parallel.each(partial(slowly, str(tmp_path)), range(200))


def test_a_cluster_that_loses_its_scheduler_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    program = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--host", "127.0.0.1", "--port", "0"]
    program += ["--scheduler-file", str(tmp_path / "scheduler.json")]
    scheduler = subprocess.Popen(program, stderr=subprocess.DEVNULL)
    file = ["--scheduler-file", str(tmp_path / "scheduler.json"), "--no-dashboard", "--no-nanny"]
    worker = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", *file], stderr=subprocess.DEVNULL)
    try:
        address = connected(tmp_path / "scheduler.json")
        with parallel.workers(scheduler=address):
            Thread(target=lambda: (time.sleep(0.5), scheduler.kill())).start()
            with pytest.raises(SchedulerError, match=r"was lost|gave up") as caught:
                parallel.each(time.sleep, [0.05] * 200)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert "\n" not in str(caught.value)


def connected(path: Path) -> str:
    """Address of a scheduler that has a worker."""
    for _ in range(300):
        with suppress(OSError, ValueError):
            address = str(json.loads(path.read_text())["address"])
            with parallel.workers(scheduler=address):
                return address
        time.sleep(0.1)
    raise TimeoutError


@pytest.mark.parametrize("answer", [b"HTTP/1.0 400 Bad request\r\n\r\n", None])
def test_another_program_in_place_of_a_scheduler_is_one_line(answer: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    monkeypatch.setattr(parallel, "_PATIENCE", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            held = []
            with suppress(OSError):  # closed at the end
                while True:
                    held.append(server.accept()[0])
                    if answer is not None:
                        held[-1].sendall(answer)

        Thread(target=serve, daemon=True).start()
        where = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(SchedulerError, match=f"{where}: the scheduler does not answer"), parallel.workers(scheduler=where):
            pass
        server.shutdown(socket.SHUT_RDWR)


def test_a_worker_of_another_version_is_refused(tmp_path: Path) -> None:
    """It has the same package with one line more."""
    shutil.copytree(Path(urdf_ident.__file__).parent, tmp_path / "urdf_ident", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "urdf_ident" / "units.py").open("a") as file:
        file.write("# another version\n")
    with cluster(tmp_path, n_workers=0) as (address, _):
        program = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard", "--no-nanny"]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        other = subprocess.Popen(program, env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL)
        try:
            for _ in range(300):
                with pytest.raises(SchedulerError) as caught, parallel.workers(scheduler=address):
                    pass
                if "no workers" not in str(caught.value):
                    break
                time.sleep(0.1)
        finally:
            other.kill()
            other.wait()
    assert re.search(
        r"another version of urdf-ident.*got source .*expected source .*install the same version", str(caught.value)
    )
