"""The claims of the paper about networks on Pathfinder, and what a ledger says of each."""

from __future__ import annotations

from collections.abc import Sequence

from hgru_vision.analysis.claim import Claim, Finding
from hgru_vision.analysis.claim_parts import Evidence
from hgru_vision.analysis.claims_feedforward import FEEDFORWARD
from hgru_vision.analysis.claims_recurrent import RECURRENT
from hgru_vision.sweeps.ledger import LedgerRow

__all__ = ["CLAIMS", "judge"]

CLAIMS: tuple[Claim, ...] = (*RECURRENT, *FEEDFORWARD)


def judge(rows: Sequence[LedgerRow]) -> list[tuple[Claim, Finding]]:
    """Judge all claims by the rows of a ledger, which may be empty.

    Examples
    --------
    >>> {finding.verdict for _, finding in judge([])}
    {'not run yet'}
    """
    evidence = {recipe: Evidence(rows, recipe) for recipe in {claim.recipe for claim in CLAIMS}}
    return [(claim, Finding(parts=claim.judge(evidence[claim.recipe]))) for claim in CLAIMS]
