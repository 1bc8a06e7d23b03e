"""hgru audit: what a Pathfinder's label can be read from."""

from pathlib import Path

import numpy as np
from rich.console import Console

from hgru_vision.commands.options import configure, load_network, save_figure
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.data.progress import progress_bar
from hgru_vision.stimuli.audit import audit, predict, stratify
from hgru_vision.stimuli.scenes import cues

BATCH = 64


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
        FILE.py:FUNCTION, a function without arguments that returns a trained torch module which
        maps (B, 1, H, W) in [0, 1] to two logits.
    confidence
        Probability from which the probe counts as confident.
    figure
        Draw the audit to this picture.
    json
        Write the numbers to this file.
    set
        Other fields of the configuration, such as --set canvas=300 contrast=0.8
    """
    model = load_network(network) if network else None
    data = Pathfinder(count=count, seed=seed, split="test", config=configure(preset, length, set))
    console = Console()
    read = cues(data.config, seed, data.numbers(np.arange(count)))
    report = audit(read, seed=seed)
    console.print(report.table())
    shares = None
    if model is not None:
        with progress_bar(count, description="Running the network") as progress:

            def batches():  # type: ignore[no-untyped-def]
                for start in range(0, count, BATCH):
                    yield data.batch(np.arange(start, min(start + BATCH, count)))
                    if progress is not None:
                        progress(min(start + BATCH, count))

            predicted = predict(model, batches())
        shares = stratify(report, predicted == read.label, confidence)
        console.print(shares.table())
    if figure is not None:
        from hgru_vision.figures.audit import audit_figure

        save_figure(audit_figure(read, report, shares), figure)
    if json is not None:
        json.parent.mkdir(parents=True, exist_ok=True)
        json.write_text(report.to_json() + "\n")
        print(f"wrote {json}")
