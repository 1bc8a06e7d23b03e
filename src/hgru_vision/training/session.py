"""What a run holds between its start, or its checkpoint, and its end."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor

from hgru_vision.data.readers import ImageDataset
from hgru_vision.models.catalogue import NETWORKS
from hgru_vision.models.stages import Readout
from hgru_vision.training.ahead import Ahead
from hgru_vision.training.checkpoint import build, load_checkpoint, save_checkpoint
from hgru_vision.training.config import RunConfig
from hgru_vision.training.curriculum import CAUSES, Row, at_chance, is_promoted, stuck_message
from hgru_vision.training.data import check_data, final_data, training_data
from hgru_vision.training.diagnosis import find_cause
from hgru_vision.training.display import Display
from hgru_vision.training.distributed import Group
from hgru_vision.training.environment import commit
from hgru_vision.training.files import CONFIG, keep_network, located, write_curve, write_json
from hgru_vision.training.outcome import (
    DivergedError,
    Measured,
    conclude,
    measure,
    record_divergence,
)
from hgru_vision.training.position import Position
from hgru_vision.training.result import Ending, Point, Result
from hgru_vision.training.start import begin
from hgru_vision.training.step import Step
from hgru_vision.training.trial import try_network

__all__ = ["Session"]

LOOKED_AT = 64  # held-out images, if a run is at chance


class Session:
    """A network in training: its step, its place in the data, its losses and its clock.

    Parameters
    ----------
    config
        Of the run.
    folder
        For its files.
    group
        The processes that share it.
    ledger
        Earlier runs.
    """

    def __init__(
        self, config: RunConfig, folder: Path, group: Group, ledger: Sequence[Row]
    ) -> None:
        self.config, self.folder, self.group, self.ledger = config, folder, group, ledger
        self.share = group.share(config.batch)
        check_data(config)
        commit()  # of the code that runs, not of what lies there in hours
        self._located = located(config, folder)
        network = build(self._located)
        if config.model_sha256 is not None:
            try_network(network, self._located, group.device)
        self.step = Step(network, config, group)
        self.position = Position()
        self.ahead: Ahead | None = None  # of the stage in training
        self._warned_of: int | None = None  # the last stage whose activity feeds itself
        # Since the last evaluation. They stay on the device until someone asks.
        longest = max(stage.images for stage in config.stages) // config.batch
        self.losses = torch.zeros(min(config.evaluate_every, longest), device=group.device)

    def start(self, display: Display) -> None:
        """Begin, or go on from the folder's checkpoint."""
        self.display = display
        state = load_checkpoint(self.folder, self.config)
        if state is None:
            begin(self.step.network, self.config)
        else:
            self._load(state)
            planned = sum(each.images for each in self.config.stages[: self.position.stage])
            trained = (self.position.batches - self.position.batch) * self.config.batch
            display.skip(planned - trained)  # what promotions left out
        if self.group.leads:
            write_json(self.folder / CONFIG, self.config.to_json())
            keep_network(self._located, self.folder)
            write_curve(self.folder, self.position.curve)
        if self.group.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.group.device)
        self._clock = self._shown = time.perf_counter()
        self._shown_images = self._images()

    def keep(self, loss: Tensor) -> None:
        """Count a batch and keep its loss; look at it where that makes nobody wait."""
        position = self.position
        self.losses[position.batch % self.config.evaluate_every].copy_(loss)
        position.batch += 1
        position.batches += 1
        on_cpu = self.group.device.type == "cpu"
        if on_cpu and self.group.any(not loss.isfinite()):
            self._agree()
        if self.display.due():
            last = float(self.read_losses()[-1])
            now = time.perf_counter()
            rate = (self._images() - self._shown_images) / (now - self._shown)
            self._shown, self._shown_images = now, self._images()
            self.display.loss(position.stage, self._images(), last, rate)

    def read_losses(self) -> Tensor:
        """Give the losses since the last evaluation; refuse to go on if one is not finite."""
        position = self.position
        pending = (position.batch - 1) % self.config.evaluate_every + 1
        losses = self.losses[:pending].cpu()
        bad = (~losses.isfinite()).nonzero()
        if len(bad):
            self._diverge(position.batches - pending + int(bad[0]) + 1, float(losses[bad[0]]))
        return losses

    def _agree(self) -> Tensor:
        """Read the losses in all processes; where one's is not finite, all of them stop."""
        pending = (self.position.batch - 1) % self.config.evaluate_every + 1
        bad = ~self.losses[:pending].isfinite()
        if self.group.size > 1:
            bad = self.group.sum(bad.int()) > 0
            self.losses[:pending][bad] = math.nan
        return self.read_losses()

    @property
    def gave_up(self) -> bool:
        """Whether the run ends early because it is stuck."""
        return self.position.told_stuck and self.config.stop_when_stuck

    def evaluate(self, data: ImageDataset, held_out: ImageDataset) -> None:
        """Add a point to the learning curve, and see whether the stage is over."""
        position = self.position
        loss = self._agree().double().mean() / self.group.size
        found = self._measure(data, held_out)
        self.count_time()
        point = Point(
            stage=position.stage,
            batch=position.batches,
            images=self._images(),
            loss=float(self.group.sum(loss)),
            accuracy=found.accuracy,
            seconds=position.seconds,
        )
        position.curve.append(point)
        if self.group.leads:
            write_curve(self.folder, position.curve)
        self.display.point(point)
        self._look_for_stuck(held_out)
        stage = self.config.stages[position.stage]
        position.passed = is_promoted(stage, point.accuracy) or self.gave_up

    def next_stage(self) -> None:
        """Go on to the next stage, with the weights and the optimiser as they are."""
        position, stage = self.position, self.config.stages[self.position.stage]
        if position.batch % self.config.evaluate_every:
            self._agree()  # nothing looks at the losses since the last evaluation later
        self.display.skip(stage.images - position.batch * self.config.batch)
        position.stage, position.batch = position.stage + 1, 0
        position.passed = position.told_stuck = False

    def finish(self) -> Result:
        """Judge the network on its task and write the result."""
        position = self.position
        data = training_data(self.config, position.stage)
        found = self._measure(data, final_data(self.config))
        self.count_time()
        ending: Ending = "stuck" if self.gave_up else "finished"
        return conclude(self.step, self.group, self.folder, position, found, ending)

    def count_time(self, ahead: Ahead | None = None) -> None:
        """Count the time since the last count: as training, if it is from `ahead` that images came.

        A GPU is waited for, so that the time is its own.
        """
        if self.group.device.type == "cuda":
            torch.cuda.synchronize(self.group.device)
        now = time.perf_counter()
        elapsed, self._clock = now - self._clock, now
        self.position.seconds += elapsed
        if ahead is not None:
            self.position.training += elapsed
            self.position.waiting += ahead.waiting
            ahead.waiting = 0.0

    def save(self) -> None:
        """Write a checkpoint, unless the weights are no good any more."""
        pending = self.position.batch % self.config.evaluate_every
        if pending:
            self._agree()
        if not all(value.isfinite().all() for value in self.step.network.parameters()):
            self._diverge(self.position.batches, math.nan)
        losses = self.losses[:pending]
        if self.group.size > 1:  # each process has those of its own images
            losses = self.group.sum(losses) / self.group.size
        if self.group.leads:
            state = {
                **self.step.state(),
                "position": self.position.to_json(),
                "losses": losses,
                "random": torch.get_rng_state(),
            }
            if self.group.device.type == "cuda":
                state["cuda_random"] = torch.cuda.get_rng_state(self.group.device)
            save_checkpoint(self.folder, self.config, state)
        self.count_time()

    def _load(self, state: dict[str, Any]) -> None:
        self.position = Position.from_json(state["position"])
        self.step.load(state, batches=self.position.batches)
        self.losses[: len(state["losses"])] = state["losses"].to(self.losses.device)
        torch.set_rng_state(state["random"])
        if "cuda_random" in state and self.group.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda_random"], self.group.device)

    def _measure(self, data: ImageDataset, judged: ImageDataset) -> Measured:
        try:
            return measure(self.step, self.group, data, judged, last=self.position.batch)
        except FloatingPointError:  # a circuit that looks itself, such as EquilibriumHGRU
            if self.group.size > 1:
                raise  # the other processes wait; torchrun ends them all
            self._diverge(self.position.batches, math.nan)

    def _look_for_stuck(self, held_out: ImageDataset) -> None:
        """Tell of a run at chance: when it is time to, and before that if its cause can be seen."""
        config, position = self.config, self.position
        seen = position.batch * config.batch
        late = config.stuck_after is not None and seen >= config.stuck_after
        warned = self._warned_of == position.stage
        if config.target != "label" or position.told_stuck or (warned and not late):
            return
        curve = [point for point in position.curve if point.stage == position.stage]
        if not at_chance(curve, config.evaluation_images):
            return
        some = torch.tensor(held_out.batch(range(min(len(held_out), LOOKED_AT))))
        cause = find_cause(self.step.network, self.step.prepare(some.to(self.group.device)))
        if late:
            readout = getattr(self.step.network, "readout", None)
            message = stuck_message(
                config,
                curve,
                self.ledger,
                seen=seen,
                cause=cause,
                can_pool_first=config.model in NETWORKS and type(readout) is Readout,
            )
            self.display.say(message)
            position.told_stuck = True
        elif cause == "self-excited":  # a readout that has turned away may turn back so early
            self.display.say(f"At chance so far. {CAUSES[cause]}")
            self._warned_of = position.stage

    def _diverge(self, batch: int, loss: float) -> NoReturn:
        self.count_time(self.ahead)
        record_divergence(self.step, self.group, self.folder, self.position)
        raise DivergedError.at(batch, loss, self.config, self.folder)

    def _images(self) -> int:
        return self.position.batches * self.config.batch
