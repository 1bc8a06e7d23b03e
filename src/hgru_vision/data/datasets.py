"""The Pathfinder challenge, drawn when asked for."""

from typing import Any

from hgru_vision.data.drawn import SPLIT_SIZE, SPLIT_START, Drawing, DrawnDataset, Split, Target
from hgru_vision.stimuli import images, labels, preset, segmentations
from hgru_vision.stimuli.presets import Config
from hgru_vision.stimuli.scenes import draw

__all__ = ["GENERATOR_VERSION", "SPLIT_SIZE", "SPLIT_START", "Pathfinder", "Split", "Target"]

# Raised whenever a change makes any image differ from what it was.
GENERATOR_VERSION = 1


class Pathfinder(DrawnDataset):
    """The Pathfinder challenge as a map-style dataset, drawn on the fly.

    Item i is a pure function of the configuration, the seed, the split and i: workers, order and
    batches change nothing. Every even number of items has as many positives as negatives.

    Parameters
    ----------
    length
        Paddles in a target path; the paper has 6, 9 and 14. Defaults to the preset's own.
    count
        Number of items; defaults to the paper's, 900,000 for training and 100,000 else.
    seed
        Of all images.
    preset
        A name from `hgru_vision.stimuli.PRESETS`: ``paper`` (the default), ``matched``,
        ``authors``, ...
    split
        ``train``, ``validation`` or ``test``: disjoint streams of images.
    target
        ``label`` (1 if the markers are connected) or ``segmentation`` (the marked paths).
    config
        A configuration of your own, instead of a preset.
    changes
        Fields of the preset's configuration to change, such as ``canvas`` or ``contrast``.

    Shape
    -----
    item: float32 (1, H, W) in [0, 1], and int or float32 (1, H, W)

    Examples
    --------
    >>> data = Pathfinder(length=6, count=100, seed=0)
    >>> image, label = data[0]
    >>> tuple(image.shape), label in (0, 1)
    ((1, 150, 150), True)
    >>> data.batch([3, 1, 4]).shape, int(data.labels(range(100)).sum())
    ((3, 150, 150), 50)
    """

    kind = "pathfinder"
    version = GENERATOR_VERSION
    drawing = Drawing(images, labels, segmentations, draw)

    def __init__(
        self,
        length: int | None = None,
        count: int | None = None,
        seed: int = 0,
        preset: str | None = None,
        split: Split = "train",
        target: Target = "label",
        *,
        config: Config | None = None,
        **changes: Any,
    ) -> None:
        named = {"length": length, "preset": preset}
        given = [name for name, value in named.items() if value is not None] + list(changes)
        if config is not None and given:
            raise TypeError(f"give config or {given[0]}, not both")
        if config is None:
            config = _configure("paper" if preset is None else preset, length, changes)
        if not isinstance(config, Config):
            raise TypeError(
                "config must be a PathfinderConfig or a ReleasedConfig, such as preset('paper') "
                f"gives; got {config!r}"
            )
        if target == "label" and config.markers == 1:
            raise ValueError(
                "this Pathfinder has one marker, so there is nothing to classify; use "
                'target="segmentation" (hgru generate: --target segmentation, hgru train: --set '
                "target=segmentation) or markers=2"
            )
        super().__init__(config, count, seed, split, target)


def _configure(name: str, length: int | None, changes: dict[str, Any]) -> Config:
    return preset(name, length, **changes)
