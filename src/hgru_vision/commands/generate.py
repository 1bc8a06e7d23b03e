"""hgru generate: stimuli to files, and the check of such files."""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from hgru_vision.commands.options import configure
from hgru_vision.data.contours import SyntheticContours
from hgru_vision.data.datasets import Pathfinder, Split, Target
from hgru_vision.data.manifest import Manifest
from hgru_vision.data.progress import progress_bar
from hgru_vision.data.store import SHARD_SIZE, write
from hgru_vision.data.store import verify as verify_files
from hgru_vision.stimuli import PathfinderConfig, ReleasedConfig
from hgru_vision.stimuli.contours import ContourConfig

SHEET = 12  # stimuli on a contact sheet of contours


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
    _check_somewhere(out, contact_sheet)
    config = configure(preset, length, set)
    data = Pathfinder(count=count, seed=seed, split=split, target=target, config=config)
    if contact_sheet is not None:
        from hgru_vision.figures.contact_sheet import contact_sheet_figure
        from hgru_vision.figures.style import save_figure

        save_figure(contact_sheet_figure(data, show_paths=show_paths), contact_sheet)
        print(f"wrote {contact_sheet}")
    _write(data, out, format, shard_size)


def contours(
    config: Annotated[ContourConfig, tyro.conf.arg(name="")],
    out: Path | None = None,
    count: int = 10_000,
    seed: int = 0,
    split: Split = "train",
    target: Target = "label",
    format: Literal["npy", "parquet", "png"] = "npy",
    shard_size: int = SHARD_SIZE,
    contact_sheet: Path | None = None,
    show_contour: bool = True,
) -> None:
    """Write synthetic contours to files: half the images have one, half have none.

    Killed at any moment, the same command goes on where it stopped and ends with the same bytes.

    Example: hgru generate contours --length 9 --shear 0.2 --count 1000 --out contours9

    Parameters
    ----------
    config
        The condition.
    out
        Folder for the files.
    count
        Number of images.
    seed
        Of all images.
    split
        Which of three disjoint streams of images.
    target
        Write labels, or the contours as masks besides.
    format
        npy to train from, parquet to publish, png as the authors' archive.
    shard_size
        Images in a file.
    contact_sheet
        Draw labelled examples to this picture (alone, or besides --out).
    show_contour
        Paint the contours of the contact sheet red.
    """
    _check_somewhere(out, contact_sheet)
    data = SyntheticContours(count=count, seed=seed, split=split, target=target, config=config)
    if contact_sheet is not None:
        from hgru_vision.figures.contours import contour_sheet_figure
        from hgru_vision.figures.style import save_figure

        stimuli = [data.stimulus(index) for index in range(min(count, SHEET))]
        save_figure(contour_sheet_figure(stimuli, show_contour=show_contour), contact_sheet)
        print(f"wrote {contact_sheet}")
    _write(data, out, format, shard_size)


def _check_somewhere(out: Path | None, contact_sheet: Path | None) -> None:
    if out is None and contact_sheet is None:
        raise ValueError("say where the images go: --out FOLDER, --contact-sheet FILE, or both")
    if out is None or contact_sheet is None:
        return
    if out.resolve() in contact_sheet.resolve().parents:
        raise ValueError(
            f"--contact-sheet {contact_sheet} lies in {out}, which is for the dataset alone; give "
            "it another place"
        )


def _write(
    data: Pathfinder | SyntheticContours, out: Path | None, format: str, shard_size: int
) -> None:
    if out is None:
        return
    count = len(data)
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
    if regenerate < 0:
        raise ValueError(f"--regenerate must be 0 or more; got {regenerate}")
    source = rebuild(Manifest.read(folder)) if regenerate else None
    found = verify_files(folder, source=source, regenerate=regenerate)
    print(found)
    if found.stored < found.count:
        raise ValueError(
            f"{folder} is incomplete; give the command that wrote it again, and it goes on"
        )


def rebuild(manifest: Manifest) -> Pathfinder | SyntheticContours:
    """Make the dataset again from which a folder was written."""
    description = manifest.source
    kinds: dict[str, tuple[Any, Any]] = {
        "PathfinderConfig": (Pathfinder, PathfinderConfig),
        "ReleasedConfig": (Pathfinder, ReleasedConfig),
        "ContourConfig": (SyntheticContours, ContourConfig),
    }
    generator = description.get("generator")
    if generator not in kinds:
        raise ValueError(
            f"these files were not drawn by a Pathfinder or synthetic contours of this package "
            f"(generator: {generator!r}); use --regenerate 0 to check their bytes alone"
        )
    dataset, configuration = kinds[generator]
    try:
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in description["config"].items()
        }
        return dataset(
            count=manifest.count,
            seed=description["seed"],
            split=description["split"],
            target=description["target"],
            config=configuration(**fields),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"the manifest does not say how its images were drawn ({error}); use --regenerate 0 to "
            "check their bytes alone"
        ) from None
