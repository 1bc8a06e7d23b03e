"""How the activity of a circuit unfolds over its steps, and how it spreads along a path.

All measures are of the output H2, of the trajectory that a circuit gives with
``return_trajectory=True``. `unfold` takes them all of a network and an image.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from hgru_vision.circuits.base import Circuit
from hgru_vision.circuits.released import HGRUReleased
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.stimuli._types import Floats
from hgru_vision.stimuli.scenes import Stimulus
from hgru_vision.training.evaluate import as_input, evaluate

__all__ = [
    "HasStates",
    "Unfolding",
    "activity",
    "change",
    "check_circuit",
    "emphasis",
    "first_right",
    "mask_share",
    "norm",
    "unfold",
]

DIGITS = 5  # that are the same whatever order sums are taken in
TRIED, AT_ONCE = 256, 16  # images among which one that is got right is looked for


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


def emphasis(
    trajectory: HasStates,
    masks: Tensor | npt.NDArray[np.bool_],
    ground: Tensor | npt.NDArray[np.bool_],
) -> Tensor:
    """Measure how much more active a circuit is on each mask than on a ground, at each step.

    Parameters
    ----------
    trajectory
        States over time.
    masks
        Pixels of each of M regions, such as the target paths of a Pathfinder stimulus.
    ground
        Pixels to compare with, such as the distractors: drawn as the targets are, so that what is
        due to the drawing alone is the same on both.

    Returns
    -------
    Tensor
        (T, B, M), the mean of `activity` on the mask by that on the ground; zero where either is
        empty or silent.

    Shape
    -----
    masks : (M, H, W) or (B, M, H, W); ground : (1, H, W) or (B, 1, H, W)

    Examples
    --------
    >>> from hgru_vision.circuits import Trajectory
    >>> h2 = torch.tensor([3.0, 1.0, 0.0]).expand(1, 1, 2, 3, 3)  # by column
    >>> columns = torch.eye(3, dtype=torch.bool)[:, None].expand(3, 3, 3)
    >>> emphasis(Trajectory(*[h2] * 4), columns[:1], columns[1:2]).item()
    3.0
    """
    means = []
    for regions in (masks, ground):
        shares = mask_share(trajectory, regions)  # (T, B, M)
        pixels = torch.as_tensor(regions).sum(dim=(-2, -1)).to(shares)
        means.append(_ratio(shares, pixels.expand_as(shares)))
    return _ratio(means[0], means[1].expand_as(means[0]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Unfolding:
    """What a network does with one Pathfinder image, step by step.

    Parameters
    ----------
    item
        Number of the image in its dataset.
    image, label
        As drawn, and 1 if its markers are connected.
    paths
        Pixels of the two target paths by their names, the marked ones first.
    maps
        `activity`.
    norm, change
        As the functions of the same name give them.
    emphasis
        Of each path, over the distractors.
    probability
        Of "connected", as the readout would have it after each step. It was trained for the last.

    Shape
    -----
    image : uint8 (H, W); each path : bool (H, W); maps : (T, H, W)
    norm, probability, each emphasis : (T,); change : (T - 1,)
    """

    item: int
    image: npt.NDArray[np.uint8]
    label: int
    paths: dict[str, npt.NDArray[np.bool_]]
    maps: Floats
    norm: Floats
    change: Floats
    emphasis: dict[str, Floats]
    probability: Floats

    def to_json(self) -> dict[str, Any]:
        """Return all but the pictures as JSON can hold it."""
        curves = ("probability", "norm", "change")
        return {
            "item": self.item,
            "label": self.label,
            **{name: getattr(self, name).round(DIGITS).tolist() for name in curves},
            "emphasis": {
                name: values.round(DIGITS).tolist() for name, values in self.emphasis.items()
            },
        }


@torch.no_grad()
def unfold(network: nn.Module, data: Pathfinder, item: int) -> Unfolding:
    """Follow a network over its steps on one image.

    Parameters
    ----------
    network
        With an input stage ``input`` for grey images, a circuit ``features`` behind it and a
        ``readout`` with two logits an image, in evaluation mode: ``create_model("hgru").eval()``,
        its variants and controls, trained ones above all.
    data, item
        The image.

    Examples
    --------
    >>> from hgru_vision import Pathfinder, create_model
    >>> data = Pathfinder(length=6, count=2, canvas=64, seed_radius=8, distractor_paddles=10)
    >>> found = unfold(create_model("hgru_small").eval(), data, 0)
    >>> found.maps.shape, list(found.paths)
    ((4, 64, 64), ['marked path 1', 'marked path 2'])
    """
    circuit = check_circuit(network)
    stimulus = data.stimulus(item)
    like = next(network.parameters())
    images = as_input(torch.from_numpy(stimulus.image)[None].to(like.device), like.dtype)
    trajectory = circuit(network.get_submodule("input")(images), return_trajectory=True)
    states = trajectory.h2[:, 0]
    if isinstance(circuit, HGRUReleased):  # which normalises its last state for the readout
        states = circuit.norm(states)
    logits = network.get_submodule("readout")(states)  # (T, 2)

    paths = _paths(stimulus)
    distractors = stimulus.masks[2:].any(axis=0)
    brighter = emphasis(trajectory, np.stack(list(paths.values())), distractors[None])[:, 0]
    return Unfolding(
        item=item,
        image=stimulus.image,
        label=stimulus.label,
        paths=paths,
        maps=_numpy(activity(trajectory)[:, 0]),
        norm=_numpy(norm(trajectory)[:, 0]),
        change=_numpy(change(trajectory)[:, 0]),
        emphasis=dict(zip(paths, _numpy(brighter).T, strict=True)),
        probability=_numpy(logits.softmax(dim=1)[:, 1]),
    )


def first_right(network: nn.Module, data: Pathfinder, label: int) -> int:
    """Find the first image of a label that a network gets right.

    Parameters
    ----------
    network
        With two logits an image.
    data
        Images, of which the first 256 are looked at.
    label
        1 for images whose markers are connected, 0 for others.
    """
    tried = min(len(data), TRIED)
    for start in range(0, tried, AT_ONCE):
        items = np.arange(start, min(start + AT_ONCE, tried))
        items = items[data.labels(items) == label]
        if not len(items):
            continue
        right = evaluate(network, data, indices=items).right
        if right.any():
            return int(items[right.argmax()])
    raise ValueError(
        f"of the first {tried} test images it gets none with label {label} right; give a network "
        "that has learnt its task"
    )


def check_circuit(network: nn.Module) -> Circuit:
    """Give the circuit of a network that `unfold` can follow; refuse another network."""
    circuit = getattr(network, "features", None)
    stages = getattr(network, "input", None), getattr(network, "readout", None)
    if not isinstance(circuit, Circuit) or not all(isinstance(each, nn.Module) for each in stages):
        raise TypeError(
            f"{type(network).__name__} has no recurrent circuit `features` between an input stage "
            "`input` and a `readout`; the hGRU, its variants and the GRU have one"
        )
    return circuit


def _paths(stimulus: Stimulus) -> dict[str, npt.NDArray[np.bool_]]:
    """Name the target paths; the segmentation has those that are marked."""
    first, second = stimulus.masks[:2]
    if stimulus.label == 0:
        return {"marked path 1": first, "marked path 2": second}
    marked, other = (first, second) if stimulus.segmentation[first].all() else (second, first)
    return {"marked path": marked, "other path": other}


def _numpy(values: Tensor) -> Floats:
    return values.double().cpu().numpy()


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
