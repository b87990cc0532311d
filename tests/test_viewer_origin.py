"""The server of the viewer answers the pages of this computer only, and meshes bring no pictures from elsewhere."""

import asyncio
import base64
from pathlib import Path

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from urdf_ident.errors import MissingFileError, OutputError
from urdf_ident.quoting import page_policy
from urdf_ident.viz.player import Server
from urdf_ident.viz.scene import _with_own_images


def status(url: str, **headers: str) -> int:
    """The answer to a request, by the socket if the address is one; 101 if that is opened."""

    async def ask() -> int:
        request = HTTPRequest(url, headers=headers, request_timeout=5)
        if url.startswith("ws"):
            (await websocket_connect(request)).close()
            return 101
        return int((await AsyncHTTPClient().fetch(request)).code)

    try:
        return asyncio.run(ask())
    except HTTPClientError as error:
        return int(error.code)


@pytest.mark.parametrize("path", ["/play", "/static/", "/static/main.min.js", "/"])
def test_the_viewer_answers_its_own_pages_only(path: str) -> None:
    with Server(page_policy([])) as server:
        port = int(server.url.split(":")[2].split("/")[0])
        url, done = (f"ws://127.0.0.1:{port}/", 101) if path == "/" else (f"http://127.0.0.1:{port}{path}", 200)
        assert status(url) == done
        for host in ("127.0.0.1", "localhost", "[::1]"):
            assert status(url, Host=f"{host}:{port}") == done
            assert status(url, Host=f"{host}:{port}", Origin=f"http://{host}:{port}") == done
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil:{port}"):
            assert status(url, Host=host) == 403
            assert status(url, Origin=f"http://{host}") == 403
        for origin in ("null", "https://evil.example", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port}.evil.example"):
            assert status(url, Origin=origin) == 403


def test_pages_of_the_viewer_have_a_policy() -> None:
    async def policy(url: str) -> str:
        return str((await AsyncHTTPClient().fetch(url)).headers.get("Content-Security-Policy"))

    page = f'<meta http-equiv="Content-Security-Policy" content="{page_policy(["x"])}">'
    with Server(page) as server:
        port = server.url.split(":")[2].split("/")[0]

        async def body() -> bytes:
            return (await AsyncHTTPClient().fetch(server.url)).body

        assert f"connect-src ws://127.0.0.1:{port} ws://localhost:{port};" in asyncio.run(body()).decode()
        rules = asyncio.run(policy(server.url.replace("/play", "/static/")))
    assert "default-src 'none'; script-src 'self' 'sha256-" in rules
    assert "unsafe" not in rules.split("script-src")[1].split(";")[0]


def test_a_page_without_a_policy_is_not_served() -> None:
    with pytest.raises(OutputError, match="no rule"):
        Server("<p>hello</p>")


def test_a_policy_names_the_scripts_by_their_hashes() -> None:
    """The hash is the one of W3C's specification of the policy (CSP level 2, section 7.17.1)."""
    script = "alert('Hello, world.');"
    assert "script-src 'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=';" in page_policy([script])
    assert "script-src 'none'" in page_policy([])


@pytest.mark.parametrize(
    "reference",
    [
        "http://evil.example/a.png",
        "https://evil.example/a.png",
        "//evil.example/a.png",
        "file://evil.example/a.png",
        "\n ftp://evil.example/a.png ",
        "ht<b/>tp://evil.example/a.png",
        "http://evil.example/a.png?x=1&amp;y=2",
        "<ref>http://evil.example/a.png</ref>",
        "<!-- -->http://evil.example/a.png",
        "../evil.example.png",
        "evil.example.png",
    ],
)
def test_pictures_of_a_mesh_from_elsewhere_are_left_out(tmp_path: Path, reference: str) -> None:
    (tmp_path / "arm").mkdir()
    (tmp_path / "evil.example.png").write_bytes(b"secret")
    (tmp_path / "arm" / "evil.example.png").symlink_to(tmp_path / "evil.example.png")
    for text in (
        f"<COLLADA><image id='i'><init_from>{reference}</init_from></image></COLLADA>",
        f"<COLLADA><surface><init_from >{reference}</init_from\n></surface></COLLADA>",
        f"<COLLADA><image id='{reference}'><image></image><init_from>{reference}x</init_from></image></COLLADA>",
    ):
        found = _with_own_images(text, tmp_path / "arm" / "arm.dae")
        assert "evil" not in found.split("init_from", 1)[1]
        assert base64.b64encode(b"secret").decode() not in found
        assert "data:image/png;base64," in found


def test_pictures_beside_a_mesh_become_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "skin.PNG").write_bytes(b"picture")
    images = "<image id='skin'><init_from>skin.PNG</init_from></image>"
    text = f"<COLLADA>{images}<surface><init_from>skin</init_from></surface></COLLADA>"
    found = _with_own_images(text, tmp_path / "arm.dae")
    assert f"<init_from>data:image/png;base64,{base64.b64encode(b'picture').decode()}</init_from>" in found
    assert "<surface><init_from>skin</init_from></surface>" in found
    with pytest.raises(MissingFileError, match="document type"):
        _with_own_images('<!DOCTYPE a [<!ENTITY e "<init_from>http://evil.example</init_from>">]>' + text, tmp_path / "arm.dae")
