"""Write a source to shards on disk, resume after a kill, verify.

A shard is made under `.partial`, flushed to the disk, moved into place, and only then entered in
`manifest.json`, which is replaced in one step. So whatever the moment of a kill, the manifest names
whole shards alone, and since item i is a pure function of the source's description and i, a resumed
directory ends byte-identical to one written in a single run. `README.md` states the layout.
"""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hgru_vision.data.durable import (
    PARTIAL_NAME,
    flush,
    move_into_place,
    only_writer,
    partial_folder,
    remove,
)
from hgru_vision.data.formats import Format, make_format
from hgru_vision.data.items import CHUNK, Source, checked_description, draw
from hgru_vision.data.manifest import (
    MANIFEST_NAME,
    CorruptShardError,
    FileEntry,
    Manifest,
    Shard,
    check_files,
    corrupt,
    file_hash,
    shard_entries,
)
from hgru_vision.data.readers import StoredDataset

__all__ = [
    "CorruptShardError",
    "DiskFullError",
    "Manifest",
    "Source",
    "VerifyReport",
    "verify",
    "write",
]

SHARD_SIZE = 10_000  # 28 MB of packed 150x150 images
DATA_SUFFIXES = frozenset({".npy", ".parquet", ".png", ".tsv"})


class DiskFullError(OSError):
    """The disk is full; complete shards are kept and the same command resumes."""


def write(
    source: Source,
    out: str | os.PathLike[str],
    *,
    format: str = "npy",
    shard_size: int = SHARD_SIZE,
    progress: Callable[[int], None] | None = None,
) -> Manifest:
    """Write every item of a source, or those which are not there yet.

    Parameters
    ----------
    source
        Where the items come from.
    out
        Directory; made if need be. It is empty, or was written with the same arguments.
    format
        `"npy"` (bit-packed or uint8 arrays, to train from), `"parquet"` (PNG bytes, to publish) or
        `"png"` (the layout of the authors' archive).
    shard_size
        Items of a shard.
    progress
        Called with the number of items done; see `progress_bar`.

    Returns
    -------
    Manifest
        Of the complete directory.

    Raises
    ------
    ValueError
        If an argument or the source is wrong, or `out` was written with other ones: the first
        field that differs is named.
    FileExistsError
        If `out` holds other files and no manifest, or lies in a dataset.
    CorruptShardError
        If a shard written earlier is missing or truncated.
    DiskFullError
        If the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> class Blank:
    ...     def __len__(self): return 25
    ...     def batch(self, indices): return np.zeros((len(indices), 8, 8), np.uint8)
    ...     def labels(self, indices): return indices % 2
    ...     def describe(self):
    ...         return dict(stimulus="blank", target="label", height=8, width=8, binary=True)
    >>> manifest = write(Blank(), tempfile.mkdtemp(), shard_size=10)
    >>> [file.name for file in manifest.shards[2].files], manifest.shards[2].stop
    (['images-00002.npy', 'labels-00002.npy'], 25)
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; images need a folder")
    for above in filter(_is_dataset, out.absolute().parents):
        raise FileExistsError(
            f"{out} lies in the dataset {above}, which would take its files for foreign ones; give "
            "a folder outside it"
        )
    wanted = _plan(source, format, shard_size)
    layout = make_format(format, wanted.source)
    out.mkdir(parents=True, exist_ok=True)
    with only_writer(out):
        manifest = _start(out, wanted, layout)
        for number in range(len(manifest.shards), manifest.shard_count):
            manifest = _add_shard(out, manifest, layout, number, source, progress)
    return manifest


def _is_dataset(folder: Path) -> bool:
    """Whether a folder's manifest is one of ours; others use that name, too."""
    with contextlib.suppress(OSError, ValueError):
        Manifest.read(folder)
        return True
    return False


def _plan(source: Source, format: str, shard_size: int) -> Manifest:
    """Make the manifest of the directory before its first shard."""
    shard_size = _whole("shard_size", shard_size, least=1)
    if len(source) < 1:
        raise ValueError("the source holds no items; give it a count of 1 or more")
    description = checked_description(source)
    return Manifest(format=format, count=len(source), shard_size=shard_size, source=description)


def _whole(name: str, value: int, *, least: int) -> int:
    """Check a whole number; a manifest holds no other kind, and none of numpy's."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number; got {value!r}")
    if value < least:
        raise ValueError(f"{name}={value}; it must be {least} or more")
    return int(value)


def _start(out: Path, wanted: Manifest, layout: Format) -> Manifest:
    """Clear what a kill left, and read or write the manifest to go on from."""
    if not (out / MANIFEST_NAME).exists():
        if others := sorted(path.name for path in out.iterdir() if path.name != PARTIAL_NAME):
            raise FileExistsError(
                f"{out} holds {others[0]!r} (entries: {len(others)}) and no {MANIFEST_NAME}; "
                "give an empty or a new directory"
            )
        remove(out / PARTIAL_NAME)
        with _room(out, wanted), partial_folder(out) as partial:
            _write_manifest(partial, out, wanted)
        return wanted
    manifest = Manifest.read(out)
    if difference := manifest.first_difference(wanted):
        name, old, new = difference
        raise ValueError(
            f"{out} was written with {name} = {old!r}, now it is {new!r}; give the old value to "
            "resume or another directory"
        )
    check_files(out, manifest, hashes=False)
    remove(out / PARTIAL_NAME)
    if not manifest.complete:
        for name in layout.names(len(manifest.shards)):  # moved into place, not yet entered
            remove(out / name)
    return manifest


def _add_shard(
    out: Path,
    manifest: Manifest,
    layout: Format,
    number: int,
    source: Source,
    progress: Callable[[int], None] | None,
) -> Manifest:
    """Write one shard and enter it in the manifest."""
    start, stop = manifest.shard_range(number)
    names = layout.names(number)
    with _room(out, manifest), partial_folder(out) as partial:
        layout.write(partial, number, draw(source, manifest.source, start, stop, progress))
        flush(partial)
        files = tuple(
            FileEntry(name=name, bytes=path.stat().st_size, sha256=file_hash(path))
            for name in names
            if (path := partial / name).is_file()
        )
        for name in names:
            move_into_place(partial, out, name)
        shard = Shard(number=number, start=start, stop=stop, files=files)
        manifest = replace(manifest, shards=(*manifest.shards, shard))
        _write_manifest(partial, out, manifest)
    return manifest


def _write_manifest(partial: Path, out: Path, manifest: Manifest) -> None:
    (partial / MANIFEST_NAME).write_bytes(manifest.to_json().encode("utf-8"))
    flush(partial)
    move_into_place(partial, out, MANIFEST_NAME)


@contextlib.contextmanager
def _room(out: Path, manifest: Manifest) -> Iterator[None]:
    """Say what to do where the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFullError(
            error.errno,
            f"no space left in {out} for shard {len(manifest.shards)} (of {manifest.shard_count}, "
            f"from 0): the {manifest.count - manifest.stored:,} items that are left need about "
            f"{_bytes_left(out, manifest) / 1e6:,.1f} MB, "
            f"{shutil.disk_usage(out).free / 1e6:,.1f} MB are free. Complete shards are kept: make "
            "room and give the same command to resume",
        ) from error


def _bytes_left(out: Path, manifest: Manifest) -> float:
    """Estimate the bytes to come: by the first shard if it is there, else by the pixels."""
    if manifest.shards:
        first = manifest.shards[0]
        an_item = sum(entry.bytes for entry in shard_entries(out, first)) / len(first)
    else:
        source = manifest.source
        bits = (1 if source["binary"] else 8) + (source["target"] == "segmentation")
        an_item = source["height"] * source["width"] * bits / 8 + 1
    return an_item * (manifest.count - manifest.stored)


# -- Verify ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class VerifyReport:
    """What `verify` found in order."""

    directory: Path
    files: int
    bytes: int
    stored: int
    count: int
    regenerated: int

    def __str__(self) -> str:
        lines = [
            f"{self.directory}: {self.files:,} files, {self.bytes / 1e6:,.1f} MB, as written",
            f"{self.stored:,} of {self.count:,} items"
            + ("" if self.stored == self.count else " (incomplete)"),
        ]
        if self.regenerated:
            lines.append(f"{self.regenerated:,} items drawn again, equal")
        return "\n".join(lines)


def verify(
    directory: str | os.PathLike[str],
    *,
    source: Source | None = None,
    regenerate: int = 0,
    seed: int = 0,
) -> VerifyReport:
    """Check every byte of a dataset, and some of its items against the source.

    Parameters
    ----------
    directory
        What `write` made, complete or not.
    source
        The source it was made from; needed to draw items again.
    regenerate
        Number of random items to draw again and compare.
    seed
        Chooses these items.

    Returns
    -------
    VerifyReport
        Prints as a summary.

    Raises
    ------
    CorruptShardError
        Naming the first file which is missing, truncated, changed or foreign (a data file that the
        manifest does not list).
    ValueError
        If `regenerate` has no source, or one that describes itself otherwise than the manifest.

    Examples
    --------
    >>> import tempfile
    >>> class Blank:
    ...     def __len__(self): return 25
    ...     def batch(self, indices): return np.zeros((len(indices), 8, 8), np.uint8)
    ...     def labels(self, indices): return indices % 2
    ...     def describe(self):
    ...         return dict(stimulus="blank", target="label", height=8, width=8, binary=True)
    >>> folder = tempfile.mkdtemp()
    >>> _ = write(Blank(), folder)
    >>> verify(folder, source=Blank(), regenerate=5).regenerated
    5
    """
    directory = Path(directory)
    regenerate = _whole("regenerate", regenerate, least=0)
    manifest = Manifest.read(directory)
    files, total = check_files(directory, manifest, hashes=True)
    _check_foreign(directory, manifest)
    if regenerate and source is None:
        raise ValueError(f"regenerate={regenerate} needs the source that was written; pass source=")
    if source is not None:
        wanted = _plan(source, manifest.format, manifest.shard_size)
        if difference := manifest.first_difference(wanted):
            name, old, new = difference
            raise ValueError(
                f"{directory} was written with {name} = {old!r}, the source has {new!r}"
            )
        regenerate = min(regenerate, manifest.stored)
        chosen = np.random.default_rng(seed).permutation(manifest.stored)[:regenerate]
        _compare(StoredDataset(directory, manifest), source, np.sort(chosen))
    return VerifyReport(
        directory=directory,
        files=files,
        bytes=total,
        stored=manifest.stored,
        count=manifest.count,
        regenerated=regenerate,
    )


def _check_foreign(directory: Path, manifest: Manifest) -> None:
    known = {entry.name for shard in manifest.shards for entry in shard_entries(directory, shard)}
    layout = make_format(manifest.format, manifest.source)
    # What a kill may have left of the next shard; `write` removes it.
    leftovers = (PARTIAL_NAME, *layout.names(len(manifest.shards)))
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.suffix not in DATA_SUFFIXES or name in known or path.is_dir():
            continue
        if not any(name == left or name.startswith(f"{left}/") for left in leftovers):
            raise CorruptShardError(
                f"{path}: foreign: {MANIFEST_NAME} does not list it; move it elsewhere"
            )


def _compare(dataset: StoredDataset, source: Source, indices: np.ndarray) -> None:
    kinds = ["batch", "labels"] + ["segmentations"] * (
        dataset.describe()["target"] == "segmentation"
    )
    for first in range(0, len(indices), CHUNK):
        part = indices[first : first + CHUNK]
        for kind in kinds:
            stored, drawn = getattr(dataset, kind)(part), getattr(source, kind)(part)
            different = np.flatnonzero((stored != drawn).reshape(len(part), -1).any(axis=1))
            if different.size:
                index = int(part[different[0]])
                number = index // dataset.manifest.shard_size
                path = dataset.directory / dataset.layout.names(number)[0]
                raise corrupt(path, f"changed: {kind} of item {index} is not what the source draws")
