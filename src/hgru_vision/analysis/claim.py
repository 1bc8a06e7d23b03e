"""What a claim of the paper is, and what became of it.

A claim consists of parts, which a function gives when it is given the evidence: runs of one recipe
on the Pathfinder of the paper. From the parts follows the verdict: what holds in all of them is
reproduced, in some partly, in none not. Parts that were not run are named, and a claim of which any
is missing is at most partly reproduced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hgru_vision.analysis.claim_parts import RECIPE, Evidence, Part

__all__ = ["Claim", "Finding", "Verdict"]

Verdict = Literal["reproduced", "partly", "not reproduced", "not run yet"]


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
        """The verdict, of how many parts it is made where they differ, and how many are missing."""
        held = sum(part.holds is True for part in self.parts)
        missing = sum(part.holds is None for part in self.parts)
        counts = [f"{held} of {len(self.parts)}"] if self.verdict == "partly" else []
        if missing and self.verdict != "not run yet":
            of_all = "" if counts else f" of {len(self.parts)}"
            counts.append(f"{missing}{of_all} not run")
        return f"{self.verdict} ({'; '.join(counts)})" if counts else self.verdict

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
