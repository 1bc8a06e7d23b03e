"""The training loop: the same in one process and in many under `torchrun`."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch

from hgru_vision.data.durable import only_writer
from hgru_vision.training.ahead import Ahead, Target
from hgru_vision.training.config import RunConfig, Stage
from hgru_vision.training.curriculum import Row
from hgru_vision.training.data import evaluation_data, training_data
from hgru_vision.training.display import Display
from hgru_vision.training.distributed import process_group
from hgru_vision.training.files import check_run
from hgru_vision.training.outcome import DivergedError
from hgru_vision.training.result import Result
from hgru_vision.training.session import Session
from hgru_vision.training.step import arithmetic

__all__ = ["DivergedError", "train"]

ASK_EVERY = 16  # batches after which several processes ask each other whether to stop


def train(
    config: RunConfig,
    folder: Path,
    *,
    resume: bool = False,
    budget: float | None = None,
    progress: bool = True,
    tensorboard: bool = False,
    device: torch.device | str | None = None,
    ledger: Sequence[Row] = (),
    interrupted: threading.Event | None = None,
) -> Result | None:
    """Train a network, or go on with it.

    Parameters
    ----------
    config
        What to train, and how.
    folder
        For the run's files (see `hgru_vision.training.files`); made if need be.
    resume
        Go on from the checkpoint in `folder`, if there is one. A run that is over is not trained
        again.
    budget
        Stop after so many seconds, with a checkpoint.
    progress
        Show how it goes, on standard error.
    tensorboard
        Write scalars for TensorBoard to the folder, too.
    device
        A GPU if there is one, else the CPU, if not given.
    ledger
        Earlier runs, to tell how many of them were stuck where this one is.
    interrupted
        Is set when SIGTERM or Ctrl-C comes. The last test of a run is not broken off: this tells
        who started it that no other should begin.

    Returns
    -------
    result or None
        None if the budget was spent, or SIGTERM or Ctrl-C came: resume to go on.

    Raises
    ------
    DivergedError
        If the loss is no finite number any more; the last good checkpoint stays.
    ValueError
        If the folder holds another run; the fields that differ are named.
    FileExistsError
        If it holds a run and `resume` is not set.
    """
    with (
        _stopper(budget, interrupted or threading.Event()) as stop,
        process_group(device) as group,
        arithmetic(config, group.device),
    ):
        session = Session(config, Path(folder), group, ledger)  # refuses what cannot be run
        try:
            return _run(session, stop, resume=resume, progress=progress, tensorboard=tensorboard)
        finally:
            del session  # and with it what DDP keeps of the group, before that is taken apart


def _run(
    session: Session,
    stop: Callable[[], bool],
    *,
    resume: bool,
    progress: bool,
    tensorboard: bool,
) -> Result | None:
    """Train stage after stage; None if the run is to stop before its end."""
    config, folder, group = session.config, session.folder, session.group
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; a run needs a folder")
    with ExitStack() as stack:
        if group.leads:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(only_writer(folder))
        group.wait()
        done = check_run(folder, config, resume=resume)
        group.wait()  # until all have looked
        if done is not None:
            return done
        board = folder if tensorboard and group.leads else None
        display = Display(config, shown=progress and group.leads, tensorboard=board)
        session.start(stack.enter_context(display))
        position = session.position
        while _train_stage(session, stop):
            if position.stage == len(config.stages) - 1 or session.gave_up:
                session.save()  # before statistics change: a longer run may go on from here
                return session.finish()
            session.next_stage()
        session.save()
        return None


def _train_stage(session: Session, stop: Callable[[], bool]) -> bool:
    """Train until a stage ends or is passed; False if the run is to stop before."""
    config, position, group = session.config, session.position, session.group
    if position.passed:
        return True
    stage = config.stages[position.stage]
    last = stage.images // config.batch
    ends = position.stage == len(config.stages) - 1
    data, held_out = training_data(config, position.stage), evaluation_data(config, position.stage)
    session.step.network.train()
    with Ahead(
        data,
        batch=config.batch,
        share=session.share,
        first=position.batch,
        last=last,
        device=group.device,
        targets=_targets(config, stage),
    ) as ahead:
        session.ahead = ahead
        for batch in ahead:
            left = last - position.batch if ends else None
            try:
                loss = session.step(*batch, mask_weight=stage.mask_weight, left=left)
            except FloatingPointError:  # a circuit that looks itself, such as EquilibriumHGRU
                if group.size > 1:
                    raise  # the other processes wait for its gradients; torchrun ends them all
                loss = torch.tensor(math.nan, device=group.device)
            session.keep(loss)
            if position.batch % config.evaluate_every == 0:
                session.count_time(ahead)
                session.evaluate(data, held_out)
                if position.passed:
                    return True
            if position.batches % config.checkpoint_every == 0:
                session.count_time(ahead)
                session.save()
            asked = group.size == 1 or position.batches % ASK_EVERY == 0
            if asked and group.any(stop()):
                session.count_time(ahead)
                return False
        session.count_time(ahead)
    return True


def _targets(config: RunConfig, stage: Stage) -> tuple[Target, ...]:
    if config.target == "segmentation":
        return ("segmentations",)
    return ("labels", "segmentations") if stage.mask_weight else ("labels",)


@contextmanager
def _stopper(budget: float | None, ended: threading.Event) -> Iterator[Callable[[], bool]]:
    """Give a function that says whether the budget is spent, or SIGTERM or Ctrl-C has come."""
    began = time.monotonic()

    def stop() -> bool:
        spent = budget is not None and time.monotonic() - began >= budget
        return spent or ended.is_set()

    if threading.current_thread() is not threading.main_thread():
        yield stop  # Python takes signals in its main thread alone
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def end(*_: object) -> None:
        ended.set()
        signal.signal(signal.SIGINT, before[signal.SIGINT])  # a second Ctrl-C does not wait

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
