"""Trained networks, from whatever a command line names them by."""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from hgru_vision.models.own import make_own
from hgru_vision.references import is_reference
from hgru_vision.training.checkpoint import load_run
from hgru_vision.training.config import RunConfig
from hgru_vision.training.files import read_result
from hgru_vision.training.result import Result
from hgru_vision.weights import card, list_weights, load_weights

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
        A folder that `hgru train` wrote, the name of trained weights, or FILE.py:FUNCTION for a
        network of your own.
    """
    if reference in list_weights():
        known = card(reference)
        return Opened(network=load_weights(reference), config=known.config, result=known.result)
    if Path(reference).is_dir():
        network, config = load_run(Path(reference))
        return Opened(network=network, config=config, result=read_result(Path(reference)))
    if not is_reference(reference):
        raise FileNotFoundError(
            f"no network {reference!r}; give the folder of a run (hgru train), the name of trained "
            "weights (hgru weights), or FILE.py:FUNCTION, a function without arguments that "
            "returns a torch module"
        )
    return Opened(network=make_own(reference, {}))
