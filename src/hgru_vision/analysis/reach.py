"""How far a circuit sees: what the state at one pixel owes to the drive at others."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from hgru_vision.analysis.dynamics import check_circuit
from hgru_vision.circuits.start import as_generator

__all__ = ["reach"]


def reach(
    network: nn.Module,
    images: Tensor,
    *,
    ring: int = 10,
    draws: int = 2,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Measure how the influence on the middle of an image falls with distance.

    The influence of a pixel is the derivative of H2[T] in the middle by the drive X at that pixel,
    a K x K matrix, of whose Frobenius norm the root mean square over the pixels of a ring and over
    the images is taken. Rings are square, as kernels are: a pixel is as far away as the larger of
    its two coordinates. Derivatives are computed without a Fourier transform, whose errors are as
    large far away as in the middle.

    Parameters
    ----------
    network
        As for `hgru_vision.analysis.dynamics.unfold`. It is left as it is.
    images
        Values from 0 to 1.
    ring
        Pixels from one distance to the next.
    draws
        Random vectors by which the norm is estimated; K of them make about as much work as the
        whole matrix.
    generator
        For these; a new one of seed 0 if not given.

    Returns
    -------
    Tensor
        Influence of the rings from 0, `ring`, 2 `ring`, ... pixels on, of those that lie wholly in
        the image, as a multiple of that of the first.

    Shape
    -----
    images : (B, 1, H, W); output : (min(H, W) // (2 ring),)

    Examples
    --------
    >>> from hgru_vision import create_model
    >>> found = reach(create_model("hgru_small"), torch.rand(1, 1, 40, 40), ring=5)
    >>> found.shape, bool((found.diff() < 0).all())
    (torch.Size([4]), True)
    """
    for name, value in (("ring", ring), ("draws", draws)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be 1 or more")
    height, width = images.shape[-2:]
    rings = min(height, width) // (2 * ring)
    if rings < 2:
        raise ValueError(
            f"rings of {ring} pixels do not fit twice into the half of an image of "
            f"{height} x {width}; give smaller ones"
        )
    network = copy.deepcopy(network).eval()
    circuit = check_circuit(network)
    circuit.backend = "reference"
    generator = as_generator(generator)
    like = next(network.parameters())
    with torch.no_grad():
        drive = network.get_submodule("input")(images.to(like))

    middle = height // 2, width // 2
    down = (torch.arange(height) - middle[0]).abs()
    across = (torch.arange(width) - middle[1]).abs()
    nearest = torch.maximum(down[:, None], across).to(like.device) // ring  # (H, W)
    squares = torch.zeros(height, width, dtype=like.dtype, device=like.device)
    for _ in range(draws):
        drive.requires_grad_()
        state = circuit(drive)[:, :, middle[0], middle[1]]  # (B, K)
        direction = torch.randn(state.shape[1], generator=generator, dtype=state.dtype)
        (gradient,) = torch.autograd.grad((state @ direction.to(state)).sum(), drive)
        squares += gradient.square().sum(dim=(0, 1))  # (H, W)
    influence = torch.stack([squares[nearest == each].mean().sqrt() for each in range(rings)])
    return (influence / influence[0]).cpu()
