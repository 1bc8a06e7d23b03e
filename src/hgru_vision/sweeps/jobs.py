"""Runs of a sweep with their folders, and the order in which they may begin.

Runs that differ in nothing but how many stages they have begin alike: the run of stages 6, 9, 14
goes through every state of the runs of stages 6 and of 6, 9. `take_over` gives a run the last
checkpoint of such a beginning, so that no stage is trained twice; `Queue` lets beginnings go first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from hgru_vision.training.config import RunConfig
from hgru_vision.training.files import RESULT, has_checkpoint

__all__ = ["Job", "Queue", "beginnings", "take_over"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run and the folder that it works in."""

    config: RunConfig
    folder: Path

    @classmethod
    def under(cls, out: Path, config: RunConfig) -> Self:
        """Give a run its folder in ``out``: a name for people, then the hash that tells it apart.

        >>> from hgru_vision.training.config import Source, Stage
        >>> stage = Stage(sources=(Source(length=9),), images=64_000)
        >>> config = RunConfig(recipe="screen", model="hgru", stages=(stage,), seed=2)
        >>> Job.under(Path("runs"), config).folder.name[:-8]
        'hgru-screen-paper-9-seed2-'
        """
        words = (config.network, config.recipe, config.task.name, f"seed{config.seed}")
        name = "-".join(re.sub(r"[^A-Za-z0-9_.]+", "-", word).strip("-") for word in words)
        return cls(config=config, folder=out / f"{name}-{config.hash[:8]}")

    @property
    def name(self) -> str:
        """The folder's."""
        return self.folder.name


def beginnings(config: RunConfig) -> list[RunConfig]:
    """Give the runs of the first stages of a run, the longest first.

    A run whose learning rate falls at its end is no beginning of a longer one.

    >>> from hgru_vision.recipes import make_run
    >>> [run.task.length for run in beginnings(make_run("screen", length=14))]
    [9, 6, 3]
    >>> beginnings(make_run("screen", length=14))[1] == make_run("screen", length=6)
    True
    """
    if config.cool_down:
        return []
    return [
        replace(config, stages=config.stages[:count])
        for count in range(len(config.stages) - 1, 0, -1)
    ]


def take_over(job: Job) -> Job | None:
    """Let a run that has not begun go on from the last checkpoint of one of its beginnings.

    The beginning's folder must lie beside the run's. What comes out is what training from the
    first stage gives, bit for bit on a CPU; the learning curve and the clock are carried over, and
    `Result.shared` says how much of them.

    Parameters
    ----------
    job
        The run; nothing happens if its folder has a checkpoint or a result.

    Returns
    -------
    job or None
        The beginning that was found.

    Raises
    ------
    BlockingIOError
        If another process works in the run's folder.
    """
    from hgru_vision.data.durable import only_writer
    from hgru_vision.training.checkpoint import load_checkpoint, save_checkpoint
    from hgru_vision.training.position import Position

    for config in beginnings(job.config):
        earlier = Job.under(job.folder.parent, config)
        if not earlier.folder.is_dir():
            continue
        try:
            state = load_checkpoint(earlier.folder, earlier.config)
        except (ValueError, TypeError):  # damaged, or of another version: train from the start
            continue
        if state is None:
            continue
        position = Position.from_json(state["position"])
        position.shared = {
            "run": config.hash,
            "images": position.batches * config.batch,
            "seconds": position.seconds,
        }
        kept = {name: state[name] for name in state if name not in ("config", "images")}
        job.folder.mkdir(parents=True, exist_ok=True)
        with only_writer(job.folder):
            if has_checkpoint(job.folder) or (job.folder / RESULT).exists():
                return None
            save_checkpoint(job.folder, job.config, {**kept, "position": position.to_json()})
        return earlier
    return None


class Queue:
    """Jobs in their order, but for runs that wait until their beginnings have ended.

    Parameters
    ----------
    jobs
        In the order in which they are wanted.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._waiting = {job.config.hash: job for job in jobs}
        self._before = {
            key: {each.hash for each in beginnings(job.config)}
            for key, job in self._waiting.items()
        }
        self._running: set[str] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self) -> Job | None:
        """Take out the first job that may begin; None if there is none, or all have to wait."""
        ahead = self._running | self._waiting.keys()
        for key, job in self._waiting.items():
            if not self._before[key] & ahead:
                del self._waiting[key]
                self._running.add(key)
                return job
        return None

    def end(self, job: Job) -> None:
        """Say that a job has ended, whatever came of it."""
        self._running.discard(job.config.hash)

    def clear(self) -> None:
        """Let no other job begin."""
        self._waiting.clear()
