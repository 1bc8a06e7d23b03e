"""What the catalogue says about a network, and the arithmetic of parameters."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

__all__ = ["Entry", "Family", "batch_norm", "conv", "linear", "narrow", "readout"]

Family = Literal[
    "recurrent", "feedforward", "highway", "residual", "per-pixel", "beyond", "contours"
]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A network that `create_model` can make.

    Parameters
    ----------
    name
        Of the network and of the function that builds it.
    module
        File in `hgru_vision.models` that holds the function.
    family
        Model class of the paper, or "beyond" it.
    reference
        Place in the paper, or the citation of a network beyond it.
    parameters
        Number of trained parameters, by arithmetic from the definition; head "classify".
    epochs
        Training length of the paper.
    multiple
        How many times the hGRU's parameters the paper says that it has; None if it does not say.
    """

    name: str
    module: str
    family: Family
    reference: str
    parameters: int
    epochs: int
    multiple: float | None = None


def conv(inputs: int, outputs: int, kernel_size: int, *, bias: bool = True) -> int:
    """Count the parameters of a convolution.

    >>> conv(25, 16, 15)
    90016
    """
    return inputs * outputs * kernel_size**2 + bias * outputs


def linear(inputs: int, outputs: int) -> int:
    """Count the parameters of a linear layer with its bias.

    >>> linear(2, 2)
    6
    """
    return conv(inputs, outputs, 1)


def batch_norm(channels: int) -> int:
    """Count the parameters of batch norm: a scale and a shift a channel.

    >>> batch_norm(64)
    128
    """
    return 2 * channels


def readout(channels: int) -> int:
    """Count the parameters of the readout stage (Supp., "Readout stage").

    >>> readout(25)
    60
    """
    return conv(channels, 2, 1, bias=False) + batch_norm(2) + linear(2, 2)


def narrow(channels: int, fraction: float) -> int:
    """Give the channels, at least one, that a layer has in a network of a fraction of the size.

    A layer's count goes with the product of its channels on either side, hence the square root.

    >>> narrow(64, 1 / 2)
    45
    """
    return max(1, round(channels * sqrt(fraction)))
