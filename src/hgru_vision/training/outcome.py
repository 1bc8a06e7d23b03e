"""What came of a run: measured at its end, or the words for its failure."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors.torch import save

from hgru_vision.data.contours import SyntheticContours
from hgru_vision.data.datasets import SPLIT_START, Pathfinder
from hgru_vision.data.readers import ImageDataset
from hgru_vision.intervals import wilson_interval
from hgru_vision.stimuli import cues
from hgru_vision.stimuli.audit import audit
from hgru_vision.stimuli.contour_audit import audit_contours
from hgru_vision.stimuli.contours import ContourConfig
from hgru_vision.stimuli.presets import Config
from hgru_vision.training.ahead import Ahead
from hgru_vision.training.config import RunConfig
from hgru_vision.training.curriculum import RARELY
from hgru_vision.training.data import final_data
from hgru_vision.training.distributed import Group
from hgru_vision.training.environment import commit, device_name, peak_memory, versions
from hgru_vision.training.evaluate import BATCH, evaluate, reestimate_statistics
from hgru_vision.training.files import (
    RESULT,
    WEIGHTS,
    has_checkpoint,
    replace_file,
    write_json,
)
from hgru_vision.training.position import Position
from hgru_vision.training.result import Ending, Result, area_under_curve
from hgru_vision.training.step import Step

__all__ = ["DivergedError", "Measured", "conclude", "measure", "record_divergence"]

AUDIT_IMAGES = 4_000


class DivergedError(FloatingPointError):
    """The loss of a run is no finite number any more."""

    @classmethod
    def at(cls, batch: int, loss: float, config: RunConfig, folder: Path) -> Self:
        """Name the batch, what is left, and what to try."""
        kept = f"the last good checkpoint is in {folder}"
        if not has_checkpoint(folder):
            kept = "there is no checkpoint from before"
        clip = "clip the gradient (clip=5)" if config.clip is None else "a smaller clip"
        return cls(
            f"the loss is {loss:g} at batch {batch:,} ({batch * config.batch:,} images); {kept}. "
            f"Try {clip}, a smaller learning_rate or another seed"
        )


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Right decisions and all of them; for segmentation the mean overlap of masks besides.

    For boundaries also the mean AUC of the images' pixels; see `Evaluation`.
    """

    correct: int
    count: int
    overlap: float | None
    auc: float | None = None

    @property
    def accuracy(self) -> float:
        """The AUC where there is one; else the share of the decisions that were right."""
        return self.correct / self.count if self.auc is None else self.auc


def measure(
    step: Step, group: Group, data: ImageDataset, judged: ImageDataset, *, last: int
) -> Measured:
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
    measured
        The same in all processes.
    """
    config = step.config
    natural = judged.describe()["target"] == "boundaries"
    with step.autocast():
        if config.statistics_batches:
            first = max(0, last - config.statistics_batches)
            share = group.share(config.batch)
            with Ahead(
                data,
                batch=config.batch,
                share=share,
                first=first,
                last=last,
                device=group.device,
                targets=(),
            ) as recent:
                reestimate_statistics(step.network, (step.prepare(images) for (images,) in recent))
        mine = np.arange(group.rank, len(judged), group.size)
        found = torch.zeros(4, dtype=torch.float64)  # which counts exactly up to 2**53
        if len(mine):
            # Natural images are large: as many at a time as there is room for in training.
            batch = config.batch if natural else BATCH
            evaluation = evaluate(
                step.network, judged, device=group.device, batch=batch, indices=mine
            )
            overlap = 0.0 if evaluation.overlap is None else float(evaluation.overlap.sum())
            counts = evaluation.correct, evaluation.count, overlap, float(evaluation.right.sum())
            found = torch.tensor(counts, dtype=torch.float64)
    correct, count, overlap, right = group.sum(found).tolist()
    return Measured(
        correct=int(correct),
        count=int(count),
        overlap=overlap / len(judged) if config.target == "segmentation" else None,
        auc=right / len(judged) if natural else None,
    )


def conclude(
    step: Step, group: Group, folder: Path, position: Position, found: Measured, ending: Ending
) -> Result:
    """Write the weights and the result of a run that has come to its end."""
    config = step.config
    low, _ = wilson_interval(found.correct, found.count, 1 - 2 * RARELY)
    guesses = config.target == "label" and low <= 0.5
    last = len(config.stages) - 1
    on_task = [point.accuracy for point in position.curve if point.stage == last]
    result = Result(
        outcome=ending,
        accuracy=found.accuracy,
        correct=found.correct,
        test_images=found.count,
        alc=area_under_curve(on_task) if on_task else None,
        stuck=ending == "stuck" or guesses,
        overlap=found.overlap,
        shortcut=_shortcut(config) if group.leads else None,
        **_common(step, position),
    )
    if group.leads:
        # Copies: a network of a user's own may share a tensor between layers, a file does not.
        weights = {
            key: value.clone(memory_format=torch.contiguous_format)
            for key, value in step.network.state_dict().items()
        }
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
        "shared": position.shared,
    }


def _shortcut(config: RunConfig) -> dict[str, Any] | None:
    """Tell how well the task's label is read without following a path."""
    task = final_data(config)
    if config.target != "label" or not isinstance(task, Pathfinder | SyntheticContours):
        return None
    accuracy, probe = _audit(task.config, task.seed, AUDIT_IMAGES)
    return {"accuracy": accuracy, "probe": probe}


@lru_cache(maxsize=64)
def _audit(config: Config | ContourConfig, seed: int, images: int) -> tuple[float, str]:
    """Audit a task's test images; many runs of a sweep have the same, and it takes seconds."""
    first = SPLIT_START["test"]
    if isinstance(config, ContourConfig):
        best = audit_contours(config, seed, images, first=first).best
    else:
        best = audit(cues(config, seed, first + np.arange(images)), seed=0).best
    return best.accuracy, f"{best.probe} on {best.features}"
