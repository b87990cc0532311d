"""The server of the viewer answers the pages of this computer only, and meshes bring no pictures from elsewhere."""

import base64
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from test_viz import served

from urdf_ident.errors import MissingFileError
from urdf_ident.quoting import page_policy
from urdf_ident.viz.scene import _with_own_images


def status(url: str, **headers: str) -> int:
    """The answer to a request."""
    try:
        with urlopen(Request(url, headers=headers), timeout=5) as answer:
            return int(answer.status)
    except HTTPError as error:
        return int(error.code)


def test_the_viewer_answers_pages_of_this_computer_only() -> None:
    with served("<p>hello") as url:
        port = int(url.split(":")[2].split("/")[0])
        assert status(url) == 200
        for host in ("127.0.0.1", "localhost", "[::1]"):
            assert status(url, Host=f"{host}:{port}") == 200
            assert status(url, Host=f"{host}:{port}", Origin=f"http://{host}:{port}") == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil:{port}"):
            assert status(url, Host=host) == 403
            assert status(url, Origin=f"http://{host}") == 403
        for origin in ("null", "https://evil.example", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port}.evil.example"):
            assert status(url, Origin=origin) == 403


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
