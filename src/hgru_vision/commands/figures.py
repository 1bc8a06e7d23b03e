"""hgru figures: the paper's figures and its claims, from a ledger."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import tyro
from matplotlib.figure import Figure
from rich.console import Console

from hgru_vision.analysis.boundary_score import read_scores
from hgru_vision.analysis.generalisation import read_rows
from hgru_vision.analysis.psychophysics_findings import BEYOND, findings_table
from hgru_vision.analysis.psychophysics_study import scores_of_rows
from hgru_vision.analysis.study import Study, studies
from hgru_vision.figures.boundaries import boundary_figure
from hgru_vision.figures.claims import claims_page
from hgru_vision.figures.generalisation import generalisation
from hgru_vision.figures.psychophysics_study import contour_study_figure
from hgru_vision.figures.registry import (
    FIGURES,
    LEDGER_PAGES,
    NETWORK_FIGURES,
    check_name,
    draw,
    figures_of,
)
from hgru_vision.figures.style import NothingToDraw, save, save_figure
from hgru_vision.papers import linsley2018
from hgru_vision.stimuli.contours import conditions
from hgru_vision.sweeps.ledger import LedgerRow, LedgerWarning, read_ledger
from hgru_vision.training.data import contour_config

# Figures of measurements that are no runs, each from the folder of its name beside the ledgers.
OF_MEASUREMENTS: dict[str, Callable[[Path], Figure]] = {
    "generalisation": lambda folder: generalisation(read_rows(folder) if folder.is_dir() else []),
    "boundaries": lambda folder: boundary_figure(read_scores(folder)),
}


def figures(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = "all",
    ledger: Path = Path("results"),
    out: Path = Path("docs/reproduce"),
    format: Literal["svg", "pdf", "png"] = "png",
    networks: tuple[str, ...] = (),
) -> None:
    """Draw the figures of the paper, and more, from a ledger of runs, and judge its claims.

    Runs of one recipe on one Pathfinder go into a folder of their own, such as
    OUT/screen-paper/accuracy.png. What was not run is named in the figure.

    Example: hgru figures accuracy --ledger results --out docs/reproduce

    Parameters
    ----------
    name
        accuracy, alc, parameters, exemplars, supplement, beyond, curves, seeds; claims (a page,
        OUT/claims.md), contours (of hgru sweep contours), generalisation (of what hgru generalise
        measured), boundaries (of what hgru eval-boundaries did); or all of these, without
        comparisons where there is one network alone. Or eigenconnectivity or dynamics, of
        --networks.
    ledger
        File or folder that `hgru sweep` wrote.
    out
        Folder for the pictures.
    format
        Of the pictures.
    networks
        For eigenconnectivity and dynamics: names of trained weights, or folders of runs (hgru
        train); for eigenconnectivity also FILE.py:FUNCTION.
    """
    if name in NETWORK_FIGURES:
        from hgru_vision.commands.network_figures import draw_networks

        return draw_networks(name, networks, out / f"{name}.{format}")
    if networks:
        raise ValueError(f"--networks is for {', '.join(NETWORK_FIGURES)}; {name} takes a ledger")
    names = [*FIGURES, *LEDGER_PAGES] if name == "all" else [check_name(name)]
    rows = read_told(ledger)
    drawn = 0
    if "claims" in names:
        save(claims_page(rows).encode(), out / "claims.md")
        print(f"wrote {out / 'claims.md'}")
        drawn += 1
    folder = ledger if ledger.is_dir() else ledger.parent
    for each in [name for name in names if name in OF_MEASUREMENTS]:
        make = partial(OF_MEASUREMENTS[each], folder / each)
        drawn += _draw(each, make, out, format, among_others=name == "all")
    if "contours" in names:
        drawn += _draw(
            "contours", partial(_contours, rows), out, format, among_others=name == "all"
        )
    of_studies = [each for each in names if each in FIGURES]
    for study in studies(rows) if of_studies else []:
        if not study.pathfinder:
            continue  # the pages above are for these
        print(summary(study))
        asked = figures_of(study) if name == "all" else of_studies
        if left_out := [each for each in of_studies if each not in asked]:
            print(f"  {', '.join(left_out)}: left out, of one model alone; drawn if named")
        for each in asked:
            path = out / study.folder / f"{each}.{format}"
            try:
                figure = draw(each, study)
            except NothingToDraw as nothing:
                print(f"  {each}: not drawn; {nothing}")
                continue
            save_figure(figure, path)
            print(f"  wrote {path}")
            drawn += 1
    if not rows and name not in OF_MEASUREMENTS:  # which need no runs
        print(no_runs(ledger))
    if not drawn:
        raise ValueError(f"{ledger} has nothing of what {' or '.join(names)} shows")


def _draw(
    name: str, make: Callable[[], Figure], out: Path, format: str, *, among_others: bool
) -> bool:
    """Draw what is not of one study; say whether there was anything.

    Whatever keeps one of many figures from being drawn does not keep the others.
    """
    path = out / f"{name}.{format}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LedgerWarning)  # the later of two rows counts
            figure = make()
    except ValueError as error:
        if not (among_others or isinstance(error, NothingToDraw)):
            raise
        print(f"{name}: not drawn; {error}")
        return False
    save_figure(figure, path)
    print(f"wrote {path}")
    return True


def _contours(rows: list[LedgerRow]) -> Figure:
    """Draw the contour study, and say what it has found."""
    rows = [row for row in rows if row.config.task.dataset == "contours"]
    if not rows:
        raise NothingToDraw("no network was trained on contours; `hgru sweep contours` does it")
    scores = scores_of_rows(rows)
    figure = contour_study_figure(scores, missing=_unfinished(rows))
    Console().print(findings_table(scores, trained_apart=True))
    return figure


def _unfinished(rows: list[LedgerRow]) -> list[str]:
    """Name which of the paper's conditions no run has come to the end of."""
    ended = {
        (row.config.task.length, contour_config(row.config.task).shear)
        for row in rows
        if row.result.accuracy is not None and contour_config(row.config.task).spacing < BEYOND
    }
    fewer = len(linsley2018.CONTOUR_LENGTHS) * linsley2018.CONTOUR_SHEARS
    for count in (linsley2018.CONTOUR_DATASETS, fewer):
        asked = {(each.length, each.shear): each for each in conditions(count)}
        if ended <= set(asked):
            return [f"{c.length} at {c.spacing:.2f}°" for k, c in asked.items() if k not in ended]
    return []


def read_told(ledger: Path) -> list[LedgerRow]:
    """Read a ledger, telling what was passed over."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LedgerWarning)
        rows = read_ledger(ledger)
    for warning in caught:
        print(f"note: {warning.message}")
    return rows


def no_runs(ledger: Path) -> str:
    """Say that a ledger is empty."""
    return f"{ledger} has no run yet; `hgru sweep` adds them"


def summary(study: Study) -> str:
    """Say in a line what a study has."""
    networks = {each if study.pathfinder else each.model for each in study.networks}
    numbers = (len(study.rows), "run"), (len(networks), "network")
    counts = (f"{n} {word}{'' if n == 1 else 's'}" for n, word in numbers)
    lengths = ", ".join(map(str, sorted({length for _, length in study.cells})))
    kind = "paths" if study.pathfinder else "contours"
    images = "natural images" if study.boundaries else f"{kind} of {lengths} paddles"
    return f"{study.name}: {', '.join(counts)}, {images}"
