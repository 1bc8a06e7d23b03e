"""How the activity of a circuit unfolds over its steps, and how it spreads along a path.

All measures are of the output H2, of the trajectory that a circuit gives with
``return_trajectory=True``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HasStates", "activity", "change", "dynamics_figure", "mask_share", "norm"]

PANELS = 8  # steps that fit in the figure's row


class HasStates(Protocol):
    """Anything with the output over time as `h2`, (T, B, K, H, W): every circuit's trajectory."""

    @property
    def h2(self) -> Tensor:
        """Output H2 at each step."""


def activity(trajectory: HasStates) -> Tensor:
    """Map the activity at each step: the root mean square of H2 over channels.

    Parameters
    ----------
    trajectory
        States over time.

    Returns
    -------
    Tensor
        (T, B, H, W), without a graph.

    Examples
    --------
    >>> from hgru_vision.circuits import HGRU
    >>> layer = HGRU(channels=4, kernel_size=3, timesteps=6)
    >>> trajectory = layer(torch.ones(1, 4, 8, 8), return_trajectory=True)
    >>> activity(trajectory).shape
    torch.Size([6, 1, 8, 8])
    """
    return _output(trajectory).square().mean(dim=2).sqrt()


def norm(trajectory: HasStates) -> Tensor:
    """Measure the activity of each image at each step: the root mean square of all of H2.

    Parameters
    ----------
    trajectory
        States over time.

    Returns
    -------
    Tensor
        (T, B).

    Examples
    --------
    >>> from hgru_vision.circuits import Trajectory
    >>> norm(Trajectory(*[torch.full((3, 1, 2, 4, 4), -0.5)] * 4)).flatten().tolist()
    [0.5, 0.5, 0.5]
    """
    return _output(trajectory).square().mean(dim=(2, 3, 4)).sqrt()


def change(trajectory: HasStates) -> Tensor:
    """Measure convergence: how much of H2 is new at each step, ||H2[t] - H2[t-1]|| / ||H2[t]||.

    Parameters
    ----------
    trajectory
        States over time, two steps or more.

    Returns
    -------
    Tensor
        (T - 1, B): from the first step to the second, and so on. It falls to zero when the circuit
        settles, and is zero where the circuit is silent.

    Examples
    --------
    >>> from hgru_vision.circuits import Trajectory
    >>> halving = torch.tensor([1.0, 1.5, 1.75]).reshape(3, 1, 1, 1, 1)
    >>> [round(value, 3) for value in change(Trajectory(*[halving] * 4)).flatten().tolist()]
    [0.333, 0.143]
    """
    h2 = _output(trajectory)
    if len(h2) < 2:
        raise ValueError("a change needs two steps or more; the trajectory has 1")
    difference = torch.linalg.vector_norm(h2.diff(dim=0).flatten(2), dim=2)
    return _ratio(difference, torch.linalg.vector_norm(h2[1:].flatten(2), dim=2))


def mask_share(trajectory: HasStates, masks: Tensor | npt.NDArray[np.bool_]) -> Tensor:
    """Measure what fraction of the activity lies on each mask, at each step.

    Even activity has the share that a mask has of the image's area; what exceeds it was put there.

    Parameters
    ----------
    trajectory
        States over time.
    masks
        Pixels of each of M regions, such as the paths of a Pathfinder stimulus: one set for all
        images or one for each.

    Returns
    -------
    Tensor
        (T, B, M), the sum of `activity` on the mask by that of the whole image; zero where the
        circuit is silent.

    Shape
    -----
    masks : (M, H, W) or (B, M, H, W)

    Examples
    --------
    >>> from hgru_vision.circuits import Trajectory
    >>> left = torch.zeros(1, 4, 4, dtype=torch.bool)
    >>> left[:, :, 0] = True
    >>> mask_share(Trajectory(*[torch.ones(1, 1, 2, 4, 4)] * 4), left).item()
    0.25
    """
    maps = activity(trajectory)  # (T, B, H, W)
    regions = torch.as_tensor(masks, device=maps.device)
    batch, *size = maps.shape[1:]
    *front, height, width = regions.shape
    fits = [height, width] == size and (len(front) == 1 or (len(front) == 2 and front[0] == batch))
    if not fits or regions.dtype != torch.bool:
        raise ValueError(
            f"masks is {regions.dtype} of shape {tuple(regions.shape)}; it must be torch.bool of "
            f"shape (M, {size[0]}, {size[1]}) or ({batch}, M, {size[0]}, {size[1]})"
        )
    on_mask = (maps[:, :, None] * regions).sum(dim=(3, 4))  # (T, B, M)
    return _ratio(on_mask, maps.sum(dim=(2, 3))[..., None])


def dynamics_figure(
    trajectory: HasStates,
    image: Tensor | npt.NDArray[np.generic],
    masks: Tensor | npt.NDArray[np.bool_] | None = None,
    *,
    index: int = 0,
    labels: Sequence[str] | None = None,
) -> Figure:
    """Draw the input, the activity at each step, and the curves of the measures below.

    Parameters
    ----------
    trajectory
        States over time, two steps or more. At most eight steps are drawn, evenly spaced.
    image
        What the network saw: a `Stimulus.image`, or one item of a dataset.
    masks
        Regions to outline and follow, `stimulus.masks[:2]` for the target paths of a Pathfinder
        image.
    index
        Which image of the batch.
    labels
        Names of the masks; "path 1" and so on when they are not given.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; ``figure.savefig("dynamics.png")`` writes it.

    Shape
    -----
    image : (H, W) or (1, H, W)
    masks : (M, H, W)

    Examples
    --------
    >>> from hgru_vision.circuits import Trajectory
    >>> trajectory = Trajectory(*[torch.ones(3, 1, 2, 8, 8)] * 4)
    >>> figure = dynamics_figure(trajectory, np.zeros((8, 8)))
    >>> len(figure.axes)  # input, three steps, their scale, two curves
    7
    """
    from matplotlib.figure import Figure

    batch = _output(trajectory).shape[1]
    if not 0 <= index < batch:
        raise ValueError(f"index is {index}; the trajectory has images 0 to {batch - 1}")
    maps = activity(trajectory)[:, index].cpu().numpy()  # (T, H, W)
    picture = np.squeeze(np.asarray(image))
    if picture.shape != maps.shape[1:]:
        raise ValueError(
            f"image has shape {np.shape(image)}; the activity is {maps.shape[1]} x {maps.shape[2]}"
        )
    regions = np.zeros((0, *picture.shape), bool) if masks is None else np.asarray(masks)
    shares = mask_share(trajectory, regions)[:, index].cpu().numpy()  # (T, M)
    names = [f"path {m + 1}" for m in range(len(regions))] if labels is None else labels
    if len(names) != len(regions):
        raise ValueError(f"{len(names)} labels for {len(regions)} masks; give one for each")

    shown = np.unique(np.linspace(0, len(maps) - 1, PANELS).round().astype(int))
    columns = len(shown) + 1
    figure = Figure(figsize=(1.45 * columns, 4.2), dpi=150, layout="constrained")
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(1, 1.6))[:, 0]

    panels = above.subplots(1, columns)
    panels[0].imshow(picture, cmap="gray")
    panels[0].set_title("input")
    for m, region in enumerate(regions):
        panels[0].contour(region, levels=[0.5], colors=[f"C{m}"], linewidths=0.8)
    for axes, t in zip(panels[1:], shown, strict=True):
        drawn = axes.imshow(maps[t], cmap="magma", vmin=0, vmax=maps.max())
        axes.set_title(f"step {t + 1}")
    for axes in panels:
        axes.set(xticks=[], yticks=[])
    above.colorbar(drawn, ax=list(panels), shrink=0.7, label="activity")

    steps = np.arange(1, len(maps) + 1)
    size, settling, *paths = below.subplots(1, 3 if len(regions) else 2)
    size.plot(steps, norm(trajectory)[:, index].cpu(), "o-", color="black", markersize=3)
    size.set(title="norm", ylabel="RMS of H2", ylim=(0, None))
    changes = change(trajectory)[:, index].cpu()
    settling.plot(steps[1:], changes, "o-", color="black", markersize=3)
    if changes.any():  # all zero has no logarithm
        settling.set_yscale("log")
    settling.set(title="convergence", ylabel="relative change", xlim=size.get_xlim())
    for axes in paths:
        for m, name in enumerate(names):
            axes.plot(steps, 100 * shares[:, m], "o-", color=f"C{m}", markersize=3, label=name)
            axes.axhline(100 * regions[m].mean(), color=f"C{m}", linestyle=":", linewidth=1)
        axes.set(title="activity on a path (dotted: its area)", ylabel="share (%)")
        axes.margins(y=0.25)  # room for the names above the curves
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, loc="upper left", ncols=2)
    for axes in (size, settling, *paths):
        axes.set_xlabel("step")
        axes.locator_params(axis="x", integer=True)
    return figure


def _output(trajectory: HasStates) -> Tensor:
    h2 = getattr(trajectory, "h2", None)
    if not isinstance(h2, Tensor) or h2.ndim != 5:
        got = f"h2 of shape {tuple(h2.shape)}" if isinstance(h2, Tensor) else type(trajectory)
        raise TypeError(
            f"a trajectory has h2 of shape (T, B, K, H, W), got {got}; "
            "call the circuit with return_trajectory=True"
        )
    return h2.detach()


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    return torch.where(whole == 0, 0.0, part / whole)
