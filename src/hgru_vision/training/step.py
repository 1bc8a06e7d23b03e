"""One step of training: forward, loss, backward, Adam. And how precisely."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgru_vision.circuits.equilibrium import EquilibriumHGRU, contractor_penalty
from hgru_vision.circuits.symmetric import SymmetricKernel
from hgru_vision.data.bsds_stream import IGNORED
from hgru_vision.models.stages import Readout, enlarged
from hgru_vision.training.config import RunConfig
from hgru_vision.training.distributed import Group, synchronise
from hgru_vision.training.evaluate import as_input
from hgru_vision.training.recorded import Recorded

__all__ = ["Step", "arithmetic", "balanced_loss", "parameter_groups"]


class Step:
    """A step of Adam on a batch.

    Parameters
    ----------
    network
        To be trained; moved to the device.
    config
        Of the run.
    group
        The processes that share every batch.

    Examples
    --------
    >>> from hgru_vision.training.config import Source, Stage
    >>> config = RunConfig(model="hgru", stages=(Stage(sources=(Source(),), images=32),))
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    >>> step = Step(network, config, Group(rank=0, size=1, device=torch.device("cpu")))
    >>> loss = step(torch.zeros(4, 8, 8, dtype=torch.uint8), torch.tensor([0, 1, 0, 1]))
    >>> loss.shape
    torch.Size([])
    """

    def __init__(self, network: nn.Module, config: RunConfig, group: Group) -> None:
        device = group.device
        if config.cuda_graph and device.type != "cuda":
            raise ValueError(
                f"cuda_graph needs a GPU; this run is on the {device.type}: give cuda_graph=false"
            )
        if config.cuda_graph and group.size > 1:
            raise ValueError(
                f"cuda_graph is for a single process; this run has {group.size} of them"
            )
        self.config, self.device, self._group = config, device, group
        self.batches = 0  # steps taken
        self.network = network.to(device)
        if config.channels_last:
            self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        groups = parameter_groups(self.network, config.full_rate_inputs)
        for parameters in groups:
            rate = parameters["share"] * config.learning_rate
            # A graph keeps a number as it was when recorded; a tensor it reads at every replay.
            changes = config.cuda_graph and (config.warm_up or config.cool_down)
            parameters["lr"] = torch.tensor(rate, device=device) if changes else rate
        self.optimiser = torch.optim.Adam(
            groups, fused=device.type == "cuda", capturable=config.cuda_graph
        )
        self._rate: float | None = config.learning_rate  # that the optimiser has
        self._forward: nn.Module = self.network
        self._readout = getattr(network, "readout", None)
        masks = any(stage.mask_weight for stage in config.stages)
        if masks and not isinstance(self._readout, Readout):
            raise ValueError(
                f"masks are taught to the two maps of the paper's readout; {config.model} has none"
            )
        if any(stage.masks for stage in config.stages):
            raise ValueError(
                "masks in the place of labels are not taught any more: mask_weight=1 teaches them "
                "beside labels"
            )
        self._contractor = _Contractor(self.network, config) if config.contractor else None
        if group.size > 1:
            synchronise(self.network)
            self._forward = nn.parallel.DistributedDataParallel(self.network)
        if config.compile:
            self._forward = torch.compile(self._forward)  # type: ignore[assignment]
        self._recorded: Recorded | None = None

    def __call__(
        self,
        images: Tensor,
        target: Tensor,
        masks: Tensor | None = None,
        *,
        mask_weight: float = 1.0,
        left: int | None = None,
    ) -> Tensor:
        """Take the step; give the loss before it, without waiting for the device.

        `masks` are taught beside labels, see `Stage.mask_weight`. `left` counts the batches from
        this one to the end of the run, where that is known.

        Shape
        -----
        images : uint8 (B, H, W), or (B, 3, H, W) in colour
        target : int64 (B,) or uint8 (B, H, W); masks : uint8 (B, H, W)
        """
        self.batches += 1
        self._set_rate(left)
        if masks is not None and masks.shape[1:] != images.shape[-2:]:
            raise ValueError(
                f"masks are {tuple(masks.shape[1:])}; they must be as large as the images, "
                f"{tuple(images.shape[-2:])}"
            )
        batch = (images, target) if masks is None else (images, target, masks)
        self._mask_weight = mask_weight
        if not self.config.cuda_graph:
            return self._step(*batch)
        if self._recorded is None or not self._recorded.takes(batch, mask_weight):
            self._recorded = Recorded(
                self._step,
                batch,
                network=self.network,
                optimiser=self.optimiser,
                mask_weight=mask_weight,
                name=self.config.model,
            )
        return self._recorded(batch)

    def prepare(self, images: Tensor) -> Tensor:
        """Make bytes what the network takes: (B, 1, H, W) or (B, 3, H, W) in [0, 1]."""
        prepared = as_input(images)
        if self.config.channels_last:
            prepared = prepared.to(memory_format=torch.channels_last)
        return prepared

    def autocast(self) -> AbstractContextManager[Any]:
        """Give the context of the forward pass."""
        if self.config.precision != "bfloat16":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def state(self) -> dict[str, Any]:
        """Give what a checkpoint needs."""
        return {"network": self.network.state_dict(), "optimiser": self.optimiser.state_dict()}

    def load(self, state: dict[str, Any], *, batches: int) -> None:
        """Go on from a checkpoint that was written after so many batches."""
        self.batches, self._rate = batches, None
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):  # read to the CPU, as all of a checkpoint is
                group["lr"] = group["lr"].to(self.device)

    def _set_rate(self, left: int | None) -> None:
        """Set the learning rate of this batch, if it is not that of the last one."""
        rate, rises, falls = self.config.learning_rate, self.config.warm_up, self.config.cool_down
        if self.batches < rises:
            rate *= self.batches / rises
        if left is not None and left < falls:
            rate *= left / falls
        if rate == self._rate:
            return
        self._rate = rate
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(group["share"] * rate)
            else:
                group["lr"] = group["share"] * rate

    def _step(self, images: Tensor, target: Tensor, masks: Tensor | None = None) -> Tensor:
        with self.autocast(), self._maps_given(masks is not None):
            given = self._forward(self.prepare(images))
        if masks is None:
            loss = self._loss(given, target)
        else:
            logits, maps = given
            shown = balanced_loss(enlarged(maps.float(), masks.shape[1:]), masks)
            loss = self._loss(logits, target) + self._mask_weight * shown
        if self._contractor is not None:
            with self.autocast():
                loss = loss + self.config.contractor * self._contractor.penalty()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if self.config.clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip)
        self.optimiser.step()
        return loss.detach()

    @contextmanager
    def _maps_given(self, wanted: bool) -> Iterator[None]:
        """Let the readout give its maps beside the logits for a while."""
        if not wanted:
            yield
            return
        assert isinstance(self._readout, Readout)  # by __init__
        self._readout.gives_maps = True
        try:
            yield
        finally:
            self._readout.gives_maps = False

    def _loss(self, logits: Tensor, target: Tensor) -> Tensor:
        if self.config.balance:
            return balanced_loss(logits.float(), target)
        loss = F.cross_entropy(logits.float(), target.long(), ignore_index=IGNORED)
        if self._group.size > 1 and target.ndim > 1:
            # DDP takes the mean over processes, whose numbers of pixels that count differ.
            counted = (target != IGNORED).sum()
            loss = loss * (counted * self._group.size / self._group.sum(counted))
        return loss


def parameter_groups(network: nn.Module, full_rate_inputs: int | None) -> list[dict[str, Any]]:
    """Sort parameters by the share of the learning rate that they get.

    Adam moves each weight by about the learning rate in every batch, in the direction of noise if
    there is nothing else, and neighbours in a kernel alike. What a unit receives moves by that
    times the number of its inputs: 5,625 for the 15x15 kernel of 25 channels. In a recurrent
    network this comes to activity that feeds itself, everywhere and whatever the image.

    Parameters
    ----------
    network
        All its parameters are to be trained.
    full_rate_inputs
        A weight of a unit with more inputs than this gets so much less of the learning rate, in
        proportion; None gives all the whole.

    Returns
    -------
    list of dict
        For an optimiser, each with ``params`` and their ``share``.

    Examples
    --------
    >>> network = nn.Sequential(nn.Conv2d(8, 2, 5), nn.Linear(2, 2))
    >>> [(len(group["params"]), group["share"]) for group in parameter_groups(network, 100)]
    [(1, 0.5), (3, 1.0)]
    """
    smallest: dict[nn.Parameter, float] = {}  # what several modules share is one parameter
    for module in network.modules():
        for parameter in module.parameters(recurse=False):
            share = smallest.get(parameter, 1.0)
            if full_rate_inputs is not None:
                share = min(share, full_rate_inputs / _inputs(module, parameter))
            smallest[parameter] = share
    shares: dict[float, list[nn.Parameter]] = {}
    for parameter, share in smallest.items():
        shares.setdefault(share, []).append(parameter)
    return [{"params": params, "share": share} for share, params in shares.items()]


def _inputs(module: nn.Module, parameter: nn.Parameter) -> int:
    """Count the weights whose products a unit sums up."""
    if isinstance(module, SymmetricKernel):
        return module.inputs
    if isinstance(module, nn.ConvTranspose2d) and parameter is module.weight:
        # (inputs, outputs, S, S): an output pixel sees one of stride x stride parts of it.
        return parameter[:, 0].numel() // (module.stride[0] * module.stride[1])
    return parameter[0].numel() if parameter.ndim > 1 else 1


def balanced_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy a pixel, in which the two classes of an image weigh the same.

    Of each image the mean over its boundary pixels and the mean over its others, one half each (the
    whole of the one that there is, where the other is missing); then the mean over images. Up to a
    factor for each image these are the weights of Xie & Tu (2015, arXiv 1504.06375).

    Shape
    -----
    logits : (B, 2, H, W); target : uint8 (B, H, W), 0, 1 or `IGNORED`

    Examples
    --------
    >>> target = torch.tensor([[[1, 0, 0, 0]]], dtype=torch.uint8)
    >>> round(balanced_loss(torch.zeros(1, 2, 1, 4), target).item(), 3)
    0.693
    """
    each = F.cross_entropy(logits, target.long(), ignore_index=IGNORED, reduction="none")
    total, kinds = torch.zeros_like(each[:, 0, 0]), torch.zeros_like(each[:, 0, 0])  # (B,)
    for kind in (0, 1):
        here = target == kind
        count = here.sum(dim=(1, 2))
        total = total + (each * here).sum(dim=(1, 2)) / count.clamp(min=1)
        kinds = kinds + (count > 0)
    return (total / kinds.clamp(min=1)).mean()


class _Contractor:
    """The penalty of a network's layer that runs to a fixed point, where it last ran to."""

    def __init__(self, network: nn.Module, config: RunConfig) -> None:
        layers = [each for each in network.modules() if isinstance(each, EquilibriumHGRU)]
        if not layers:
            raise ValueError(
                f"contractor is for networks that run to a fixed point, such as hgru_crbp; "
                f"{config.model} does not"
            )
        if config.compile:
            raise ValueError("contractor cannot be compiled; give compile=false")
        (self._layer,) = layers
        if next(network.parameters()).is_cuda and self._layer.backend == "auto":
            self._layer.backend = "fft"  # which can be differentiated twice
        self._layer.register_forward_hook(self._keep)

    def _keep(self, layer: nn.Module, given: tuple[Tensor, ...], state: Tensor) -> None:
        if torch.is_grad_enabled():  # in a step, not in an evaluation
            self._drive, self._state = given[0], state

    def penalty(self) -> Tensor:
        """Compute it, and let go of what it is computed from."""
        drive, state = self._drive, self._state
        del self._drive, self._state
        return contractor_penalty(self._layer.recurrence(drive), state)


@contextmanager
def arithmetic(config: RunConfig, device: torch.device) -> Iterator[None]:
    """Set torch's switches for the precision asked for, and its random state, for a while."""
    cuda = device.type == "cuda"
    with torch.random.fork_rng([device] if cuda else []):
        torch.manual_seed(config.seed)
        if not cuda:
            yield
            return
        cudnn = torch.backends.cudnn
        before = torch.get_float32_matmul_precision(), cudnn.allow_tf32, cudnn.benchmark
        exact = config.precision == "float32"
        torch.set_float32_matmul_precision("highest" if exact else "high")
        cudnn.allow_tf32 = not exact
        cudnn.benchmark = True  # a run has one size of image
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before[0])
            cudnn.allow_tf32, cudnn.benchmark = before[1:]
