"""One run in several processes: who takes what, and how they agree.

Under `torchrun` each process takes its share of every batch. Gradients are averaged by DDP and
batch norm looks at the whole batch, so that the curve is that of a single process.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from hgru_vision.circuits.normalization import StepBatchNorm
from hgru_vision.training.environment import pick_device

__all__ = ["Group", "process_group", "synchronise"]


@dataclass(frozen=True, kw_only=True)
class Group:
    """The processes of a run; a single one without `torchrun`.

    Examples
    --------
    >>> group = Group(rank=1, size=2, device=torch.device("cpu"))
    >>> group.share(32)
    slice(16, 32, None)
    """

    rank: int
    size: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def share(self, batch: int) -> slice:
        """Give the part of every batch that this process takes."""
        if batch % self.size:
            raise ValueError(
                f"a batch of {batch} cannot be shared by {self.size} processes; make it a "
                f"multiple of {self.size}"
            )
        part = batch // self.size
        return slice(self.rank * part, (self.rank + 1) * part)

    def sum(self, values: Tensor) -> Tensor:
        """Add up the values of all processes; each gets the sum."""
        if self.size > 1:
            values = values.to(self.device, copy=True)
            dist.all_reduce(values)
        return values

    def any(self, flag: bool) -> bool:
        """Say whether any process says yes; all of them must ask."""
        if self.size == 1:
            return flag
        return bool(self.sum(torch.tensor(int(flag))).item())

    def wait(self) -> None:
        """Wait until all processes are here."""
        self.any(False)


@contextmanager
def process_group(device: torch.device | str | None = None) -> Iterator[Group]:
    """Join the processes that `torchrun` started, if it did.

    Parameters
    ----------
    device
        Where the network runs; a GPU if there is one, else the CPU, if not given.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    device = pick_device(device)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    if device.type == "cuda":
        torch.cuda.set_device(device)  # kernels of our own start there, and CUDA graphs record
    if size == 1:
        yield Group(rank=0, size=1, device=device)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Group(rank=dist.get_rank(), size=dist.get_world_size(), device=device)
    finally:
        # DDP lies in cycles. What outlives its group now and then aborts the process at its end.
        gc.collect()
        dist.destroy_process_group()


def synchronise(network: nn.Module) -> None:
    """Let every batch norm of a network look at the batches of all processes.

    Torch's own SyncBatchNorm runs on GPUs alone and knows nothing of norms of each step. Parameters
    and their names stay as they are.
    """
    # A module's class is changed in place: what refers to the module goes on doing so.
    for module in network.modules():
        if shared := SHARED.get(type(module)):
            module.__class__ = shared


class SharedNorm(_BatchNorm):
    """Batch norm over the batches of all processes."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalise; in evaluation mode as torch's own does."""
        if not self.training:
            return super().forward(input)
        self._check_input_dim(input)
        normal, mean, variance = normalise(input, self.eps)
        if self.track_running_stats:
            assert self.num_batches_tracked is not None
            self.num_batches_tracked.add_(1)
            momentum = self.momentum
            if momentum is None:  # torch's word for the plain mean of all batches
                momentum = 1 / float(self.num_batches_tracked)
            with torch.no_grad():
                assert self.running_mean is not None and self.running_var is not None
                self.running_mean.lerp_(mean, momentum)
                self.running_var.lerp_(variance, momentum)
        if not self.affine:
            return normal
        return normal * by_channel(self.weight, input) + by_channel(self.bias, input)


class SharedBatchNorm1d(SharedNorm, nn.BatchNorm1d):
    """`SharedNorm` of vectors or sequences."""


class SharedBatchNorm2d(SharedNorm, nn.BatchNorm2d):
    """`SharedNorm` of images."""


class SharedBatchNorm3d(SharedNorm, nn.BatchNorm3d):
    """`SharedNorm` of volumes, or of images over time."""


class SharedStepBatchNorm(StepBatchNorm):
    """`StepBatchNorm` over the batches of all processes."""

    def forward(self, h: Tensor, t: int) -> Tensor:
        """Normalise the activity of step `t`."""
        if not self.training:
            return super().forward(h, t)
        i = min(t, len(self.delta) - 1)
        normal, mean, variance = normalise(h, self.eps)
        if self._tracking:
            with torch.no_grad():
                self.running_mean[i].lerp_(mean, self.momentum)
                self.running_var[i].lerp_(variance, self.momentum)
        return normal * self.delta[i].view(-1, 1, 1) + self.nu[i].view(-1, 1, 1)


SHARED: dict[type[nn.Module], type[nn.Module]] = {
    nn.BatchNorm1d: SharedBatchNorm1d,
    nn.BatchNorm2d: SharedBatchNorm2d,
    nn.BatchNorm3d: SharedBatchNorm3d,
    StepBatchNorm: SharedStepBatchNorm,
}


def normalise(x: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Take the mean and the deviation over images and places, of all processes, out of x.

    Two sums, the mean first: a difference of squares would lose digits.

    Shape
    -----
    x, normal : (B, K, ...), such as (B, K, H, W); mean and unbiased variance : (K,)
    """
    x = x.float()
    others = [0, *range(2, x.ndim)]  # all but channels
    count = x.numel() // x.shape[1] * dist.get_world_size()  # shares are of one size
    mean = _sum_over_processes(x.sum(dim=others)) / count  # (K,)
    centred = x - by_channel(mean, x)
    variance = _sum_over_processes(centred.square().sum(dim=others)) / count  # (K,)
    normal = centred * by_channel((variance + eps).rsqrt(), x)
    return normal, mean, variance * (count / (count - 1))


def by_channel(values: Tensor, like: Tensor) -> Tensor:
    """Shape (K,) so that it goes with (B, K, ...)."""
    return values.view(-1, *[1] * (like.ndim - 2))


class _SumOverProcesses(torch.autograd.Function):
    """A sum over all processes, whose gradient is the sum over all processes."""

    @staticmethod
    def forward(context: Any, value: Tensor) -> Tensor:
        total = value.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone()
        dist.all_reduce(total)
        return total


def _sum_over_processes(value: Tensor) -> Tensor:
    total: Tensor = _SumOverProcesses.apply(value)
    return total
