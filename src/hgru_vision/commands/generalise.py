"""hgru generalise: a trained network on images of other kinds."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hgru_vision.analysis.conditions import AXES, Axis, Condition, conditions
from hgru_vision.analysis.generalisation import CONFIDENCE, Row, measure
from hgru_vision.commands.networks import open_network
from hgru_vision.stimuli.scenes import check_seed
from hgru_vision.training.environment import pick_device
from hgru_vision.training.files import check_output

FOLDER = Path("results") / "generalisation"


def generalise(
    network: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NETWORK")],
    axes: tuple[Axis, ...] = AXES,
    count: int = 10_000,
    seed: int | None = None,
    out: Path | None = None,
    batch: int = 256,
    device: str | None = None,
) -> None:
    """Measure a trained network on images of other kinds, one change at a time.

    Other path lengths, presets, canvases, numbers of paddles and numbers of steps; and images of
    its own length on which a probe that follows no path is confidently wrong. Each is a row of a
    file; the same command again measures what is missing. `hgru figures generalisation` draws it.

    Example: hgru generalise hgru.pathfinder14

    Parameters
    ----------
    network
        Name of trained weights (hgru weights), or the folder of a run (hgru train).
    axes
        What to change: some of length preset canvas density steps probe.
    count
        Test images of each condition; for probe the probe looks at four times as many.
    seed
        Of the images; the run's, if not given.
    out
        File for the rows; results/generalisation/NAME.jsonl if not given. Figures call the network
        by the name of its file, which may hold no other network.
    batch
        Images at a time.
    device
        cpu, cuda, ...; a GPU if there is one.
    """
    if count < 1:
        raise ValueError(f"--count must be 1 or more; got {count}")
    if seed is not None:
        check_seed(seed)
    if not axes:
        raise ValueError(f"--axes names nothing to change; give some of {' '.join(AXES)}")
    opened = open_network(network)
    if opened.config is None:
        raise ValueError(
            f"{network} does not say what it was trained on; give trained weights or a run's folder"
        )
    # A folder may be given as "."
    path = FOLDER / f"{Path(network).resolve().name}.jsonl" if out is None else out
    check_output(path)
    wanted = conditions(opened.config, opened.network, tuple(dict.fromkeys(axes)))
    console = Console(highlight=False)
    if opened.result is None:
        console.print("Its run has not ended: these are the weights of its last checkpoint.")

    def report(condition: Condition, found: Row | ValueError) -> None:
        place = f"({wanted.index(condition) + 1} of {len(wanted)}) "
        console.print(place + _line(condition, found), markup=False, soft_wrap=True)

    added = measure(
        opened.network.to(pick_device(device)),
        wanted,
        path,
        name=path.stem,
        trained=opened.config.task,
        images=count,
        seed=opened.config.data_seed if seed is None else seed,
        batch=batch,
        report=report,
    )
    console.print(f"{len(added)} of {len(wanted)} conditions measured now; {path}", markup=False)


def _line(condition: Condition, found: Row | ValueError) -> str:
    where = f"{condition.axis} {condition.value}"
    if isinstance(found, ValueError):
        return f"{where}: not measured; {found}"
    if condition.axis == "probe":
        where = f"{condition.value}, probe {CONFIDENCE:.0%} sure and wrong"
    if found.accuracy is None:
        return f"{where}: none of {found.images:,} images"
    low, high = found.interval
    return f"{where}: {found.accuracy:.1%} of {found.n:,} images ({low:.1%} to {high:.1%})"
