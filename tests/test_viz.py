"""What is shown must be where the URDF says it is, in a page that needs nothing else; a real browser has the last word."""

import base64
import functools
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.error import HTTPError

import mujoco
import numpy as np
import pytest
from conftest import arm_urdf, page_data
from mujoco_oracle import load_urdf

from urdf_ident import Drive, Recording, Robot
from urdf_ident.errors import LogError, ModelError, OutputError
from urdf_ident.logs.columns.layout import LogLayout, SideSection
from urdf_ident.model.bundled import robot_names, robot_path
from urdf_ident.model.geometry import robot_shapes
from urdf_ident.motion.fourier import FourierTrajectory
from urdf_ident.pipeline import validate
from urdf_ident.viz import Motion, as_motion, play, player_page, read_motion
from urdf_ident.viz.motion import FRAME_RATE, transform_points, upright, with_torque_error
from urdf_ident.viz.player import PageServer

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--enable-unsafe-swiftshader", "--enable-logging=stderr"),
    *("--hide-scrollbars", "--virtual-time-budget=500", "--disable-extensions"),
    *("--disable-default-apps", "--disable-domain-reliability", "--disable-field-trial-config", "--no-pings"),
    "--disable-features=NetworkTimeServiceQuerying,OptimizationHints,MediaRouter,Translate,AutofillServerCommunication",
)


def waves(robot: Robot, duration: float = 4.0, seed: int = 0) -> Motion:
    """A motion inside the limits, half a metre wide for prismatic joints."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, duration + 1e-9, 0.01)
    low, high = np.maximum(robot.limit("lower"), -2.0), np.minimum(robot.limit("upper"), 2.0)
    phase = rng.uniform(0, 2 * np.pi, robot.n)
    q = (low + high) / 2 + 0.45 * (high - low) * np.sin(2 * np.pi * t[:, None] / duration + phase)
    return Motion("waves", t, q)


def decoded(text: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(shape).astype(float)


# ---------------------------------------------------------------- kinematics


def placed(urdf: str, values: dict[str, float]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rotation and place of every link that a joint carries, by MuJoCo."""
    model = load_urdf(urdf, fuse=False)
    data = mujoco.MjData(model)
    for joint, value in values.items():
        data.qpos[model.jnt_qposadr[model.joint(joint).id]] = value
    mujoco.mj_kinematics(model, data)
    return {model.body(k).name: (data.xmat[k].reshape(3, 3), data.xpos[k]) for k in range(1, model.nbody)}


CASES = {
    **{name: (robot_path(name).read_text(encoding="utf-8"), None) for name in robot_names()},
    "sliding": (arm_urdf("zxy", kind="prismatic"), None),
    "continuous": (arm_urdf("zyx", kind="continuous"), None),
    "locked": (arm_urdf("zyyx"), {"j2": 0.7, "j4": -0.3}),
}


@pytest.mark.parametrize("name", CASES)
def test_links_are_where_the_urdf_says(name: str) -> None:
    urdf, lock = CASES[name]
    robot = Robot.from_urdf(urdf, lock=lock)
    motion = waves(robot, 1.0)
    page, _ = player_page(robot, motion)
    data = page_data(page)
    poses = decoded(data["poses"], data["frames"], robot.n, 7)
    placements = robot.link_placements
    for frame in (0, 7, data["frames"] - 1):
        q = [np.interp(frame / data["rate"], motion.time, column) for column in motion.position.T]
        truth = placed(urdf, {**dict(zip(robot.joints, q, strict=True)), **(lock or {})})
        for link, (joint, placement) in placements.items():
            if joint >= 0:
                corners = np.concatenate([np.zeros((1, 3)), np.eye(3)])
                inside = corners @ placement[:3, :3].T + placement[:3, 3]
                shown = transform_points(poses[frame : frame + 1, joint], inside)[0]
                turn, place = truth[link]
                np.testing.assert_allclose(shown, corners @ turn.T + place, atol=2e-6, err_msg=f"{link}, frame {frame}")


@pytest.mark.parametrize("gravity", [(0, 0, -9.81), (0, 0, 9.81), (9.81, 0, 0), (1.0, -2.0, 3.0), (0, 0, 0)])
def test_gravity_points_down_in_the_picture(gravity: tuple[float, float, float]) -> None:
    base = upright(Robot.from_urdf(arm_urdf("zy"), gravity=gravity))
    np.testing.assert_allclose(base[:3, :3].T @ base[:3, :3], np.eye(3), atol=1e-12)
    np.testing.assert_allclose(base[:3, :3] @ gravity, [0, 0, -np.linalg.norm(gravity)], atol=1e-9)
    if gravity[2] < 0:
        np.testing.assert_array_equal(base, np.eye(4))


# ---------------------------------------------------------------- shapes


def visual_robot(*visuals: str, extra: str = "") -> str:
    limit = '<limit lower="-1" upper="1" velocity="1" effort="1"/>'
    return (
        f'<robot name="shown">{extra}<link name="b"/><link name="l">{"".join(visuals)}</link><joint name="j" type="revolute">'
        f'<parent link="b"/><child link="l"/><origin xyz="0 0 0.5"/><axis xyz="0 0 1"/>{limit}</joint></robot>'
    )


def test_primitives_and_materials() -> None:
    urdf = visual_robot(
        '<visual><origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><geometry><box size="0.1 0.2 0.3"/></geometry>'
        '<material name="paint"/></visual>',
        '<visual><geometry><cylinder radius="0.1" length="0.4"/></geometry>'
        '<material name=""><color rgba="0 1 0 0.5"/></material></visual>',
        '<visual><geometry><sphere radius="0.2"/></geometry></visual>',
        '<collision><geometry><sphere radius="9"/></geometry></collision>',
        extra='<material name="paint"><color rgba="0.1 0.2 0.3 1"/></material>',
    )
    shapes, notes = robot_shapes(Robot.from_urdf(urdf))
    assert notes == ()
    assert [shape.kind for shape in shapes] == ["box", "cylinder", "sphere"]
    assert shapes[0].colour == (0.1, 0.2, 0.3, 1.0)
    assert shapes[1].colour == (0, 1, 0, 0.5)
    corners = shapes[0].corners()
    np.testing.assert_allclose(corners.min(axis=0), [0.9, 1.95, 2.85], atol=1e-12)
    np.testing.assert_allclose(corners.max(axis=0), [1.1, 2.05, 3.15], atol=1e-12)


def test_broken_geometry_is_left_out_and_said() -> None:
    urdf = visual_robot(
        '<visual><geometry><box size="0.1 oops 0.3"/></geometry></visual>',
        '<visual><geometry><sphere radius="0.2"/></geometry></visual>',
    )
    shapes, notes = robot_shapes(Robot.from_urdf(urdf))
    assert [shape.kind for shape in shapes] == ["sphere"]
    assert len(notes) == 1
    assert "link l" in notes[0]


# ---------------------------------------------------------------- meshes


def box_stl(edge: float = 0.1) -> bytes:
    corners = np.array([(x, y, z) for x in (0, edge) for y in (0, edge) for z in (0, 4 * edge)], dtype=float)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *corners[list(t)].ravel(), 0) for t in triangles)
    return b"\0" * 80 + struct.pack("<I", len(triangles)) + body


def mesh_robot(folder: Path, filename: str) -> Robot:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "robot.urdf"
    path.write_text(visual_robot(f'<visual><geometry><mesh filename="{filename}" scale="1 2 1"/></geometry></visual>'))
    return Robot.from_urdf(path)


@pytest.mark.parametrize(
    ("filename", "place", "variable"),
    [
        ("../meshes/a.stl", "pkg/meshes/a.stl", None),
        ("package://pkg/meshes/a.stl", "pkg/meshes/a.stl", None),
        ("package://pkg/meshes/a%20b.stl", "pkg/meshes/a b.stl", None),
        ("package://far/a.STL", "elsewhere/far/a.STL", "ROS_PACKAGE_PATH"),
        ("package://far/a.stl", "elsewhere/share/far/a.stl", "AMENT_PREFIX_PATH"),
        ("file://{tmp}/pkg/meshes/a.stl", "pkg/meshes/a.stl", None),
        ("file://{tmp}/anywhere/a.stl", "anywhere/a.stl", "ROS_PACKAGE_PATH"),
    ],
)
def test_meshes_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filename: str, place: str, variable: str | None
) -> None:
    mesh = tmp_path / place
    mesh.parent.mkdir(parents=True)
    mesh.write_bytes(box_stl())
    if variable:
        monkeypatch.setenv(variable, os.pathsep.join([str(tmp_path / "anywhere"), str(tmp_path / "elsewhere")]))
    shapes, notes = robot_shapes(mesh_robot(tmp_path / "pkg" / "urdf", filename.format(tmp=tmp_path)))
    assert notes == ()
    assert [(shape.kind, shape.mesh.resolve()) for shape in shapes] == [("mesh", mesh.resolve())]
    assert shapes[0].size == (1, 2, 1)
    np.testing.assert_allclose(np.ptp(shapes[0].corners(), axis=0), [0.1, 0.2, 0.4], rtol=1e-6)


@pytest.mark.parametrize("filename", ["package://nowhere/a.stl", "a.glb", "broken.stl", "", "file:///no/such.dae"])
def test_missing_meshes_become_capsules_and_are_said_once(tmp_path: Path, filename: str) -> None:
    (tmp_path / "a.glb").write_bytes(b"not drawn")
    (tmp_path / "broken.stl").write_bytes(b"cut short")
    robot = mesh_robot(tmp_path, filename)
    shapes, notes = robot_shapes(robot)
    assert {shape.link for shape in shapes} == {"l"}
    assert {shape.kind for shape in shapes} == {"cylinder"}  # the marker of the joint; nothing follows that link
    assert len(notes) == 1
    assert "ROS_PACKAGE_PATH" in notes[0]
    assert player_page(robot, waves(robot))[1] == notes


# ---------------------------------------------------------------- motions


def write_csv(path: Path, header: str, table: np.ndarray) -> Path:
    path.write_text("\n".join([header, *(",".join(f"{value:.9g}" for value in row) for row in table), ""]))
    return path


def test_log_follows_the_layout_and_the_gears(tmp_path: Path) -> None:
    robot = Robot.from_urdf(arm_urdf("zy"))
    t = np.arange(40) / 100
    q = np.column_stack([np.sin(t), np.cos(t)])
    table = np.column_stack([t, np.rad2deg(q * [50, -20]), np.zeros((40, 2))])
    path = write_csv(tmp_path / "log.csv", "clock,m1,m2,i1,i2", table)
    layout = LogLayout(
        columns={"time": "clock", "position": ["m1", "m2"], "effort": ["i1", "i2"]},
        units={"position": "deg", "effort": "A"},
        side=SideSection(position="motor", effort="motor"),
    )
    drive = Drive.build(2, reduction=[50.0, -20.0])
    motion = as_motion(read_motion(path, robot, layout), robot, drive=drive)  # no torque constant is known
    np.testing.assert_allclose(motion.position, q, atol=1e-7)


def test_motions_of_the_wrong_robot_are_refused(tmp_path: Path) -> None:
    robot = Robot.from_urdf(arm_urdf("zy"))
    other = FourierTrajectory(("j1",), 2.0, np.zeros(1), np.ones((1, 1)), np.zeros((1, 1)))
    with pytest.raises(LogError, match="j2"):
        as_motion(other, robot)
    with pytest.raises(LogError):
        as_motion(read_motion(write_csv(tmp_path / "a.csv", "t,q_j1", np.eye(2)), robot), robot)


def test_leaving_the_limits_is_said() -> None:
    robot = Robot.from_urdf(arm_urdf("zy"))
    t = np.array([0.0, 1.0, 2.0])
    _, notes = player_page(robot, Motion("m", t, np.array([[0, 0], [0, 2.8], [0, 3.0]])))
    assert len(notes) == 1
    assert "'j2'" in notes[0]
    assert "t = 1.000 s" in notes[0]


# ---------------------------------------------------------------- the page


def test_page_is_complete_and_repeatable() -> None:
    robot = Robot.from_urdf(robot_path("ur10e"))
    page, _ = player_page(robot, waves(robot))
    assert page == player_page(robot, waves(robot))[0]
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    assert not re.search(r"\b(src|href)\s*=(?!\s*[\"']data:)|@import|url\(", markup)
    licences = r"http://www.w3.org/|https?://(opensource.org|feross.org/opensource|github.com/kawanet|kawanet.github.io)/?"
    assert all(re.match(licences, link) for link in re.findall(r"https?://[^\s\"'<>)]+", page))
    assert "{{" not in markup


def test_names_cannot_break_the_page() -> None:
    evil = "</script><script>window.broken=1</script>"
    urdf = arm_urdf("zy").replace('robot name="arm"', f'robot name="{evil.replace("<", "&lt;")}"')
    robot = Robot.from_urdf(urdf)
    assert robot.name == evil
    page, _ = player_page(robot, waves(robot))
    assert evil not in page
    assert page_data(page)["title"] == evil


def test_second_robot_is_matched_by_joint_name() -> None:
    other = arm_urdf("zyyx").replace("0.03 0.04 0.25", "0.03 0.04 0.45")  # one longer link, and a joint more
    first, second = Robot.from_urdf(arm_urdf("zyy")), Robot.from_urdf(other)
    motion = waves(first, 1.0)
    data = page_data(player_page(first, motion, second)[0])
    poses = decoded(data["poses"], data["frames"], 7, 7)
    q = dict(zip(first.joints, motion.position[0], strict=True))
    np.testing.assert_allclose(poses[0, 3 + 3, :3], placed(other, q)["l4"][1], atol=2e-6)
    np.testing.assert_allclose(poses[0, 2, :3], placed(arm_urdf("zyy"), q)["l3"][1], atol=2e-6)
    assert len(data["trails"]) == 2
    with pytest.raises(ModelError, match="j4"):
        player_page(second, waves(second), first)


# ---------------------------------------------------------------- the live view


@pytest.fixture
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def served(page: str) -> Iterator[str]:
    """The address of a page while it is served."""
    with PageServer.at(None, page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.url
        server.shutdown()


def test_server_serves_the_page_and_frees_its_port() -> None:
    with served("<p>hellö") as url:
        with urllib.request.urlopen(url, timeout=5) as answer:
            assert answer.read().decode() == "<p>hellö"
        with pytest.raises(HTTPError, match="404"):
            urllib.request.urlopen(url.replace("/play", "/"), timeout=5)
        port = int(url.split(":")[2].split("/")[0])
        with PageServer.at(None, "") as other:  # the next free one
            assert other.server_port > port
    with PageServer.at(port, ""):
        pass


def test_port_in_use_names_the_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        with pytest.raises(OutputError, match=f"port {port} is in use.*--port.*--html") as caught:
            PageServer.at(port, "")
        assert isinstance(caught.value, OSError)
        monkeypatch.setattr("urdf_ident.viz.player.FIRST_PORT", port)
        monkeypatch.setattr("urdf_ident.viz.player.PORTS", 1)
        with pytest.raises(OutputError, match="all in use"):
            PageServer.at(None, "")
    with pytest.raises(OutputError, match="cannot be opened"):
        PageServer.at(70000, "")


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C cannot be sent to another process here")
@pytest.mark.usefixtures("no_screen")
def test_live_view_until_ctrl_c(tmp_path: Path) -> None:
    """The command itself: prints its address and the remedy for no browser, serves, ends with 0."""
    motion = write_csv(tmp_path / "m.csv", "t,q_joint_1,q_joint_2", np.column_stack([np.arange(9) / 8, np.eye(9)[:, :2]]))
    command = [sys.executable, "-m", "urdf_ident", "play", str(robot_path("zollo_2r")), str(motion)]
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # jobs in the background begin with it ignored
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heard) as process:
        try:
            line = process.stdout.readline()
            url = re.search(r"http://\S+", line)
            assert url, line + process.stderr.read()
            with urllib.request.urlopen(url[0], timeout=5) as answer:
                assert page_data(answer.read().decode())["title"] == "zollo_2r"
            assert "--html" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()


# ---------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def chromium() -> str:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: the page is not opened in a browser")
    return CHROMIUM


@pytest.fixture
def browse(chromium: str, tmp_path: Path) -> Callable:
    """Opens a page without a network; returns what the option asks for and what the page said on its console."""
    count = iter(range(100))

    def run(page: Path, option: str, *, size: tuple[int, int] = (640, 400)) -> tuple[str, str]:
        own = (f"--user-data-dir={tmp_path / f'profile{next(count)}'}", "--window-size={},{}".format(*size))
        command = [chromium, *FLAGS, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", *own, option, page.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        console = "\n".join(line for line in done.stderr.splitlines() if ":CONSOLE:" in line)
        assert not re.search(r"Uncaught|Error|Failed to load|shader", console), console
        return done.stdout, console

    return run


def pictures(browse, folder: Path, pages: list[str]) -> list[np.ndarray]:
    """The canvases of several pages ("file" or "file#t=seconds"), side by side in one window; each (rows, columns, 3)."""
    from PIL import Image

    frames = "".join(f'<iframe src="{page}" width="400" height="320" style="border:0;float:left"></iframe>' for page in pages)
    (folder / "all.html").write_text(f'<body style="margin:0;width:1600px">{frames}</body>')
    browse(folder / "all.html", f"--screenshot={folder / 'all.png'}", size=(1600, 320 * -(-len(pages) // 4)))
    with Image.open(folder / "all.png") as image:
        whole = np.asarray(image.convert("RGB")).astype(int)
    corners = [(320 * (k // 4), 400 * (k % 4)) for k in range(len(pages))]
    return [whole[row + 10 : row + 245, column + 165 : column + 400] for row, column in corners]  # without card and bar


def colours(image: np.ndarray) -> int:
    """Number of clearly different colours."""
    return len(np.unique(image.reshape(-1, 3) // 16, axis=0))


def meshes(folder: Path) -> Robot:
    """A green STL without normals, and a purple OBJ."""
    (folder / "a.stl").write_bytes(box_stl())
    faces = "\n".join(f"f {a} {b} {c}" for a, b, c in ((1, 2, 4), (1, 4, 3), (1, 3, 2), (2, 3, 4)))
    (folder / "b.obj").write_text(f"v 0 0 0.4\nv 0.3 0 0.4\nv 0 0.3 0.4\nv 0 0 0.8\n{faces}\n")
    paint = '<material name="{0}"><color rgba="{1} 1"/></material>'
    visuals = [
        f'<visual><geometry><mesh filename="{file}"/></geometry>{paint.format(file, colour)}</visual>'
        for file, colour in (("a.stl", "0.1 0.8 0.2"), ("b.obj", "0.9 0.1 0.8"))
    ]
    (folder / "robot.urdf").write_text(visual_robot(*visuals))
    return Robot.from_urdf(folder / "robot.urdf")


def test_browser_shows_robots_and_moves_them(browse, tmp_path: Path) -> None:
    """A slide, arms of three and six axes, one without shapes, and meshes; the poses of every robot are checked above."""
    robots = {name: Robot.from_urdf(robot_path(name)) for name in ("emps", "szabo_3r", "ur10e")}
    robots |= {"no geometry": Robot.from_urdf(arm_urdf("zyyxyx")), "meshes": meshes(tmp_path)}
    for name, robot in robots.items():
        play(robot, waves(robot), html=tmp_path / f"{name}.html")
    times = [*((name, 1.7) for name in robots if name != "meshes"), ("szabo_3r", 2.9), ("meshes", 0.5)]
    images = pictures(browse, tmp_path, [f"{name}.html#t={time}" for name, time in times])
    for (name, _), image in list(zip(times, images, strict=True))[:4]:
        assert colours(image) > 60, name
        assert (np.ptp(image, axis=2) > 60).sum() > 150, name  # robot and trail, where an empty stage is pale
        assert (image.sum(axis=2) < 600).mean() > 0.01, name
    before, later = images[1], images[4]
    assert (np.abs(before - later).max(axis=2) > 40).mean() > 0.01
    red, green, blue = np.moveaxis(images[5], -1, 0)  # a mesh that is not drawn, or black, has no green
    assert ((green > red + 50) & (green > blue + 50)).sum() > 300
    assert ((red > green + 50) & (blue > green + 50)).sum() > 300


def test_browser_plays_pauses_and_loops_at_real_speed(browse, tmp_path: Path) -> None:
    """The page's clock is driven by hand: five frames a second, whatever the computer can do."""
    robot = Robot.from_urdf(arm_urdf("zyy"))
    page, _ = player_page(robot, waves(robot, 4.0))
    before = "let queue = [], now = 500; window.requestAnimationFrame = f => queue.push(f);"
    after = """
        const clock = () => parseFloat(document.getElementById("clock").textContent);
        const pass = seconds => { for (let k = 0; k < 5 * seconds; k++) {
            now += 200; const due = queue; queue = []; due.forEach(f => f(now)); } return clock(); };
        const button = document.getElementById("play"), pace = document.getElementById("pace");
        pass(0.2);
        const seen = {start: clock(), playing: pass(1)};
        button.click(); seen.paused = pass(2);
        button.click(); pass(0.2); pace.value = "2"; seen.faster = pass(1);
        pace.value = "1"; seen.end = pass(1); seen.rest = pass(0.4); seen.again = pass(1.4);
        document.body.dataset.seen = JSON.stringify(seen);"""
    # the scripts below are not the page's
    page = re.sub(r"'sha256-[^']*'", "'unsafe-inline'", page)
    head, player = page.rsplit("<script>", 1)
    (tmp_path / "page.html").write_text(
        f"{head}<script>{before}</script><script>{player.replace('</body>', f'<script>{after}</script></body>')}"
    )
    document, _ = browse(tmp_path / "page.html", "--dump-dom", size=(200, 150))
    seen = json.loads(re.search(r'data-seen="([^"]*)"', document)[1].replace("&quot;", '"'))
    wanted = {"start": 0.0, "playing": 1.0, "paused": 1.0, "faster": 3.0, "end": 4.0, "rest": 4.0}
    assert {name: seen[name] for name in wanted} == pytest.approx(wanted, abs=0.011)
    assert 0.5 < seen["again"] < 1.5  # after a short rest it began anew


def test_errors_of_a_log_of_which_one_sample_is_left_are_unknown_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = Robot.from_urdf(arm_urdf("zyx"))
    shown = replace(waves(robot), measured=True)
    ident = SimpleNamespace(model=SimpleNamespace(robot=robot))
    log = Recording("log", robot.joints, shown.time, shown.position, effort=0 * shown.position)
    monkeypatch.setattr(validate, "torque_error", lambda *_: (np.array([1.0]), np.array([[0.1, 0.2, 0.3]])))
    error = with_torque_error(shown, ident, log).error
    known = np.abs(shown.time - 1.0) <= 1 / FRAME_RATE
    assert error[known] == pytest.approx(np.tile([0.1, 0.2, 0.3], (known.sum(), 1)))
    assert np.isnan(error[~known]).all()


def test_another_motion_beside_the_first_is_drawn_translucent_at_the_same_time() -> None:
    robot = Robot.from_urdf(robot_path("szabo_3r"))
    time = np.linspace(0.0, 2.0, 101)
    first = Motion("log", time, np.column_stack([np.sin(time), 0 * time, 0 * time]))
    second = Motion("model", time[:51] + 5.0, np.column_stack([np.cos(time[:51]), 0 * time[:51], 0 * time[:51]]))
    data = page_data(player_page(robot, first, beside=second)[0])
    assert [entry["text"] for entry in data["legend"]] == ["log", "model (beside)"]
    poses = decoded(data["poses"], data["frames"], 6, 7)
    angle = 2 * np.arctan2(poses[:, [0, 3], 5], poses[:, [0, 3], 6])  # joint_1 turns about z
    shown = np.linspace(0.0, 2.0, data["frames"])
    np.testing.assert_allclose(angle[:, 0], np.sin(shown), atol=1e-3)
    np.testing.assert_allclose(angle[:, 1], np.cos(np.minimum(shown, 1.0)), atol=1e-3)  # stays where it ends
