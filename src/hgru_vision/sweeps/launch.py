"""Run what a ledger does not have yet, and write what came of it.

`sweep` says what is to be run and keeps the ledger; where it is run is a launcher's affair: `local`
(this machine) or `ray_launch` (a cluster). A launcher takes jobs and a deadline and yields an
`Outcome` as each run ends. Only `sweep` appends to the ledger, so that no row is written twice.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from rich.console import Console

from hgru_vision.sweeps.jobs import Job, take_over
from hgru_vision.sweeps.ledger import LedgerRow, append, check_portable, read_ledger
from hgru_vision.training.config import RunConfig
from hgru_vision.training.files import (
    check_output,
    check_run,
    has_checkpoint,
    keep_network,
    read_result,
)
from hgru_vision.training.result import Result

__all__ = ["Job", "Launcher", "Outcome", "State", "run_job", "seconds_left", "sweep"]


NETWORKS = "networks"  # folder beside the runs', of the files of users' own networks

State = Literal["done", "stuck", "diverged", "failed", "unfinished", "busy", "missing"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What has become of a job.

    Parameters
    ----------
    job
        Which.
    state
        "done", "stuck" (ended early, at chance) or "diverged", which have a row in the ledger;
        "failed" with an error; "unfinished", stopped with a checkpoint to go on from; "busy", in
        the hands of another process; or "missing", not begun.
    result
        Of a run that has a row.
    error
        Of one that failed.
    interrupted
        Whether SIGTERM or Ctrl-C came, be it during the last test of a run that is done, or before
        an error.
    """

    job: Job
    state: State
    result: Result | None = None
    error: str | None = None
    interrupted: bool = field(default=False, compare=False)

    @property
    def stopped(self) -> bool:
        """Whether the time was up, or the run was told to stop: others had better not begin."""
        return self.interrupted or self.state in ("unfinished", "missing")


class Launcher(Protocol):
    """Where jobs are run."""

    def __call__(self, jobs: Sequence[Job], deadline: float | None) -> Generator[Outcome]:
        """Run jobs in order until the deadline (`time.time()`); yield what ends, as it ends."""
        ...


def run_job(
    job: Job,
    deadline: float | None,
    *,
    progress: bool = False,
    ledger: str | os.PathLike[str] | None = None,
) -> Outcome:
    """Run a job, or go on with it, or with a run that begins alike; an error ends the job alone.

    Parameters
    ----------
    job
        What to run.
    deadline
        When to stop and leave a checkpoint, as `time.time()` tells it; None for never.
    progress
        Show the run's progress.
    ledger
        File of earlier runs, from which a run at chance is told how usual that is.
    """
    from hgru_vision.training.loop import DivergedError, train

    signalled = threading.Event()
    left = seconds_left(deadline)
    if left is not None and left <= 0:
        return _not_run(job)
    try:
        # `train` would go on with a run that diverged, and a failure of the seed might not be told.
        before = read_result(job.folder)
        if before is not None and before.outcome == "diverged":
            check_run(job.folder, job.config, resume=True)
            return _ended(job, before)
        earlier = take_over(job)
        if earlier is not None and progress:
            told = f"{job.name} begins as {earlier.name} did, and goes on from its checkpoint"
            Console(stderr=True).print(told, markup=False, highlight=False, soft_wrap=True)
        rows = [] if ledger is None else _rows(ledger)
        result = train(
            job.config,
            job.folder,
            resume=True,
            budget=left,
            progress=progress,
            ledger=rows,
            interrupted=signalled,
        )
    except DivergedError:
        result = read_result(job.folder)
    except BlockingIOError:  # another process has locked the folder
        return Outcome(job=job, state="busy")
    except Exception as error:  # whatever it is: the other runs go on, and the summary tells it
        told = f"{type(error).__name__}: {error}"
        # Unless a signal came first: the last checkpoint may fail, too, as on a full disk.
        return Outcome(job=job, state="failed", error=told, interrupted=signalled.is_set())
    outcome = Outcome(job=job, state="unfinished") if result is None else _ended(job, result)
    return replace(outcome, interrupted=signalled.is_set())


def seconds_left(deadline: float | None) -> float | None:
    """Tell the time until a deadline, which clocks of several machines agree on."""
    return None if deadline is None else deadline - time.time()


def sweep(
    configs: Iterable[RunConfig],
    launcher: Launcher,
    *,
    out: str | os.PathLike[str],
    ledger: str | os.PathLike[str],
    budget: float | None = None,
    report: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Run what the ledger does not have, and add a row for each run that ends.

    Parameters
    ----------
    configs
        The runs. What comes first is run first, but for a run whose first stages are another's:
        that one goes first, and its stages are not trained again. One that comes twice is run once.
    launcher
        Where to run them.
    out
        Folder for the runs' folders, which hold their checkpoints. The same call again goes on.
    ledger
        File for the rows. A run whose hash is in it is done.
    budget
        Seconds after which runs are stopped, to go on another time; 0 runs nothing.
    report
        Called with each outcome as it comes.

    Returns
    -------
    list of Outcome
        Of all runs, in their order.
    """
    check_output(Path(ledger))
    if Path(out).exists() and not Path(out).is_dir():
        raise NotADirectoryError(f"{out} is a file; runs need a folder")
    deadline = None if budget is None else time.time() + budget
    jobs = _jobs(configs, Path(out).absolute())
    outcomes = {job.config.hash: _not_run(job) for job in jobs}
    for row in _rows(ledger):
        if row.hash in outcomes:
            outcomes[row.hash] = _ended(outcomes[row.hash].job, row.result)
    todo = [each.job for each in outcomes.values() if each.result is None]
    if not todo or budget == 0:
        return list(outcomes.values())
    todo = [replace(job, config=_kept(job.config, Path(out).absolute())) for job in todo]
    with _terminable(), contextlib.closing(launcher(todo, deadline)) as arriving:
        for outcome in arriving:
            config = outcome.job.config
            if outcome.result is not None:
                # Another sweep of the same folder may have ended the run and written it meanwhile.
                append(ledger, LedgerRow(config=config, result=outcome.result), once=True)
            outcomes[config.hash] = outcome
            report(outcome)
    return list(outcomes.values())


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM interrupt this process as Ctrl-C does, so that runs are told to stop."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are not for us
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _rows(ledger: str | os.PathLike[str]) -> list[LedgerRow]:
    return read_ledger(ledger) if Path(ledger).exists() else []


def _jobs(configs: Iterable[RunConfig], out: Path) -> list[Job]:
    """Give each run a folder, once."""
    unique: dict[str, Job] = {}
    for config in configs:
        check_portable(config)
        unique.setdefault(config.hash, Job.under(out, config))
    return list(unique.values())


def _kept(config: RunConfig, out: Path) -> RunConfig:
    """Keep a network of a user's own as it is now: its file may be edited before its run begins.

    Nor need another node have that file: what is in `out`, all have.
    """
    return keep_network(config, out / NETWORKS / (config.model_sha256 or "")[:16])


def _ended(job: Job, result: Result) -> Outcome:
    state: State = "done" if result.outcome == "finished" else result.outcome
    return Outcome(job=job, state=state, result=result)


def _not_run(job: Job) -> Outcome:
    state: State = "unfinished" if has_checkpoint(job.folder) else "missing"
    return Outcome(job=job, state=state)
