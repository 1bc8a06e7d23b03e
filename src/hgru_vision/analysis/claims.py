"""What the paper says about recurrent networks, and what a ledger says of it.

One function a claim. Each takes the evidence, runs of one recipe on the Pathfinder of the paper,
and gives the parts that the claim consists of, with our numbers. From these follows the
verdict: what holds in all its parts is reproduced, in some partly, in none not. Parts that were not
run are named, and a claim of which any is missing is at most partly reproduced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from hgru_vision.analysis.claim_parts import (
    RECIPE,
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
from hgru_vision.sweeps.ledger import LedgerRow

__all__ = ["CLAIMS", "Claim", "Finding", "Verdict", "judge"]

Verdict = Literal["reproduced", "partly", "not reproduced", "not run yet"]

SHORT, MIDDLE, LONG = PATH_LENGTHS


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What became of a claim."""

    parts: tuple[Part, ...]

    @property
    def verdict(self) -> Verdict:
        """The claim's, from those of its parts."""
        known = [part.holds for part in self.parts if part.holds is not None]
        if not known:
            return "not run yet"
        if not any(known):
            return "not reproduced"
        return "reproduced" if all(known) and len(known) == len(self.parts) else "partly"

    @property
    def told(self) -> str:
        """The verdict, and of how many parts it is made where they differ."""
        held = sum(part.holds is True for part in self.parts)
        count = f" ({held} of {len(self.parts)})" if self.verdict == "partly" else ""
        return self.verdict + count

    @property
    def reason(self) -> str:
        """Why it is not simply reproduced."""
        if self.verdict in ("reproduced", "not run yet"):
            return ""
        failed = [f"{part.says}: {part.why}" for part in self.parts if part.holds is False]
        missing = [part.says for part in self.parts if part.holds is None]
        told = [*failed, *([f"not run yet: {', '.join(missing)}"] if missing else [])]
        return "; ".join(told)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of the paper in our words, its place, and by what it is judged.

    Parameters
    ----------
    name, says, place
        A title, the statement, and where the paper makes it.
    judge
        Gives the parts of the claim.
    recipe
        Of the runs that `judge` looks at.
    """

    name: str
    says: str
    place: str
    judge: Callable[[Evidence], tuple[Part, ...]]
    recipe: str = RECIPE


def judge(rows: Sequence[LedgerRow]) -> list[tuple[Claim, Finding]]:
    """Judge all claims by the rows of a ledger, which may be empty.

    Examples
    --------
    >>> {finding.verdict for _, finding in judge([])}
    {'not run yet'}
    """
    evidence = {recipe: Evidence(rows, recipe) for recipe in {claim.recipe for claim in CLAIMS}}
    return [(claim, Finding(parts=claim.judge(evidence[claim.recipe]))) for claim in CLAIMS]


# -- Claims ----------------------------------------------------------------------------------------


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

CLAIMS: tuple[Claim, ...] = (
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
        "of the figure. (That of all networks only the U-Net comes close is not judged here.)",
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
