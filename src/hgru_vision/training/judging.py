"""Which of a network's decisions about a batch are right."""

import torch
from torch import Tensor

from hgru_vision.data.bsds_stream import IGNORED

__all__ = ["judge", "pixel_auc"]


def judge(logits: Tensor, target: Tensor, boundaries: bool) -> Tensor:
    """Give each image's decisions, right ones, intersection, union and AUC: float64 (B, 5).

    The AUC is there for boundaries alone, and 0 else.
    """
    asked = target != IGNORED
    # An output that is not finite is wrong, whatever is asked.
    said = torch.where(logits.isfinite().all(dim=1), logits.argmax(dim=1), (target != 1).long())
    right = said == target
    both, either = (said == 1) & (target == 1), asked & ((said == 1) | (target == 1))
    # Doubles count exactly up to 2**53.
    counts = [
        each.reshape(len(each), -1).sum(dim=1).double() for each in (asked, right, both, either)
    ]
    areas = pixel_auc(logits, target) if boundaries else torch.zeros_like(counts[0])
    return torch.stack([*counts, areas], dim=1)


def pixel_auc(logits: Tensor, target: Tensor) -> Tensor:
    """Give the area under each image's ROC curve, over its pixels.

    It is the share of pairs of pixels, one on a boundary and one not, of which the former has the
    larger probability; a tie counts half. One half where an image has no pair, 0 where logits are
    not finite.

    Shape
    -----
    logits : (B, 2, H, W); target : (B, H, W); output : float64 (B,)
    """
    evidence = (logits[:, 1] - logits[:, 0]).float()
    areas = []
    for each, wanted in zip(evidence, target, strict=True):
        on, off = each[wanted == 1], each[wanted == 0].sort().values
        if not each.isfinite().all():
            areas.append(0.0)
        elif len(on) == 0 or len(off) == 0:
            areas.append(0.5)
        else:
            below = torch.searchsorted(off, on).double().mean()
            not_above = torch.searchsorted(off, on, right=True).double().mean()
            areas.append(float(below + not_above) / (2 * len(off)))
    return torch.tensor(areas, dtype=torch.float64, device=logits.device)
