"""How well a network does on a stream of images, and what has to be in order before one asks.

`evaluate` runs the network; `override_timesteps` lets its circuit run shorter or longer than it was
trained for; `reestimate_statistics` brings batch norm up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from hgru_vision.circuits.base import Circuit
from hgru_vision.circuits.normalization import StepBatchNorm
from hgru_vision.data.readers import ImageDataset
from hgru_vision.intervals import wilson_interval
from hgru_vision.training.environment import is_of_memory
from hgru_vision.training.judging import judge

__all__ = [
    "Evaluation",
    "NetworkFailsError",
    "as_input",
    "check_logits",
    "evaluate",
    "find_circuit",
    "override_timesteps",
    "reestimate_statistics",
]

CONFIDENCE = 0.95
BATCH = 256  # images at a time


class NetworkFailsError(ValueError):
    """A network does not take the images that it is shown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What `evaluate` found.

    Parameters
    ----------
    correct, count
        Decisions that were right, and all of them: one an image, or one a pixel where the target is
        a segmentation or boundaries.
    right
        Of each image: whether it was right, or the share of its pixels that were. For boundaries,
        the area under the ROC curve of its pixels (`pixel_auc`): no threshold comes in, and one
        half is chance.
    overlap
        Of each image: intersection over union of the true and the predicted mask. None where the
        target is the label.
    boundaries
        Whether the target is boundaries.

    Shape
    -----
    right : bool or float64 (n,); overlap : float64 (n,)
    """

    correct: int
    count: int
    right: npt.NDArray[Any]
    overlap: npt.NDArray[np.float64] | None = None
    boundaries: bool = False

    @property
    def accuracy(self) -> float:
        """Share of the decisions that were right; for boundaries the mean AUC of the images."""
        return float(np.mean(self.right)) if self.boundaries else self.correct / self.count

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy: Wilson's, or of a mean over images for segmentations.

        Pixels of one image are not independent, so that the images count there.
        """
        if self.overlap is None:
            return wilson_interval(self.correct, self.count, CONFIDENCE)
        images = len(self.right)
        if images < 2:
            return 0.0, 1.0
        z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
        half = z * float(np.std(self.right, ddof=1)) / images**0.5
        return max(0.0, self.accuracy - half), min(1.0, self.accuracy + half)

    @property
    def mean_overlap(self) -> float | None:
        """Mean over images of the intersection over union; None where the target is the label."""
        return None if self.overlap is None else float(np.mean(self.overlap))


def evaluate(
    network: nn.Module,
    data: ImageDataset,
    *,
    device: torch.device | str | None = None,
    batch: int = BATCH,
    timesteps: int | None = None,
    indices: npt.ArrayLike | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Let a network decide about images that it is not trained on.

    The network runs in evaluation mode and is left in the mode in which it was found. Where its
    output is not finite, the decision counts as wrong (a circuit that looks for this itself, such
    as `EquilibriumHGRU`, raises an error). For other precisions call this inside
    `torch.autocast`.

    Parameters
    ----------
    network
        From images to two logits an image, or two a pixel, as the target of `data` is.
    data
        Images with labels or segmentations.
    device
        Where the network is; that of its first parameter if not given.
    batch
        Images at a time.
    timesteps
        Steps that its circuit runs, if not as many as it was made with; see `override_timesteps`.
    indices
        Items of `data` to take, such as the share of one process; all if not given.
    progress
        Called with the number of images done, after each batch.

    Returns
    -------
    evaluation
        Right decisions in all and of each image, in the order of `indices`.

    Shape
    -----
    network : (B, 1, H, W), or (B, 3, H, W) for images in colour -> (B, 2) or (B, 2, H, W)

    Examples
    --------
    >>> from hgru_vision.data.datasets import Pathfinder
    >>> class Undecided(nn.Module):
    ...     def forward(self, images):
    ...         return images.new_zeros(len(images), 2)
    >>> data = Pathfinder(length=6, count=8, split="test")
    >>> evaluate(Undecided(), data).accuracy
    0.5
    """
    if batch < 1:
        raise ValueError(f"batch is {batch}; it must be 1 or more")
    if not hasattr(data, "describe"):
        raise TypeError(
            f"data is {type(data).__name__}; give a dataset of this package, such as Pathfinder or "
            "what open_dataset makes of files"
        )
    items = np.arange(len(data)) if indices is None else np.asarray(indices)
    if len(items) == 0:
        raise ValueError("there is no image to evaluate on: indices is empty")
    kind = data.describe()["target"]
    pixels = kind != "label"
    like = next(network.parameters(), torch.empty(0))
    device = like.device if device is None else torch.device(device)
    found: list[Tensor] = []
    with ExitStack() as stack:
        stack.enter_context(_modes_restored(network))
        if timesteps is not None:
            stack.enter_context(override_timesteps(network, timesteps))
        # Not inference_mode: a constant that an operation keeps would be unusable in training.
        stack.enter_context(torch.no_grad())
        network.eval()
        for start in range(0, len(items), batch):
            part = items[start : start + batch]
            target = data.segmentations(part) if pixels else data.labels(part)
            images = as_input(_to_device(data.batch(part), device), like.dtype)
            logits = _decide(network, images)
            check_logits(logits, (len(part), 2, *(images.shape[2:] if pixels else ())))
            # Nothing is brought back before the end: while the device works, images are drawn.
            found.append(judge(logits, _to_device(target, device), kind == "boundaries"))
            if progress is not None:
                progress(start + len(part))
    return _summarise(torch.cat(found).cpu().numpy(), kind)


def _decide(network: nn.Module, images: Tensor) -> Tensor:
    """Run a network, and say on what images it failed."""
    try:
        logits: Tensor = network(images)
    except RuntimeError as error:
        if is_of_memory(error):
            raise
        first = str(error).strip().partition("\n")[0]
        raise NetworkFailsError(
            f"the network fails on images of shape {tuple(images.shape)}: {first}"
        ) from error
    return logits


def as_input(images: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Make bytes what a network takes, numbers from 0 to 1.

    Shape
    -----
    images : uint8 (B, H, W) or (B, 3, H, W); output : (B, 1, H, W) or (B, 3, H, W)

    Examples
    --------
    >>> as_input(torch.full((2, 4, 4), 255, dtype=torch.uint8)).shape
    torch.Size([2, 1, 4, 4])
    """
    grey = images.ndim == 3
    return (images.unsqueeze(1) if grey else images).to(dtype).div_(255)


@contextmanager
def override_timesteps(network: nn.Module, timesteps: int) -> Iterator[None]:
    """Let the circuit of a network run for another number of steps.

    Beyond the number that it was made with, what is learnt step by step goes on with its last
    value; see `Circuit.forward`.

    Parameters
    ----------
    network
        With one `Circuit` among its modules.
    timesteps
        1 or more.

    Examples
    --------
    >>> from hgru_vision.circuits import HGRU
    >>> layer, drive = HGRU(channels=2, kernel_size=3, timesteps=4), torch.ones(1, 2, 5, 5)
    >>> with override_timesteps(layer, 6):
    ...     longer = layer(drive)
    >>> torch.equal(longer, layer(drive, timesteps=6))
    True
    """
    if timesteps < 1:
        raise ValueError(f"timesteps is {timesteps}; it must be 1 or more")

    def set_steps(
        _: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return arguments, {**keywords, "timesteps": timesteps}

    hook = find_circuit(network).register_forward_pre_hook(set_steps, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def find_circuit(network: nn.Module) -> Circuit:
    """Find the one recurrent circuit among the modules of a network; refuse none or several."""
    circuits = [module for module in network.modules() if isinstance(module, Circuit)]
    if len(circuits) != 1:
        has = "no recurrent circuit" if not circuits else f"{len(circuits)} recurrent circuits"
        raise ValueError(
            f"{type(network).__name__} has {has}; a number of steps can be set for a network with "
            "one, such as the hGRU"
        )
    return circuits[0]


def reestimate_statistics(network: nn.Module, batches: Iterable[Tensor]) -> None:
    """Set batch norm's running statistics to their mean over some training batches.

    Running statistics follow features that still move, and a network with a training loss of 0.2
    can test at 52 % because of it. Batch norm alone runs in training mode here; momenta and modes
    are left as they were found. Weights do not change. Where several processes train, each gives
    its own batches and averages the statistics afterwards.

    Parameters
    ----------
    network
        To be changed; nothing happens if it has no batch norm that keeps running statistics.
    batches
        Images as in training, on the network's device.

    Shape
    -----
    each batch : (B, 1, H, W)

    Examples
    --------
    >>> network = nn.BatchNorm2d(1)
    >>> reestimate_statistics(network, [torch.ones(2, 1, 3, 3), torch.full((2, 1, 3, 3), 2.0)])
    >>> network.running_mean.item(), network.momentum
    (1.5, 0.1)
    """
    norms: list[StepBatchNorm | _BatchNorm] = [
        module
        for module in network.modules()
        if isinstance(module, StepBatchNorm)
        or (isinstance(module, _BatchNorm) and module.track_running_stats)
    ]
    if not norms:
        return
    rest = iter(batches)
    first = next(rest, None)
    if first is None:  # before the old statistics are thrown away
        raise ValueError("batches must hold at least one batch of images, got none")
    with ExitStack() as stack:
        stack.enter_context(_modes_restored(network))
        stack.enter_context(torch.no_grad())
        network.eval()
        for module in network.modules():
            if isinstance(module, Circuit):
                module.training = True  # by which it knows that the images of a batch interact
        for norm in norms:
            norm.training = True
            stack.enter_context(_averaging(norm))
        for images in chain([first], rest):
            network(images)


@contextmanager
def _averaging(norm: StepBatchNorm | _BatchNorm) -> Iterator[None]:
    """Let a batch norm keep the plain mean of what it sees from now on; put its momentum back."""
    momentum = norm.momentum
    with ExitStack() as stack:
        stack.callback(setattr, norm, "momentum", momentum)
        if isinstance(norm, StepBatchNorm):
            norm.running_mean.zero_()
            norm.running_var.fill_(1)
            hook = norm.register_forward_pre_hook(_MeanOfUses(norm), with_kwargs=True)
            stack.callback(hook.remove)
        else:
            norm.reset_running_stats()
            norm.momentum = None  # torch's own word for the plain mean
        yield


class _MeanOfUses:
    """Give the n-th use of a step's statistics the weight 1 / n."""

    def __init__(self, norm: StepBatchNorm) -> None:
        self.uses = [0] * len(norm.running_mean)

    def __call__(
        self, norm: StepBatchNorm, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> None:
        step = keywords["t"] if "t" in keywords else arguments[1]
        step = min(step, len(self.uses) - 1)
        self.uses[step] += 1
        norm.momentum = 1 / self.uses[step]


@contextmanager
def _modes_restored(network: nn.Module) -> Iterator[None]:
    """Put each module back into the mode, training or evaluation, in which it was found."""
    modes = {module: module.training for module in network.modules()}
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def _to_device(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Copy an array to a device; to a GPU from pinned memory, so that nobody waits."""
    tensor = torch.tensor(array)  # a copy: shards are mapped read-only, and torch wants to write
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def check_logits(logits: object, wanted: tuple[int, ...], who: str = "the network") -> None:
    """Refuse what is not two logits an image, or a pixel."""
    got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if got != wanted:
        each = "an image" if len(wanted) == 2 else "a pixel"
        raise ValueError(
            f"{who} must give two logits {each}, a tensor of shape {wanted}, got {got}"
        )


def _summarise(counts: npt.NDArray[np.float64], kind: str) -> Evaluation:
    decisions, right, both, either, areas = counts.T
    if kind == "label":
        return Evaluation(correct=int(right.sum()), count=len(right), right=right.astype(bool))
    # Two empty masks agree.
    overlap = np.where(either > 0, both / np.maximum(either, 1), 1.0)
    return Evaluation(
        correct=int(right.sum()),
        count=int(decisions.sum()),
        right=areas if kind == "boundaries" else right / decisions,
        overlap=overlap,
        boundaries=kind == "boundaries",
    )
