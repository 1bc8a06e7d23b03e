"""Kernels that are symmetric between channels by construction."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hgru_vision.circuits.start import as_generator, xavier_kernel

__all__ = ["SymmetricKernel"]


class SymmetricKernel(nn.Module):
    """A kernel W with W[i, j] == W[j, i] to the bit (section 2, "hGRU formulation").

    Only the K (K + 1) / 2 kernels of the pairs i <= j are stored and trained. The same spatial
    offset is shared, with no flip: the weight from channel i to j at (dy, dx) is that from j to i
    at (dy, dx).

    Parameters
    ----------
    channels, kernel_size
        K and S.
    generator
        For the Xavier start, with the fans of the whole kernel; seed 0 if not given.

    Shape
    -----
    pairs : (K (K + 1) / 2, S, S), in the order (0, 0), (0, 1), ..., (1, 1), (1, 2), ...
    output : (K, K, S, S)

    Examples
    --------
    >>> kernel = SymmetricKernel(25, 15)
    >>> kernel.pairs.shape, kernel().shape
    (torch.Size([325, 15, 15]), torch.Size([25, 25, 15, 15]))
    >>> torch.equal(kernel(), kernel().transpose(0, 1))
    True
    """

    index: Tensor

    def __init__(
        self, channels: int, kernel_size: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        upper = torch.triu_indices(channels, channels)
        index = torch.empty(channels, channels, dtype=torch.long)
        index[upper[0], upper[1]] = torch.arange(upper.shape[1])
        index[upper[1], upper[0]] = torch.arange(upper.shape[1])
        self.register_buffer("index", index, persistent=False)
        self.pairs = nn.Parameter(
            xavier_kernel(
                upper.shape[1],
                kernel_size,
                kernel_size,
                fan=channels * kernel_size**2,
                generator=as_generator(generator),
            )
        )

    @property
    def inputs(self) -> int:
        """Weights whose products one unit sums up: K S^2."""
        return len(self.index) * self.pairs[0].numel()

    def forward(self) -> Tensor:
        """Expand to the whole kernel."""
        # Not `pairs[index]`: the gradient of that sorts, which takes longer than the convolutions.
        whole = self.pairs.index_select(0, self.index.flatten())
        return whole.unflatten(0, self.index.shape)

    @torch.no_grad()
    def set_whole(self, weight: Tensor) -> None:
        """Take the values of a whole kernel (K, K, S, S), which must be symmetric."""
        shape = (*self.index.shape, *self.pairs.shape[1:])
        if weight.shape != shape:
            raise ValueError(f"weight has shape {tuple(weight.shape)}; this kernel is {shape}")
        if not torch.equal(weight, weight.transpose(0, 1)):
            worst = (weight - weight.transpose(0, 1)).abs().max()
            raise ValueError(
                f"weight is not symmetric between channels (they differ by up to {worst:.3g}); "
                "pass (weight + weight.transpose(0, 1)) / 2"
            )
        rows, columns = torch.triu_indices(*self.index.shape)
        self.pairs.copy_(weight[rows, columns])
