"""hgru eval: how well a trained network does, and what its accuracy depends on."""

import json as json_module
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import nn

from hgru_vision.analysis.learning import name_of_alc
from hgru_vision.analysis.profile import Bin, accuracy_by_quantile
from hgru_vision.circuits.equilibrium import EquilibriumHGRU
from hgru_vision.commands.accuracy import as_number
from hgru_vision.commands.networks import Opened, open_network
from hgru_vision.commands.options import configure, parse_changes
from hgru_vision.data.archive_folder import ArchiveFolder
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.data.manifest import MANIFEST_NAME
from hgru_vision.data.progress import progress_bar
from hgru_vision.data.readers import ImageDataset, open_dataset
from hgru_vision.figures.evaluation import evaluation_figure
from hgru_vision.figures.style import check_picture, save_figure
from hgru_vision.papers.linsley2018 import BATCH_SIZE
from hgru_vision.stimuli.audit import audit, stratify
from hgru_vision.stimuli.scenes import cues
from hgru_vision.training.config import RunConfig, Source
from hgru_vision.training.data import final_data, pathfinder_config, trained_on
from hgru_vision.training.environment import pick_device
from hgru_vision.training.evaluate import Evaluation, find_circuit, reestimate_statistics
from hgru_vision.training.evaluate import evaluate as judge
from hgru_vision.training.files import check_output, replace_file

COUNT = 10_000
LEAST_AUDITED = 10  # images, of which a probe of five folds needs five of each label


def evaluate(
    network: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NETWORK")],
    preset: str | None = None,
    length: int | None = None,
    count: int | None = None,
    seed: int | None = None,
    images: Path | None = None,
    reduce: int = 1,
    exclude: tuple[str, ...] = (),
    steps: str | None = None,
    reestimate: int = 0,
    bins: int = 8,
    confidence: float = 0.9,
    batch: int = 256,
    device: str | None = None,
    figure: Path | None = None,
    json: Path | None = None,
    set: tuple[str, ...] = (),
) -> None:
    """Measure a trained network on test images of any Pathfinder, or on image files.

    Accuracy with its interval and for each label, beside how well the label is read without
    following a path; by whether such a probe is right or wrong; by marker distance and path
    curvature; and, with --steps, by the number of steps that its circuit runs.

    Example: hgru eval runs/hgru14 --preset matched --steps 1:16 --figure eval.png

    Example: hgru eval hgru.authors14 --images curv_contour_length_14 --reduce 2

    Parameters
    ----------
    network
        Folder of a run (hgru train), name of trained weights (hgru weights), or FILE.py:FUNCTION,
        a function without arguments that returns a trained torch module.
    preset
        paper, matched, authors, ...; `hgru presets` lists them. What the run was trained for, if
        not given.
    length
        Paddles in a target path; the run's, if not given.
    count
        Number of images, from the test split; 10,000 if not given. Of files the first; all if not
        given.
    seed
        Of the images; the run's, if not given.
    images
        Folder with images to take instead: one that hgru generate wrote, or one laid out as the
        authors' released program and the Long Range Arena do, with imgs/ and metadata/.
    reduce
        Take the mean of so many by so many pixels of the files of such a program: 2 shows the
        authors' images of 300 pixels at the 150 of the paper.
    exclude
        Files of such a program to leave out, such as imgs/0/sample_172.png.
    steps
        Also run the circuit for other numbers of steps: 1:16, or 4,8,12.
    reestimate
        Set batch norm's statistics from so many batches of the stream's training images first.
    bins
        Parts in which images are split by distance and by curvature.
    confidence
        Probability from which the probe counts as confident.
    batch
        Images at a time.
    device
        cpu, cuda, ...; a GPU if there is one.
    figure
        Draw the results to this picture.
    json
        Write the numbers to this file.
    set
        Other fields of the images' configuration, such as --set canvas=300 contrast=0.8
    """
    numbers = parse_steps(steps) if steps is not None else []
    if figure is not None:
        check_picture(figure)
    if json is not None:
        check_output(json)
    for name, value, fits, takes in (
        ("bins", bins, bins >= 1, "1 or more"),
        ("confidence", confidence, 0.5 < confidence < 1, "a number above 0.5 and below 1"),
        ("reestimate", reestimate, reestimate >= 0, "a number of batches, 0 or more"),
        ("batch", batch, batch >= 1, "1 or more"),
    ):
        if not fits:
            raise ValueError(f"--{name} is {value}; it must be {takes}")
    drawn = {"preset": preset, "length": length, "seed": seed, "set": set or None}
    files = {"exclude": exclude or None, "reduce": None if reduce == 1 else reduce}
    _check_flags(images, files, drawn | {"reestimate": reestimate or None})
    opened = open_network(network)
    own_steps = _own_steps(opened.network) if numbers else None  # refused before work is done
    place = pick_device(device)
    model = opened.network.to(place)
    if images is None:
        data, what = _data(opened.config, preset, length, set, count, seed)
        chosen = np.arange(len(data))
    else:
        data, what = _files(images, reduce, exclude), f"images in {images}"
        chosen = _first(count, len(data), images)
    if reestimate:
        reestimate_statistics(model, _training_batches(data, reestimate, place))

    def run(words: str, timesteps: int | None = None) -> Evaluation:
        with progress_bar(len(chosen), description=words) as progress:
            return judge(
                model,
                data,
                device=place,
                batch=batch,
                timesteps=timesteps,
                indices=chosen,
                progress=progress,
            )

    found = run("Running the network")
    report: dict[str, Any] = {"network": network, "task": data.describe(), **_summary(found)}
    if opened.result is not None:
        report["run"] = {"accuracy": opened.result.accuracy, "alc": opened.result.alc}
    console = Console(highlight=False)
    console.print(_headline(found, f"{len(chosen):,} {what}", opened))
    if data.describe()["target"] == "label":
        report["labels"] = _by_label(found, data.labels(chosen))
        parts = report["labels"].items()
        each = ", ".join(f"label {label} {part['accuracy']:.1%}" for label, part in parts)
        console.print(f"Right by label: {each}.")
    if images is not None:
        console.print("What a probe gets that follows no path is not known of files.")
        for note in _notes(opened.config, data, chosen, reduce):
            console.print(note)
    shares = None
    if found.overlap is None and isinstance(data, Pathfinder) and len(data) < LEAST_AUDITED:
        console.print(f"Too few images for a probe: it needs {LEAST_AUDITED}.")
    elif found.overlap is None and isinstance(data, Pathfinder):
        read = cues(data.config, data.seed, data.numbers(np.arange(len(data))))
        audited = audit(read, seed=data.seed)
        shares = stratify(audited, found.right, confidence)
        distance = np.linalg.norm(read.markers[:, 1] - read.markers[:, 0], axis=1)
        report["shortcut"] = asdict(audited.best)
        report["strata"] = asdict(shares)
        report["by"] = {
            "marker distance (pixels)": accuracy_by_quantile(distance, found.right, bins),
            "turns of both paths (degrees)": accuracy_by_quantile(
                np.rad2deg(read.curvature), found.right, bins
            ),
        }
        console.print(
            f"Without following a path a probe gets {audited.best.accuracy:.1%} "
            f"({audited.best.features}, {audited.best.probe})."
        )
        console.print(shares.table())
        for name, parts in report["by"].items():
            console.print(_table(name, [(f"{p.start:.1f} to {p.end:.1f}", p) for p in parts]))
    if numbers:
        report["timesteps"] = own_steps
        report["steps"] = {number: _summary(run(f"{number} steps", number)) for number in numbers}
        console.print(_table("steps", list(report["steps"].items()), f"trained with {own_steps}"))
    if figure is not None:
        save_figure(evaluation_figure(report), figure)
        print(f"wrote {figure}")
    if json is not None:
        text = json_module.dumps(report, indent=2, default=asdict)
        replace_file(json, f"{text}\n".encode())
        print(f"wrote {json}")


def parse_steps(text: str) -> list[int]:
    """Read numbers of steps, ``1:16`` (both ends) or ``4,8,12``.

    >>> parse_steps("2:4"), parse_steps("8")
    ([2, 3, 4], [8])
    """
    try:
        first, colon, last = text.partition(":")
        if colon:
            numbers = list(range(int(first), int(last) + 1))
        else:
            numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise ValueError(f"--steps takes 1:16 or 4,8,12, numbers of 1 or more; got {text!r}")
    return numbers


def _check_flags(images: Path | None, files: dict[str, Any], drawn: dict[str, Any]) -> None:
    """Refuse flags of files where images are drawn, and the other way round."""
    for name, value in (files if images is None else drawn).items():
        if value is not None and images is None:
            raise ValueError(f"--{name} is for files; give --images FOLDER")
        if value is not None:
            raise ValueError(f"--{name} is for images that are drawn, --images for files")


def _data(
    config: RunConfig | None,
    preset: str | None,
    length: int | None,
    changes: tuple[str, ...],
    count: int | None,
    seed: int | None,
) -> tuple[ImageDataset, str]:
    """Open the images asked for and name them; what is not said is as in the run's own task."""
    task = None if config is None else config.task
    other = task is not None and (task.path is not None or task.dataset != "pathfinder")
    if config is not None and task is not None and other and preset is None:
        if any(given is not None for given in (length, count, seed)) or changes:
            raise ValueError(
                f"the run was trained on {_named(task)} and is judged on all those held out; "
                "--length, --count, --seed and --set are for images that are drawn, by --preset"
            )
        return final_data(config), f"images of {task.path or task.name}"
    if task is not None and preset is None:
        preset = task.preset
        merged = task.changes | parse_changes(preset, changes)
        length = task.length if length is None else length
        chosen = pathfinder_config(replace(task, length=length, changes=merged))
    else:
        preset = preset or "paper"
        if task is not None and not other and length is None:
            length = task.length
        chosen = configure(preset, length, changes)
    data = Pathfinder(
        count=COUNT if count is None else count,
        seed=seed if seed is not None else 0 if config is None else config.data_seed,
        split="test",
        target="label" if config is None else config.target,
        config=chosen,
    )
    return data, f"test images of {preset}-{chosen.length}"


def _files(folder: Path, reduce: int, exclude: tuple[str, ...]) -> ImageDataset:
    """Open a folder of images, whoever wrote it."""
    if not folder.is_dir():
        raise FileNotFoundError(f"--images {folder}: there is no such folder")
    if not (folder / MANIFEST_NAME).exists():
        return ArchiveFolder(folder, reduce=reduce, exclude=exclude)
    if reduce != 1 or exclude:
        raise ValueError(
            f"--reduce and --exclude are for images of other programs; hgru generate wrote {folder}"
        )
    return open_dataset(folder)


def _first(count: int | None, there: int, folder: Path) -> npt.NDArray[np.int64]:
    if count is not None and not 1 <= count <= there:
        raise ValueError(f"--count is {count}; {folder} holds {there:,} images")
    return np.arange(there if count is None else count)


def _notes(
    config: RunConfig | None, data: ImageDataset, chosen: npt.NDArray[np.int64], reduce: int
) -> Iterator[str]:
    """Say what of the files makes the accuracy another than that of the run."""
    if config is None:
        return
    if known := trained_on(config, data, chosen):
        yield f"[bold]{known:,} of them are among the images of its training.[/]"
    if size := _size_note(config, data, reduce):
        yield size


def _size_note(config: RunConfig, data: ImageDataset, reduce: int) -> str | None:
    """Say so if images are larger or smaller than those of the training."""
    if config.task.path is not None or config.task.dataset != "pathfinder":
        return None
    trained, description = pathfinder_config(config.task).size, data.describe()
    height, width = description["height"], description["width"]
    if height == width == trained:
        return None
    note = f"Images have {height} x {width} pixels, those of its training {trained} x {trained}"
    reducible = isinstance(data, ArchiveFolder) and height == width
    if reducible and height > trained and height % trained == 0:
        return f"{note}: --reduce {reduce * height // trained} makes them alike."
    return f"{note}."


def _named(task: Source) -> str:
    return f"the files in {task.path}" if task.path is not None else f"images of {task.name}"


def _training_batches(
    data: ImageDataset, batches: int, device: torch.device
) -> Iterator[torch.Tensor]:
    if not isinstance(data, Pathfinder):
        raise ValueError("--reestimate needs images that are drawn; give --preset")
    train = Pathfinder(
        count=batches * BATCH_SIZE, seed=data.seed, target=data.target, config=data.config
    )
    for start in range(0, len(train), BATCH_SIZE):
        images = torch.from_numpy(train.batch(np.arange(start, start + BATCH_SIZE)))
        yield images.to(device)[:, None].float() / 255


def _summary(found: Evaluation) -> dict[str, Any]:
    low, high = found.interval
    summary = {"accuracy": found.accuracy, "low": low, "high": high, "n": len(found.right)}
    if found.mean_overlap is not None:
        summary["overlap"] = found.mean_overlap
    return summary


def _by_label(found: Evaluation, labels: npt.NDArray[Any]) -> dict[int, dict[str, Any]]:
    """Summarise the images of each label apart."""
    parts = {}
    for label in np.unique(labels)[::-1].tolist():
        right = found.right[labels == label]
        part = Evaluation(correct=int(right.sum()), count=len(right), right=right)
        parts[label] = _summary(part)
    return parts


def _headline(found: Evaluation, images: str, opened: Opened) -> str:
    number, low, high = (
        as_number(each, found.boundaries) for each in (found.accuracy, *found.interval)
    )
    what = f"[bold]{number}[/] {'right' if found.overlap is None else 'of the pixels right'}"
    if found.boundaries:
        what = f"Pixel AUC [bold]{number}[/]"
    text = f"{what} on {escape(images)} ({low} to {high})."
    if found.mean_overlap is not None:
        text += f" Intersection over union {found.mean_overlap:.3f}."
    run = opened.result
    if run is not None and opened.config is not None and run.accuracy is not None:
        boundaries = opened.config.boundaries
        text += f" Its run ended at {as_number(run.accuracy, boundaries)}"
        if run.alc is not None:
            text += f", {name_of_alc([opened.config])} {as_number(run.alc, boundaries)}"
        text += "."
    if run is None and opened.config is not None:
        text += " Its run has not ended: these are the weights of its last checkpoint."
    return text


def _own_steps(network: nn.Module) -> int:
    circuit = find_circuit(network)
    return circuit.steps if isinstance(circuit, EquilibriumHGRU) else circuit.timesteps


def _table(
    name: str, rows: list[tuple[Any, Bin | dict[str, Any]]], caption: str | None = None
) -> Table:
    table = Table(title=f"Accuracy by {name}", caption=caption)
    for column in (name, "images", "accuracy", "95 % interval"):
        table.add_column(column, justify="right")
    for label, each in rows:
        values = each if isinstance(each, dict) else asdict(each)
        table.add_row(
            str(label),
            f"{values['n']:,}",
            f"{values['accuracy']:.1%}",
            f"{values['low']:.1%} to {values['high']:.1%}",
        )
    return table
