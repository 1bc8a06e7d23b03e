"""Runs on this machine: one after the other in this process, or several in processes of their own.

A run has a process to itself, not a place in a pool: one that is killed (out of memory, say) takes
no other with it, and its memory on the GPU is free again at once.
"""

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import SpawnProcess
from typing import Self

from rich.console import Console

from hgru_vision.sweeps.jobs import Job, Queue
from hgru_vision.sweeps.launch import Launcher, Outcome, run_job

__all__ = ["local_launcher"]

STOP_SECONDS = 60  # for a run to write a checkpoint when it is told to stop


def local_launcher(
    workers: int = 1,
    *,
    progress: bool = True,
    ledger: str | os.PathLike[str] | None = None,
) -> Launcher:
    """Make a launcher for this machine.

    A run that is stopped, by its deadline or by a signal, ends the sweep: no other is begun.

    Parameters
    ----------
    workers
        Runs at a time. One is run in this process, more in processes of their own, which share the
        GPU; of several GPUs each process sees one, in turn.
    progress
        Show the progress of a run in this process.
    ledger
        File of earlier runs, to tell beside that progress how many of them were stuck.
    """
    if workers < 1:
        raise ValueError(f"workers must be 1 or more; got {workers}")

    def launch(jobs: Sequence[Job], deadline: float | None) -> Generator[Outcome]:
        if workers == 1:
            return _in_turn(jobs, deadline, progress, ledger)
        return _side_by_side(jobs, deadline, workers)

    return launch


def _in_turn(
    jobs: Sequence[Job],
    deadline: float | None,
    progress: bool,
    ledger: str | os.PathLike[str] | None,
) -> Generator[Outcome]:
    console = Console(stderr=True, quiet=not progress, highlight=False)
    queue = Queue(jobs)
    while (job := queue.take()) is not None:
        number = len(jobs) - len(queue)
        console.print(f"{job.name} ({number} of {len(jobs)})", markup=False, soft_wrap=True)
        outcome = run_job(job, deadline, progress=progress, ledger=ledger)
        queue.end(job)
        yield outcome
        if outcome.stopped:
            return


def _side_by_side(jobs: Sequence[Job], deadline: float | None, workers: int) -> Generator[Outcome]:
    queue = Queue(jobs)
    running: list[_Worker] = []
    free = deque(_environments(workers))
    try:
        while queue or running:
            while free and (job := queue.take()) is not None:
                running.append(_Worker.start(job, deadline, free.popleft()))
            ready = connection.wait([worker.end for worker in running])
            for worker in [worker for worker in running if worker.end in ready]:
                running.remove(worker)
                outcome = worker.outcome()
                free.append(worker.environment)
                queue.end(worker.job)
                yield outcome
                if outcome.stopped:
                    queue.clear()
    finally:
        for worker in running:
            worker.process.terminate()  # which a run answers with a checkpoint
        for worker in running:
            worker.process.join(STOP_SECONDS)
            worker.process.kill()
            worker.process.join()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Worker:
    """A process that runs one job, and this side's end of the pipe to it."""

    job: Job
    process: SpawnProcess
    end: connection.Connection
    environment: dict[str, str]

    @classmethod
    def start(cls, job: Job, deadline: float | None, environment: dict[str, str]) -> Self:
        context = get_context("spawn")  # a forked process could not use CUDA
        end, other = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(job, deadline, other), daemon=True)
        with _environment(environment):
            process.start()
        other.close()  # so that `end` sees it when the process dies
        return cls(job=job, process=process, end=end, environment=environment)

    def outcome(self) -> Outcome:
        """Receive what became of the job; a process that died tells nothing."""
        try:
            outcome: Outcome = self.end.recv()
        except EOFError:
            self.process.join()
            outcome = Outcome(
                job=self.job, state="failed", error=_death(self.process.exitcode or 0)
            )
        self.process.join()
        self.end.close()
        return outcome


def _work(job: Job, deadline: float | None, end: connection.Connection) -> None:
    """Run a job in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which tells us
    threading.Thread(target=_follow_parent, daemon=True).start()
    end.send(run_job(job, deadline))


def _follow_parent() -> None:
    """Stop this process, as a signal would, when its parent is gone."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _environments(workers: int) -> list[dict[str, str]]:
    """Share the machine's cores and GPUs among processes; what the user has set stays."""
    import torch

    threads = str(max(1, torch.get_num_threads() // workers))
    names = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
    shares = [{name: threads for name in names if name not in os.environ} for _ in range(workers)]
    count = torch.cuda.device_count()
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    devices = named or [str(number) for number in range(count)]
    if count:
        for number, share in enumerate(shares):
            share["CUDA_VISIBLE_DEVICES"] = devices[number % count]
    return shares


@contextlib.contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Set variables for processes that are started inside."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _death(status: int) -> str:
    if status < 0:
        name = signal.Signals(-status).name
        return f"its process was killed by {name}" + (
            " (out of memory?)" if name == "SIGKILL" else ""
        )
    return f"its process ended with status {status} and no result"
