"""hgru generate: stimuli to files, and the check of such files."""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from hgru_vision.commands.options import configure, save_figure
from hgru_vision.data.datasets import Pathfinder, Split, Target
from hgru_vision.data.manifest import Manifest
from hgru_vision.data.progress import progress_bar
from hgru_vision.data.store import SHARD_SIZE, write
from hgru_vision.data.store import verify as verify_files
from hgru_vision.stimuli import PathfinderConfig, ReleasedConfig


def pathfinder(
    out: Path | None = None,
    length: int | None = None,
    count: int = 10_000,
    seed: int = 0,
    preset: str = "paper",
    split: Split = "train",
    target: Target = "label",
    format: Literal["npy", "parquet", "png"] = "npy",
    shard_size: int = SHARD_SIZE,
    contact_sheet: Path | None = None,
    show_paths: bool = False,
    set: tuple[str, ...] = (),
) -> None:
    """Write Pathfinder images to files.

    Killed at any moment, the same command goes on where it stopped and ends with the same bytes.

    Example: hgru generate pathfinder --length 14 --count 1000000 --out pathfinder14

    Parameters
    ----------
    out
        Folder for the files.
    length
        Paddles in a target path; the paper has 6, 9 and 14 (the default of most presets).
    count
        Number of images.
    seed
        Of all images.
    preset
        paper, matched, authors, ...; `hgru presets` lists them.
    split
        Which of three disjoint streams of images.
    target
        Write labels, or the marked paths as masks besides.
    format
        npy to train from, parquet to publish, png as the authors' archive.
    shard_size
        Images in a file.
    contact_sheet
        Draw labelled examples to this picture (alone, or besides --out).
    show_paths
        Colour the target paths of the contact sheet.
    set
        Other fields of the configuration, such as --set canvas=300 contrast=0.8
    """
    if out is None and contact_sheet is None:
        raise ValueError("say where the images go: --out FOLDER, --contact-sheet FILE, or both")
    config = configure(preset, length, set)
    data = Pathfinder(count=count, seed=seed, split=split, target=target, config=config)
    if contact_sheet is not None:
        from hgru_vision.figures.contact_sheet import contact_sheet_figure

        save_figure(contact_sheet_figure(data, show_paths=show_paths), contact_sheet)
    if out is not None:
        with progress_bar(count, description=f"Writing {out}") as progress:
            write(data, out, format=format, shard_size=shard_size, progress=progress)
        print(f"{count:,} images in {out}; check them with: hgru generate --verify {out}")


def verify(folder: Annotated[Path, tyro.conf.Positional], regenerate: int = 100) -> None:
    """Check files that `hgru generate` wrote: every byte, and some images drawn anew.

    Example: hgru generate --verify pathfinder14

    Parameters
    ----------
    folder
        What --out was.
    regenerate
        Number of random images to draw again and compare.
    """
    source = rebuild(Manifest.read(folder)) if regenerate else None
    Console().print(str(verify_files(folder, source=source, regenerate=regenerate)))


def rebuild(manifest: Manifest) -> Pathfinder:
    """Make the dataset again from which a folder was written."""
    description = manifest.source
    kinds = {kind.__name__: kind for kind in (PathfinderConfig, ReleasedConfig)}
    kind = kinds.get(description.get("generator", ""))
    if kind is None:
        raise ValueError(
            f"these files were not drawn by a Pathfinder of this package (generator: "
            f"{description.get('generator')!r}); use --regenerate 0 to check their bytes alone"
        )
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in description["config"].items()
    }
    return Pathfinder(
        count=manifest.count,
        seed=description["seed"],
        split=description["split"],
        target=description["target"],
        config=kind(**fields),
    )
