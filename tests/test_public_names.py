"""What ``import urdf_ident`` offers: every public name is there, on first use."""

from __future__ import annotations

from importlib.metadata import version

import pytest

import urdf_ident as ui


@pytest.mark.parametrize("name", [name for name in ui.__all__ if name != "__version__"])
def test_every_public_name_loads(name: str) -> None:
    found = getattr(ui, name)
    assert found.__name__ == name
    assert found.__module__.startswith("urdf_ident.")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        ui.no_such_name


def test_the_version_is_the_installed_package_s() -> None:
    assert ui.__version__ == version("urdf-ident")


def test_the_prior_of_an_identification_is_named() -> None:
    model = ui.DynamicModel(ui.Robot.from_urdf(ui.robot_path("puma560")))
    with pytest.raises(ui.EstimationError, match="unknown prior"):
        ui.identify(model, [], prior="cad")
    with pytest.raises(ui.LogError):  # the next check: no log was given
        ui.identify(model, [], prior="urdf")
