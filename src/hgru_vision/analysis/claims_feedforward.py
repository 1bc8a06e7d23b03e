"""What the paper says about networks that are not recurrent, from feedforward ones to SegNet.

One function a claim, which gives its parts. All are judged by the recipe that they were compared
with.
"""

from __future__ import annotations

from hgru_vision.analysis.claim import Claim
from hgru_vision.analysis.claim_parts import (
    Evidence,
    Part,
    above,
    above_chance,
    at_chance,
    falls,
    learns_faster,
    solved,
    unsolved,
)
from hgru_vision.papers.linsley2018 import DEPTHS, PATH_LENGTHS

__all__ = ["FEEDFORWARD"]

SHORT, MIDDLE, LONG = PATH_LENGTHS
KINDS = ("small", "medium", "large", "dilated", "nonlocal")
BY_DEPTH = {depth: tuple(f"ff_{kind}_{depth}" for kind in KINDS) for depth in DEPTHS}
ALL = tuple(model for models in BY_DEPTH.values() for model in models)
PER_PIXEL = ("fcn", "unet", "segnet")


def _strain(found: Evidence) -> tuple[Part, ...]:
    return tuple(falls(found, model, "accuracy") for model in ALL)


def _one_layer(found: Evidence) -> tuple[Part, ...]:
    return tuple(
        part
        for model in BY_DEPTH[1]
        for part in (
            above_chance(found, model, SHORT),
            at_chance(found, model, MIDDLE),
            at_chance(found, model, LONG),
        )
    )


def _three_layers(found: Evidence) -> tuple[Part, ...]:
    small, *others = BY_DEPTH[3]
    rescued = (part for model in others for part in solved(found, model, [MIDDLE]))
    strained = (part for model in BY_DEPTH[3] for part in unsolved(found, model, [LONG]))
    return (*rescued, *unsolved(found, small, [MIDDLE]), *strained)


def _five_layers(found: Evidence) -> tuple[Part, ...]:
    best = "ff_large_5"
    return tuple(above(found, best, other, LONG) for other in BY_DEPTH[5] if other != best)


def _residual(found: Evidence) -> tuple[Part, ...]:
    strained = (unsolved(found, model, [LONG])[0] for model in ("resnet18", "resnet50"))
    return (*solved(found, "resnet152", PATH_LENGTHS), *strained)


def _per_pixel(found: Evidence) -> tuple[Part, ...]:
    return tuple(part for model in PER_PIXEL for part in solved(found, model, PATH_LENGTHS))


def _rate(found: Evidence) -> tuple[Part, ...]:
    others = ("ff_large_5", "resnet152", *PER_PIXEL)
    return tuple(learns_faster(found, "hgru", other, LONG) for other in others)


def _smaller(found: Evidence) -> tuple[Part, ...]:
    return tuple(above(found, "hgru", other, LONG) for other in (*ALL, "resnet18"))


def _highway(found: Evidence) -> tuple[Part, ...]:
    deepest = f"highway_{DEPTHS[-1]}"
    return (*solved(found, deepest, [SHORT, MIDDLE]), *unsolved(found, deepest, [LONG]))


def _smaller_residual(found: Evidence) -> tuple[Part, ...]:
    models = ("resnet152_half", "resnet152_fifth", "resnet152_tenth")
    solve = (part for model in models for part in solved(found, model, [SHORT, MIDDLE]))
    fail = (part for model in models for part in unsolved(found, model, [LONG]))
    return (*solve, *fail)


def _smaller_unet(found: Evidence) -> tuple[Part, ...]:
    solve = (
        part for model in ("unet_half", "unet_fifth") for part in solved(found, model, PATH_LENGTHS)
    )
    return (*solve, *unsolved(found, "unet_tenth", [LONG]))


_FEEDFORWARD = 'Main, "Feedforward models", Fig. 3a'
_CONTROLS = 'Supp., "Additional models" and the comparison of control models'

FEEDFORWARD: tuple[Claim, ...] = (
    Claim(
        name="Length strains every feedforward network",
        says="The accuracy of each of the fifteen falls as paths grow longer, whatever its kernels "
        "and its depth.",
        place=_FEEDFORWARD,
        judge=_strain,
    ),
    Claim(
        name="One layer is at chance from length 9 on",
        says="Of one layer, all learn something of length 6, and nothing of 9 or 14.",
        place=_FEEDFORWARD,
        judge=_one_layer,
    ),
    Claim(
        name="Three layers solve 9, but for small kernels",
        says="With three layers all but the network of small kernels solve length 9, and none "
        "solves 14.",
        place=_FEEDFORWARD,
        judge=_three_layers,
    ),
    Claim(
        name="Of five layers, large kernels come closest to 14",
        says="They alone come close to solving it; judged here is that they are above the other "
        "four.",
        place=_FEEDFORWARD,
        judge=_five_layers,
    ),
    Claim(
        name="Only the deepest ResNet solves it",
        says="That of 152 layers solves all lengths; those of 18 and 50 do not solve 14.",
        place='Main, "Residual networks", Fig. 3a',
        judge=_residual,
    ),
    Claim(
        name="FCN, U-Net and SegNet solve it",
        says="The three networks for per-pixel prediction solve all lengths.",
        place='Main, "Per-pixel prediction models", Fig. 3a',
        judge=_per_pixel,
    ),
    Claim(
        name="The hGRU learns the longest paths faster than its rivals",
        says="Its area under the learning curve is above those of the networks that solve length "
        "14 or come close, of which only the U-Net is nearly as fast.",
        place="Main, Fig. 3b",
        judge=_rate,
    ),
    Claim(
        name="No network that is less than 200 times as large matches the hGRU",
        says="At length 14 the hGRU is above all feedforward networks and the smallest ResNet.",
        place="Main, Fig. 3c and its caption",
        judge=_smaller,
    ),
    Claim(
        name="Highway networks solve 6 and 9, and not 14",
        says="They do about as well as feedforward networks of large kernels. Judged by that of "
        "five layers.",
        place=_CONTROLS,
        judge=_highway,
    ),
    Claim(
        name="Smaller ResNets of 152 layers solve 6 and 9, and not 14",
        says="With half, a fifth or a tenth of the parameters they do not solve the longest paths.",
        place=_CONTROLS,
        judge=_smaller_residual,
    ),
    Claim(
        name="Smaller U-Nets solve it, but for the smallest",
        says="With half or a fifth of the parameters a U-Net solves all lengths; with a tenth it "
        "does not solve 14.",
        place=_CONTROLS,
        judge=_smaller_unet,
    ),
)
