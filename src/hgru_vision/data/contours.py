"""The Synthetic Contours Dataset, drawn when asked for."""

from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from hgru_vision.data.drawn import Drawing, DrawnDataset, Split, Target
from hgru_vision.stimuli.contours import ContourConfig, draw, images, labels, segmentations
from hgru_vision.stimuli.scenes import describe

__all__ = ["GENERATOR_VERSION", "SyntheticContours"]

# Raised whenever a change makes any image differ from what it was.
GENERATOR_VERSION = 1


class SyntheticContours(DrawnDataset):
    """Is there a contour among paddles that point anywhere? A map-style dataset, drawn on the fly.

    Item i is a pure function of the configuration, the seed, the split and i. Of items 2j and
    2j + 1 exactly one has a contour, so they make a trial of two alternatives.

    Parameters
    ----------
    length
        Paddles in a contour; the paper has 5, 9, 14 and 17.
    shear
        Shear factor; the paper has -0.6 (paddles of a contour are closest) to 0.6 (farthest).
    count
        Number of items; defaults to the paper's, 900,000 for training and 100,000 else.
    seed
        Of all images.
    split
        ``train``, ``validation`` or ``test``: disjoint streams of images.
    target
        ``label`` (1 if there is a contour) or ``segmentation`` (the pixels of the contour).
    config
        A configuration of your own, instead of a length and a shear.
    changes
        Other fields of `ContourConfig`, such as ``canvas`` or ``eccentricity``.

    Shape
    -----
    item: float32 (1, H, W) in [0, 1], and int or float32 (1, H, W)

    Examples
    --------
    >>> data = SyntheticContours(length=9, shear=0.2, count=100, seed=0)
    >>> image, label = data[0]
    >>> tuple(image.shape), label in (0, 1), int(data.labels(range(100)).sum())
    ((1, 256, 256), True, 50)
    """

    kind = "contours"
    version = GENERATOR_VERSION
    drawing = Drawing(images, labels, segmentations, draw)

    def __init__(
        self,
        length: int | None = None,
        shear: float | None = None,
        count: int | None = None,
        seed: int = 0,
        split: Split = "train",
        target: Target = "label",
        *,
        config: ContourConfig | None = None,
        **changes: Any,
    ) -> None:
        if length is not None:
            changes["length"] = length
        if shear is not None:
            changes["shear"] = shear
        if config is not None and changes:
            raise TypeError(f"give config or {next(iter(changes))}, not both")
        config = _configure(changes) if config is None else config
        if not isinstance(config, ContourConfig):
            raise TypeError(f"config must be a ContourConfig; got {config!r}")
        super().__init__(config, count, seed, split, target)


def _configure(changes: dict[str, Any]) -> ContourConfig:
    names = [field.name for field in fields(ContourConfig)]
    for key in changes:
        if key not in names:
            near = get_close_matches(key, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {describe(names)}"
            raise TypeError(f"synthetic contours have no parameter {key!r}; {hint}")
    return ContourConfig(**changes)
