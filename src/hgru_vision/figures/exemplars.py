"""Fig. 3d: positive examples of each path length."""

from dataclasses import replace

from matplotlib.figure import Figure

from hgru_vision.analysis.study import Study
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.figures.contact_sheet import coloured
from hgru_vision.figures.style import NothingToDraw, new_figure, style
from hgru_vision.stimuli.scenes import Stimulus
from hgru_vision.training.config import RunConfig
from hgru_vision.training.data import final_data

__all__ = ["exemplars"]


def exemplars(study: Study) -> Figure:
    """Draw a positive test image of each length, as networks see it and with its paths coloured."""
    configs: dict[int, RunConfig] = {}
    for row in study.rows:
        if row.config.task.path is None:
            configs.setdefault(row.config.task.length, row.config)
    if not configs:
        raise NothingToDraw("its images are files, which a ledger does not hold")
    with style():
        figure = new_figure(height=4.9, width=max(3.5, 2.4 * len(configs)))
        grid = figure.subplots(2, len(configs), squeeze=False)
        for column, length in enumerate(sorted(configs)):
            stimulus = _positive(configs[length])
            pictures = stimulus.image / 255, coloured(stimulus)
            for axes, picture in zip(grid[:, column], pictures, strict=True):
                axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
                axes.set_axis_off()
            grid[0, column].set_title(f"{length} paddles")
        shown = "a marked path" if len(stimulus.markers) == 1 else "connected markers"
        figure.suptitle(
            f"{study.task} Pathfinder\n{shown}; below, with the paths coloured",
            fontsize=8,
        )
    return figure


def _positive(config: RunConfig) -> Stimulus:
    """Give the first test image whose markers are connected: one of the first two is."""
    data = final_data(replace(config, test_images=2))
    assert isinstance(data, Pathfinder)
    return data.stimulus(int(data.labels([0, 1]).argmax()))
