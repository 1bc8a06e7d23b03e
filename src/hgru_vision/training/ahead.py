"""Batches drawn ahead of the network, by a thread: the kernels that draw release the GIL."""

import queue
import threading
import time
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from hgru_vision.data.readers import ImageDataset

__all__ = ["Ahead", "Target"]

Target = Literal["labels", "segmentations"]
"""What a batch is to have beside its images; a method of the data."""

# Batches drawn in one call: large enough for all cores, small enough to start at once.
CHUNK = 8
CHUNKS_AHEAD = 2


class Ahead:
    """Batches on the device, drawn by a thread while the network works.

    Parameters
    ----------
    data
        Images of the stage.
    batch
        Images of a batch, over all processes.
    share
        What this process takes of a batch.
    first, last
        Batches to give.
    device
        Where they are wanted.
    targets
        What to give beside the images.

    Attributes
    ----------
    waiting
        Seconds spent waiting for images so far.

    Shape
    -----
    images : uint8 (B, H, W), or (B, 3, H, W) in colour
    labels : int64 (B,); segmentations : uint8 (B, H, W)
    """

    def __init__(
        self,
        data: ImageDataset,
        *,
        batch: int,
        share: slice,
        first: int,
        last: int,
        device: torch.device,
        targets: tuple[Target, ...] = ("labels",),
    ) -> None:
        self.data, self.batch, self.share = data, batch, share
        self.first, self.last = first, last
        self.device, self.targets = device, targets
        self.waiting = 0.0
        self._ready: queue.Queue[tuple[Tensor, ...] | BaseException] = queue.Queue(CHUNKS_AHEAD)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="images", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        in_flight: deque[torch.cuda.Event] = deque()
        for _ in range(self.first, self.last, CHUNK):
            began = time.perf_counter()
            chunk = self._ready.get()
            self.waiting += time.perf_counter() - began
            if isinstance(chunk, BaseException):
                raise chunk
            moved = [part.to(self.device, non_blocking=True) for part in chunk]
            yield from zip(*moved, strict=True)
            if self.device.type == "cuda":
                # Commands are queued faster than they run; stay a chunk ahead and no more.
                in_flight.append(torch.cuda.current_stream(self.device).record_event())
                if len(in_flight) > 1:
                    in_flight.popleft().synchronize()

    def _work(self) -> None:
        try:
            for start in range(self.first, self.last, CHUNK):
                self._hand_over(self._draw(start, min(start + CHUNK, self.last)))
                if self._stop.is_set():
                    return
        except BaseException as error:  # raised again where the batch is asked for
            self._hand_over(error)

    def _draw(self, start: int, stop: int) -> tuple[Tensor, ...]:
        items = np.arange(start * self.batch, stop * self.batch).reshape(-1, self.batch)
        items = items[:, self.share]
        asked = (self.data.batch, *(getattr(self.data, each) for each in self.targets))
        pin = self.device.type == "cuda"
        tensors = (torch.from_numpy(ask(items.ravel())).unflatten(0, items.shape) for ask in asked)
        return tuple(tensor.pin_memory() if pin else tensor for tensor in tensors)

    def _hand_over(self, item: tuple[Tensor, ...] | BaseException) -> None:
        while not self._stop.is_set():
            try:
                self._ready.put(item, timeout=0.1)
                return
            except queue.Full:
                continue
