"""Runs as tasks of a Ray cluster.

The runs' folders lie on storage that all nodes share: a run whose node is lost goes on from its
checkpoint on another one. The driver alone appends to the ledger, as results come.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from hgru_vision.sweeps.jobs import Job, Queue
from hgru_vision.sweeps.launch import Launcher, Outcome, run_job, seconds_left
from hgru_vision.weights import list_weights

__all__ = ["StoppedEarlyError", "ray_launcher"]

RETRIES = 3  # of a run whose process or node was lost
GRACE = 120.0  # seconds after the deadline for last evaluations and checkpoints
LOST_NODE_SECONDS = 120.0  # that a lost node's processes, or their locks, may live on
BUSY_SECONDS = 1.0  # from one look at a busy folder to the next
LAST_SECONDS = 5.0  # a run that stops this near to its deadline was stopped by it


class StoppedEarlyError(RuntimeError):
    """A run was told to stop before its time was up, as on a node that is being taken away."""


def ray_launcher(
    *,
    address: str | None = None,
    cpus_per_run: float = 1,
    gpus_per_run: float | None = None,
    retries: int = RETRIES,
) -> Launcher:
    """Make a launcher for a Ray cluster.

    Parameters
    ----------
    address
        Of a running cluster, such as ``auto`` or ``ray://head:10001``; None starts Ray on this
        machine, for the time of the sweep.
    cpus_per_run, gpus_per_run
        What a run takes of a node; 0.25 of a GPU lets four runs share one. If not given, a run
        takes one GPU where the cluster has any.
    retries
        How often a run is tried again when its process or its node is lost. An error of the run
        itself would come again, and is reported at once.
    """
    for name, value in (("cpus_per_run", cpus_per_run), ("gpus_per_run", gpus_per_run)):
        if value is not None and value < 0:
            raise ValueError(f"{name} must be 0 or more; got {value:g}")
    if gpus_per_run is not None and gpus_per_run > 1:
        raise ValueError(
            f"gpus_per_run must be at most 1; got {gpus_per_run:g}: a run of a sweep has one GPU "
            "(for several use `hgru train` under torchrun)"
        )
    if retries < 0:
        raise ValueError(f"retries must be 0 or more; got {retries}")
    ray = _import_ray()

    def launch(jobs: Sequence[Job], deadline: float | None) -> Generator[Outcome]:
        with _connected(ray, address):
            gpus = gpus_per_run
            if gpus is None:
                gpus = 1 if ray.cluster_resources().get("GPU", 0) else 0
            task = ray.remote(
                num_cpus=cpus_per_run,
                num_gpus=gpus,
                max_retries=retries,
                retry_exceptions=[StoppedEarlyError],
            )(_task)
            here, queue = Path.cwd(), Queue(jobs)
            pending: dict[Any, Job] = {}
            try:
                while queue or pending:
                    while (job := queue.take()) is not None:
                        pending[task.remote(job, deadline, here)] = job
                    outcome = _next_outcome(ray, pending, deadline)
                    if outcome is None:
                        return
                    queue.end(outcome.job)
                    yield outcome
            finally:
                _stop(ray, list(pending))

    return launch


def _next_outcome(ray: Any, pending: dict[Any, Job], deadline: float | None) -> Outcome | None:
    """Wait for a run to end; None if the time is up before. What is left stays pending."""
    left = seconds_left(deadline)
    timeout = None if left is None else max(0.0, left + GRACE)
    ready, _ = ray.wait(list(pending), num_returns=1, timeout=timeout)
    if not ready:
        return None
    job = pending.pop(ready[0])
    try:
        outcome: Outcome = ray.get(ready[0])
    except ray.exceptions.RayError as error:
        return Outcome(job=job, state="failed", error=_reason(error))
    return outcome


def _task(job: Job, deadline: float | None, here: Path) -> Outcome:
    """Run a job on some node; ask for another one if it was stopped for no reason of ours."""
    paths = [source.path for stage in job.config.stages for source in stage.sources]
    if job.config.start not in list_weights():
        paths.append(job.config.start)
    reads_files = any(paths)
    with contextlib.chdir(here) if reads_files else contextlib.nullcontext():
        outcome = run_job(job, deadline)
        waited = 0.0
        while outcome.state == "busy" and waited < LOST_NODE_SECONDS:
            time.sleep(BUSY_SECONDS)
            waited += BUSY_SECONDS
            outcome = run_job(job, deadline)
    left = seconds_left(deadline)
    if outcome.stopped and outcome.result is None and (left is None or left > LAST_SECONDS):
        raise StoppedEarlyError(f"{job.name} was told to stop on its node")
    return outcome


def _stop(ray: Any, tasks: list[Any]) -> None:
    """Interrupt runs, which leave a checkpoint, and wait for them."""
    for task in tasks:
        ray.cancel(task, force=False)
    if tasks:
        ray.wait(tasks, num_returns=len(tasks), timeout=60)


def _reason(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1].strip() if lines else 'no reason given'}"


@contextlib.contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """Connect to a cluster, or start one of this machine alone; leave no process behind."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    handler = signal.getsignal(signal.SIGTERM)
    ray.init(
        address=address or "local",
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
    )
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray's own would end this process at once
    try:
        yield
    finally:
        ray.shutdown()


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ImportError(
            "--on ray needs Ray, which is not installed: pip install 'hgru-vision[ray]'"
        ) from None
    return ray
