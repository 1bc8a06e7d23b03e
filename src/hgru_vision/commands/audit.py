"""hgru audit: what the label of a stimulus can be read from."""

from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console
from torch import nn

from hgru_vision.commands.networks import open_network
from hgru_vision.commands.options import configure
from hgru_vision.data.contours import SyntheticContours
from hgru_vision.data.datasets import SPLIT_START, Pathfinder
from hgru_vision.data.progress import progress_bar
from hgru_vision.data.readers import ImageDataset
from hgru_vision.figures.audit import audit_figure
from hgru_vision.figures.psychophysics_audit import contour_audit_figure
from hgru_vision.figures.style import check_picture, save_figure
from hgru_vision.stimuli.audit import (
    AuditReport,
    Stratification,
    audit,
    check_confidence,
    stratify,
)
from hgru_vision.stimuli.contour_audit import LINKING, audit_contours
from hgru_vision.stimuli.contours import ContourConfig
from hgru_vision.stimuli.scenes import cues
from hgru_vision.training.environment import pick_device
from hgru_vision.training.evaluate import evaluate
from hgru_vision.training.files import check_output, replace_file


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
        Folder of a run (hgru train), name of trained weights (hgru weights), or FILE.py:FUNCTION, a
        function without arguments that returns a trained torch module which maps (B, 1, H, W) in
        [0, 1] to two logits.
    confidence
        Probability from which the probe counts as confident.
    figure
        Draw the audit to this picture.
    json
        Write the numbers to this file.
    set
        Other fields of the configuration, such as --set canvas=300 contrast=0.8
    """
    model = _prepare(network, confidence, figure, json)
    data = Pathfinder(count=count, seed=seed, split="test", config=configure(preset, length, set))
    read = cues(data.config, seed, data.numbers(np.arange(count)))
    report = audit(read, seed=seed)
    Console().print(report.table())
    shares = _shares(model, data, report, confidence)
    if figure is not None:
        save_figure(audit_figure(read, report, shares), figure)
        print(f"wrote {figure}")
    _write(report, json)


def contours(
    config: Annotated[ContourConfig, tyro.conf.arg(name="")],
    count: int = 20_000,
    seed: int = 0,
    network: str | None = None,
    confidence: float = 0.9,
    figure: Path | None = None,
    json: Path | None = None,
) -> None:
    """Measure how well the presence of a contour can be read without linking its paddles.

    Small probes are trained on ink, directions and places of single paddles, and scored on images
    that they have not seen. They know the contour's direction and every angle. With --network the
    accuracy of a trained network is split by whether the best probe is right, unsure or wrong.

    Example: hgru audit contours --length 9 --no-scattered --figure audit.png

    Parameters
    ----------
    config
        The condition.
    count
        Number of images, even, from the test split.
    seed
        Of the images and of the probes.
    network
        Folder of a run (hgru train), name of trained weights (hgru weights), or FILE.py:FUNCTION, a
        function without arguments that returns a trained torch module which maps (B, 1, H, W) in
        [0, 1] to two logits.
    confidence
        Probability from which the probe counts as confident.
    figure
        Draw the audit to this picture.
    json
        Write the numbers to this file.
    """
    model = _prepare(network, confidence, figure, json)
    data = SyntheticContours(count=count, seed=seed, split="test", config=config)
    report = audit_contours(config, seed, count, first=SPLIT_START["test"])
    console = Console()
    console.print(report.table("Contour told without linking paddles"))
    console.print(f"{' and '.join(LINKING)}: the task itself, no shortcut", style="italic")
    shares = _shares(model, data, report, confidence)
    if figure is not None:
        save_figure(contour_audit_figure(report, shares), figure)
        print(f"wrote {figure}")
    _write(report, json)


def _prepare(
    network: str | None, confidence: float, figure: Path | None, json: Path | None
) -> nn.Module | None:
    """Refuse what cannot be done before any work; open the network, if there is."""
    check_confidence(confidence)
    if figure is not None:
        check_picture(figure)
    if json is not None:
        check_output(json)
    return None if network is None else open_network(network).network.to(pick_device())


def _shares(
    network: nn.Module | None, data: ImageDataset, report: AuditReport, confidence: float
) -> Stratification | None:
    """Split a network's accuracy by what the probe says, and print it."""
    if network is None:
        return None
    with progress_bar(len(data), description="Running the network") as progress:
        right = evaluate(network, data, progress=progress).right
    shares = stratify(report, right, confidence)
    Console().print(shares.table())
    return shares


def _write(report: AuditReport, json: Path | None) -> None:
    if json is not None:
        replace_file(json, f"{report.to_json()}\n".encode())
        print(f"wrote {json}")
