"""Trained networks that come with the package.

A name is ``architecture.tag``, such as ``hgru.pathfinder14``. Each has two files here: the numbers
(``NAME.safetensors``) and a card (``NAME.json``) with the run's configuration, its result with the
learning curve, the command that made it, and the check sum of the numbers.
"""

import hashlib
import json
import shlex
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgru_vision.training.config import RunConfig
from hgru_vision.training.result import Result

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Card", "card", "list_weights", "load_weights", "publish"]

FOLDER = Path(__file__).parent
SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is known of a trained network.

    Attributes
    ----------
    name
        ``architecture.tag``.
    sha256
        Of the file with the numbers.
    config, result
        Of the run that made it.
    command
        Makes it again.
    note
        For the reader; may be empty.
    """

    name: str
    sha256: str
    config: RunConfig
    result: Result
    command: str
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Give the card as JSON can hold it."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "sha256": self.sha256,
            "command": self.command,
            "note": self.note,
            "config": self.config.to_json(),
            "result": self.result.to_json(),
        }


def list_weights() -> list[str]:
    """Name the trained networks that are here."""
    return sorted(path.name.removesuffix(".json") for path in FOLDER.glob("*.json"))


def card(name: str) -> Card:
    """Read the card of a trained network."""
    path = FOLDER / f"{name}.json"
    if name not in list_weights():
        near = get_close_matches(name, list_weights(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {_listed()}"
        raise ValueError(f"no weights {name!r}{hint}")
    value = json.loads(path.read_text())
    if value.get("schema") != SCHEMA:
        raise ValueError(
            f"{path.name} has schema {value.get('schema')}; this version reads {SCHEMA}"
        )
    return Card(
        name=value["name"],
        sha256=value["sha256"],
        command=value["command"],
        note=value["note"],
        config=RunConfig.from_json(value["config"]),
        result=Result.from_json(value["result"]),
    )


def load_weights(name: str) -> "nn.Module":
    """Make a trained network.

    Nothing is fetched: the numbers are in the package, and their check sum is compared with the
    card's.

    Parameters
    ----------
    name
        One of `list_weights()`, such as "hgru.pathfinder14".

    Returns
    -------
    torch.nn.Module
        The network on the CPU, in evaluation mode.

    Shape
    -----
    images : (B, 1, H, W) in [0, 1]; output : (B, 2)
    """
    known = card(name)
    path = FOLDER / f"{name}.safetensors"
    content = path.read_bytes()
    if (found := hashlib.sha256(content).hexdigest()) != known.sha256:
        raise ValueError(
            f"{path.name} is damaged: its sha256 is {found[:12]}..., its card says "
            f"{known.sha256[:12]}...; install the package again"
        )

    from safetensors.torch import load

    from hgru_vision.training.checkpoint import build

    network = build(known.config)
    network.load_state_dict(load(content))
    return network.eval()


def publish(run: Path, tag: str, *, note: str = "") -> Card:
    """Put the network of a finished run among the trained networks of this package.

    Parameters
    ----------
    run
        Folder that `hgru train` wrote.
    tag
        Second part of the name; the first is the network's.
    note
        For the reader of the card.
    """
    from hgru_vision.training.files import (
        CONFIG,
        WEIGHTS,
        read_config,
        read_result,
        replace_file,
        write_json,
    )

    config, result = read_config(run), read_result(run)
    if config is None:
        raise FileNotFoundError(f"{run} is no run's folder: it has no {CONFIG}")
    if result is None or result.outcome != "finished":
        state = "has not ended" if result is None else f"ended as {result.outcome!r}"
        raise ValueError(f"the run in {run} {state}; only a finished one is published")
    content = (run / WEIGHTS).read_bytes()
    made = Card(
        name=f"{config.model}.{tag}",
        sha256=hashlib.sha256(content).hexdigest(),
        config=config,
        result=result,
        command=_command(config),
        note=note,
    )
    replace_file(FOLDER / f"{made.name}.safetensors", content)
    write_json(FOLDER / f"{made.name}.json", made.to_json())
    return made


def _command(config: RunConfig) -> str:
    """Write the command that makes a run again."""
    words = ["hgru", "train", config.recipe, "--model", config.model]
    words += ["--preset", config.task.preset, "--length", str(config.task.length)]
    words += ["--seed", str(config.seed)]
    if config.cuda_graph:
        words += ["--set", "cuda_graph=true"]
    return shlex.join(words)


def _listed() -> str:
    return ", ".join(list_weights()) or "none yet"
