"""The page on how one number comes about: every block runs, and the chain of functions gives the number of `identify`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import urdf_ident as ui

PAGE = (Path(__file__).parents[1] / "docs" / "one_number.md").read_text(encoding="utf-8")


def test_the_chain_gives_the_number_of_identify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        exec(compile(block, "one_number.md", "exec"), names)
    truth = ui.Robot.from_urdf(ui.robot_path("szabo_3r")).description.links["link_3"].theta[0]
    given = names["robot"].description.links["link_3"].theta[0]
    written = ui.Robot.from_urdf("identified.urdf").description.links["link_3"].theta[0]
    assert given == pytest.approx(1.2 * truth)
    assert names["number"] == pytest.approx(written, rel=0.02)
    assert abs(names["number"] - truth) < 0.5 * abs(given - truth)
    assert names["combinations"]
    assert "m_link_3" in names["columns"]
    for j, group in enumerate(names["model"].groups):
        torque, measured = names["rows"][j] @ names["theta"][group.columns], names["segment"].tau[names["samples"], j]
        assert np.std(torque - measured) < 0.2 * np.std(measured)


@pytest.mark.parametrize("name", re.findall(r"`((?:[a-z_]+\.)+[a-z_]+)`", PAGE))
def test_every_function_named_on_the_page_is_there(name: str) -> None:
    from importlib import import_module

    if name.endswith(".py") or name.startswith("tests"):
        return
    module, function = name.rsplit(".", 1)
    assert callable(getattr(import_module(f"urdf_ident.{module}"), function))
