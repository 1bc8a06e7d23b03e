"""The networks of the study: `create_model` makes one by its name, `list_models` names them."""

from hgru_vision.models.registry import create_model, list_models

__all__ = ["create_model", "list_models"]
