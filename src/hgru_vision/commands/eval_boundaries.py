"""hgru eval-boundaries: the score of boundary maps on BSDS500, without MATLAB."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from hgru_vision.analysis.boundaries import THRESHOLDS, score_boundaries, spread_thresholds
from hgru_vision.analysis.boundary_score import BoundaryScore, OperatingPoint
from hgru_vision.analysis.matching import RADIUS, check_radius
from hgru_vision.analysis.nonmaxima import suppress_nonmaxima
from hgru_vision.analysis.predict_boundaries import write_predictions
from hgru_vision.analysis.prediction_folder import PredictionFolder
from hgru_vision.commands.networks import open_network
from hgru_vision.data.bsds import BSDS500, Split
from hgru_vision.data.progress import progress_bar
from hgru_vision.figures.boundaries import boundary_figure
from hgru_vision.figures.style import check_picture, save_figure
from hgru_vision.stimuli._types import Floats
from hgru_vision.training.environment import pick_device
from hgru_vision.training.files import check_output, write_json


def eval_boundaries(
    predictions: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PREDICTIONS")],
    root: Path,
    run: str | None = None,
    nms: bool = False,
    split: Split = "test",
    thresholds: int = THRESHOLDS,
    radius: float = RADIUS,
    allow_partial: bool = False,
    device: str | None = None,
    figure: Path | None = None,
    json: Path | None = None,
) -> None:
    """Score predicted boundaries against the people who annotated BSDS500.

    ODS, OIS and AP as the benchmark defines them: maps are cut at each threshold and thinned, and
    their pixels matched one to one with each annotator's.

    Example: hgru eval-boundaries predictions --root BSR --figure pr.png --json score.json

    Example: hgru eval-boundaries predictions --run runs/contours --nms --root BSR

    Parameters
    ----------
    predictions
        Folder with ID.png (grey) or ID.npy (floats from 0 to 1) for each picture, in its size. With
        --run it is made.
    root
        Folder of BSDS500, with images and groundTruth (or gt_train.npz and so on).
    run
        Let this network predict first: the folder of a run (hgru train boundaries), the name of
        trained weights (hgru weights), or FILE.py:FUNCTION. Probabilities are written as they are,
        before --nms.
    nms
        Suppress non-maxima of the maps, as authors of edge detectors do, before they are cut and
        thinned. For broad responses; the benchmark's own program does not.
    split
        Pictures to score.
    thresholds
        Their number.
    radius
        Largest distance of pixels that match, as a share of the picture's diagonal.
    allow_partial
        Score what is there of a split that is not whole.
    device
        Of --run: cpu or cuda; a GPU if there is one.
    figure
        Draw precision against recall to this picture.
    json
        Write the numbers, curve and each picture's best point to this file.
    """
    if figure is not None:
        check_picture(figure)  # before minutes of work
    if json is not None:
        check_output(json)
    spread_thresholds(thresholds)
    check_radius(radius)
    data = BSDS500(root, split, allow_partial=allow_partial)
    if run is not None:
        place = pick_device(device)
        network = open_network(run).network.to(place).eval()
        with progress_bar(len(data.ids), description="Predicting") as progress:
            write_predictions(network, data, predictions, device=place, progress=progress)
    maps: Mapping[str, Floats] = PredictionFolder(predictions, data)
    if nms:
        maps = _Suppressed(maps)
    with progress_bar(len(data), description="Matching") as progress:
        score = score_boundaries(
            maps, data, thresholds=thresholds, radius=radius, progress=progress
        )
    Console().print(_table(score, len(data)))
    if figure is not None:
        save_figure(boundary_figure({predictions.resolve().name: score}), figure)
        print(f"wrote {figure}")
    if json is not None:
        settings = {"split": split, "thresholds": thresholds, "radius": radius, "nms": nms}
        write_json(json, {"predictions": str(predictions), **settings, **score.to_json()})
        print(f"wrote {json}")


class _Suppressed(Mapping[str, Floats]):
    """Maps without their non-maxima, made when asked for: on all cores, as they are scored."""

    def __init__(self, maps: Mapping[str, Floats]) -> None:
        self.maps = maps

    def __getitem__(self, name: str) -> Floats:
        return suppress_nonmaxima(self.maps[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.maps)

    def __len__(self) -> int:
        return len(self.maps)


def _table(score: BoundaryScore, pictures: int) -> Table:
    table = Table(
        title=f"Boundaries of {pictures} pictures",
        caption=f"average precision (AP) {score.average_precision:.4f}",
    )
    table.add_column("")
    for column in ("threshold", "recall", "precision", "F"):
        table.add_column(column, justify="right")
    rows: dict[str, OperatingPoint] = {
        "ODS, one threshold": score.ods,
        "OIS, each picture's own": score.ois,
    }
    for name, point in rows.items():
        table.add_row(
            name,
            "" if point.threshold is None else f"{point.threshold:.3f}",
            f"{point.recall:.4f}",
            f"{point.precision:.4f}",
            f"{point.f:.4f}",
        )
    return table
