"""Trained networks that come with the package.

A name is ``architecture.tag``, such as ``hgru.pathfinder14``. Each has two files here: the numbers
(``NAME.safetensors``) and a card (``NAME.json``) with the run's configuration, its result with the
learning curve, the command that made it, and the check sum of the numbers.
"""

import hashlib
import json
import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hgru_vision.models.registry import in_natural_order
from hgru_vision.training.config import RunConfig
from hgru_vision.training.fields import from_json, to_json
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
    command
        Makes it again, from the card's configuration.
    note
        For the reader; may be empty.
    config, result
        Of the run that made it, complete.
    """

    name: str
    sha256: str
    command: str
    note: str = ""
    config: RunConfig
    result: Result

    def to_json(self) -> dict[str, Any]:
        """Give the card as JSON can hold it."""
        return {"schema": SCHEMA, **to_json(self)}

    @classmethod
    def from_json(cls, value: Any, place: str) -> Self:
        """Make a card of what `to_json` gave; `place` is its file, for the text of an error."""
        schema = value.get("schema")
        if schema != SCHEMA:
            raise ValueError(f"{place} has schema {schema}; this version reads {SCHEMA}")
        fields = {key: each for key, each in value.items() if key != "schema"}
        try:
            return from_json(cls, fields)
        except TypeError as error:
            raise ValueError(f"{place} is no card: {error}") from None

    @property
    def size(self) -> int:
        """Bytes of the numbers."""
        return _numbers(self.name).stat().st_size


def list_weights() -> list[str]:
    """Name the trained networks that are here, in natural order."""
    names = (path.name.removesuffix(".json") for path in FOLDER.glob("*.json"))
    return sorted(names, key=in_natural_order)


def card(name: str) -> Card:
    """Read the card of a trained network."""
    path = FOLDER / f"{name}.json"
    if name not in list_weights():
        near = get_close_matches(name, list_weights(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {_listed()}"
        if Path(name).is_dir():
            hint = "; for the folder of a run there is load_run of hgru_vision.training.checkpoint"
        raise ValueError(f"no weights {name!r}{hint}")
    return Card.from_json(json.loads(path.read_text()), path.name)


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
    Of a network for natural images: (B, 3, H, W) and (B, 2, H, W).
    """
    known = card(name)
    path = _numbers(name)
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


def publish(run: Path, tag: str, *, note: str = "", replace_old: bool = False) -> Card:
    """Put the network of a finished run among the trained networks of this package.

    Parameters
    ----------
    run
        Folder that `hgru train` wrote.
    tag
        Second part of the name; the first is the network's.
    note
        For the reader of the card.
    replace_old
        Whether weights of the same name give way.
    """
    if not re.fullmatch(r"[a-z0-9_-]+", tag):
        raise ValueError(f"a tag has small letters, digits, - and _, as pathfinder14; got {tag!r}")
    from hgru_vision.sweeps.ledger import check_portable
    from hgru_vision.training.checkpoint import build, fill
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
    if config.model_sha256 is not None:
        raise ValueError(
            f"{config.model} is a network of your own; weights are published of the package's "
            f"networks alone. Its folder, {run}, can be given wherever their names can"
        )
    config = _begun_here(config)
    check_portable(config)
    fill(build(config), run / WEIGHTS)  # what does not fit is refused before anything is written
    content = (run / WEIGHTS).read_bytes()
    name = f"{config.model}.{tag}"
    if name in list_weights() and not replace_old:
        raise FileExistsError(
            f"there are weights {name}; give another tag, or ask to replace them (--replace, or "
            "replace_old=True in Python)"
        )
    made = Card(
        name=name,
        sha256=hashlib.sha256(content).hexdigest(),
        config=config,
        result=result,
        command=f"hgru train --config {name} --out runs/{name}",
        note=note,
    )
    path = FOLDER / f"{name}.json"
    path.unlink(missing_ok=True)  # a card is of whole weights: if this is interrupted there is none
    replace_file(_numbers(name), content)
    write_json(path, made.to_json())
    return made


def _begun_here(config: RunConfig) -> RunConfig:
    """Name the weights that a run began from, if they are here too: a folder says nothing later."""
    if config.start_sha256 is None:
        return config
    same = [name for name in list_weights() if card(name).sha256 == config.start_sha256]
    return replace(config, start=same[0]) if same else config


def _numbers(name: str) -> Path:
    return FOLDER / f"{name}.safetensors"


def _listed() -> str:
    return ", ".join(list_weights()) or "none yet"
