"""Models out of files: rigid or elastic, as :meth:`.DynamicModel.as_dict` wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .dynamic_model import DynamicModel
from .elasticity import ElasticModel


def model_from_dict(data: Mapping[str, Any]) -> DynamicModel:
    """Builds the model that ``as_dict`` described.

    Args:
        data: Its result, with the text of the URDF under ``urdf``.

    Returns:
        The model, elastic if it was; its columns are equal to the last bit.
    """
    return (ElasticModel if data.get("elastic") else DynamicModel).from_dict(data)
