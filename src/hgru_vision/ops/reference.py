"""The horizontal convolution as PyTorch has it: what the fast forms are judged against."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

__all__ = ["DirectKernel"]


# Equal only to itself: torch.compile asks for the hash of what it traces before it has fields.
@dataclass(frozen=True, eq=False)
class DirectKernel:
    """Convolve by `torch.nn.functional.conv2d`; there is nothing to prepare.

    Differentiable any number of times, in every dtype that `conv2d` takes.

    Parameters
    ----------
    weight
        (K_out, K_in, S, S), S odd.
    """

    weight: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Cross-correlate `x` (B, K_in, H, W) with the kernel: (B, K_out, H, W)."""
        return F.conv2d(x, self.weight, padding=self.weight.shape[-1] // 2)
