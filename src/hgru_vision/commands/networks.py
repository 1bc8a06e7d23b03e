"""Trained networks, from whatever a command line names them by."""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from hgru_vision.commands.options import load_network
from hgru_vision.training.checkpoint import load_run
from hgru_vision.training.config import RunConfig
from hgru_vision.training.files import read_result
from hgru_vision.training.result import Result

__all__ = ["Opened", "open_network"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Opened:
    """A network with what is known of its training; None where nothing is."""

    network: nn.Module
    config: RunConfig | None = None
    result: Result | None = None


def open_network(reference: str) -> Opened:
    """Open a trained network.

    Parameters
    ----------
    reference
        A folder that `hgru train` wrote, or FILE.py:FUNCTION for a network of your own.
    """
    if Path(reference).is_dir():
        network, config = load_run(Path(reference))
        return Opened(network=network, config=config, result=read_result(Path(reference)))
    if ".py:" in reference:
        return Opened(network=load_network(reference))
    raise FileNotFoundError(
        f"no network {reference!r}; give the folder of a run (hgru train) or FILE.py:FUNCTION, a "
        "function without arguments that returns a torch module"
    )
