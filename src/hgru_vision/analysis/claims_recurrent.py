"""What the paper says about recurrent networks: one function a claim, which gives its parts."""

from __future__ import annotations

from hgru_vision.analysis.claim import Claim
from hgru_vision.analysis.claim_parts import (
    Evidence,
    Part,
    above,
    drop,
    drops_less,
    falls,
    only_one_solves,
    solved,
    unsolved,
)
from hgru_vision.papers.linsley2018 import PATH_LENGTHS
from hgru_vision.sweeps.grids import MAIN

__all__ = ["RECURRENT"]

SHORT, MIDDLE, LONG = PATH_LENGTHS


def _unstrained(found: Evidence) -> tuple[Part, ...]:
    return (*solved(found, "hgru", PATH_LENGTHS), drop(found, "hgru"))


def _enough_steps(found: Evidence) -> tuple[Part, ...]:
    return (
        *solved(found, "hgru_4", [SHORT]),
        *solved(found, "hgru_6", [MIDDLE]),
        *solved(found, "hgru", [LONG]),
    )


def _needed_steps(found: Evidence) -> tuple[Part, ...]:
    return (
        only_one_solves(found, "hgru", "hgru_4", MIDDLE),
        only_one_solves(found, "hgru", "hgru_4", LONG),
        only_one_solves(found, "hgru", "hgru_6", LONG),
    )


def _fewer_steps(found: Evidence) -> tuple[Part, ...]:
    return tuple(
        above(found, more, fewer, length)
        for more, fewer in (("hgru", "hgru_6"), ("hgru_6", "hgru_4"))
        for length in PATH_LENGTHS
    )


def _best_of_all(found: Evidence) -> tuple[Part, ...]:
    return tuple(above(found, "hgru", other, LONG) for other in MAIN[1:])


def _lesions(found: Evidence) -> tuple[Part, ...]:
    return tuple(
        above(found, "hgru", lesion, length)
        for lesion in ("hgru_no_linear", "hgru_no_quadratic")
        for length in PATH_LENGTHS
    )


def _time_gain(found: Evidence) -> tuple[Part, ...]:
    return tuple(above(found, "hgru", "hgru_no_time_gain", length) for length in PATH_LENGTHS)


def _gru(found: Evidence) -> tuple[Part, ...]:
    worse = (above(found, "hgru", "gru", length) for length in PATH_LENGTHS)
    return (*worse, *unsolved(found, "gru", [LONG]))


def _two_layers(found: Evidence) -> tuple[Part, ...]:
    better = above(found, "gru_2l", "gru", SHORT)
    worse = (above(found, "hgru", "gru_2l", length) for length in (MIDDLE, LONG))
    return (better, *unsolved(found, "gru_2l", [MIDDLE, LONG]), *worse)


def _batch_norm(found: Evidence) -> tuple[Part, ...]:
    return solved(found, "hgru_bn", PATH_LENGTHS)


def _nonnegative(found: Evidence) -> tuple[Part, ...]:
    return solved(found, "hgru_nonnegative", PATH_LENGTHS)


def _least_strained(found: Evidence) -> tuple[Part, ...]:
    return tuple(drops_less(found, "hgru", other) for other in MAIN[1:])


def _strain(found: Evidence) -> tuple[Part, ...]:
    return tuple(falls(found, model, "accuracy") for model in MAIN)


def _rate(found: Evidence) -> tuple[Part, ...]:
    return tuple(
        above(found, "hgru", other, length, "alc") for other in MAIN[1:] for length in PATH_LENGTHS
    )


def _slower(found: Evidence) -> tuple[Part, ...]:
    return tuple(falls(found, model, "alc") for model in MAIN)


_TRENDS = 'Main, "Recurrent models", Fig. 3a'
_CONTROLS = 'Supp., "Additional recurrent models" and the comparison of control models'

RECURRENT: tuple[Claim, ...] = (
    Claim(
        name="The hGRU is hardly strained by length",
        says="With 8 steps it is near perfect at every length; from the shortest paths to the "
        "longest its accuracy drops by a negligible amount.",
        place=_TRENDS,
        judge=_unstrained,
    ),
    Claim(
        name="The hGRU is hardly strained by length, given more images",
        says="The same, judged by runs of `curriculum`, which go through shorter paths to 320,000 "
        "images of their own length.",
        place=_TRENDS,
        judge=_unstrained,
        recipe="curriculum",
    ),
    Claim(
        name="The hGRU is hardly strained by length, from scratch",
        says="The same, judged by the paper's own protocol (`hgru sweep paper`).",
        place=f'{_TRENDS}; Supp., "Model architecture details"',
        judge=_unstrained,
        recipe="paper",
    ),
    Claim(
        name="4, 6 and 8 steps suffice for 6, 9 and 14 paddles",
        says="Four steps solve length 6, six solve 9, eight solve 14.",
        place=_TRENDS,
        judge=_enough_steps,
    ),
    Claim(
        name="Fewer steps do not suffice",
        says="Those are the smallest numbers of steps: four do not solve 9 or 14, six do not "
        "solve 14.",
        place=_TRENDS,
        judge=_needed_steps,
    ),
    Claim(
        name="Accuracy falls with the number of steps",
        says="The fewer steps the hGRU has, the less accurate it is.",
        place=_TRENDS,
        judge=_fewer_steps,
    ),
    Claim(
        name="The hGRU is the best recurrent network",
        says="With 8 steps it is more accurate than each of the other five recurrent layers.",
        place=_TRENDS,
        judge=_best_of_all,
    ),
    Claim(
        name="Lesions hurt",
        says="Without its linear or its quadratic interactions the hGRU is less accurate.",
        place=_TRENDS,
        judge=_lesions,
    ),
    Claim(
        name="The time-gain helps",
        says="The gain that is learnt for each step makes the hGRU better.",
        place='Main, "hGRU formulation", last sentence',
        judge=_time_gain,
    ),
    Claim(
        name="The GRU fails",
        says="A convolutional GRU of 8 steps is less accurate than the hGRU, and not near perfect "
        "on the longest paths.",
        place=f"{_TRENDS} and its caption",
        judge=_gru,
    ),
    Claim(
        name="Two layers do not save the GRU",
        says="A GRU with two layers of convolution is better than with one at length 6, and "
        "solves neither 9 nor 14.",
        place=_CONTROLS,
        judge=_two_layers,
    ),
    Claim(
        name="The hGRU with batch norm solves it",
        says="With batch norm at every step in the place of the time-gain, all lengths are solved.",
        place=_CONTROLS,
        judge=_batch_norm,
    ),
    Claim(
        name="The non-negative hGRU solves it",
        says="With rectification, and kernels of their own for inhibition and excitation, all "
        "lengths are solved.",
        place=_CONTROLS,
        judge=_nonnegative,
    ),
    Claim(
        name="Length strains every recurrent network",
        says="The accuracy of each falls as paths grow longer.",
        place=_TRENDS,
        judge=_strain,
    ),
    Claim(
        name="Length strains the hGRU the least",
        says="From the shortest paths to the longest its accuracy drops by less than that of the "
        "other five recurrent networks of the figure. (The paper says so of all networks.)",
        place=_TRENDS,
        judge=_least_strained,
    ),
    Claim(
        name="The hGRU learns fastest",
        says="Its area under the learning curve is above that of the other five recurrent networks "
        "of the figure. (Others are judged below.)",
        place="Main, Fig. 3b",
        judge=_rate,
    ),
    Claim(
        name="Longer paths are learnt more slowly",
        says="The area under the learning curve falls with length. Judged by runs from scratch "
        "(`hgru sweep paper`): by stages, a longer length begins with what a shorter one taught.",
        place='Main, "Recurrent models", Fig. 3b',
        judge=_slower,
        recipe="paper",
    ),
)
