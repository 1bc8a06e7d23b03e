"""hgru models: the networks, their sizes and their places in the paper."""

from typing import Annotated, get_args

import tyro
from rich.console import Console
from rich.table import Table

from hgru_vision.models import list_models
from hgru_vision.models.catalogue import NETWORKS, Entry, Family

TOLERANCE = 0.1  # of the paper's round multiples


def models(
    pattern: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PATTERN")] = "*",
) -> None:
    """List the networks with their size, training length and place in the paper.

    Example: hgru models 'resnet*'

    Parameters
    ----------
    pattern
        Names to list, such as 'ff_*_5' or '*hgru*'.
    """
    names = set(list_models(pattern))
    if not names:
        raise ValueError(f"no model's name matches {pattern!r}; 'hgru models' lists all")
    families = get_args(Family)
    entries = sorted(
        (entry for entry in NETWORKS.values() if entry.name in names),
        key=lambda entry: families.index(entry.family),
    )
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("model", no_wrap=True)
    for column in ("parameters", "x hGRU", "paper", "epochs"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("reference", overflow="fold")
    for entry in entries:
        table.add_row(
            entry.name,
            f"{entry.parameters:,}",
            f"{multiple(entry):.3g}",
            _stated(entry),
            str(entry.epochs),
            entry.reference,
        )
    console = Console(highlight=False)
    console.print(table)
    console.print(
        f"\n{len(entries)} of {len(NETWORKS)} networks. "
        "x hGRU: parameters as a multiple of the hGRU's."
    )
    if any(map(differs, entries)):
        console.print("* The paper's multiple is another: see docs/differences.md.")


def multiple(entry: Entry) -> float:
    """Return a network's parameters as a multiple of the hGRU network's."""
    return entry.parameters / NETWORKS["hgru"].parameters


def differs(entry: Entry) -> bool:
    """Say whether the multiple is more than a tenth away from what the paper states."""
    return entry.multiple is not None and abs(multiple(entry) / entry.multiple - 1) > TOLERANCE


def _stated(entry: Entry) -> str:
    if entry.multiple is None:
        return ""
    return f"{entry.multiple:g}{'*' if differs(entry) else ' '}"
