"""Weights to begin a run from: a shipped network's, a finished run's, or those of VGG16."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from hgru_vision.training.config import RunConfig
from hgru_vision.training.files import WEIGHTS, read_config

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["begin", "check_sum", "config_of"]

READOUT = "readout."


def check_sum(start: str) -> str:
    """Give the sha256 of the weights that a run is to begin from.

    Parameters
    ----------
    start
        As `RunConfig.start`.
    """
    with _file(start).open("rb") as stream:  # VGG16 is half a gigabyte
        return hashlib.file_digest(stream, "sha256").hexdigest()


def config_of(start: str) -> RunConfig:
    """Give the run that made the weights: of a shipped name or of a run's folder."""
    from hgru_vision.weights import card, list_weights

    if start in list_weights():
        return card(start).config
    config = read_config(Path(start))
    if config is None:
        raise FileNotFoundError(f"{start} is neither shipped weights nor the folder of a run")
    return config


def begin(network: nn.Module, config: RunConfig) -> None:
    """Put the weights that a run begins from into its network.

    Parameters
    ----------
    network
        Of the run, with its starting values.
    config
        Of the run; nothing happens if it begins from no weights.

    Raises
    ------
    ValueError
        If the weights are others than `start_sha256` says, or parameters are missing, unknown or of
        another shape; they are named.
    """
    if config.start is None:
        return
    found = check_sum(config.start)
    if found != config.start_sha256:
        raise ValueError(
            f"{config.start} holds other weights than the run began from: their sha256 is "
            f"{found[:12]}..., start_sha256 says {(config.start_sha256 or '')[:12]}..."
        )
    path = _file(config.start)
    if path.suffix != Path(WEIGHTS).suffix:
        _begin_from_vgg(network, path, config)
        return
    from hgru_vision.training.checkpoint import read_weights

    _take_over(network, read_weights(path), config)


def _begin_from_vgg(network: nn.Module, path: Path, config: RunConfig) -> None:
    from hgru_vision.models.contour import ContourNetwork, load_vgg16

    if not isinstance(network, ContourNetwork):
        raise ValueError(f"{path} holds layers of VGG16, and {config.model} has none of these")
    load_vgg16(network, path)


def _take_over(network: nn.Module, weights: dict[str, Tensor], config: RunConfig) -> None:
    wanted = network.state_dict()
    if not config.start_readout:
        if not any(name.startswith(READOUT) for name in wanted):
            raise ValueError(
                f"start_readout is false, but {config.model} has no part called readout"
            )
        weights = {k: value for k, value in weights.items() if not k.startswith(READOUT)}
        wanted = {k: value for k, value in wanted.items() if not k.startswith(READOUT)}
    wrong = [f"{name} is missing" for name in wanted if name not in weights]
    wrong += [f"{name} is not in {config.model}" for name in weights if name not in wanted]
    wrong += [
        f"{name} is {tuple(value.shape)} there and {tuple(wanted[name].shape)} here"
        for name, value in weights.items()
        if name in wanted and value.shape != wanted[name].shape
    ]
    if wrong:
        hint = ""
        if config.start_readout and all(each.startswith(READOUT) for each in wrong):
            hint = "; start_readout=False begins with a new readout"
        raise ValueError(
            f"the weights of {config.start} do not fit {config.model}: {'; '.join(wrong)}{hint}"
        )
    network.load_state_dict(weights, strict=False)


def _file(start: str) -> Path:
    """Find the file that holds the weights."""
    from hgru_vision.weights import FOLDER, list_weights

    if start in list_weights():
        return FOLDER / f"{start}.safetensors"
    path = Path(start)
    if path.is_dir():
        if not (path / WEIGHTS).exists():
            raise FileNotFoundError(
                f"{path} has no {WEIGHTS}: it is no run's folder, or the run has not ended"
            )
        return path / WEIGHTS
    if not path.is_file():
        raise FileNotFoundError(
            f"no weights {start!r} to start from; give a name that 'hgru weights' lists, the "
            "folder of a run, or a file with the layers of VGG16"
        )
    return path
