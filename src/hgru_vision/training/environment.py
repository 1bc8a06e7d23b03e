"""Where a run takes place: what its result says about the machine and the software."""

import functools
import platform
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

import hgru_vision

__all__ = [
    "commit",
    "device_name",
    "is_of_memory",
    "peak_memory",
    "pick_device",
    "versions",
]


def pick_device(device: torch.device | str | None = None) -> torch.device:
    """Give the device asked for; a GPU if there is one, else the CPU, if none is.

    Examples
    --------
    >>> pick_device("cpu")
    device(type='cpu')
    """
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        picked = torch.device(device)
    except RuntimeError:
        raise ValueError(f"no device {device!r}; give cpu, cuda or cuda:1") from None
    if picked.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {picked} and torch sees no GPU; give cpu")
    if picked.type == "cuda" and (picked.index or 0) >= (count := torch.cuda.device_count()):
        raise ValueError(f"device is {picked} and torch sees {count} of them; give cuda:0")
    return picked


def is_of_memory(error: Exception) -> bool:
    """Tell memory that ran out, for which torch has its own error on a GPU, a text on a CPU."""
    return isinstance(
        error, MemoryError | torch.OutOfMemoryError
    ) or "DefaultCPUAllocator: " in str(error)


def versions() -> dict[str, str]:
    """Name the versions of what computes.

    Examples
    --------
    >>> sorted(versions())
    ['hgru_vision', 'numpy', 'python', 'torch']
    """
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "hgru_vision": hgru_vision.__version__,
    }


@functools.cache
def commit() -> str | None:
    """Give the commit of the checkout that the package runs from; None if it is not a checkout.

    It ends in "-dirty" if files of the package are not as that commit has them. It is read once.
    Ask when a run begins: later the checkout may be at another.
    """
    package = Path(hgru_vision.__file__).parent
    root = package.parents[1]
    if not (root / ".git").exists():  # an installed package may lie inside someone's own checkout
        return None
    try:
        head = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=all", "--", str(package))
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}-dirty" if changed else head


def _git(root: Path, *words: str) -> str:
    asked = ["git", "-C", str(root), *words]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def device_name(device: torch.device) -> str:
    """Name the device: the GPU's model, or the processor's kind and the threads in use."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU, {torch.get_num_threads()} threads"


def peak_memory(device: torch.device) -> int:
    """Give the most bytes held so far: by tensors on a GPU, by the process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
