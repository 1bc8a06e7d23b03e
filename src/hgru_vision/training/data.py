"""Images of a run: which one comes when.

Image i of a stage is a pure function of (configuration, i). So a resumed run goes on with the very
images that an uninterrupted one would have seen, and each process of several draws its own share.
"""

import json
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from hgru_vision.data.bsds_stream import BoundaryCrops, BoundarySettings
from hgru_vision.data.contours import SyntheticContours
from hgru_vision.data.datasets import SPLIT_SIZE, Pathfinder, Split
from hgru_vision.data.epochs import shuffled
from hgru_vision.data.readers import ImageDataset, StoredDataset, open_dataset
from hgru_vision.stimuli import preset
from hgru_vision.stimuli._types import Array
from hgru_vision.stimuli.contours import ContourConfig
from hgru_vision.stimuli.presets import Config
from hgru_vision.stimuli.random import STREAM_SIZE, open_stream, uniform
from hgru_vision.training.config import RunConfig, Source, Stage, Target
from hgru_vision.training.fields import from_json

__all__ = [
    "Files",
    "Mixture",
    "check_data",
    "contour_config",
    "evaluation_data",
    "final_data",
    "pathfinder_config",
    "trained_on",
    "training_data",
]

# Stimuli use the purposes from 0; a stream with another purpose never meets theirs.
_MIXTURE = np.uint64(16)

# Of BSDS500: the number of pictures that a run asks for, and the split that they come from.
HELD_OUT: dict[str, tuple[str, Literal["val", "test"]]] = {
    "validation": ("evaluation_images", "val"),
    "test": ("test_images", "test"),
}


class Mixture(ImageDataset):
    """Images of several sources, item by item from one of them, or of a single source.

    Parameters
    ----------
    sources
        Datasets with images of one size.
    shares
        Of each source.
    seed
        Of the choice among sources and of the order of images that repeat.
    start
        Items count from this position of the sources' streams.
    count
        Number of items.
    unique
        Items repeat after so many, every time in a new order.
    """

    def __init__(
        self,
        sources: tuple[ImageDataset, ...],
        shares: tuple[float, ...],
        *,
        seed: int,
        start: int,
        count: int,
        unique: int | None = None,
    ) -> None:
        self.sources = sources
        self.seed, self.start, self.count, self.unique = seed, start, count, unique
        self._edges = np.cumsum(shares) / np.sum(shares)
        kinds = [_kind(source) for source in sources]
        for kind in kinds:
            if kind != kinds[0]:
                raise ValueError(
                    f"a mixture needs images of one size; its sources have {kinds[0]} and {kind}"
                )

    def __len__(self) -> int:
        return self.count

    def batch(self, indices: ArrayLike) -> np.ndarray:
        """Images, uint8 in 0 to 255: (n, H, W), or (n, 3, H, W) in colour."""
        return self._gather("batch", indices)

    def labels(self, indices: ArrayLike) -> np.ndarray:
        """Labels, int64 (n,)."""
        return self._gather("labels", indices)

    def segmentations(self, indices: ArrayLike) -> np.ndarray:
        """Masks, uint8 (n, H, W), as the sources give them."""
        return self._gather("segmentations", indices)

    def describe(self) -> dict[str, Any]:
        """Return the description of the last source."""
        return self.sources[-1].describe()

    def _gather(self, method: str, indices: ArrayLike) -> np.ndarray:
        """Ask each source for its items, and put them in the order asked for."""
        position = self._indices(indices)
        if self.unique is not None:
            position = shuffled(position, self.unique, self.seed)
        position = position + self.start
        if len(self.sources) == 1:
            return getattr(self.sources[0], method)(position)
        chosen = np.empty(len(position), np.int64)
        _choose(self.seed, position, self._edges, chosen)
        order = np.argsort(chosen, kind="stable")
        parts = [
            getattr(source, method)(position[chosen == number])
            for number, source in enumerate(self.sources)
        ]
        values = np.concatenate(parts)
        return values[np.argsort(order)]


class Files(ImageDataset):
    """Items first to last of a stored dataset: without end in a new order each time, or once."""

    def __init__(
        self, stored: StoredDataset, first: int, last: int, seed: int | None, target: Target
    ) -> None:
        self.stored, self.first, self.last, self.seed = stored, first, last, seed
        self.target = target

    def __len__(self) -> int:
        return self.last - self.first if self.seed is None else SPLIT_SIZE

    def batch(self, indices: ArrayLike) -> np.ndarray:
        """Images, uint8 (n, H, W) in 0 to 255."""
        return self.stored.batch(self._items(indices))

    def labels(self, indices: ArrayLike) -> np.ndarray:
        """Labels, int64 (n,)."""
        return self.stored.labels(self._items(indices))

    def segmentations(self, indices: ArrayLike) -> np.ndarray:
        """Masks, uint8 (n, H, W) in {0, 1}."""
        return self.stored.segmentations(self._items(indices))

    def describe(self) -> dict[str, Any]:
        """Return the description of the source that was written."""
        return self.stored.describe() | {"target": self.target}

    def _items(self, indices: ArrayLike) -> np.ndarray:
        position = self._indices(indices)
        if self.seed is not None:
            position = shuffled(position, self.last - self.first, self.seed)
        return position + self.first


def training_data(config: RunConfig, number: int) -> Mixture:
    """Give the training images of a stage; those of a stream come in no other stage.

    Examples
    --------
    >>> stage = Stage(sources=(Source(length=6),), images=64)
    >>> config = RunConfig(model="hgru", stages=(stage, stage))
    >>> first, second = training_data(config, 0), training_data(config, 1)
    >>> np.array_equal(first.sources[0].batch([64]), second.batch([0]))
    True
    """
    stage = config.stages[number]
    first, _ = _span(config, number)
    return _mixture(config, stage, "train", first, stage.images, stage.unique)


def _span(config: RunConfig, number: int) -> tuple[int, int]:
    """Give the part of its streams, first and end, that a stage takes its images from."""
    # Of `unique` images in another order a stage may show any, however few it shows.
    taken = [max(stage.images, stage.unique or 0) for stage in config.stages]
    stage, first = config.stages[number], sum(taken[:number])
    return first, first + (stage.unique or stage.images)


def evaluation_data(config: RunConfig, number: int) -> Mixture:
    """Give the images on which a stage is evaluated."""
    return _mixture(config, config.stages[number], "validation", 0, config.evaluation_images, None)


def final_data(config: RunConfig) -> ImageDataset:
    """Give the images on which the run is judged."""
    return _open(config, config.task, "test")


def check_data(config: RunConfig) -> None:
    """Open all that a run will need, so that what is missing is told before hours of work."""
    for number in range(len(config.stages)):
        training_data(config, number)
        evaluation_data(config, number)
    final_data(config)
    _check_apart(config)


def trained_on(config: RunConfig, data: ImageDataset, items: np.ndarray) -> int:
    """Count the items of a dataset that lie where a run takes its training images from.

    Files of a training that are not there any more are passed over.
    """
    stream, found = _stream(data), np.zeros(len(items), bool)
    for number, source in _sources(config):
        try:
            other, first, last = _trained(config, number, source)
        except (OSError, ValueError):
            continue
        if other == stream:
            found |= (items >= first) & (items < last)
    return int(found.sum())


def _sources(config: RunConfig) -> Iterator[tuple[int, Source]]:
    """Give the sources of all stages, with the stage's number, that have numbered images."""
    for number, stage in enumerate(config.stages):
        for source in stage.sources:
            if source.dataset != "bsds500":
                yield number, source


def _trained(config: RunConfig, number: int, source: Source) -> tuple[str, int, int]:
    """Tell the training images of a source: stream, first and end."""
    data = _open(config, source, "train")
    if isinstance(data, Files):
        return _stream(data), data.first, data.last
    return _stream(data), *_span(config, number)


def _check_apart(config: RunConfig) -> None:
    """Refuse to train on held-out items, be they drawn or files."""
    trained, held = [], []
    for number, source in _sources(config):
        trained.append((*_trained(config, number, source), f"stages[{number}], {source.name}"))
        data = _open(config, source, "train")
        if isinstance(data, Files):
            held.append((_stream(data), data.last, len(data.stored), source.name))
        else:
            held.append(_drawn(config, source, "validation"))
    if config.task.dataset != "bsds500" and config.task.path is None:
        held.append(_drawn(config, config.task, "test"))
    for stream, start, end, name in held:
        for other, first, last, where in trained:
            if stream == other and first < end and start < last:
                raise ValueError(
                    f"items {start} to {end - 1} of {name} are held out, and {where} trains on "
                    f"items {first} to {last - 1} of the same stream; generate the files with "
                    "another --seed"
                )


def _drawn(config: RunConfig, source: Source, split: Split) -> tuple[str, int, int, str]:
    """Tell the held-out images of a source that is drawn: stream, first, end and name."""
    data = _open(config, source, split)
    return _stream(data), 0, len(data), f"{source.name}, split {split},"


def _stream(data: ImageDataset) -> str:
    """Say which images, but not which of them, a dataset has."""
    keys = ("stimulus", "generator", "generator_version", "config", "seed", "split")
    return json.dumps({key: data.describe().get(key) for key in keys}, sort_keys=True)


def pathfinder_config(source: Source) -> Config:
    """Give the configuration of the images of a source that is drawn.

    Examples
    --------
    >>> pathfinder_config(Source(preset="lra-128", changes={"margins": [2, 3]})).margins
    (2, 3)
    """
    # JSON has no tuples, which some fields of a preset are.
    changes = {key: tuple(v) if isinstance(v, list) else v for key, v in source.changes.items()}
    return preset(source.preset, source.length, **changes)


def contour_config(source: Source) -> ContourConfig:
    """Give the configuration of the images of a source of synthetic contours.

    Examples
    --------
    >>> contour_config(Source(dataset="contours", length=5, changes={"shear": 0.2})).shear
    0.2
    """
    return SyntheticContours(length=source.length, count=1, **source.changes).config


def _mixture(
    config: RunConfig, stage: Stage, split: Split, start: int, count: int, unique: int | None
) -> Mixture:
    sources = tuple(_open(config, source, split) for source in stage.sources)
    return Mixture(
        sources, stage.shares, seed=config.data_seed, start=start, count=count, unique=unique
    )


def _open(config: RunConfig, source: Source, split: Split) -> ImageDataset:
    if source.dataset == "bsds500":
        return _open_natural(config, source, split)
    if source.path is not None:
        return _open_files(config, source.path, source.length, split)
    counts = {"validation": config.evaluation_images, "test": config.test_images}
    common: dict[str, Any] = {
        "count": counts.get(split, SPLIT_SIZE),
        "seed": config.data_seed,
        "split": split,
        "target": config.target,
    }
    if source.dataset == "contours":
        return SyntheticContours(config=contour_config(source), **common)
    return Pathfinder(config=pathfinder_config(source), **common)


def _open_natural(config: RunConfig, source: Source, split: Split) -> BoundaryCrops:
    if config.target != "segmentation":
        raise ValueError(
            f"bsds500 has boundaries and no labels, and the run's target is {config.target}; it "
            "must be segmentation"
        )
    assert source.path is not None  # a source without one is refused
    settings = from_json(BoundarySettings, source.changes, "changes")
    if split == "train":
        return BoundaryCrops(source.path, "train", settings, seed=config.data_seed)
    field, held_out = HELD_OUT[split]
    count = getattr(config, field)
    crops = BoundaryCrops(source.path, held_out, settings, count=count)
    if count > crops.epoch_size:
        raise ValueError(
            f"{field} must be at most {crops.epoch_size}, the pictures in split {held_out} of "
            f"{source.path}; got {count}"
        )
    return crops


def _open_files(config: RunConfig, path: str, length: int, split: Split) -> Files:
    stored = open_dataset(path)
    holds = stored.describe()["config"].get("length", length)
    if holds != length:
        raise ValueError(
            f"{path} holds paths of {holds} paddles, and length is {length}; give length={holds}"
        )
    if config.target == "segmentation" and stored.describe()["target"] != "segmentation":
        raise ValueError(
            f"{path} holds labels and the run's target is segmentation; write it anew with "
            "--target segmentation"
        )
    held = config.evaluation_images + config.test_images
    if len(stored) < held + config.batch:
        raise ValueError(
            f"{path} holds {len(stored)} images; {held} are held out (evaluation_images + "
            f"test_images) and a batch of {config.batch} must be left to train on"
        )
    first_test = len(stored) - config.test_images
    ranges = {
        "train": (0, len(stored) - held),
        "validation": (len(stored) - held, first_test),
        "test": (first_test, len(stored)),
    }
    seed = config.data_seed if split == "train" else None
    return Files(stored, *ranges[split], seed, config.target)


@njit(cache=True)
def _choose(seed: int, positions: Array, edges: Array, chosen: Array) -> None:
    """Choose a source for each item; items 2j and 2j + 1, one of each class, go together."""
    stream = np.empty(STREAM_SIZE, np.uint64)
    for row in range(positions.size):
        open_stream(stream, seed, positions[row] >> 1, _MIXTURE)
        chosen[row] = min(np.searchsorted(edges, uniform(stream), side="right"), edges.size - 1)


def _kind(source: ImageDataset) -> str:
    description = source.describe()
    size = f"{description['height']} x {description['width']} pixels"
    return f"{size} in colour" if description.get("channels", 1) == 3 else size
