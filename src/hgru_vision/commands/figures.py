"""hgru figures: the paper's figures from a ledger."""

import warnings
from pathlib import Path
from typing import Annotated, Literal

import tyro

from hgru_vision.analysis.study import Study, studies
from hgru_vision.figures.registry import FIGURES, NETWORK_FIGURES, check_name, draw
from hgru_vision.figures.style import NothingToDraw, save_figure
from hgru_vision.sweeps.ledger import LedgerWarning, read_ledger


def figures(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = "all",
    ledger: Path = Path("results"),
    out: Path = Path("docs/reproduce"),
    format: Literal["svg", "pdf", "png"] = "svg",
    networks: tuple[str, ...] = (),
) -> None:
    """Draw the figures of the paper, and more, from a ledger of runs.

    Runs of one recipe on one Pathfinder go into a folder of their own, such as
    OUT/screen-paper/accuracy.svg. What was not run is named in the figure.

    Example: hgru figures accuracy --ledger results --out docs/reproduce

    Parameters
    ----------
    name
        accuracy, alc, parameters, exemplars, supplement, beyond, curves, seeds; or all. Or
        eigenconnectivity, of --networks.
    ledger
        File or folder that `hgru sweep` wrote.
    out
        Folder for the pictures.
    format
        Of the pictures.
    networks
        For eigenconnectivity: folders of runs (hgru train), or FILE.py:FUNCTION.
    """
    if name in NETWORK_FIGURES:
        from hgru_vision.commands.eigenconnectivity import draw_eigenconnectivity

        return draw_eigenconnectivity(networks, out / f"{name}.{format}")
    if networks:
        raise ValueError(f"--networks is for {', '.join(NETWORK_FIGURES)}; {name} takes a ledger")
    names = list(FIGURES) if name == "all" else [check_name(name)]
    drawn = 0
    for study in read_studies(ledger):
        print(summary(study))
        for each in names:
            path = out / study.folder / f"{each}.{format}"
            try:
                figure = draw(each, study)
            except NothingToDraw as nothing:
                print(f"  {each}: not drawn; {nothing}")
                continue
            save_figure(figure, path)
            print(f"  wrote {path}")
            drawn += 1
    if not drawn:
        raise ValueError(f"{ledger} has nothing of what {' or '.join(names)} shows")


def read_studies(ledger: Path) -> list[Study]:
    """Read a ledger, telling what was passed over; refuse an empty one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LedgerWarning)
        rows = read_ledger(ledger)
    for warning in caught:
        print(f"note: {warning.message}")
    if not rows:
        raise ValueError(f"{ledger} has no run yet; `hgru sweep` adds them")
    return studies(rows)


def summary(study: Study) -> str:
    """Say in a line what a study has."""
    runs, networks = (len(study.rows), "run"), (len(study.networks), "network")
    counts = (f"{n} {word}{'' if n == 1 else 's'}" for n, word in (runs, networks))
    lengths = ", ".join(map(str, sorted({length for _, length in study.cells})))
    return f"{study.name}: {', '.join(counts)}, paths of {lengths} paddles"
