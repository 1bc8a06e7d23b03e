"""What can be seen of a network that stays at chance."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgru_vision.circuits.base import Circuit
from hgru_vision.circuits.released import HGRUReleased
from hgru_vision.models.stages import Readout

__all__ = ["Cause", "find_cause"]

Cause = Literal["self-excited", "silent", "background"]
"""Why a network stays at chance: see `find_cause`."""

# Activity far from any light over that on it. It was 0.82 to 1.0 in five networks that stayed at
# chance, 0.20 to 0.28 in three that learnt.
SELF_EXCITED = 0.6
FAR = 7  # pixels: beyond the reach of one 15x15 kernel

# Standard deviation of the larger of two maps. Batch norm adds 1e-5 to its square, so it cannot
# bring a weaker one back. It was 3e-7 in an untrained SegNet without batch norm, and 1e-3 or more
# in all other untrained networks.
FADED = 1e-4

# Standard deviation over images of a map's strongest value, over that of the map's pixels. Of the
# larger of two maps it was 0.02 or less in a network that had turned away, 0.3 or more in one that
# learnt.
TURNED_AWAY = 0.05


def find_cause(network: nn.Module, images: Tensor) -> Cause | None:
    """Look for what keeps a network at chance; docs/stuck.md tells more.

    "self-excited": the activity of its circuit is as strong where an image is empty as elsewhere.
    It feeds itself, whatever the image. "silent": what reaches the readout hardly differs from
    place to place or from image to image, as when all units have died, or the signal has faded over
    many layers. "background": the readout's strongest pixels are the same in every image, and the
    maximum lets a gradient through to them alone.

    Parameters
    ----------
    network
        In training or in evaluation, as it stays. None is found if it has not the paper's readout.
    images
        Some of different kinds, 0 where they are empty.

    Shape
    -----
    images : (B, 1, H, W)
    """
    readouts = [module for module in network.modules() if isinstance(module, Readout)]
    if len(readouts) != 1:
        return None
    # After a batch norm activity is not 0 where there is none.
    before = [module.norm for module in network.modules() if isinstance(module, HGRUReleased)]
    features: list[Tensor] = []
    maps: list[Tensor] = []
    hooks = [
        (*before, *readouts)[0].register_forward_pre_hook(lambda _, x: features.append(x[0])),
        readouts[0].maps.register_forward_hook(lambda _, x, output: maps.append(output)),
    ]
    training = network.training
    try:
        with torch.no_grad():
            network.eval()(images)
    finally:
        network.train(training)
        for hook in hooks:
            hook.remove()
    if not features or not maps:  # a network of a user's own may go another way
        return None
    last = maps[-1]
    recurrent = any(isinstance(module, Circuit) for module in network.modules())
    if recurrent and _self_excited(features[-1], images):
        return "self-excited"
    spread = last.std(dim=(0, 2, 3))
    if spread.max() < FADED:
        return "silent"
    strongest = last.amax(dim=(2, 3)).std(dim=0) / spread
    return "background" if strongest.max() < TURNED_AWAY else None


def _self_excited(features: Tensor, images: Tensor) -> bool:
    if features.shape[2:] != images.shape[2:]:
        return False
    lit = images > 0
    empty = F.max_pool2d(images, 2 * FAR + 1, stride=1, padding=FAR) == 0
    power = features.square().mean(dim=1, keepdim=True)
    if not (lit.any() and empty.any()):
        return False
    return bool(power[empty].mean().sqrt() > SELF_EXCITED * power[lit].mean().sqrt())
