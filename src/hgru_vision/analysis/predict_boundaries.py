"""Boundary maps of whole pictures from a trained network, into a folder."""

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from hgru_vision.data.bsds import BSDS500
from hgru_vision.data.durable import flush, remove
from hgru_vision.stimuli._types import Bytes, Floats
from hgru_vision.training.evaluate import as_input
from hgru_vision.training.files import flush_names

__all__ = ["predict_boundaries", "write_predictions"]

WHITE = 65_535  # maps are written with 16 bits: 99 thresholds and many low probabilities


def predict_boundaries(
    network: nn.Module, image: Bytes, device: torch.device | str = "cpu"
) -> Floats:
    """Give the probability of a boundary at each pixel.

    Parameters
    ----------
    network
        From (1, 3, H, W) in [0, 1] to two logits a pixel, on `device`, in evaluation mode.
    image
        A whole picture.
    device
        Where the network is.

    Shape
    -----
    image : uint8 (H, W, 3); output : (H, W) in [0, 1]
    """
    pixels = torch.from_numpy(image.transpose(2, 0, 1).copy())[None].to(device)
    with torch.no_grad():
        logits = network(as_input(pixels))
    wanted = (1, 2, *image.shape[:2])
    if tuple(logits.shape) != wanted:
        raise ValueError(
            f"the network must give two logits a pixel, a tensor of shape {wanted}, got "
            f"{tuple(logits.shape)}; was it trained on boundaries?"
        )
    return logits[0].double().softmax(dim=0)[1].cpu().numpy()


def write_predictions(
    network: nn.Module,
    data: BSDS500,
    folder: Path,
    *,
    device: torch.device | str = "cpu",
    progress: Callable[[int], None] | None = None,
) -> None:
    """Write a network's boundary maps of all pictures, ``ID.png`` in 16 bits of grey.

    The folder appears when the last map is written, whole or not at all.

    Parameters
    ----------
    network, device
        As `predict_boundaries` takes them.
    data
        The pictures.
    folder
        To be made; it must not exist.
    progress
        Called with the number of pictures done.
    """
    if folder.exists():
        raise FileExistsError(
            f"{folder} exists; score it as it is, or give a new folder for the run's predictions"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.partial")
    remove(partial)
    partial.mkdir()
    for done, name in enumerate(data.ids, 1):
        grey = np.rint(predict_boundaries(network, data.image(name), device) * WHITE)
        buffer = BytesIO()
        Image.fromarray(grey.astype(np.uint16)).save(buffer, "PNG")
        (partial / f"{name}.png").write_bytes(buffer.getvalue())
        if progress is not None:
            progress(done)
    flush(partial)
    os.replace(partial, folder)
    flush_names(folder.parent)
