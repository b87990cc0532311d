"""What a release needs: absolute links in README, and one version everywhere."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "docs"))

from absolute_links import absolute  # noqa: E402
from bill_of_materials import bill  # noqa: E402


def test_links_to_files_become_absolute_and_others_stay() -> None:
    text = "![a](docs/play.png) [b](docs/a.md#x) [c](https://e.org/x) [d](#here) `f(x)[0](y)`"
    home = "https://example.org/me/urdf_ident/"
    told = absolute("![a](docs/play.png) [b](docs/a.md#x) [c](https://e.org/x) [d](#here)", home)
    assert told == (
        "![a](https://example.org/me/urdf_ident/raw/main/docs/play.png) "
        "[b](https://example.org/me/urdf_ident/blob/main/docs/a.md#x) [c](https://e.org/x) [d](#here)"
    )
    assert absolute(text, "") == text
    assert "](docs/" not in absolute((ROOT / "README.md").read_text(encoding="utf-8"), home)


def test_one_version_everywhere() -> None:
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version is not None
    assert f"## [{version[1]}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {version[1]}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_bill_of_materials_lists_what_the_wheel_brings_along() -> None:
    """Of this environment, as `pip inspect` describes it; fields as CycloneDX 1.5 requires them."""
    told = subprocess.run([sys.executable, "-m", "pip", "inspect"], capture_output=True, text=True, check=True)
    installed = json.loads(told.stdout)

    def plain(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    names = {plain(entry["metadata"]["name"]) for entry in installed["installed"]}
    if "urdf-ident" not in names:
        pytest.skip("urdf-ident is not installed here")
    found = bill(installed, "urdf-ident", b"wheel")
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    listed = {component["bom-ref"]: component for component in found["components"]}
    assert {plain(item["name"]) for item in listed.values()} == names - {"urdf-ident", "pip", "setuptools"}
    assert all(ref == item["purl"] and ref.startswith("pkg:pypi/") and item["version"] for ref, item in listed.items())
    own = found["metadata"]["component"]
    assert own["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"wheel").hexdigest()}]
    needed = {entry["ref"]: entry["dependsOn"] for entry in found["dependencies"]}
    assert set(needed) == {own["bom-ref"], *listed}
    assert any(ref.startswith("pkg:pypi/numpy@") for ref in needed[own["bom-ref"]])
    json.dumps(found)
