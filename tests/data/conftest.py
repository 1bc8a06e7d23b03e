"""A small source with the protocol that `store.write` takes."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest


class FakeSource:
    """Noise; item i depends on the seed and i alone."""

    def __init__(
        self,
        count: int = 23,
        *,
        seed: int = 0,
        binary: bool = True,
        target: str = "label",
        size: tuple[int, int] = (9, 7),
        delay: float = 0.0,
    ) -> None:
        self.count, self.seed, self.binary, self.target = count, seed, binary, target
        self.size, self.delay = size, delay

    def __len__(self) -> int:
        return self.count

    def _draw(self, indices: np.ndarray, stream: int, high: int) -> np.ndarray:
        shape = (0, *self.size)
        rows = [
            np.random.default_rng([self.seed, stream, int(i)]).integers(0, high, (1, *self.size))
            for i in indices
        ]
        return np.concatenate([np.empty(shape, np.uint8), *rows]).astype(np.uint8)

    def batch(self, indices: np.ndarray) -> np.ndarray:
        time.sleep(self.delay)
        if self.binary:
            return self._draw(indices, 0, 2) * np.uint8(255)
        return self._draw(indices, 0, 256)

    def labels(self, indices: np.ndarray) -> np.ndarray:
        return (np.asarray(indices) * 7 + self.seed) % 3 % 2

    def segmentations(self, indices: np.ndarray) -> np.ndarray:
        return self._draw(indices, 1, 2)

    def describe(self) -> dict[str, Any]:
        return {
            "stimulus": "pathfinder",
            "config": {"length": 14, "continuity": 1.8, "sizes": (1, 2)},
            "seed": self.seed,
            "split": "train",
            "target": self.target,
            "generator_version": 1,
            "height": self.size[0],
            "width": self.size[1],
            "binary": self.binary,
        }


def tree(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, with its bytes; an empty folder counts as a name."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in sorted(directory.rglob("*"))
    }


@pytest.fixture(name="FakeSource", scope="session")
def fake_source() -> type[FakeSource]:
    return FakeSource


@pytest.fixture(name="tree", scope="session")
def tree_function() -> Any:
    return tree


@pytest.fixture(scope="session")
def stop_after():
    """Give a function that makes a progress which stops the writing after some items."""

    def make(count):
        def progress(done):
            if done >= count:
                raise InterruptedError

        return progress

    return make
