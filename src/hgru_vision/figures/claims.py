"""The paper's claims about networks beside our numbers, as a page of Markdown."""

from collections.abc import Sequence

from hgru_vision.analysis.claim import Claim, Finding
from hgru_vision.analysis.claim_parts import (
    NEGLIGIBLE,
    RISING,
    SOLVED,
    Evidence,
)
from hgru_vision.analysis.claims import CLAIMS, judge
from hgru_vision.analysis.study import LEARNT, Cell, studies
from hgru_vision.figures.names import display
from hgru_vision.papers import linsley2018
from hgru_vision.recipes.screen import IMAGES
from hgru_vision.sweeps.ledger import LedgerRow

__all__ = ["claims_page"]

_STAGES = ", then ".join(f"{images:,} of length {length}" for length, images in IMAGES.items())
_TRAINED = round(linsley2018.TRAIN_FRACTION * linsley2018.IMAGES)
_HEAD = f"""# The claims, one by one

What Linsley et al. (2018) say about networks on Pathfinder, in our words, and what our runs say.
The recurrent ones come first, then all others. This page is written by `hgru figures claims` from
the ledger (`results/`), and every number of ours is in it.

- The networks are compared under one protocol, the recipe `screen`: the same images in the same
  order, {_STAGES}, at the same batch
  and precision. The paper trains each length from scratch on {_TRAINED:,} images,
  {linsley2018.EPOCHS} times over. What fails here may succeed with more; what succeeds here had the
  help of shorter paths. The recipe's first stage and its slower horizontal kernels were found with
  the hGRU, and given to all. A claim that is judged by runs of another recipe says so.
- FCN, U-Nets and SegNet have the readout of the authors' released code, which pools first: with
  ours a U-Net did not learn at all ([why](../stuck.md#the-readout-of-the-released-code)).
- The best of up to {linsley2018.RUNS} runs counts, as in the paper; beside it stand the mean over
  all runs and how many failed (diverged or below {LEARNT:.0%}).
- The paper gives no numbers. A length counts as **solved** from {SOLVED:.0%} on, and as not solved
  below it if the network was not still rising (by more than {RISING:.0%} between the second and
  the last third of its last stage); a drop up to {NEGLIGIBLE:.0%} from a length that is
  solved is **negligible**; one accuracy is **above** another if the 95 % intervals of the
  best of equally many runs do not overlap, and **falls** with length if its ends differ so
  and no length is above a shorter one. These intervals are over test images: differences between
  seeds are not in them, nor known from one run each. An ALC has no interval: the larger
  one is above, by however little. So parts of one run each that are decided by a point or two are
  not to be relied on.
- A network that ended **at chance** failed by this protocol, with these seeds. That it cannot do
  better is not shown, least of all of one that had not learnt shorter paths either.
- A claim whose parts all hold is reproduced; some, partly (with their number); none, not. A claim
  of which a part was not run is at most partly reproduced.
"""


def claims_page(rows: Sequence[LedgerRow]) -> str:
    """Write the page.

    Parameters
    ----------
    rows
        Of the ledger; without any, all claims are said not to have been run.
    """
    found = judge(rows)
    sections = [_HEAD, _summary(found), _variants(rows)]
    sections += [_section(number, *each) for number, each in enumerate(found, start=1)]
    sections.append(_protocols(rows))
    return "\n".join(section for section in sections if section)


def _summary(found: Sequence[tuple[Claim, Finding]]) -> str:
    lines = ["| | claim | verdict |", "| --- | --- | --- |"]
    for number, (claim, finding) in enumerate(found, start=1):
        lines.append(f"| {number} | {claim.name} | **{finding.told}** |")
    return "\n".join(lines) + "\n"


def _variants(rows: Sequence[LedgerRow]) -> str:
    """Say of which networks the ledger has runs that differ in more than their seeds."""
    recipes = dict.fromkeys(claim.recipe for claim in CLAIMS)
    found = (network for recipe in recipes for network in Evidence(rows, recipe).variants())
    names = list(dict.fromkeys(display(network) for network in found))
    if not names:
        return ""
    listed = "; ".join(names)
    return f"Of a network with several variants ({listed}) the one with the most runs counts.\n"


def _section(number: int, claim: Claim, finding: Finding) -> str:
    lines = [f"## {number}. {claim.name}: {finding.told}", ""]
    lines += [f"{claim.says} ({claim.place}.)", ""]
    lines += ["| part | ours | holds |", "| --- | --- | --- |"]
    for part in finding.parts:
        holds = {True: "yes", False: "no", None: "not run yet"}[part.holds]
        lines.append(f"| {part.says} | {part.numbers} | {holds} |")
    if finding.reason:
        lines += ["", f"Why: {finding.reason}."]
    return "\n".join(lines) + "\n"


def _protocols(rows: Sequence[LedgerRow]) -> str:
    """List the networks under every protocol and on every Pathfinder."""
    lines = [
        f"| `{network.model}` | {', '.join(filter(None, (study.recipe, network.variant)))} | "
        f"{study.task} | {length} | {_row(cell)} |"
        for study in studies(rows)
        if study.pathfinder and not study.segmentation
        for network in study.networks
        for length in study.lengths
        if (cell := study.cells.get((network, length))) is not None
    ]
    title = "## Networks under every protocol\n\n"
    if not lines:
        return f"{title}Not run yet.\n"
    head = (
        "| network | recipe | Pathfinder | length | runs | failed | best | mean | images | "
        "without a path |"
    )
    rule = "| --- " * 10 + "|"
    note = (
        "Without a path: the best of several probes, cross-validated on a few thousand images. "
        "Being the best, it is\na point or two above one half where nothing can be read, as on "
        "`matched`.\n"
    )
    return title + "\n".join([head, rule, *lines]) + f"\n\n{note}"


def _row(cell: Cell) -> str:
    best, spread, failures = cell.best, cell.mean_and_sd("accuracy"), cell.failures
    images = sorted({result.images for result in cell.results})
    span = f"{images[0]:,}" + (f" to {images[-1]:,}" if len(images) > 1 else "")
    accuracy = "diverged" if best is None or best.accuracy is None else f"{best.accuracy:.1%}"
    mean = "" if spread is None else f"{spread[0]:.1%}"
    shortcut = "" if cell.shortcut is None else f"{cell.shortcut:.1%}"
    cells = (str(failures.runs), str(failures.failed), accuracy, mean, span, shortcut)
    return " | ".join(cells)
