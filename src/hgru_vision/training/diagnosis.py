"""What can be seen of a network that stays at chance."""

import torch
from torch import Tensor, nn

from hgru_vision.models.stages import Readout

__all__ = ["looks_at_background"]

# Standard deviation over images of a map's strongest value, in units of batch norm. Of the larger
# of two maps it was 0.02 or less in a network that had turned away, 0.3 or more in one that learnt.
TURNED_AWAY = 0.05


def looks_at_background(network: nn.Module, images: Tensor) -> bool:
    """Tell whether the readout's strongest pixels are the same in every image.

    They lie in the background then, which all images have. The maximum lets a gradient through to
    them alone, and the network cannot learn any more; docs/training.md tells how it comes to that.

    Parameters
    ----------
    network
        In training or in evaluation, as it stays. False if it has not the paper's readout.
    images
        Some of different kinds.

    Shape
    -----
    images : (B, 1, H, W)
    """
    readouts = [module for module in network.modules() if isinstance(module, Readout)]
    if len(readouts) != 1:
        return False
    seen: list[Tensor] = []
    hook = readouts[0].decide.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    training = network.training
    try:
        with torch.no_grad():
            network.eval()(images)
    finally:
        network.train(training)
        hook.remove()
    return bool(seen[0].std(dim=0).max() < TURNED_AWAY)
