"""Networks by name. The names are in `catalogue`; a network's file is imported when it is made."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, get_args

from hgru_vision.models.catalogue import NETWORKS

if TYPE_CHECKING:
    import torch
    from torch import nn

__all__ = ["Head", "create_model", "in_natural_order", "list_models"]

Head = Literal["classify", "pixels"]
"""Two logits an image, (B, 2), or two a pixel, (B, 2, H, W)."""


def list_models(pattern: str = "*") -> list[str]:
    """Name the networks, in natural order.

    Parameters
    ----------
    pattern
        Shell pattern, such as "resnet*".

    Returns
    -------
    list of str
        Names that `create_model` takes; empty if none matches.

    Examples
    --------
    >>> list_models("ff_large_*")
    ['ff_large_1', 'ff_large_3', 'ff_large_5']
    """
    return sorted((name for name in NETWORKS if fnmatchcase(name, pattern)), key=in_natural_order)


def create_model(
    name: str,
    *,
    seed: int = 0,
    head: Head = "classify",
    pool_first: bool = False,
    released_filters: bool = False,
    **keywords: Any,
) -> nn.Module:
    """Make a network of the study, with new starting values.

    Parameters
    ----------
    name
        One of `list_models()`.
    seed
        Of the starting values. The global random state is neither read nor moved.
    head
        "classify" for two logits an image, "pixels" for two a pixel.
    pool_first
        Give a network with the paper's readout that of the authors' released code, which takes the
        maximum of a map before batch norm: `hgru_vision.models.stages.PoolFirstReadout`.
    released_filters
        Start a network with the paper's input stage from the filters of the authors' released code:
        `hgru_vision.models.filters.released_bank`.
    **keywords
        What the network's own function takes, such as ``timesteps``; any other is refused.

    Returns
    -------
    torch.nn.Module
        The network, in training mode, on the CPU.

    Shape
    -----
    images : (B, 1, H, W); output : (B, 2), or (B, 2, H, W) with the head "pixels"

    Examples
    --------
    >>> import torch
    >>> model = create_model("hgru", timesteps=2)
    >>> model(torch.zeros(3, 1, 32, 32)).shape
    torch.Size([3, 2])
    """
    build = _builder(name)
    parameters = inspect.signature(build).parameters
    known = {key: parameters[key] for key in parameters if key not in ("generator", "head")}
    for keyword, value in keywords.items():
        if keyword not in known:
            takes = ["seed", "head", "pool_first", "released_filters", *known]
            raise TypeError(
                f"{name} has no keyword {keyword!r} (it takes {', '.join(takes)})"
                f"{_nearest(keyword, takes)}"
            )
        _check_keyword(keyword, value, known[keyword].annotation)
    if head not in get_args(Head):
        raise ValueError(f"head is {head!r}; choose one of {', '.join(get_args(Head))}")
    if not isinstance(seed, Integral) or not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed!r}; it must be a whole number from 0 to 2**63 - 1")
    _check_keyword("pool_first", pool_first, "bool")
    _check_keyword("released_filters", released_filters, "bool")

    import torch

    # Whatever torch.set_default_device says: the values would lie partly there and partly here.
    with torch.device("cpu"):
        generator = torch.Generator().manual_seed(int(seed))
        network = build(generator=generator, head=head, **keywords)
        if pool_first:
            _pool_first(network, name, head, generator)
        if released_filters:
            _released_filters(network, name)
    return network


def _pool_first(network: nn.Module, name: str, head: Head, generator: torch.Generator) -> None:
    """Put the readout of the released code into the place of the paper's."""
    from hgru_vision.models.stages import PoolFirstReadout, Readout

    readout = getattr(network, "readout", None)
    if not isinstance(readout, Readout):
        has = "head pixels" if head == "pixels" else name
        raise ValueError(f"pool_first is for the paper's readout stage, which {has} has not")
    if not isinstance(readout, PoolFirstReadout):
        network.readout = PoolFirstReadout.of(readout, generator)


def _released_filters(network: nn.Module, name: str) -> None:
    """Put the filters of the released code into the place of ours."""
    from hgru_vision.models.filters import released_bank
    from hgru_vision.models.stages import InputStage

    stage = getattr(network, "input", None)
    if not isinstance(stage, InputStage):
        raise ValueError(f"released_filters is for the paper's input stage, which {name} has not")
    stage.start_from(released_bank())


def _check_keyword(keyword: str, value: object, kind: str) -> None:
    """Refuse what torch would refuse later, in words of its own, or not at all."""
    if kind == "Backend":  # which the circuits look at themselves
        return
    takes = {"int": Integral, "float": Real, "bool": bool}[kind]
    if not isinstance(value, takes) or (isinstance(value, bool) and kind != "bool"):
        words = {"int": "a whole number", "float": "a number", "bool": "true or false"}[kind]
        raise TypeError(f"{keyword} is {value!r}; it must be {words}")
    if kind == "int" and value < 1:  # type: ignore[operator]
        raise ValueError(f"{keyword} is {value}; it must be 1 or more")


def _builder(name: str) -> Callable[..., nn.Module]:
    """Find the function that makes a network."""
    if not isinstance(name, str) or name not in NETWORKS:
        hint = _nearest(str(name), list(NETWORKS))
        listed = f"'hgru models', or list_models() in Python, names all {len(NETWORKS)}"
        raise ValueError(f"no model {name!r} ({listed}){hint}")
    module = import_module(f"hgru_vision.models.{NETWORKS[name].module}")
    return getattr(module, name)


def _nearest(word: str, words: list[str]) -> str:
    near = get_close_matches(word, words, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def in_natural_order(name: str) -> list[tuple[int, str]]:
    """Give a key for sorting by which numbers count by their value: resnet18 before resnet152."""
    return [(int(number or 0), word) for number, word in re.findall(r"(\d+)|(\D+)", name)]
