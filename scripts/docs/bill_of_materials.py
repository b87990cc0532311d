"""Writes a software bill of materials (CycloneDX 1.5) of an installed wheel.

python scripts/docs/bill_of_materials.py WHEEL INSTALLED.json OUT.cdx.json     INSTALLED.json: what `pip inspect` says
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote


def bill(installed: dict[str, Any], name: str, wheel: bytes) -> dict[str, Any]:
    """The bill of materials of one distribution; ``installed``: ``pip inspect`` of an environment that holds nothing else."""
    known = {_plain(entry["metadata"]["name"]): entry["metadata"] for entry in installed["installed"]}
    components = {key: _component(metadata) for key, metadata in known.items() if key not in ("pip", "setuptools")}
    own = components.pop(_plain(name))
    own["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(wheel).hexdigest()}]
    needed = [
        {
            "ref": component["bom-ref"],
            "dependsOn": sorted(
                {
                    components[other]["bom-ref"]
                    for text in known[_plain(component["name"])].get("requires_dist", [])
                    if (other := _plain(re.split(r"[\s\[<>=~!;(]", text)[0])) in components
                }
            ),
        }
        for component in (own, *components.values())
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": sorted(components.values(), key=lambda component: component["name"].lower()),
        "dependencies": needed,
    }


def _component(metadata: dict[str, Any]) -> dict[str, Any]:
    where = f"pkg:pypi/{_plain(metadata['name'])}@{quote(metadata['version'])}"
    entry = {"type": "library", "bom-ref": where, "name": metadata["name"], "version": metadata["version"], "purl": where}
    licence = " ".join((metadata.get("license_expression") or metadata.get("license") or "").split())[:200]
    return {**entry, **({"licenses": [{"license": {"name": licence}}]} if licence else {})}


def _plain(name: str) -> str:
    """The name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    wheel, installed, out = map(Path, sys.argv[1:])
    found = bill(json.loads(installed.read_text(encoding="utf-8")), "urdf-ident", wheel.read_bytes())
    out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {out.name}: {len(found['components'])} distributions")
