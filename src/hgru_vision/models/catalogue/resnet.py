"""Sizes of the networks of `models/resnet.py`.

A network of a fraction of the parameters is as deep as the whole one, and every layer is narrower
by the square root of the fraction, to the nearest channel: the counts come to 0.501, 0.199 and
0.101 of the whole ResNet-152.
"""

from hgru_vision.models.catalogue.entry import Entry, batch_norm, conv, linear, narrow
from hgru_vision.papers.linsley2018 import EPOCHS_LARGE, FRACTIONS, RESNET152_MULTIPLE

__all__ = ["BLOCKS", "BOTTLENECK", "ENTRIES", "STAGE_CHANNELS", "has_bottlenecks"]

# He et al. (2016), table 1: residual blocks in each of the four stages, by depth.
BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3), 152: (3, 8, 36, 3)}
STAGE_CHANNELS = (64, 128, 256, 512)
BOTTLENECK = 4  # a bottleneck block's outputs are this many times its inner channels


def has_bottlenecks(depth: int) -> bool:
    """Say whether the blocks are of three layers, 1x1, 3x3 and 1x1, and not of two."""
    return depth >= 50


def _parameters(depth: int, fraction: float = 1) -> int:
    """Count the parameters for one input channel and two classes."""
    inputs = narrow(STAGE_CHANNELS[0], fraction)
    count = conv(1, inputs, 7, bias=False) + batch_norm(inputs)
    for stage, blocks in enumerate(BLOCKS[depth]):
        inner = narrow(STAGE_CHANNELS[stage], fraction)
        outputs = inner * BOTTLENECK if has_bottlenecks(depth) else inner
        for _ in range(blocks):
            count += _block(inputs, inner, outputs)
            if inputs != outputs:
                count += conv(inputs, outputs, 1, bias=False) + batch_norm(outputs)
            inputs = outputs
    return count + linear(inputs, 2)


def _block(inputs: int, inner: int, outputs: int) -> int:
    if inner == outputs:
        convolutions = conv(inputs, inner, 3, bias=False) + conv(inner, outputs, 3, bias=False)
        return convolutions + batch_norm(inner) + batch_norm(outputs)
    return (
        conv(inputs, inner, 1, bias=False)
        + conv(inner, inner, 3, bias=False)
        + conv(inner, outputs, 1, bias=False)
        + 2 * batch_norm(inner)
        + batch_norm(outputs)
    )


def _entry(name: str, depth: int, *, fraction: float = 1, multiple: float | None = None) -> Entry:
    return Entry(
        name=name,
        module="resnet",
        family="residual",
        reference='Main, "Residual networks"' if fraction == 1 else 'Supp., "Additional models"',
        parameters=_parameters(depth, fraction),
        epochs=EPOCHS_LARGE,
        multiple=multiple,
    )


ENTRIES: tuple[Entry, ...] = (
    _entry("resnet18", 18),
    _entry("resnet50", 50),
    _entry("resnet152", 152, multiple=RESNET152_MULTIPLE),
    *(_entry(f"resnet152_{name}", 152, fraction=1 / parts) for name, parts in FRACTIONS.items()),
)
