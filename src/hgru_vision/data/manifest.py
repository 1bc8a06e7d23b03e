"""The manifest of a directory of shards, and the check of the files against it.

`README.md` beside this file states the layout. A manifest holds nothing that differs between two
runs of one command (no time, host or path), so that an interrupted and resumed directory ends
byte-identical to one written in a single run.
"""

import hashlib
import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_origin

from hgru_vision.data.items import REQUIRED

MANIFEST_NAME = "manifest.json"
FORMAT_VERSION = 1
LISTING_SUFFIX = ".tsv"


class CorruptShardError(ValueError):
    """A file of a dataset is missing, truncated, changed or foreign; the message names it."""


def corrupt(path: object, what: str) -> CorruptShardError:
    """Make the error for a file, with what to do about it."""
    return CorruptShardError(
        f"{path}: {what}; restore it from a copy, or delete the directory and generate it again"
    )


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """One file of a shard: its path below the dataset's directory, its length and its hash."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Shard:
    """Items `start` to `stop` (exclusive) of the source, and the files that hold them."""

    number: int
    start: int
    stop: int
    files: tuple[FileEntry, ...]

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a directory holds: the source, the format, and every complete shard.

    Parameters
    ----------
    format
        `"npy"`, `"parquet"` or `"png"`.
    count
        Items of the whole dataset.
    shard_size
        Items of each shard but the last.
    source
        `source.describe()`: stimulus, config, seed, split, target, generator version, size.
    shards
        The complete shards, in order.
    format_version
        Version of the layout on disk.

    Examples
    --------
    >>> source = {"stimulus": "pathfinder", "target": "label", "height": 150, "width": 150}
    >>> manifest = Manifest(format="npy", count=25, shard_size=10, source=source | {"binary": True})
    >>> manifest.shard_count, manifest.shard_range(2), manifest.complete
    (3, (20, 25), False)
    """

    format: str
    format_version: int = FORMAT_VERSION
    count: int
    shard_size: int
    source: dict[str, Any]
    shards: tuple[Shard, ...] = ()

    @property
    def shard_count(self) -> int:
        """Shards of the complete dataset."""
        return -(-self.count // self.shard_size)

    @property
    def stored(self) -> int:
        """Items in the complete shards."""
        return self.shards[-1].stop if self.shards else 0

    @property
    def complete(self) -> bool:
        """Whether every item is stored."""
        return self.stored == self.count

    def shard_range(self, number: int) -> tuple[int, int]:
        """First and last (exclusive) item of shard `number`."""
        start = number * self.shard_size
        return start, min(start + self.shard_size, self.count)

    def resume_command(self, directory: Path) -> str:
        """Command that writes the shards which are not there yet, less options of the config."""
        options = {
            "length": self.source.get("config", {}).get("length"),
            "count": self.count,
            "seed": self.source.get("seed"),
            "split": self.source.get("split"),
            "target": self.source["target"],
            "format": self.format,
            "shard-size": self.shard_size,
            "out": directory,
        }
        words = ["hgru", "generate", self.source["stimulus"]]
        for name, value in options.items():
            if value is not None:
                words += [f"--{name}", str(value)]
        return shlex.join(words)

    def to_json(self) -> str:
        """Text of `manifest.json`."""
        return json.dumps(asdict(self), indent=1, allow_nan=False) + "\n"

    @classmethod
    def read(cls, directory: Path) -> "Manifest":
        """Read `manifest.json` of a directory.

        Raises
        ------
        FileNotFoundError
            If there is none.
        CorruptShardError
            If it is not a manifest, or its shards are not the ones that it should list.
        ValueError
            If it was written in another version of the layout.
        """
        path = directory / MANIFEST_NAME
        if not path.is_file():
            raise FileNotFoundError(
                f"{directory} holds no {MANIFEST_NAME}, so it is not a generated dataset; "
                "for folders of the authors or the Long Range Arena use ArchiveFolder"
            )
        try:
            contents = json.loads(path.read_text(encoding="utf-8"))
            version = contents["format_version"]
            if version != FORMAT_VERSION:
                raise ValueError(
                    f"{path}: format_version is {version}, this version of hgru-vision reads "
                    f"{FORMAT_VERSION}"
                )
            shards = tuple(
                _typed(Shard, each | {"files": tuple(_typed(FileEntry, f) for f in each["files"])})
                for each in contents["shards"]
            )
            manifest: Manifest = _typed(cls, contents | {"shards": shards})
            for key in REQUIRED:
                value = manifest.source[key]
                if key in ("height", "width") and type(value) is not int:
                    raise TypeError(f"{key} is {value!r}")
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
            raise corrupt(path, f"changed: not a manifest ({error!r})") from error
        for number, shard in enumerate(manifest.shards):
            found = shard.number, shard.start, shard.stop
            due = number, *manifest.shard_range(number)
            if found != due:
                raise corrupt(path, f"changed: (shard, start, stop) is {found}, {due} was due")
        return manifest

    def first_difference(self, other: "Manifest") -> tuple[str, Any, Any] | None:
        """First field, shards apart, in which two manifests differ, with both values."""
        mine, theirs = (dict(_fields(asdict(one) | {"shards": None})) for one in (self, other))
        for name in mine | theirs:
            pair = mine.get(name, "nothing"), theirs.get(name, "nothing")
            if pair[0] != pair[1]:
                return name, *pair
        return None


def _typed(kind: type, values: dict[str, Any]) -> Any:
    """Make a part of a manifest from what was read, or raise `TypeError` naming the wrong field."""
    made = kind(**values)
    for field in fields(made):
        value = getattr(made, field.name)
        if type(value) is not (get_origin(field.type) or field.type):
            raise TypeError(f"{field.name} is {value!r}")
    return made


def _fields(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested dictionaries under dotted names."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _fields(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def shard_entries(directory: Path, shard: Shard) -> Iterator[FileEntry]:
    """All files of a shard: those in the manifest, each listing followed by the files it lists."""
    for entry in shard.files:
        yield entry
        if entry.name.endswith(LISTING_SUFFIX):
            for line in (directory / entry.name).read_text(encoding="ascii").splitlines():
                name, size, digest = line.split("\t")
                yield FileEntry(name=name, bytes=int(size), sha256=digest)


def check_files(directory: Path, manifest: Manifest, *, hashes: bool) -> tuple[int, int]:
    """Compare every file with the manifest: presence and length, and the hash if asked.

    Parameters
    ----------
    directory, manifest
        The dataset.
    hashes
        Read every byte and compare its sha256.

    Returns
    -------
    tuple of int
        Number of files and of bytes.

    Raises
    ------
    CorruptShardError
        At the first file that is missing, truncated or changed.
    """
    files = total = 0
    for shard in manifest.shards:
        for entry in shard_entries(directory, shard):
            # A listing is believed only if it is the one that was written.
            _check_file(directory, entry, hashes=hashes or entry.name.endswith(LISTING_SUFFIX))
            files, total = files + 1, total + entry.bytes
    return files, total


def _check_file(directory: Path, entry: FileEntry, *, hashes: bool) -> None:
    path = directory / entry.name
    try:
        size = os.stat(path).st_size
    except FileNotFoundError:
        raise corrupt(path, "missing") from None
    if size < entry.bytes:
        raise corrupt(path, f"truncated: {size} of {entry.bytes} bytes")
    if size > entry.bytes:
        raise corrupt(path, f"changed: {size} bytes, {entry.bytes} were written")
    if hashes and file_hash(path) != entry.sha256:
        raise corrupt(path, f"changed: its sha256 is not the one in {MANIFEST_NAME}")


def file_hash(path: Path) -> str:
    """Hexadecimal sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
