"""Parts of claims: a network solves a length, is above another, is strained by length, ..."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import hypot
from statistics import mean

from hgru_vision.analysis.study import LEARNT, Cell, Network, Study, studies
from hgru_vision.papers.linsley2018 import PATH_LENGTHS, RUNS
from hgru_vision.sweeps.ledger import LedgerRow
from hgru_vision.training.result import Result

__all__ = [
    "NEGLIGIBLE",
    "RECIPE",
    "SOLVED",
    "Evidence",
    "Part",
    "above",
    "above_chance",
    "at_chance",
    "drop",
    "drops_less",
    "falls",
    "learns_faster",
    "only_one_solves",
    "solved",
    "unsolved",
]

SOLVED = 0.95
"""Accuracy of the best run from which a length counts as solved; the paper gives no number."""
NEGLIGIBLE = 0.02
"""A drop in accuracy up to this counts as negligible."""
RISING = 0.01
"""Rise between the last two thirds of a learning curve from which it counts as unfinished."""

CHANCE = 0.5

RECIPE = "screen"
"""By which networks are compared, where a claim does not say otherwise."""

_TASK = "paper"


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a claim: what it says, our numbers, whether it holds (None: not run), and why."""

    says: str
    numbers: str
    holds: bool | None
    why: str = ""


class Evidence:
    """Cells of the comparison that claims are judged by.

    Parameters
    ----------
    rows
        Of the ledger; those of other recipes, tasks or targets are not looked at.
    recipe
        By which the networks were trained.
    """

    def __init__(self, rows: Sequence[LedgerRow], recipe: str = RECIPE) -> None:
        found = [each for each in studies(rows) if (each.recipe, each.task) == (recipe, _TASK)]
        self.study: Study | None = found[0] if found else None

    def cell(self, model: str, length: int) -> Cell | None:
        """Give the runs of a network; of several variants, that with the most at all lengths."""
        if self.study is None:
            return None
        runs: Counter[Network] = Counter()
        for (network, _), cell in self.study.cells.items():
            runs[network] += len(cell.rows)
        variants = sorted(network for network in runs if network.model == model)
        if not variants:
            return None
        return self.study.cells.get((max(variants, key=lambda each: runs[each]), length))

    def variants(self) -> list[Network]:
        """Name networks of which there are runs that differ in more than their seeds."""
        return [] if self.study is None else [n for n in self.study.networks if n.variant]


def solved(found: Evidence, model: str, lengths: Sequence[int]) -> tuple[Part, ...]:
    """Say that a network solves lengths, one part each."""
    return tuple(_level(found, model, length, solved=True) for length in lengths)


def unsolved(found: Evidence, model: str, lengths: Sequence[int]) -> tuple[Part, ...]:
    """Say that a network does not solve lengths, one part each."""
    return tuple(_level(found, model, length, solved=False) for length in lengths)


def only_one_solves(found: Evidence, better: str, worse: str, length: int) -> Part:
    """Say that one network solves a length and another does not; neither alone tells anything."""
    says = f"`{better}` solves {length} and `{worse}` does not"
    first = _level(found, better, length, solved=True)
    second = _level(found, worse, length, solved=False)
    if first.holds is None or second.holds is None:
        return Part(says=says, numbers="", holds=None)
    failed = [
        f"`{name}`: {part.why}" for name, part in ((better, first), (worse, second)) if part.why
    ]
    numbers = f"{first.numbers}; {second.numbers}"
    return Part(says=says, numbers=numbers, holds=not failed, why=", ".join(failed))


def _level(found: Evidence, model: str, length: int, *, solved: bool) -> Part:
    """Say that a network solves a length, or that it does not and would not soon."""
    says = f"`{model}` {'solves' if solved else 'does not solve'} {length}"
    cell = found.cell(model, length)
    if cell is None:
        return Part(says=says, numbers="", holds=None)
    best = cell.best
    reached = best is not None and best.accuracy is not None and best.accuracy >= SOLVED
    holds = reached == solved
    why = _why_low(cell) if solved else "it does, with this curriculum and budget"
    if not solved and best is not None and not reached and _rising(best):
        holds, why = False, f"{best.accuracy:.1%} after {best.images:,} images, and still rising"
    return Part(says=says, numbers=_numbers(cell), holds=holds, why="" if holds else why)


def above_chance(found: Evidence, model: str, length: int) -> Part:
    """Say that a network is above chance at a length: the interval of its best run is."""
    return _chance(found, model, length, beyond=True)


def at_chance(found: Evidence, model: str, length: int) -> Part:
    """Say that a network is no better than chance: the interval of its best run reaches down."""
    return _chance(found, model, length, beyond=False)


def _chance(found: Evidence, model: str, length: int, *, beyond: bool) -> Part:
    says = f"`{model}` is {'above' if beyond else 'at'} chance at {length}"
    cell = found.cell(model, length)
    if cell is None:
        return Part(says=says, numbers="", holds=None)
    best = cell.best
    higher = best is not None and best.accuracy is not None and _interval(cell)[0] > CHANCE
    holds = higher == beyond
    why = "it is not" if beyond else f"{_value(cell)} is more"
    return Part(says=says, numbers=_numbers(cell), holds=holds, why="" if holds else why)


def drop(found: Evidence, model: str) -> Part:
    """Say that the accuracy of a network drops by a negligible amount.

    The best of equally many runs are compared.
    """
    says = (
        f"`{model}` drops by at most {NEGLIGIBLE:.0%} from {PATH_LENGTHS[0]} to {PATH_LENGTHS[-1]}"
    )
    ends = [found.cell(model, length) for length in PATH_LENGTHS[:: len(PATH_LENGTHS) - 1]]
    cells = _equally_many([cell for cell in ends if cell is not None])
    if len(cells) < len(ends):
        return Part(says=says, numbers="", holds=None)
    values = [cell.best_value("accuracy") for cell in cells]
    numbers = ", ".join(_value(cell) for cell in cells)
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Part(says=says, numbers=numbers, holds=False, why="it diverged")
    short, long = known
    holds = short >= SOLVED and short - long <= NEGLIGIBLE
    why = f"it drops from {short:.1%} to {long:.1%}"
    if short < SOLVED:
        why = f"{short:.1%} is nothing to drop from"
    return Part(says=says, numbers=numbers, holds=holds, why="" if holds else why)


def drops_less(found: Evidence, model: str, other: str) -> Part:
    """Say that the accuracy of one network drops by less with length than that of another.

    The best of equally many runs are compared; the intervals of the drops must not overlap.
    """
    short, long = PATH_LENGTHS[0], PATH_LENGTHS[-1]
    says = f"`{model}` drops by less than `{other}` from {short} to {long}"
    known = [found.cell(name, length) for name in (model, other) for length in (short, long)]
    cells = _equally_many([cell for cell in known if cell is not None])
    if len(cells) < len(known):
        return Part(says=says, numbers="", holds=None)
    accuracies = [accuracy for cell in cells if (accuracy := cell.best_value("accuracy"))]
    if len(accuracies) < len(cells):
        numbers = ", ".join(_value(cell) for cell in cells)
        return Part(says=says, numbers=numbers, holds=False, why="there is nothing to compare")
    low, own, high = _drop(cells[0], cells[1])
    least, others, most = _drop(cells[2], cells[3])
    numbers = f"{100 * own:.1f} and {100 * others:.1f} points"
    holds = high < least and accuracies[2] >= LEARNT
    why = "it drops by more" if low > most else "their intervals overlap"
    if accuracies[2] < LEARNT:
        why = f"`{other}` has nothing to drop from"
    return Part(says=says, numbers=numbers, holds=holds, why="" if holds else why)


def above(found: Evidence, better: str, worse: str, length: int, measure: str = "accuracy") -> Part:
    """Say that one network is above another; of accuracies, intervals must not overlap.

    The best of equally many runs are compared.
    """
    what = "" if measure == "accuracy" else " in ALC"
    says = f"`{better}` is above `{worse}` at {length}{what}"
    first, second = found.cell(better, length), found.cell(worse, length)
    if first is None or second is None:
        return Part(says=says, numbers="", holds=None)
    first, second = _equally_many([first, second])
    runs = len(first.rows)
    high, low = first.best_value(measure), second.best_value(measure)
    of_runs = "one run each" if runs == 1 else f"best of {runs} each"
    numbers = f"{_value(first, measure)}, {_value(second, measure)}; {of_runs}"
    if _stuck(second) and not _stuck(first):
        numbers += f"; `{worse}` at chance"
    if high is None or low is None:
        # A network whose runs all diverged, or that never came to the task, is below any that did.
        holds = high is not None
        why = "" if holds else f"it {_value(first, measure)}"
        return Part(says=says, numbers=numbers, holds=holds, why=why)
    if measure == "accuracy":
        holds = _interval(first)[0] > _interval(second)[1]
        apart = (
            "it is below"
            if _interval(first)[1] < _interval(second)[0]
            else "their intervals overlap"
        )
    else:
        holds, apart = high > low, "it is not"
    return Part(says=says, numbers=numbers, holds=holds, why="" if holds else apart)


def learns_faster(found: Evidence, model: str, rival: str, length: int) -> Part:
    """Say that the ALC of one network is above that of another, which must have learnt, too."""
    part = above(found, model, rival, length, "alc")
    cell = found.cell(rival, length)
    best = None if cell is None else cell.best_value("accuracy")
    if part.holds and (best is None or best < LEARNT):
        return replace(part, holds=False, why=f"`{rival}` has learnt nothing to compare it by")
    return part


def falls(found: Evidence, model: str, measure: str) -> Part:
    """Say that a measure does not rise with length, and is lower at the end than at the start.

    The best of equally many runs are compared. Of accuracies, the interval at the end must lie
    below that at the start, and none above that of a shorter length.
    """
    name = "accuracy" if measure == "accuracy" else "ALC"
    says = f"{name} of `{model}` falls with length"
    known = [cell for length in PATH_LENGTHS if (cell := found.cell(model, length)) is not None]
    cells = _equally_many(known)
    numbers = ", ".join(_value(cell, measure) for cell in cells)
    if len(cells) < len(PATH_LENGTHS):
        return Part(says=says, numbers=numbers, holds=None)
    ends = [_ends(cell, measure) for cell in cells]
    rises = any(after[0] > before[1] for before, after in combinations(ends, 2))
    holds = not rises and ends[0][0] > ends[-1][1]
    why = "it rises" if rises else "its ends are not told apart"
    return Part(says=says, numbers=numbers, holds=holds, why="" if holds else why)


def _equally_many(cells: list[Cell]) -> list[Cell]:
    """Cut cells to as many runs as each has: the best of more is higher for no better network."""
    runs = min([RUNS, *(len(cell.rows) for cell in cells)])
    return [Cell(cell.rows[:runs]) for cell in cells]


def _ends(cell: Cell, measure: str) -> tuple[float, float]:
    """Give the interval of an accuracy; an ALC, which has none, is both ends of its own."""
    value = cell.best_value(measure)
    if value is None:  # what diverged, or never came to the task, is below all that did
        return -1.0, -1.0
    return _interval(cell) if measure == "accuracy" else (value, value)


def _numbers(cell: Cell) -> str:
    """Tell the best run with its interval, the mean of all, and how many failed."""
    best, spread, failures = cell.best, cell.mean_and_sd("accuracy"), cell.failures
    runs = f"{failures.runs} run{'' if failures.runs == 1 else 's'}"
    if best is None or best.accuracy is None or spread is None:
        return f"diverged in {runs}"
    low, high = _interval(cell)
    text = f"{best.accuracy:.1%} ({low:.1%} to {high:.1%})"
    if _stuck(cell):
        text += ", at chance"
    if failures.runs == 1:
        return f"{text}, {runs}"
    return f"{text}, best of {min(failures.runs, RUNS)}; mean {spread[0]:.1%}" + (
        f"; {failures.failed} of {runs} failed" if failures.failed else ""
    )


def _why_low(cell: Cell) -> str:
    """Say what is known of why a network did not solve a length."""
    best = cell.best
    if best is None or best.accuracy is None:
        return "its runs diverged"
    if _stuck(cell):
        peak = max((point.accuracy for result in cell.results for point in result.curve), default=0)
        before = "none began to learn" if peak < LEARNT else f"the best had {peak:.1%} on the way"
        return f"all of {len(cell.rows)} ended at chance: {before}"
    told = f"{best.accuracy:.1%} is all it reached in {best.images:,} images"
    if _rising(best):
        told += ", and it was still rising"
    if cell.shortcut is not None and best.accuracy <= cell.shortcut:
        told += f"; a probe that follows no path has {cell.shortcut:.1%}"
    return told


def _stuck(cell: Cell) -> bool:
    return all(result.stuck for result in cell.results)


def _rising(run: Result) -> bool:
    """Whether the last third of a stage's learning curve is above the third before it.

    Means of two evaluations at least: single ones differ by a point or two with nothing learnt.
    """
    last = [point.accuracy for point in run.curve if point.stage == run.curve[-1].stage]
    third = len(last) // 3
    return third >= 2 and mean(last[-third:]) - mean(last[-2 * third : -third]) > RISING


def _drop(short: Cell, long: Cell) -> tuple[float, float, float]:
    """Give the interval of a drop and, between its ends, the drop (Newcombe, 1998, method 10)."""
    (a, b), (c, d) = _interval(short), _interval(long)
    before, after = short.best_value("accuracy"), long.best_value("accuracy")
    assert before is not None and after is not None
    fall = before - after
    return fall - hypot(before - a, d - after), fall, fall + hypot(b - before, after - c)


def _interval(cell: Cell) -> tuple[float, float]:
    best = cell.best
    assert best is not None and best.interval is not None  # of labels that were judged
    return best.interval


def _value(cell: Cell, measure: str = "accuracy") -> str:
    value = cell.best_value(measure)
    if value is not None:
        return f"{value:.1%}"
    judged = cell.best is not None and cell.best.accuracy is not None
    return "ended before its last stage" if judged else "diverged"
