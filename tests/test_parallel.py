"""Work on logs in processes and on a cluster: the same numbers, in the same order, whoever did it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread, Timer
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from conftest import arm_urdf
from logs import make_log

from urdf_ident import parallel
from urdf_ident.errors import LogError, MissingFileError, SchedulerError
from urdf_ident.logs.read import read_recordings
from urdf_ident.logs.recording import Recording
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.drive import Drive
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.model.trained import with_trained
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.parallel import cluster, messages
from urdf_ident.parallel.pool import LostError, WorkerPool
from urdf_ident.parallel.scratch import samples_in
from urdf_ident.pipeline import examine
from urdf_ident.pipeline.estimate import EarlyStatistics
from urdf_ident.pipeline.examine import check_physics
from urdf_ident.project import Project
from urdf_ident.provenance import computing
from urdf_ident.signals import prepare
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_logs
from urdf_ident.statistics import accumulate
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.row_cache import RowCache


def square(x: float) -> tuple[float, int]:
    return x * x, os.getpid()


def fails(x: int) -> int:
    if x == 3:
        raise LogError("a bad log", where=f"run{x}", remedy="leave it out")
    return x


def slowly(folder: str, k: int) -> np.ndarray:
    Path(folder, f"{k}-{os.getpid()}").touch()
    time.sleep(0.05)
    return np.random.default_rng(k).normal(size=4)


def logs(robot: Robot, count: int) -> list[Recording]:
    found = []
    for k in range(count):
        motion = random_fourier(Limits.from_robot(robot), 6.0, 4, seed=k, fill=0.7)
        t = np.arange(600) / 100.0
        q, v, a = motion.evaluate(t)
        tau = a + 0.3 * v + 0.1 * np.random.default_rng(k).normal(size=v.shape)
        found.append(Recording(f"run{k}", robot.joints, t, q, effort=tau, effort_unit="N·m"))
    return found


def test_processes_return_what_one_returns_in_the_same_order() -> None:
    alone = parallel.each(square, range(20))
    with parallel.workers(2):
        together = parallel.each(square, range(20))
    assert [value for value, _ in together] == [value for value, _ in alone]
    assert os.getpid() not in {pid for _, pid in together}


def test_work_that_was_begun_is_waited_for_later_and_in_any_order() -> None:
    first, second = parallel.start_each(square, range(20)), parallel.start_each(square, range(20, 30))
    assert [value for value, _ in second()] == [x * x for x in range(20, 30)]
    assert [value for value, _ in first()] == [x * x for x in range(20)]
    with parallel.workers(2):
        first, second = parallel.start_each(square, range(20)), parallel.start_each(square, range(20, 30))
        found = [*second(), *parallel.each(square, range(30, 40)), *first()]
    assert [value for value, _ in found] == [x * x for x in [*range(20, 40), *range(20)]]
    assert os.getpid() not in {pid for _, pid in found}


def test_the_motions_that_checks_examine_are_conditioned_by_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a cut-off of the user's own, the checks need another conditioning of all logs."""
    robot, config, asked = Robot.from_urdf(arm_urdf()), SignalConfig(cutoff=8.0), []
    prepared = prepare_logs(logs(robot, 2), robot, Drive.build(robot.n), config)
    together = prepare.each_usable
    monkeypatch.setattr(prepare, "each_usable", lambda function, items: asked.append(len(items)) or together(function, items))
    monkeypatch.setattr(examine, "physics_findings", lambda robot, motions, *others: [()] * len(motions))
    checked = check_physics(prepared, robot, config)
    assert asked == [2]
    assert [log.conditioned.cutoff for log in checked] == [8.0, 8.0]
    assert all(log.automatic is not None and log.automatic.cutoff != 8.0 for log in checked)


def test_what_the_low_pass_leaves_of_each_log_is_judged_by_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = Robot.from_urdf(arm_urdf())
    recordings = logs(robot, 2)
    recordings[0] = replace(recordings[0], position=np.round(recordings[0].position, 2))
    alone = prepare_logs(recordings, robot, Drive.build(robot.n), SignalConfig(cutoff=20.0))
    assert "position-quantised" in {finding.id for finding in alone[0].report.findings}
    with parallel.workers(2):
        parallel.each(abs, range(4))  # starts the workers, which inherit the modules as they are
        monkeypatch.setattr(prepare, "step_findings", None)  # must not be called in this process
        shared = prepare_logs(recordings, robot, Drive.build(robot.n), SignalConfig(cutoff=20.0))
    assert [log.report.findings for log in shared] == [log.report.findings for log in alone]


def size(log: Recording) -> tuple[float, Recording]:
    return float(log.position.sum()), log


def held(_: int) -> int:
    return sum(isinstance(thing, Recording) for thing in messages._SharedObjects.get().held.values())


def lose(_: int) -> None:
    messages._SharedObjects.get().held.clear()


def test_a_log_is_sent_to_a_worker_once_and_again_only_where_it_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    recordings = logs(Robot.from_urdf(robot_path("zollo_2r")), 8)
    expected, sent = [size(log)[0] for log in recordings], [0]
    message = messages.Task.message

    def counted(task: messages.Task, known: set[str]) -> tuple[str, list[str], messages.Parcel]:
        made = message(task, known)
        head, _, arrays = made[2]
        sent[0] += len(head) + arrays.nbytes
        return made

    def result() -> int:
        sent[0] = 0
        found = parallel.each(size, recordings)
        assert [value for value, _ in found] == expected
        assert all(ours is theirs for (_, ours), theirs in zip(found, recordings, strict=True))  # nor do they come back
        return sent[0]

    monkeypatch.setattr(messages.Task, "message", counted)
    with parallel.workers(2):
        whole = result()
        assert whole > 8 * 600 * 5 * 8
        assert result() < 0.05 * whole
        parallel.each(lose, range(2))  # as a worker that was started anew
        assert result() > whole
        assert result() < 0.05 * whole
        assert parallel.each(held, range(2)) == [4, 4]
        del recordings[2:]
        assert sum(parallel.each(held, range(2))) == 2  # what nobody needs is let go of


def test_an_error_of_a_worker_is_that_of_the_log() -> None:
    with parallel.workers(2), pytest.raises(LogError, match=r"run3.*a bad log.*leave it out"):
        parallel.each(fails, range(6))


def ends_itself(x: int) -> int:
    if x == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return len(parallel.each(abs, [x, -x, x]))


def test_a_process_that_is_ended_from_outside_is_one_line() -> None:
    with pytest.raises(SchedulerError, match=r"ended from outside.*--jobs"), parallel.workers(2):
        parallel.each(ends_itself, range(4))


WITH_LITTLE_MEMORY = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import numpy, scipy.linalg
from test_parallel import cross_products
from urdf_ident import parallel
from urdf_ident.signals import prepare
size = 1024 * int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1])
resource.setrlimit(resource.RLIMIT_AS, (size + (int(sys.argv[2]) << 20),) * 2)
try:
    with parallel.workers(2):
        print(parallel.each(cross_products, [1.0, 2.0]))
    with parallel.one_thread():
        print(cross_products(3.0))
except MemoryError as error:
    print("MemoryError", error)
"""


def cross_products(x: float) -> float:
    columns = np.full((64, 64), x)
    return float((columns.T @ columns)[0, 0])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.parametrize(("megabytes", "said"), [(20, "MemoryError Unable to allocate"), (500, r"\[64.0, 256.0\]\n576.0")])
def test_missing_memory_for_linear_algebra_is_an_error_and_no_endless_wait(megabytes: int, said: str) -> None:
    command = [sys.executable, "-c", WITH_LITTLE_MEMORY, str(Path(__file__).parent), str(megabytes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert re.search(said, done.stdout), done


def test_work_inside_a_process_is_done_there() -> None:
    with parallel.workers(2):
        assert parallel.each(ends_itself, [2, 3]) == [3, 3]


def test_logs_prepared_in_processes_are_bitwise_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = Robot.from_urdf(robot_path("zollo_2r"))
    recordings, drive = logs(robot, 3), Drive(np.eye(robot.n), np.ones(robot.n), np.zeros(robot.n))
    alone = prepare_logs(recordings, robot, drive, SignalConfig(), force=True)
    with samples_in(tmp_path), parallel.workers(2):
        together = prepare_logs(recordings, robot, drive, SignalConfig(), force=True)
        sent, whole = (len(pickle.dumps([log.conditioned for log in some])) for some in (together, alone))
        assert sent < 0.2 * whole  # places in files, not numbers
        model = DynamicModel(robot, friction=["viscous", "coulomb"])
        most = 25_000  # rows of one log are kept, those of all are not
        built = build_statistics(model, together, kept=RowCache(most))
    monkeypatch.setattr("urdf_ident.statistics.accumulate.start_each", None)  # alone nothing is sent
    expected = build_statistics(model, alone, kept=RowCache(most))
    assert len(built.entries) == len(expected.entries) > 0
    for entry, other in zip(built.entries, expected.entries, strict=True):
        assert (entry.log, entry.block, entry.group, entry.rows) == (other.log, other.block, other.group, other.rows)
        assert np.array_equal(entry.R, other.R)
    assert not any(tmp_path.iterdir())
    for ours, theirs in zip(together, alone, strict=True):
        assert ours.name == theirs.name
        assert ours.report.findings == theirs.report.findings
        for x, y in zip(ours.segments, theirs.segments, strict=True):
            for signal_ in ("q", "v", "a", "tau"):
                assert np.array_equal(getattr(x, signal_), getattr(y, signal_))


def test_a_statistic_that_was_begun_is_that_which_is_asked_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = Robot.from_urdf(robot_path("zollo_2r"))
    drive = Drive(np.eye(robot.n), np.ones(robot.n), np.zeros(robot.n))
    prepared = prepare_logs(logs(robot, 4), robot, drive, SignalConfig(), force=True)
    model = DynamicModel(robot, friction=["viscous", "coulomb"])
    motion = [part for log in prepared for part in log.segments]
    expected = build_statistics(with_trained(model, motion), prepared)
    started, count = accumulate.start_each, [0]

    def counted(*given: object) -> Callable[[], list]:
        count[0] += 1
        return started(*given)

    monkeypatch.setattr(accumulate, "start_each", counted)
    with parallel.workers(2):
        start = EarlyStatistics(Project())
        start(model, prepared[:3])
        assert start.rows_of([part for log in prepared[:3] for part in log.segments]).started is not None
        start(model, prepared)  # other logs
        kept = start.rows_of(motion)
        assert count == [2]
        found = build_statistics(with_trained(model, motion), prepared, kept=kept)
        assert count == [2]
        assert kept.started is None
        again = build_statistics(DynamicModel(robot, friction=["viscous"]), prepared, kept=start.rows_of(motion))
        assert count == [3]
    assert again.p < found.p
    for entry, other in zip(found.entries, expected.entries, strict=True):
        assert (entry.log, entry.block, entry.group, entry.rows) == (other.log, other.block, other.group, other.rows)
        assert np.array_equal(entry.R, other.R)


def test_trained_speeds_of_the_same_logs_are_determined_once() -> None:
    robot = Robot.from_urdf(robot_path("zollo_2r"))
    drive = Drive(np.eye(robot.n), np.ones(robot.n), np.zeros(robot.n))
    prepared = prepare_logs(logs(robot, 3), robot, drive, SignalConfig(), force=True)
    model = DynamicModel(robot, friction=["viscous", "coulomb"])
    motion, fewer = ([part for log in some for part in log.segments] for some in (prepared, prepared[:1]))
    start = EarlyStatistics(Project())
    start.rows_of(motion)
    found = start.trained(model)
    assert start.first(model) is found
    assert found.fingerprint == with_trained(model, motion).fingerprint
    assert start.trained(model, chosen=True).fingerprint == with_trained(model, motion, chosen=True).fingerprint
    start.rows_of(fewer)
    assert start.trained(model).fingerprint == with_trained(model, fewer).fingerprint != found.fingerprint


def test_samples_in_a_scratch_folder_are_not_for_a_cluster(tmp_path: Path) -> None:
    with (
        samples_in(tmp_path),
        pytest.raises(SchedulerError, match="leave out --scratch"),
        parallel.workers(scheduler="tcp://a:1"),
    ):
        pass


def test_a_scheduler_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with pytest.raises(SchedulerError, match="does not answer") as caught, parallel.workers(scheduler="tcp://127.0.0.1:9"):
        pass
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("answer", [b"HTTP/1.0 400 Bad request\r\n\r\n", None])
def test_another_program_in_place_of_a_scheduler_is_one_line(answer: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    monkeypatch.setattr(cluster, "_PATIENCE", 0.3)
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


def test_workers_of_another_version_are_refused_by_name() -> None:
    class Client:
        other: ClassVar[dict[str, str]] = {}

        def run(self, _function, **_options):
            return {"tcp://a:1": computing(), "tcp://b:2": {**computing(), **self.other}}

    cluster._check_workers(Client(), "tcp://s:0")
    for name in ("urdf-ident", "numpy", "source"):
        Client.other = {name: "0.0.1"}
        with pytest.raises(SchedulerError, match=rf"tcp://b:2.*{name} 0\.0\.1.*{computing()[name]}"):
            cluster._check_workers(Client(), "tcp://s:0")
    with pytest.raises(SchedulerError, match="numpy missing"):  # a worker that came later
        cluster._work_there({name: version for name, version in computing().items() if name != "numpy"})


@pytest.mark.parametrize("error", [ModuleNotFoundError("No module 'urdf_ident'"), Exception("AttributeError('computing')")])
def test_a_worker_without_the_package_or_with_one_that_does_not_know_the_question_is_one_line(error: Exception) -> None:
    class Client:
        def run(self, _function, **_options):
            raise error

    with pytest.raises(SchedulerError, match=r"lacks this version.*(No module|computing)"):
        cluster._check_workers(Client(), "tcp://s:0")


def test_a_lost_worker_leaves_the_logs_of_others_where_they_are() -> None:
    alive, joined = ["b", "c"], list[str]()
    places = cluster._Places(lambda: alive, joined=joined.append)
    assert places() == ["b", "c"]
    alive[:] = ["c"]
    assert places() == [None, "c"]
    alive[:] = ["c", "d"]
    places.check()
    assert joined == ["b", "c", "d"]  # the replacement is told to import before the next call gives it work
    assert places() == ["d", "c"]
    alive[:] = ["a", "c", "d"]
    assert places() == ["d", "c", "a"]
    alive.clear()
    assert places() == [None, None, None]
    assert cluster._Places(list)() == [None]


def noted(path: str, k: int) -> None:
    time.sleep(0.02)
    with open(path, "a") as file:
        file.write(f"{k}\n")


@pytest.mark.parametrize("where", ["processes", "cluster"])
def test_what_is_waited_for_comes_before_what_was_begun(where: str, tmp_path: Path) -> None:
    path, stack = tmp_path / "order", ExitStack()
    work, given = partial(noted, str(path)), {"jobs": 2}
    with stack:
        if where == "cluster":
            distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
            options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "local_directory": str(tmp_path)}
            given = {"scheduler": stack.enter_context(distributed.LocalCluster(**options)).scheduler_address}
        with parallel.workers(**given):
            parallel.each(square, range(2))
            waiting = parallel.start_each(work, range(32))
            parallel.each(work, range(100, 104))
            before = len(path.read_text().split())
            waiting()
    assert 4 <= before < 32
    assert sorted(map(int, path.read_text().split())) == [*range(32), *range(100, 104)]


class At:
    """Stands for what a worker is going to answer."""

    def __init__(self, crowd: Crowd, place: str | None, message: tuple) -> None:
        self.crowd, self.place, self.message, self.here = crowd, place, message, False

    def arrived(self) -> bool:
        return self.here

    def cancel(self) -> None:
        self.crowd.seen.append(("cancelled", self.place))

    def result(self) -> tuple[str, messages.Parcel | list[str]]:
        self.crowd.seen.append(("waited", self.place))
        if not self.here and self.crowd.news:
            self.crowd.news = False
            raise LostError
        assert self.here or self.place in self.crowd.alive
        return "it", messages.work("client", *self.message[1:])[1]


class Crowd:
    """Workers of which some are lost; ``news`` until that has been noticed."""

    def __init__(self) -> None:
        self.alive, self.news, self.seen, self.sent = {"a", "b", None}, False, [], []  # type: set, bool, list, list[At]
        self.turns: list[int] = []  # of the messages, in the order in which they were sent
        self.pool = WorkerPool(self.submit, lambda: [place if place in self.alive else None for place in ("a", "b")])

    def submit(self, place: str | None, turn: int, *message: object) -> At:
        self.seen.append(("sent", place))
        self.turns.append(turn)
        self.sent.append(At(self, place, message))
        return self.sent[-1]

    def lose(self, place: str) -> None:
        self.alive.remove(place)
        self.news = True


def test_all_that_a_lost_worker_had_not_finished_is_divided_among_the_others_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what is awaited later, and also while the answer of another worker is awaited."""
    monkeypatch.setattr(messages, "_SHARED_OBJECTS", None)
    crowd = Crowd()
    begun = crowd.pool(abs, range(-8, 0), later=True)
    waiting = crowd.pool(abs, range(-16, 0), later=False)
    crowd.sent[6].here = True  # begun, of worker b
    crowd.lose("b")
    del crowd.seen[:]
    assert waiting() == [abs(k) for k in range(-16, 0)]
    again = [what for place in ("a", None, "a", None, "a") for what in (("cancelled", "b"), ("sent", place))]
    assert crowd.seen == [("waited", "a"), *again, *[("waited", "a")] * 3, ("waited", None)]
    del crowd.seen[:]
    assert begun() == [abs(k) for k in range(-8, 0)]
    assert crowd.seen == [*[("waited", "a")] * 5, ("waited", None), ("waited", "b"), ("waited", "a")]


def test_what_was_lost_of_background_work_comes_before_later_background_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_SHARED_OBJECTS", None)
    crowd = Crowd()
    begun = [crowd.pool(abs, range(-8, 0), later=True) for _ in range(2)]
    crowd.lose("b")
    del crowd.turns[:]
    waiting = crowd.pool(abs, [-1, -2], later=False)
    first, second, urgent = [crowd.turns[k : k + 4] for k in range(0, 12, 4)]
    assert len(set(first)) == len(set(second)) == 1
    assert set(urgent) == {0}
    assert 0 < first[0] < second[0]
    assert waiting() == [1, 2]
    assert [wait() for wait in begun] == [[abs(k) for k in range(-8, 0)]] * 2


def test_a_part_with_which_every_worker_is_lost_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_SHARED_OBJECTS", None)
    crowd = Crowd()
    waiting = crowd.pool(abs, [-1, -2], later=False)
    with pytest.raises(SchedulerError, match=r"was lost.*4 workers"):  # noqa: PT012
        for _ in range(4):
            crowd.lose("a")
            crowd.pool(abs, [-1, -2], later=False)
            crowd.alive.add("a")
            crowd.pool(abs, [-1, -2], later=False)
    del waiting


def test_a_loss_is_noticed_when_new_work_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_SHARED_OBJECTS", None)
    crowd = Crowd()
    begun = crowd.pool(abs, range(-8, 0), later=True)
    crowd.alive.remove("a")
    del crowd.seen[:]
    assert crowd.pool(abs, [-1, -2], later=False)() == [1, 2]
    assert crowd.seen == [
        *[("cancelled", "a"), ("sent", None), ("cancelled", "a"), ("sent", "b")] * 2,
        ("sent", None),
        ("sent", "b"),
        ("waited", None),
        ("waited", "b"),
    ]
    assert begun() == [abs(k) for k in range(-8, 0)]


def test_a_lost_worker_repeats_only_its_own(tmp_path: Path) -> None:
    """Two worker processes, one of them killed in the middle."""
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    work = partial(slowly, str(tmp_path))
    expected = [np.random.default_rng(k).normal(size=4) for k in range(40)]
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "local_directory": str(tmp_path / "dask")}
    with distributed.LocalCluster(**options) as local, parallel.workers(scheduler=local.scheduler_address):
        victim = next(iter(local.workers.values())).process.pid
        timer = Timer(0.5, lambda: os.kill(victim, signal.SIGKILL))
        timer.start()
        found = parallel.each(work, range(40))
        timer.join()
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))
    done = [path.name.split("-") for path in tmp_path.glob("*-*")]
    assert 40 <= len(done) < 80  # what the other worker had done is not repeated


def unevenly(k: int) -> tuple[int, float]:
    begun = time.monotonic()
    time.sleep(0.12 if k < 10 else 0.001)
    return os.getpid(), begun


def test_nobody_else_takes_over_what_a_slow_worker_has_to_do(tmp_path: Path) -> None:
    """It has the logs, the other one would have to be sent them."""
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "local_directory": str(tmp_path / "dask")}
    with distributed.LocalCluster(**options) as local, parallel.workers(scheduler=local.scheduler_address):
        for _ in range(3):
            found = parallel.each(unevenly, range(20))
            slow, fast = ({pid for pid, _ in some} for some in (found[:10], found[10:]))
            assert len(slow) == len(fast) == 1
            assert slow != fast
            times = [begun for _, begun in found]
            assert times == [*sorted(times[:10]), *sorted(times[10:])]  # an answer may name what came with the one before


def test_what_a_lost_worker_had_finished_is_not_repeated(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "local_directory": str(tmp_path / "dask")}
    with distributed.LocalCluster(**options) as local, parallel.workers(scheduler=local.scheduler_address):
        waiting = parallel.start_each(partial(slowly, str(tmp_path)), range(8))
        while len(list(tmp_path.glob("*-*"))) < 8:
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(next(iter(local.workers.values())).process.pid, signal.SIGKILL)
        parallel.each(square, range(4))
        waiting()
    assert len(list(tmp_path.glob("*-*"))) == 8


def measured_every(_: int) -> list[float]:
    """Intervals at which the worker that does this measures itself [ms]."""
    from distributed import get_worker

    return [get_worker().periodic_callbacks[name].callback_time for name in ("profile", "tick")]


def test_a_worker_measures_itself_rarely_while_it_works_on_logs_and_as_usual_afterwards(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    options = {"n_workers": 1, "processes": False, "dashboard_address": None, "local_directory": str(tmp_path / "dask")}
    with distributed.LocalCluster(threads_per_worker=1, **options) as local, distributed.Client(local) as other:
        usual = other.submit(measured_every, 0, pure=False).result()
        assert max(usual) < 100.0
        with parallel.workers(scheduler=local.scheduler_address):
            assert parallel.each(measured_every, [0, 1]) == [[1000.0, 1000.0]] * 2
        assert other.submit(measured_every, 0, pure=False).result() == usual


def test_a_worker_that_was_stopped_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers nothing, but its connections stay open."""
    monkeypatch.setattr(cluster, "_SILENT", 3.0)
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "local_directory": str(tmp_path / "dask")}
    with distributed.LocalCluster(**options) as local:
        victim = next(iter(local.workers.values())).process.pid
        try:
            with parallel.workers(scheduler=local.scheduler_address):
                Timer(0.3, lambda: os.kill(victim, signal.SIGSTOP)).start()
                found = parallel.each(partial(slowly, str(tmp_path)), range(40))
                assert all(np.array_equal(x, np.random.default_rng(k).normal(size=4)) for k, x in enumerate(found))
                assert [x for x, _ in parallel.each(square, range(4))] == [0, 1, 4, 9]
        finally:
            os.kill(victim, signal.SIGCONT)


class Dask:
    """Stands for a client: the workers of its scheduler, and an answer that comes after a time [s]."""

    def __init__(self, workers: dict[str, dict], after: float = 0.0, outcome: object = 7) -> None:
        self.workers, self.after, self.outcome, self.status = workers, after, outcome, "running"
        self.loop, self.scheduler = self, SimpleNamespace(identity=lambda: {"workers": self.workers})

    def sync(self, function: Callable[[], dict], **_options: object) -> dict:
        return function()

    def add_callback(self, function: Callable, *given: object) -> None:
        Timer(self.after, lambda: asyncio.run(function(*given))).start()

    async def gather(self, _future: object, **_options: object) -> object:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def test_an_answer_is_waited_for_as_long_as_its_worker_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_LOOK", 0.01)
    monkeypatch.setattr(cluster, "_SILENT", 0.2)
    lively = Dask({"a": {"status": "running", "last_seen": 0.0}, "b": {"status": "running", "last_seen": 0.0}})
    places = cluster._Places(cluster._Alive(lively, "tcp://s:0"))
    assert places() == ["a", "b"]
    for after in (0.0, 0.05):
        lively.after, lively.outcome = after, 7
        assert cluster._Answer(lively, object(), places.check).result() == 7
        lively.outcome = ValueError("the work's own")
        with pytest.raises(ValueError, match="the work's own"):
            cluster._Answer(lively, object(), places.check).result()
    lively.after = 2.0
    gone = lively.workers.pop("a")
    with pytest.raises(LostError):
        cluster._Answer(lively, object(), places.check).result()
    assert places() == [None, "b"]
    lively.workers["a"] = gone
    assert places() == ["a", "b"]
    for last in ({"status": "running", "last_seen": 1.0}, {"status": "paused"}):  # it is silent, or paused
        answer = cluster._Answer(lively, object(), places.check)
        for k in range(20):
            lively.workers = {"a": {"last_seen": k, **last}, "b": {"status": "running", "last_seen": k}}
            time.sleep(0.02)
            with suppress(LostError) if k > 5 else nullcontext():
                places.check()
        assert places() == [None, "b"]
        assert not answer.arrived()
        lively.workers["a"] = {"status": "running", "last_seen": -1.0}
        assert places() == ["a", "b"]


def test_a_cluster_that_loses_all_workers_for_good_or_its_scheduler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_LOOK", 0.01)
    monkeypatch.setattr(cluster, "_ALONE", 0.05)
    empty = Dask({}, 5.0)
    with pytest.raises(SchedulerError, match="no workers any more"):
        cluster._Answer(empty, object(), cluster._Places(cluster._Alive(empty, "tcp://s:0")).check).result()
    monkeypatch.setattr(cluster, "_SILENT", 0.05)
    monkeypatch.setattr(cluster, "_ALONE", 30.0)
    full = Dask({"a": {"status": "running"}, "b": {"status": "running"}}, 5.0)
    places = cluster._Places(alive := cluster._Alive(full, "tcp://s:0"), lambda: alive.paused)
    assert places() == ["a", "b"]
    full.workers = {place: {"status": "paused"} for place in "ab"}
    with pytest.raises(SchedulerError, match=r"not enough memory, got all of them \(2\) paused"):
        cluster._Answer(full, object(), places.check).result()
    for name, said in (("KilledWorker", "gave up.*--memory-limit"), ("FutureCancelledError", "gave up")):
        dask = Dask({}, 0.0, type(name, (Exception,), {})("the task, again and again"))
        with pytest.raises(SchedulerError, match=said):
            cluster._Answer(dask, object(), lambda: None).result()

    class Client:
        status = "running"

    with pytest.raises(OSError, match="the work's own"), cluster._connected(Client(), "tcp://s:0"):
        raise OSError("the work's own")
    Client.status = "closed"
    with pytest.raises(SchedulerError, match=r"tcp://s:0.*was lost"), cluster._connected(Client(), "tcp://s:0"):
        raise RuntimeError("ConnectionPool is closed")


def asks_and_waits(path: str) -> None:
    with parallel.workers(2):
        pids = parallel.each(square, range(4))
        Path(path).write_text(" ".join(str(pid) for pid in {pid for _, pid in pids}))
        time.sleep(60.0)


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="processes are looked at in /proc")
def test_processes_end_with_the_one_that_asks_even_where_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    asking = multiprocessing.Process(target=asks_and_waits, args=(str(path),))
    asking.start()
    while not (path.is_file() and len(path.read_text().split()) == 2):
        time.sleep(0.05)
    asking.kill()
    asking.join()
    left = {int(pid) for pid in path.read_text().split()}
    for _ in range(200):
        left = {
            pid for pid in left if Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()
        }
        if not left:
            break
        time.sleep(0.05)
    assert not left


def test_a_log_that_workers_lack_is_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = Robot.from_urdf(arm_urdf("zyy"))
    for seed in range(4):
        make_log(tmp_path / f"run{seed}.csv", robot, seed=seed, seconds=3.0)
    with parallel.workers(2):
        parallel.each(square, range(4))  # the processes were started in another folder
        monkeypatch.chdir(tmp_path)
        found = read_recordings([f"run{seed}.csv" for seed in range(4)], robot)
        with pytest.raises(MissingFileError, match="run4"):
            read_recordings(["run0.csv", "run4.csv"], robot)
    assert [log.name for log in found] == ["run0", "run1", "run2", "run3"]
