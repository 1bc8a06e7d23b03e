"""Checkpoints: written so that a kill at any moment leaves a good one, and read without pickle."""

import io
import os
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import torch
from rich.console import Console
from torch import Tensor, nn

from hgru_vision.data import bsds_stream, contours, datasets
from hgru_vision.data.manifest import MANIFEST_NAME, file_hash
from hgru_vision.models.own import make_own
from hgru_vision.models.registry import Head, create_model
from hgru_vision.training.config import RunConfig
from hgru_vision.training.files import (
    CHECKPOINT,
    CHECKPOINTS,
    CONFIG,
    FRESH,
    PREVIOUS,
    WEIGHTS,
    check_same,
    flush_names,
    read_config,
    read_network,
    replace_file,
)

__all__ = ["CheckpointError", "build", "load_checkpoint", "load_run", "save_checkpoint"]

State = dict[str, Any]

# Of what draws the images, by the name that `Source.dataset` has.
VERSIONS = {
    "pathfinder": datasets.GENERATOR_VERSION,
    "contours": contours.GENERATOR_VERSION,
    "bsds500": bsds_stream.STREAM_VERSION,
}


class CheckpointError(ValueError):
    """No checkpoint of a folder can be read."""


def save_checkpoint(folder: Path, config: RunConfig, state: State) -> None:
    """Write a checkpoint, and keep the one before.

    Parameters
    ----------
    folder
        Of the run.
    config
        Of the run; it goes into the file.
    state
        Tensors, numbers, texts, and lists and dicts of these.
    """
    buffer = io.BytesIO()
    torch.save({"config": config.to_json(), "images": _images(config), **state}, buffer)
    replace_file(folder / FRESH, buffer.getvalue())
    # Killed between these lines the folder has the new one by its first name.
    if (folder / CHECKPOINT).exists():
        os.replace(folder / CHECKPOINT, folder / PREVIOUS)
    os.replace(folder / FRESH, folder / CHECKPOINT)
    flush_names(folder)


def load_checkpoint(folder: Path, config: RunConfig | None = None) -> State | None:
    """Read the newest checkpoint that is whole.

    Parameters
    ----------
    folder
        Of the run.
    config
        What the checkpoint must have been written with.

    Returns
    -------
    state or None
        None if there is no checkpoint.

    Raises
    ------
    CheckpointError
        If there are checkpoints and none is whole.
    ValueError
        If it is of another configuration; the fields are named.
    """
    paths = [path for name in CHECKPOINTS if (path := folder / name).exists()]
    broken = []
    for path in paths:
        try:
            state = _read(path)
        except Exception as error:  # a damaged zip or pickle may raise anything
            why = (str(error) or repr(error)).splitlines()[0]
            broken.append(f"{path} is truncated or damaged ({why})")
            continue
        if broken:
            told = f"{broken[0]}; going on from {path.name}"
            Console(stderr=True).print(told, markup=False, soft_wrap=True)
        if config is not None:
            _check(state, config, folder)
        return state
    if broken:
        raise CheckpointError(
            f"{'; '.join(broken)}; no whole checkpoint is left: start again in another folder"
        )
    return None


def _read(path: Path) -> State:
    with ZipFile(path) as archive:  # torch itself does not look at the check sums
        if damaged := archive.testzip():
            raise ValueError(f"bad check sum of {damaged}")
    state: State = torch.load(path, map_location="cpu", weights_only=True)
    return state


def _check(state: State, config: RunConfig, folder: Path) -> None:
    check_same(RunConfig.from_json(state["config"]), config, folder)
    here = _images(config)
    for name, before in state.get("images", {}).items():  # older checkpoints have none
        now = here.get(name, before)  # of files that are gone nothing is known
        if now != before:
            raise ValueError(
                f"{folder} was trained on images of {name}, version {before}, this is version "
                f"{now}, which are others; bring the old ones back, or start in another folder"
            )


def _images(config: RunConfig) -> dict[str, str]:
    """Give what tells the images of a run apart: the version of what draws, a digest of files."""
    found: dict[str, str] = {}
    for source in (each for stage in config.stages for each in stage.sources):
        if source.path is None or source.dataset != "pathfinder":
            found[source.dataset] = str(VERSIONS[source.dataset])
        elif (manifest := Path(source.path) / MANIFEST_NAME).is_file():
            found[source.path] = file_hash(manifest)[:12]
    return found


def build(config: RunConfig) -> nn.Module:
    """Make the network of a run, with its starting values."""
    if config.model_sha256 is not None:
        read_network(config)  # which refuses another file than the run's
        return make_own(config.reference, config.options, seed=config.seed)
    for name, field in (("seed", "seed"), ("head", "target")):
        if name in config.options:
            raise ValueError(
                f"options has {name}, which follows from the run's {field}: change {field} instead"
            )
    head: Head = "pixels" if config.target == "segmentation" else "classify"
    return create_model(config.model, seed=config.seed, head=head, **config.options)


def load_run(folder: str | os.PathLike[str]) -> tuple[nn.Module, RunConfig]:
    """Load the network of a run's folder.

    Parameters
    ----------
    folder
        What `train` wrote to. Of a run that has not ended, the newest checkpoint is taken.

    Returns
    -------
    network, config
        The network on the CPU, in evaluation mode.
    """
    folder = Path(folder)
    config = read_config(folder)
    if config is None:
        hint = "" if folder.exists() else "; for networks that come with the package: load_weights"
        raise FileNotFoundError(f"{folder} is no run's folder: it has no {CONFIG}{hint}")
    network = build(config)
    if (folder / WEIGHTS).exists():
        fill(network, folder / WEIGHTS)
    elif (state := load_checkpoint(folder, config)) is not None:
        network.load_state_dict(state["network"])
    else:
        raise FileNotFoundError(f"{folder} has neither {WEIGHTS} nor {CHECKPOINT} yet")
    return network.eval(), config


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a file of weights, or say that it is damaged."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged, or no file of weights: {error}") from None


def fill(network: nn.Module, path: Path) -> None:
    """Give a network the weights of a file, all of them, or say what does not fit."""
    try:
        network.load_state_dict(read_weights(path))
    except RuntimeError as error:
        first = str(error).strip().splitlines()[1:2]
        why = f": {first[0].strip()}" if first else ""
        raise ValueError(f"{path} has the weights of another network{why}") from None
