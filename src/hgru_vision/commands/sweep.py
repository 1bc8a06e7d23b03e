"""hgru sweep: the runs of a grid, as many as the time allows, and their ledger."""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from hgru_vision.commands.accuracy import accuracy_in_words
from hgru_vision.commands.options import parse_duration
from hgru_vision.commands.train import change
from hgru_vision.sweeps.grid import load_grid
from hgru_vision.sweeps.launch import Launcher, Outcome
from hgru_vision.sweeps.launch import sweep as run_sweep
from hgru_vision.sweeps.ledger import executed_otherwise, read_ledger
from hgru_vision.sweeps.local import local_launcher
from hgru_vision.sweeps.ray_launch import ray_launcher
from hgru_vision.sweeps.status import status_table


def sweep(
    grid: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GRID")],
    on: Literal["local", "ray"] = "local",
    budget: str | None = None,
    out: Path = Path("runs"),
    ledger: Path | None = None,
    workers: int | None = None,
    address: str | None = None,
    cpus_per_run: float | None = None,
    gpus_per_run: float | None = None,
    set: tuple[str, ...] = (),
) -> None:
    """Run a grid of networks, tasks and seeds, as far as the time allows; called again, it goes on.

    A run whose row is in the ledger is done. One that the budget stops leaves a checkpoint, which
    is no error. One that fails does not stop the others: its error is told at the end, and the exit
    status is 1.
    Stages that two runs have in common are trained once.

    Example: hgru sweep tiny --budget 9m --out runs --ledger results/tiny.jsonl

    Example: hgru sweep recurrent --budget 9m --set cuda_graph=true

    Parameters
    ----------
    grid
        tiny (to try it), recurrent, networks, paper, paper14, released14, curriculum, contours,
        contours_wide (docs/sweeps.md tells what they hold), or FILE.py:FUNCTION, a function without
        arguments that returns RunConfigs.
    on
        This machine, or a Ray cluster.
    budget
        Stop after this time, such as 90s, 9m or 2h; 0s only tells where the sweep stands.
    out
        Folder for the runs' folders; for a cluster, on storage that all its nodes share.
    ledger
        File that gets a row for each run that ends; results/GRID.jsonl if not given.
    workers
        Runs at a time on this machine, one if not given. More share its GPU, or take its GPUs in
        turn.
    address
        Of a running Ray cluster, such as auto; Ray is started on this machine if not given.
    cpus_per_run
        Cores that a run takes on a Ray cluster, one if not given.
    gpus_per_run
        GPUs that a run takes on a Ray cluster, such as 0.25; 1 where there are any if not given.
    set
        Fields of all runs to change, such as --set cuda_graph=true, which makes small networks
        faster on a GPU. Changed runs are other runs: give the same again to go on with them.
    """
    configs = [change(config, set) for config in load_grid(grid)]
    seconds = None if budget is None else parse_duration(budget)
    for_local = {"workers": workers}
    for_ray = {"address": address, "cpus_per_run": cpus_per_run, "gpus_per_run": gpus_per_run}
    ledger = Path("results") / f"{_name(grid)}.jsonl" if ledger is None else ledger
    launcher: Launcher
    if on == "local":
        flags = _given(for_local, others=for_ray, place="--on ray")
        launcher = local_launcher(**flags, ledger=ledger)
    else:
        launcher = ray_launcher(**_given(for_ray, others=for_local, place="--on local"))
    console = Console()

    def tell(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    def report(outcome: Outcome) -> None:
        tell(_line(outcome))

    rows = read_ledger(ledger) if ledger.is_file() else []
    hints = []
    for changes, count in executed_otherwise(configs, rows).items():
        fields = dict(each.split("=", 1) for each in (*set, *changes))
        given = " ".join(f"{name}={value}" for name, value in fields.items())
        there = f"{ledger} has {count} of these runs but for how a step is executed"
        hints.append(f"{there}; --set {given} goes on with them")
    for hint in hints:  # in time to stop
        tell(hint)
    outcomes = run_sweep(configs, launcher, out=out, ledger=ledger, budget=seconds, report=report)
    console.print(status_table(outcomes))
    for hint in hints:  # again, as the table is long
        tell(hint)
    tell(f"ledger: {ledger}; runs: {out}")
    if any(outcome.state == "failed" for outcome in outcomes):
        raise SystemExit(1)


def _given(flags: dict[str, Any], *, others: dict[str, Any], place: str) -> dict[str, Any]:
    """Pick the flags that were given; refuse those which are for the other place."""
    for name, value in others.items():
        if value is not None:
            raise ValueError(f"--{name.replace('_', '-')} is for {place}")
    return {name: value for name, value in flags.items() if value is not None}


def _name(grid: str) -> str:
    """Name a ledger after its grid: ``tiny``, or the function of ``mine.py:tiny``."""
    return grid.rpartition(":")[2]


def _line(outcome: Outcome) -> str:
    """Tell what became of a run in one line."""
    line = f"{outcome.job.name}: {outcome.state}"
    result = outcome.result
    if result is not None and result.accuracy is not None:
        line += f", {accuracy_in_words(outcome.job.config, result)}"
    if result is not None and result.shared is not None:
        images, run = result.shared["images"], result.shared["run"][:8]
        line += f"; the first {images:,} of {result.images:,} images are those of run {run}"
    if outcome.error is not None:
        line += f", {outcome.error}"
    return line
