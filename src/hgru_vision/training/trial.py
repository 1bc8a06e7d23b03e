"""A network of a user's own, tried before a run begins."""

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from hgru_vision.references import failure
from hgru_vision.training.checkpoint import build
from hgru_vision.training.config import RunConfig
from hgru_vision.training.data import training_data
from hgru_vision.training.evaluate import as_input, check_logits

__all__ = ["try_network"]


def try_network(network: nn.Module, config: RunConfig, device: torch.device) -> None:
    """Refuse a network that cannot be trained: better now than after hours of work.

    Another one is made and tried on two images of the run's task, forward and backward, so that the
    network itself stays as it is.

    Parameters
    ----------
    network
        What `build` made of `config`.
    config
        Of the run.
    device
        Where it will be trained.

    Raises
    ------
    ValueError
        If two networks of one seed differ, or the one tried fails, gives something else than two
        logits, or has nothing to train; the text names the file, and the line if it fails there.
    """
    who = config.model
    again = build(config)
    _check_start(network, again, who)
    data = training_data(config, len(config.stages) - 1)
    images = as_input(torch.tensor(data.batch([0, 1])).to(device))
    pixels = images.shape[2:] if config.target == "segmentation" else ()
    wanted = 2, 2, *pixels
    shown = f"for two images, {tuple(images.shape)},"
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            logits = again.to(device).train()(images)
        except Exception as error:
            raise ValueError(
                f"{failure(config.reference, error)}; {shown} it must give logits, {wanted}"
            ) from error
        check_logits(logits, wanted, f"{shown} {who}")
        if not logits.requires_grad:
            raise ValueError(f"{who} has nothing to train: its output depends on no parameter")
        try:
            logits.float().sum().backward()
        except Exception as error:
            raise ValueError(f"{failure(config.reference, error)}, in the backward pass") from error


def _check_start(network: nn.Module, again: nn.Module, who: str) -> None:
    first, second = network.state_dict(), again.state_dict()
    if lazy := [name for name, value in first.items() if is_lazy(value)]:
        raise ValueError(
            f"{who} has layers whose size is not known before they are used, such as {lazy[0]}: "
            "take nn.Linear for nn.LazyLinear, and so on"
        )
    names = [name for name in first | second if name not in first or name not in second]
    names += [name for name in first if name in second and not _same(first[name], second[name])]
    if names:
        raise ValueError(
            f"{who} starts from other values each time it is made, such as {names[0]}: draw them "
            "from torch's random numbers, which the run's seed sets"
        )


def _same(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors are equal, nan being equal to itself."""
    if first.shape != second.shape:
        return False
    return bool(((first == second) | (first.isnan() & second.isnan())).all())
