"""Starting values of the circuits' parameters (Supp., "Model architecture details").

Everything is drawn from a generator that is passed; no global random state is touched.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["as_generator", "chronos", "xavier_kernel", "xavier_vector"]


def as_generator(generator: torch.Generator | None) -> torch.Generator:
    """Return the generator, or a new one of seed 0."""
    return torch.Generator().manual_seed(0) if generator is None else generator


def xavier_kernel(*shape: int, fan: int, generator: torch.Generator) -> Tensor:
    """Draw kernel values from U(-a, a), a = sqrt(6 / (fan_in + fan_out)), both fans `fan`."""
    return _uniform(*shape, bound=math.sqrt(3 / fan), generator=generator)


def xavier_vector(channels: int, generator: torch.Generator) -> Tensor:
    """Draw one value a channel, (K, 1, 1), as Xavier's 1 -> K map: U(-a, a), a^2 = 6 / (1 + K)."""
    return _uniform(channels, 1, 1, bound=math.sqrt(6 / (1 + channels)), generator=generator)


def chronos(channels: int, timesteps: int, generator: torch.Generator) -> Tensor:
    """Draw gate biases -log U(1, T - 1), (K,), by Tallec & Ollivier (2018).

    A gate sigma(b) that lets in *new* values, as the mix of Eq. 9 does, then forgets over
    1 / sigma(b) = 1 + U(1, T - 1) steps. Zero for T of 1 or 2, which leave nothing to draw.
    """
    longest = max(timesteps - 1, 1)
    uniform = torch.rand(channels, generator=generator, device=generator.device)
    return -torch.log(1 + (longest - 1) * uniform).cpu()


def _uniform(*shape: int, bound: float, generator: torch.Generator) -> Tensor:
    return ((2 * torch.rand(shape, generator=generator, device=generator.device) - 1) * bound).cpu()
