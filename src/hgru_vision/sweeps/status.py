"""Where a sweep stands, as a table for people."""

from collections import Counter
from collections.abc import Sequence
from statistics import mean
from typing import get_args

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hgru_vision.sweeps.jobs import Job
from hgru_vision.sweeps.launch import Outcome, State
from hgru_vision.training.files import read_curve

__all__ = ["status_table"]

STATES: tuple[State, ...] = get_args(State)
_STYLES = {
    "done": "green",
    "stuck": "yellow",
    "diverged": "magenta",
    "failed": "red",
    "missing": "dim",
}


def status_table(outcomes: Sequence[Outcome]) -> RenderableType:
    """Count the runs of each network and task by state; below, how far begun ones are, and errors.

    Parameters
    ----------
    outcomes
        Of all runs of a sweep.
    """
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in outcomes:
        config = outcome.job.config
        # Most pixels are background: their accuracy is high before anything is learnt.
        judged = ", pixels" if config.target == "segmentation" else ""
        task = config.task.name + (", pixel AUC" if config.boundaries else judged)
        groups.setdefault((config.recipe, config.model, task), []).append(outcome)
    shown = [
        state
        for state in STATES
        if state == "done" or any(each.state == state for each in outcomes)
    ]
    table = Table(show_footer=True)
    for name in ("recipe", "network", "task"):
        table.add_column(name, "runs" if name == "recipe" else "")
    total = Counter(outcome.state for outcome in outcomes)
    for state in shown:
        table.add_column(state, str(total[state]), justify="right", style=_STYLES.get(state, ""))
    table.add_column("accuracy: mean", justify="right")
    table.add_column("best", justify="right")
    for (recipe, _, task), members in groups.items():
        names = recipe, members[0].job.config.network, task
        counts = Counter(outcome.state for outcome in members)
        table.add_row(*names, *(str(counts[state] or "") for state in shown), *_accuracies(members))
    failures = [
        Text(f"{outcome.job.name}: {outcome.error}", style="red")
        for outcome in outcomes
        if outcome.state == "failed"
    ]
    begun = [
        Text(f"{outcome.job.name}: {_progress(outcome.job)}")
        for outcome in outcomes
        if outcome.state in ("unfinished", "busy")
    ]
    return Group(table, *begun, *failures)


def _progress(job: Job) -> str:
    """Say how far a run has come, from its last evaluation."""
    curve = read_curve(job.folder)
    if not curve:
        return "not evaluated yet"
    stages, last = job.config.stages, curve[-1]
    whole = sum(stage.images for stage in stages)
    return f"{last.images:,} of {whole:,} images, {last.accuracy:.1%} of {stages[last.stage].name}"


def _accuracies(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """Give the mean and the best accuracy of runs that finished."""
    found = [
        outcome.result.accuracy
        for outcome in outcomes
        if outcome.result is not None and outcome.result.accuracy is not None
    ]
    return (f"{mean(found):.1%}", f"{max(found):.1%}") if found else ("", "")
