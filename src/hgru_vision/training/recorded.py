"""A step of training as one CUDA graph: recorded once, replayed on every batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

__all__ = ["Recorded"]

TRIALS = 3  # steps before a graph is recorded, as torch's documentation asks for


class Recorded:
    """A step that is recorded on one batch and replayed on others.

    Parameters
    ----------
    step
        Takes the parts of a batch, changes the network and gives the loss.
    batch
        A batch of the parts and sizes that all will have.
    network, optimiser
        What the step changes; after recording both are as before.
    mask_weight
        With which masks count, if the batch has any.
    name
        Of the network, for an error.
    """

    def __init__(
        self,
        step: Callable[..., Tensor],
        batch: tuple[Tensor, ...],
        *,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        mask_weight: float,
        name: str,
    ) -> None:
        self.batch = tuple(part.clone() for part in batch)
        self._mask_weight = mask_weight
        device = batch[0].device
        with _unchanged(network, optimiser):
            side = torch.cuda.Stream(device)
            side.wait_stream(torch.cuda.current_stream(device))
            with torch.cuda.stream(side):
                for _ in range(TRIALS):
                    step(*self.batch)
            torch.cuda.current_stream(device).wait_stream(side)
        optimiser.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with (
            _recording(name),
            # Another thread pins memory meanwhile, which is no part of the graph.
            torch.cuda.graph(self.graph, capture_error_mode="thread_local"),
        ):
            self.loss = step(*self.batch)

    def takes(self, batch: tuple[Tensor, ...], mask_weight: float) -> bool:
        """Whether a batch is of the parts and sizes that were recorded, and weighs the same."""
        alike = [part.shape for part in self.batch] == [part.shape for part in batch]
        return alike and (len(batch) < 3 or mask_weight == self._mask_weight)

    def __call__(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Take the step; the loss is overwritten by the next one."""
        for there, part in zip(self.batch, batch, strict=True):
            there.copy_(part)
        self.graph.replay()
        return self.loss


@contextmanager
def _recording(name: str) -> Iterator[None]:
    """Say of a step that CUDA could not record what may be the matter with it."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise RuntimeError(
            f"cuda_graph could not record a step of {name}: nothing in it may wait for the GPU, "
            "as float(tensor) does, or hgru_crbp to see whether it has come to rest; give "
            "cuda_graph=false"
        ) from error


@contextmanager
def _unchanged(network: nn.Module, optimiser: torch.optim.Optimizer) -> Iterator[None]:
    """Put weights, statistics and the optimiser back afterwards, into the same memory."""
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    moments = {
        parameter: {name: value.clone() for name, value in state.items()}
        for parameter, state in optimiser.state.items()
    }
    yield
    network.load_state_dict(weights)
    for parameter, state in optimiser.state.items():
        for name, value in state.items():
            if parameter in moments:
                value.copy_(moments[parameter][name])
            else:
                value.zero_()
