"""Every page in a browser: it asks no network, breaks no rule of its policy, reports no error, and shows something."""

import re
import shutil
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from commands import run
from test_viz import CHROMIUM, FLAGS, box_stl, mesh_robot, served, visual_robot, waves

from urdf_ident.viz.page import player_page

#: What the browser asks for on its own account, differently in every version; none of our pages names the hosts of its maker.
OF_THE_CHROMIUM = re.compile(r"[ /]([\w-]+\.)*google(apis)?\.com[:/]")
#: What is written to the console without being an error.
HARMLESS = re.compile("GPU stall|^THREE.ColladaLoader: File version")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("unexamined"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]


@contextmanager
def proxy() -> Iterator[tuple[int, list[str]]]:
    """A proxy that answers nothing: its port, and the first line of every request that came."""
    asked: list[str] = []

    class Note(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(5)
            asked.append(self.request.recv(4096).split(b"\r\n")[0].decode("latin-1"))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Note) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], asked
        server.shutdown()


def opened(
    address: str, folder: Path, *, loopback: bool = True, size: tuple[int, int] = (500, 350)
) -> tuple[list[str], list[str]]:
    """Opens a page; the requests that left it, and the messages of its console. Its picture is page.png in the folder.

    Args:
        loopback: Whether requests to this computer count as well.
        size: Of the window.
    """
    assert CHROMIUM is not None
    with proxy() as (port, asked):
        through = (f"--proxy-server=127.0.0.1:{port}", *(["--proxy-bypass-list=<-loopback>"] if loopback else []))
        command = [CHROMIUM, *FLAGS, *through, f"--user-data-dir={folder / 'profile'}", f"--screenshot={folder / 'page.png'}"]
        command.append("--window-size={},{}".format(*size))
        done = subprocess.run([*command, address], capture_output=True, text=True, timeout=300, check=True)
    console = re.findall(r"CONSOLE[^\]]*\] \"(.*)", done.stderr)
    return [line for line in asked if not OF_THE_CHROMIUM.search(line)], [line for line in console if not HARMLESS.search(line)]


def framed(addresses: list[str], folder: Path) -> str:
    """Address of a page that shows pages one above the other."""
    frames = (
        f'<iframe src="{address}" width="500" height="350" style="border:0;display:block"></iframe>' for address in addresses
    )
    (folder / "all.html").write_text(f'<body style="margin:0">{"".join(frames)}')
    return (folder / "all.html").as_uri()


def check_pages(least: dict[str, int], folder: Path, *, loopback: bool = True) -> None:
    """Opens pages in one window; each has an address and more than so many colours."""
    from PIL import Image

    asked, console = opened(framed(list(least), folder), folder, loopback=loopback, size=(500, 350 * len(least)))
    assert asked == []
    assert console == []
    with Image.open(folder / "page.png") as image:
        whole = np.asarray(image.convert("RGB"))
    for k, (address, colours) in enumerate(least.items()):
        found = len(np.unique(whole[350 * k : 350 * (k + 1) : 2, ::2].reshape(-1, 3), axis=0))
        assert found > colours, f"{address} is blank"


@pytest.fixture(scope="module")
def pages(work: Path) -> list[Path]:
    """Every kind of page: of a result, of a validation, of a fleet, and of the player."""
    for name in ("log0", "log1"):
        (work / "fleet" / name).mkdir(parents=True)
        shutil.copy(work / f"{name}.csv", work / "fleet" / name)
    for line in (
        "identify arm.urdf log0.csv --validate log1.csv -o out",
        "validate out/identification.json log2.csv",
        "fleet arm.urdf fleet/* -c listed.yaml -o result",
        "play arm.urdf log2.csv --html out/motion.html",
    ):
        assert run(*line.split(), cwd=work, report=True).returncode in (0, 1), line
    return sorted(work.rglob("*.html"))


def test_the_browser_of_these_tests_notices_a_request_and_a_broken_rule(tmp_path: Path) -> None:
    hosts = ("http://one.invalid/", "https://two.invalid", "http://127.0.0.1:8123/")
    rule = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'\">"
    (tmp_path / "free.html").write_text("<p>text" + "".join(f"<img src='{host}/a.png'>" for host in hosts))
    (tmp_path / "ruled.html").write_text(
        f"{rule}<p>text<img src='http://example.invalid/a.png'><script>document.title = 1</script>"
    )
    asked, console = opened(framed([(tmp_path / name).as_uri() for name in ("free.html", "ruled.html")], tmp_path), tmp_path)
    assert {host for host in hosts for line in asked if re.search(f"[ /]{re.escape(re.split('//', host)[1])}", line)} == set(
        hosts
    )
    assert not any("example" in line for line in asked)
    assert sum("Content Security Policy" in line for line in console) == 2


def test_pages_are_offline_also_with_meshes_that_name_remote_pictures(pages: list[Path], tmp_path: Path) -> None:
    assert {"report.html", "validation.html", "motion.html", "fleet.html"} <= {path.name for path in pages}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        rule = re.search(r"script-src ([^;]*)", text.replace("&#39;", "'"))
        assert rule is not None
        assert "unsafe" not in rule[1]
    motion, page, visuals = tmp_path / "motion.csv", tmp_path / "page.html", []
    motion.write_text("t,q_j\n" + "".join(f"{0.1 * k:.1f},{0.1 * np.sin(k):.6f}\n" for k in range(30)))
    (tmp_path / "near.png").write_bytes(b"\x89PNG not really")
    for k, picture in enumerate(
        ("http://example.invalid/t.png", "https://example.invalid/t.jpg", "//example.invalid/t.png", "near.png", "../t.png")
    ):
        (tmp_path / f"{k}.dae").write_text(collada(picture))
        visuals.append(f'<visual><origin xyz="{0.3 * k} 0 0"/><geometry><mesh filename="{k}.dae"/></geometry></visual>')
    (tmp_path / "robot.urdf").write_text(visual_robot(*visuals))
    done = run("play", tmp_path / "robot.urdf", motion, "--html", page)
    assert (done.returncode, done.stdout.strip()) == (0, f"wrote {page}")  # no capsules stand in
    assert "example.invalid" not in page.read_text(encoding="utf-8")
    check_pages({**{path.as_uri(): 100 for path in pages}, page.as_uri(): 300}, tmp_path)


def test_the_page_of_the_viewer_connects_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.stl").write_bytes(box_stl())
    robot = mesh_robot(tmp_path, "a.stl")
    with served(player_page(robot, waves(robot))[0]) as url:
        check_pages({url: 300}, tmp_path, loopback=False)


def collada(picture: str) -> str:
    """A textured triangle pair."""
    return f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_images><image id="i" name="i"><init_from>{picture}</init_from></image></library_images>
<library_effects><effect id="e"><profile_COMMON>
<newparam sid="s"><surface type="2D"><init_from>i</init_from></surface></newparam>
<newparam sid="t"><sampler2D><source>s</source></sampler2D></newparam>
<technique sid="c"><lambert><diffuse><texture texture="t" texcoord="UV"/></diffuse></lambert></technique>
</profile_COMMON></effect></library_effects>
<library_materials><material id="m" name="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="12">0 0 0 0.2 0 0 0 0.2 0 0 0 0.4</float_array>
<technique_common><accessor source="#pa" count="4" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<source id="u"><float_array id="ua" count="6">0 0 1 0 0 1</float_array>
<technique_common><accessor source="#ua" count="3" stride="2"><param name="S" type="float"/><param name="T" type="float"/>
</accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="4" material="m"><input semantic="VERTEX" source="#v" offset="0"/>
<input semantic="TEXCOORD" source="#u" offset="1" set="0"/><p>0 0 1 1 2 2 0 0 1 1 3 2 0 0 2 1 3 2 1 0 2 1 3 2</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="w"><node id="n"><instance_geometry url="#g"><bind_material><technique_common>
<instance_material symbol="m" target="#m"><bind_vertex_input semantic="UV" input_semantic="TEXCOORD" input_set="0"/>
</instance_material></technique_common></bind_material></instance_geometry></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#w"/></scene></COLLADA>
"""
