"""Networks of a user's own, made by a function in a file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hgru_vision.references import failure, find_function

__all__ = ["make_own"]


def make_own(reference: str, options: Mapping[str, Any], *, seed: int = 0) -> nn.Module:
    """Make a network by a function in a file.

    Parameters
    ----------
    reference
        FILE.py:FUNCTION.
    options
        Keywords for the function.
    seed
        Of torch's random numbers while the file and its function run. The global random state is
        left as it was.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError, ImportError
        If there is no such function, it fails, or it returns no module; the text names the line.
    """
    who = Path(reference).name
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(seed)
        make: Callable[..., Any] = find_function(reference, "network", {})
        signature = inspect.signature(make)
        try:
            signature.bind(**options)
        except TypeError as error:
            raise TypeError(
                f"{who} does not take the run's options {dict(options)}: {error}; it takes "
                f"{signature}"
            ) from None
        try:
            network = make(**options)
        except Exception as error:
            raise ValueError(
                f"{failure(reference, error)}; it must return a torch.nn.Module"
            ) from error
    if not isinstance(network, nn.Module):
        raise TypeError(f"{who} returned {type(network).__name__}, not a torch.nn.Module")
    return network
