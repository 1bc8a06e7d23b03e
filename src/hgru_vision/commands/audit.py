"""hgru audit: what a Pathfinder's label can be read from."""

from pathlib import Path

import numpy as np
from rich.console import Console

from hgru_vision.commands.networks import open_network
from hgru_vision.commands.options import configure
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.data.progress import progress_bar
from hgru_vision.figures.audit import audit_figure
from hgru_vision.figures.style import check_picture, save_figure
from hgru_vision.stimuli.audit import audit, stratify
from hgru_vision.stimuli.scenes import cues
from hgru_vision.training.environment import pick_device
from hgru_vision.training.evaluate import evaluate
from hgru_vision.training.files import replace_file


def pathfinder(
    length: int | None = None,
    preset: str = "paper",
    count: int = 20_000,
    seed: int = 0,
    network: str | None = None,
    confidence: float = 0.9,
    figure: Path | None = None,
    json: Path | None = None,
    set: tuple[str, ...] = (),
) -> None:
    """Measure how well a Pathfinder's label can be read without following a path.

    Small probes are trained on marker distance, marker directions and more, and scored on images
    that they have not seen. With --network the accuracy of a trained network is split by whether
    the best probe is right, unsure or wrong.

    Example: hgru audit pathfinder --length 14 --preset authors --figure audit.png

    Parameters
    ----------
    length
        Paddles in a target path.
    preset
        paper, matched, authors, ...; `hgru presets` lists them.
    count
        Number of images, from the test split.
    seed
        Of the images and of the probes.
    network
        Folder of a run (hgru train), or FILE.py:FUNCTION, a function without arguments that
        returns a trained torch module which maps (B, 1, H, W) in [0, 1] to two logits.
    confidence
        Probability from which the probe counts as confident.
    figure
        Draw the audit to this picture.
    json
        Write the numbers to this file.
    set
        Other fields of the configuration, such as --set canvas=300 contrast=0.8
    """
    if figure is not None:
        check_picture(figure)  # before any work
    model = None if network is None else open_network(network).network.to(pick_device())
    data = Pathfinder(count=count, seed=seed, split="test", config=configure(preset, length, set))
    console = Console()
    read = cues(data.config, seed, data.numbers(np.arange(count)))
    report = audit(read, seed=seed)
    console.print(report.table())
    shares = None
    if model is not None:
        with progress_bar(count, description="Running the network") as progress:
            right = evaluate(model, data, progress=progress).right
        shares = stratify(report, right, confidence)
        console.print(shares.table())
    if figure is not None:
        save_figure(audit_figure(read, report, shares), figure)
        print(f"wrote {figure}")
    if json is not None:
        replace_file(json, f"{report.to_json()}\n".encode())
        print(f"wrote {json}")
