"""Recurrent batch norm: statistics of each step of their own (Cooijmans et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["NotTracking", "StepBatchNorm"]


class StepBatchNorm(nn.Module):
    """BN(h; delta, nu) = nu + delta (h - E[h]) / sqrt(Var[h] + eps) of Supp., hGRU-BN.

    Parameters
    ----------
    nu
        Starting shift, (K,), the same for all steps.
    steps
        How many steps have parameters and statistics of their own; later steps use the last, and
        1 shares them over time.
    momentum
        Of the running statistics, which evaluation uses.
    eps
        Added to the variance.

    Notes
    -----
    delta starts at 0.1, as Cooijmans et al. advise: at 1 the squashing functions saturate and
    gradients vanish.

    Shape
    -----
    h, output : (B, K, H, W)

    Examples
    --------
    >>> norm = StepBatchNorm(torch.zeros(3), steps=8)
    >>> norm(torch.rand(2, 3, 4, 4), t=0).shape
    torch.Size([2, 3, 4, 4])
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self, nu: Tensor, steps: int, *, momentum: float = 0.02, eps: float = 1e-3
    ) -> None:
        super().__init__()
        shape = steps, len(nu)
        self.momentum = momentum
        self.eps = eps
        self.delta = nn.Parameter(torch.full(shape, 0.1))
        self.nu = nn.Parameter(nu.detach().repeat(steps, 1))
        self.register_buffer("running_mean", torch.zeros(shape))
        self.register_buffer("running_var", torch.ones(shape))
        self._tracking = True

    def forward(self, h: Tensor, t: int) -> Tensor:
        """Normalise the activity of step `t`."""
        i = min(t, len(self.delta) - 1)
        momentum = self.momentum if self._tracking else 0.0
        return F.batch_norm(
            h,
            self.running_mean[i],
            self.running_var[i],
            self.delta[i],
            self.nu[i],
            training=self.training,
            momentum=momentum,
            eps=self.eps,
        )


class NotTracking:
    """Leave running statistics alone while a step is computed again, as often as it is."""

    def __init__(self, norms: Sequence[StepBatchNorm]) -> None:
        self.norms = norms

    def __enter__(self) -> None:
        for norm in self.norms:
            norm._tracking = False

    def __exit__(self, *_: object) -> None:
        for norm in self.norms:
            norm._tracking = True
