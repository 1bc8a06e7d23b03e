"""The three formats of a shard: one class each, with the same three methods.

A format is made for one source, whose description says the size of the images, whether they are
binary and whether there are masks. `names` says where shard n lies, `write` writes it below any
folder, `open` reads it back.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from hgru_vision.data.archive import decode_png, encode_png, metadata_rows, read_metadata
from hgru_vision.data.items import Items
from hgru_vision.data.manifest import CorruptShardError, Shard, corrupt

ROW_GROUP = 128  # images of a Parquet row group, the unit in which that format can be read


class ShardReader(Protocol):
    """An open shard; `rows` count from its first item."""

    labels: np.ndarray

    def images(self, rows: np.ndarray) -> np.ndarray:
        """Images, uint8 (n, H, W) in 0 to 255."""

    def masks(self, rows: np.ndarray) -> np.ndarray:
        """Segmentations, uint8 (n, H, W) in {0, 1}."""


class Format(Protocol):
    """How one source's shards are laid out in files."""

    def names(self, number: int) -> tuple[str, ...]:
        """Files and folders of shard `number`, below the dataset's directory."""

    def write(self, folder: Path, number: int, chunks: Iterable[Items]) -> None:
        """Write shard `number` below `folder`."""

    def open(self, directory: Path, shard: Shard) -> ShardReader:
        """Open a shard for reading, or raise `CorruptShardError` if its headers are not right."""


class _Base:
    def __init__(self, source: dict[str, Any]) -> None:
        self.config: dict[str, Any] = source.get("config", {})
        self.height: int = source["height"]
        self.width: int = source["width"]
        self.binary: bool = source["binary"]
        self.segmentation: bool = source["target"] == "segmentation"


def _foreign(path: Path, kind: str, error: Exception) -> CorruptShardError:
    """Make the error for a file that is not what it should be; pass on what the system says.

    Too many open files, or one that may not be read, are no reason to generate it again.
    """
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    return corrupt(path, f"foreign: not {kind} ({error})")


# -- npy ------------------------------------------------------------------------------------------


class Npy(_Base):
    """Arrays to be memory-mapped: one bit a pixel if the source is binary, else one byte."""

    def names(self, number: int) -> tuple[str, ...]:
        """Files of a shard."""
        kinds = ["images", "labels"] + ["segmentations"] * self.segmentation
        return tuple(f"{kind}-{number:05d}.npy" for kind in kinds)

    def write(self, folder: Path, number: int, chunks: Iterable[Items]) -> None:
        """Write a shard."""
        images, labels, masks = [], [], []
        for chunk in chunks:
            images.append(_pack(chunk.images) if self.binary else chunk.images)
            labels.append(chunk.labels.astype(np.uint8))
            if chunk.masks is not None:
                masks.append(_pack(chunk.masks))
        folder.mkdir(parents=True, exist_ok=True)
        for name, parts in zip(self.names(number), (images, labels, masks), strict=False):
            _save(folder / name, np.concatenate(parts))

    def open(self, directory: Path, shard: Shard) -> "NpyReader":
        """Map a shard."""
        count, pixels = len(shard), self.height * self.width
        packed = (count, -(-pixels // 8))
        plain = (count, self.height, self.width)
        shapes = (packed if self.binary else plain, (count,), packed)
        arrays = [
            _map_array(directory / name, shape)
            for name, shape in zip(self.names(shard.number), shapes, strict=False)
        ]
        return NpyReader(arrays, (self.height, self.width))


class NpyReader:
    """Memory-mapped arrays of one shard."""

    def __init__(self, arrays: list[np.ndarray], size: tuple[int, int]) -> None:
        self._images = arrays[0]
        self.labels = np.array(arrays[1])  # read whole: a byte an item, and one file less to hold
        self._masks = arrays[2] if len(arrays) > 2 else None
        self._size = size

    def images(self, rows: np.ndarray) -> np.ndarray:
        """Images."""
        if self._images.ndim == 3:
            return self._images[rows]
        bits = _unpack(self._images[rows], self._size)
        return np.negative(bits, out=bits)  # modulo 256, 1 becomes 255

    def masks(self, rows: np.ndarray) -> np.ndarray:
        """Segmentations."""
        assert self._masks is not None
        return _unpack(self._masks[rows], self._size)


def _pack(images: np.ndarray) -> np.ndarray:
    return np.packbits(images.reshape(len(images), -1), axis=1)


def _unpack(packed: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    return np.unpackbits(packed, axis=1, count=size[0] * size[1]).reshape(-1, *size)


def _save(path: Path, array: np.ndarray) -> None:
    """Write what `np.save` writes, which however does not tell a full disk by its error number."""
    header = np.lib.format.header_data_from_array_1_0(array)
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(array.tobytes())


def _map_array(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # numpy raises many kinds for a damaged header
        raise _foreign(path, "a .npy file", error) from error
    if array.dtype != np.uint8 or array.shape != shape:
        raise corrupt(
            path,
            f"foreign: {array.dtype} array of shape {array.shape}, where uint8 of shape "
            f"{shape} was written",
        )
    return np.asarray(array)  # a plain array over the map: indexing a memmap object is slower


# -- parquet --------------------------------------------------------------------------------------


def _pyarrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "the parquet format needs pyarrow: pip install 'hgru-vision[data]'"
        ) from error
    return pyarrow, pyarrow.parquet


class Parquet(_Base):
    """One file a shard, images as PNG bytes: opens in the viewer of the Hugging Face hub."""

    def __init__(self, source: dict[str, Any]) -> None:
        super().__init__(source)
        self._arrow, self._parquet = _pyarrow()

    def names(self, number: int) -> tuple[str, ...]:
        """File of a shard."""
        return (f"shard-{number:05d}.parquet",)

    def _schema(self) -> Any:
        arrow = self._arrow
        image = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
        columns = {"index": arrow.int64(), "image": image, "label": arrow.int64()}
        if self.segmentation:
            columns["segmentation"] = image
        features = {
            name: {"_type": "Image"} if kind == image else {"_type": "Value", "dtype": "int64"}
            for name, kind in columns.items()
        }
        # The key under which the `datasets` library looks for the meaning of the columns.
        meaning = {"huggingface": json.dumps({"info": {"features": features}})}
        return arrow.schema(columns.items(), metadata=meaning)

    def write(self, folder: Path, number: int, chunks: Iterable[Items]) -> None:
        """Write a shard."""
        folder.mkdir(parents=True, exist_ok=True)
        schema = self._schema()
        path = folder / self.names(number)[0]
        # PNG bytes are compressed already.
        with self._parquet.ParquetWriter(
            path, schema, compression="none", use_dictionary=False
        ) as writer:
            for chunk in chunks:
                columns = {
                    "index": range(chunk.start, chunk.start + len(chunk.labels)),
                    "image": _cells(chunk.images),
                    "label": chunk.labels,
                }
                if chunk.masks is not None:
                    columns["segmentation"] = _cells(chunk.masks * np.uint8(255))
                writer.write_table(
                    self._arrow.table(columns, schema=schema), row_group_size=ROW_GROUP
                )

    def open(self, directory: Path, shard: Shard) -> "ParquetReader":
        """Open a shard."""
        path = directory / self.names(shard.number)[0]
        try:
            file = self._parquet.ParquetFile(path, memory_map=True)
        except (ValueError, OSError) as error:  # pyarrow's own are of these kinds
            raise _foreign(path, "a Parquet file", error) from error
        rows, columns = file.metadata.num_rows, file.schema_arrow.names
        if rows != len(shard) or columns != self._schema().names:
            raise corrupt(
                path,
                f"foreign: {rows} rows of {columns}, where {len(shard)} rows of "
                f"{self._schema().names} were written",
            )
        return ParquetReader(path, file, (self.height, self.width))


def _cells(images: np.ndarray) -> list[dict[str, bytes | None]]:
    return [{"bytes": encode_png(image), "path": None} for image in images]


class ParquetReader:
    """One Parquet file; a read takes the row groups that hold the rows."""

    def __init__(self, path: Path, file: Any, size: tuple[int, int]) -> None:
        self._path = path
        self._file = file
        self._lock = Lock()  # a ParquetFile does not stand two reads at a time
        self._size = size
        self.labels = self._column("label").to_numpy()
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._starts = np.cumsum([0, *sizes[:-1]])

    def _column(self, name: str) -> Any:
        return self._file.read(columns=[name], use_threads=False).column(name)

    def images(self, rows: np.ndarray) -> np.ndarray:
        """Images."""
        return self._decode("image", rows)

    def masks(self, rows: np.ndarray) -> np.ndarray:
        """Segmentations."""
        return (self._decode("segmentation", rows) > 0).astype(np.uint8)

    def _decode(self, column: str, rows: np.ndarray) -> np.ndarray:
        groups = np.searchsorted(self._starts, rows, side="right") - 1
        images: list[np.ndarray] = [np.empty(0)] * len(rows)
        for group in np.unique(groups):
            with self._lock:
                table = self._file.read_row_group(int(group), columns=[column], use_threads=False)
            cells = table.column(column).combine_chunks().field("bytes")
            for place in np.flatnonzero(groups == group):
                row = int(rows[place])
                data = cells[row - int(self._starts[group])].as_py()
                images[place] = _decode(data, f"{self._path}, {column} of row {row}", self._size)
        return np.stack(images)


def _decode(data: bytes, name: object, size: tuple[int, int]) -> np.ndarray:
    try:
        image = decode_png(data, name)
    except ValueError as error:
        raise CorruptShardError(str(error)) from error
    if image.shape != size:
        raise corrupt(name, f"foreign: an image of {image.shape}, where one of {size} was written")
    return image


# -- png ------------------------------------------------------------------------------------------


class Png(_Base):
    """PNG files in the authors' layout; a shard is one numbered folder.

    The manifest lists the metadata and a listing, and the listing (`listing/0.tsv`) the PNG files:
    a million entries would make the manifest itself too large to rewrite after each shard.
    """

    def names(self, number: int) -> tuple[str, ...]:
        """Folders and files of a shard."""
        folders = ["imgs"] + ["seg"] * self.segmentation
        return (
            *(f"{folder}/{number}" for folder in folders),
            f"metadata/{number}.npy",
            f"listing/{number}.tsv",
        )

    def write(self, folder: Path, number: int, chunks: Iterable[Items]) -> None:
        """Write a shard."""
        for name in self.names(number):
            path = folder / name
            (path.parent if path.suffix else path).mkdir(parents=True, exist_ok=True)
        labels: list[int] = []
        listing: list[str] = []
        for chunk in chunks:
            kinds = {"imgs": chunk.images}
            if chunk.masks is not None:
                kinds["seg"] = chunk.masks * np.uint8(255)
            for kind, images in kinds.items():
                for row, image in enumerate(images, len(labels)):
                    name, data = f"{kind}/{number}/sample_{row}.png", encode_png(image)
                    (folder / name).write_bytes(data)
                    listing.append(f"{name}\t{len(data)}\t{hashlib.sha256(data).hexdigest()}\n")
            if chunk.labels.max() > 1:
                raise ValueError(
                    f"source.labels returned {chunk.labels.max()}; the authors' archives know 0 "
                    "and 1: write npy or parquet"
                )
            labels += chunk.labels.tolist()
        rows = metadata_rows(number, labels, self.config, segmentation=self.segmentation)
        _save(folder / f"metadata/{number}.npy", rows)
        (folder / f"listing/{number}.tsv").write_bytes("".join(listing).encode("ascii"))

    def open(self, directory: Path, shard: Shard) -> "PngReader":
        """Open a shard."""
        path = directory / f"metadata/{shard.number}.npy"
        try:
            rows = read_metadata(path)
        except (ValueError, OSError) as error:
            raise _foreign(path, "metadata", error) from error
        if len(rows) != len(shard):
            raise corrupt(path, f"foreign: {len(rows)} rows, where {len(shard)} were written")
        folders = {kind: directory / kind / str(shard.number) for kind in ("imgs", "seg")}
        labels = np.array([row.label for row in rows])
        return PngReader(folders, labels, (self.height, self.width))


class PngReader:
    """PNG files of one shard."""

    def __init__(self, folders: dict[str, Path], labels: np.ndarray, size: tuple[int, int]) -> None:
        self._folders = folders
        self._size = size
        self.labels = labels

    def images(self, rows: np.ndarray) -> np.ndarray:
        """Images."""
        return self._read("imgs", rows)

    def masks(self, rows: np.ndarray) -> np.ndarray:
        """Segmentations."""
        return (self._read("seg", rows) > 0).astype(np.uint8)

    def _read(self, kind: str, rows: np.ndarray) -> np.ndarray:
        paths = [self._folders[kind] / f"sample_{row}.png" for row in rows]
        return np.stack([_decode(path.read_bytes(), path, self._size) for path in paths])


FORMATS: dict[str, type[Npy] | type[Parquet] | type[Png]] = {
    "npy": Npy,
    "parquet": Parquet,
    "png": Png,
}


def make_format(name: str, source: dict[str, Any]) -> Format:
    """Make the format called `name` for a source's description.

    Examples
    --------
    >>> source = {"target": "label", "height": 150, "width": 150, "binary": True}
    >>> make_format("npy", source).names(3)
    ('images-00003.npy', 'labels-00003.npy')
    """
    if name not in FORMATS:
        raise ValueError(f"format={name!r}; known are {', '.join(FORMATS)}")
    return FORMATS[name](source)
