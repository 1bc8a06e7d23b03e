"""What came of a run: measured at its end, or the words for its failure."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors.torch import save

from hgru_vision.data.datasets import SPLIT_START, Pathfinder
from hgru_vision.data.readers import ImageDataset
from hgru_vision.intervals import wilson_interval
from hgru_vision.stimuli import cues
from hgru_vision.stimuli.audit import audit
from hgru_vision.training.ahead import Ahead
from hgru_vision.training.config import RunConfig
from hgru_vision.training.curriculum import RARELY
from hgru_vision.training.data import final_data
from hgru_vision.training.distributed import Group
from hgru_vision.training.environment import commit, device_name, peak_memory, versions
from hgru_vision.training.evaluate import evaluate, reestimate_statistics
from hgru_vision.training.files import CHECKPOINT, RESULT, WEIGHTS, replace_file, write_json
from hgru_vision.training.position import Position
from hgru_vision.training.result import Result
from hgru_vision.training.step import Step

__all__ = ["DivergedError", "conclude", "measure", "record_divergence"]

AUDIT_IMAGES = 4_000


class DivergedError(FloatingPointError):
    """The loss of a run is no finite number any more."""

    @classmethod
    def at(cls, batch: int, loss: float, config: RunConfig, folder: Path) -> Self:
        """Name the batch, what is left, and what to try."""
        kept = f"the last good checkpoint is {folder / CHECKPOINT}"
        if not (folder / CHECKPOINT).exists():
            kept = "there is no checkpoint from before"
        clip = "clip the gradient (clip=5)" if config.clip is None else "a smaller clip"
        return cls(
            f"the loss is {loss:g} at batch {batch:,} ({batch * config.batch:,} images); {kept}. "
            f"Try {clip}, a smaller learning_rate or another seed"
        )


def measure(
    step: Step, group: Group, data: ImageDataset, judged: ImageDataset, *, last: int
) -> tuple[int, int]:
    """Bring batch norm up to date and count right decisions; the processes share the work.

    Parameters
    ----------
    step
        Of the network.
    group
        The processes.
    data
        Training images, of which the batches before `last` give the statistics.
    judged
        Images to decide about.
    last
        Batches that the network was trained on.

    Returns
    -------
    correct, count
        Decisions of all processes.
    """
    config = step.config
    with step.autocast():
        if config.statistics_batches:
            first = max(0, last - config.statistics_batches)
            share = group.share(config.batch)
            with Ahead(
                data, batch=config.batch, share=share, first=first, last=last, device=group.device
            ) as recent:
                reestimate_statistics(step.network, (step.prepare(images) for images, _ in recent))
        mine = np.arange(group.rank, len(judged), group.size)
        found = np.zeros(2, np.int64)
        if len(mine):
            evaluation = evaluate(step.network, judged, device=group.device, indices=mine)
            found[:] = evaluation.correct, evaluation.count
    correct, count = group.sum(torch.from_numpy(found)).tolist()
    return correct, count


def conclude(
    step: Step, group: Group, folder: Path, position: Position, correct: int, count: int
) -> Result:
    """Write the weights and the result of a run that has come to its end."""
    config = step.config
    low, _ = wilson_interval(correct, count, 1 - 2 * RARELY)
    on_task = [point.accuracy for point in position.curve if point.stage == position.stage]
    result = Result(
        outcome="finished",
        accuracy=correct / count,
        correct=correct,
        test_images=count,
        alc=float(np.mean(on_task)) if on_task else None,
        stuck=config.target == "label" and low <= 0.5,
        shortcut=_shortcut(config) if group.leads else None,
        **_common(step, position),
    )
    if group.leads:
        weights = {key: value.contiguous() for key, value in step.network.state_dict().items()}
        replace_file(folder / WEIGHTS, save(weights, {"config": config.hash}))
        write_json(folder / RESULT, result.to_json())
    group.wait()
    return result


def record_divergence(step: Step, group: Group, folder: Path, position: Position) -> None:
    """Write the result of a run that has gone wrong."""
    result = Result(
        outcome="diverged",
        accuracy=None,
        correct=0,
        test_images=0,
        alc=None,
        stuck=False,
        **_common(step, position),
    )
    if group.leads:
        write_json(folder / RESULT, result.to_json())


def _common(step: Step, position: Position) -> dict[str, Any]:
    images = position.batches * step.config.batch
    return {
        "curve": tuple(position.curve),
        "images": images,
        "seconds": position.seconds,
        "images_per_second": images / max(position.training, 1e-9),
        "waiting": position.waiting / max(position.training, 1e-9),
        "peak_memory": peak_memory(step.device),
        "parameters": sum(p.numel() for p in step.network.parameters()),
        "device": device_name(step.device),
        "versions": versions(),
        "commit": commit(),
    }


def _shortcut(config: RunConfig) -> dict[str, Any] | None:
    """Tell how well the task's label is read without following a path."""
    task = final_data(config)
    if config.target != "label" or not isinstance(task, Pathfinder):
        return None
    numbers = SPLIT_START["test"] + np.arange(AUDIT_IMAGES)
    best = audit(cues(task.config, task.seed, numbers), seed=0).best
    return {"accuracy": best.accuracy, "probe": f"{best.probe} on {best.features}"}
