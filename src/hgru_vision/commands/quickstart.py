"""hgru quickstart: images, a small hGRU trained on them, and a report, in minutes on a laptop."""

import html
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console

from hgru_vision.data.datasets import Pathfinder
from hgru_vision.figures.contact_sheet import contact_sheet_figure
from hgru_vision.figures.style import PALETTE, accuracy_axis, new_figure, render, style
from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.recipes.quick import quick
from hgru_vision.training.config import RunConfig
from hgru_vision.training.data import final_data
from hgru_vision.training.files import replace_file
from hgru_vision.training.loop import train
from hgru_vision.training.result import Point, Result


def quickstart(out: Path = Path("quickstart"), images: int = 36_000, seed: int = 0) -> None:
    """Draw Pathfinder images, train a small hGRU on them, and write a report.

    Takes a few minutes on a laptop's CPU; called again after an interruption, it goes on.

    Example: hgru quickstart --out quickstart

    Parameters
    ----------
    out
        Folder for the run, the pictures and report.html.
    images
        Number of training images.
    seed
        Of the network.
    """
    usual = quick(seed=seed)
    least = usual.batch * usual.evaluate_every
    if images < least:
        raise ValueError(f"--images must be {least} or more; got {images}")
    config = quick(images=images, seed=seed)
    console = Console()
    task = final_data(config)
    assert isinstance(task, Pathfinder)
    console.print(
        f"Training an hGRU of {CATALOGUE[config.model].parameters:,} parameters on {images:,} "
        f"images of {task.config.size} x {task.config.size} pixels."
    )
    result = train(config, out, resume=True)
    if result is None:
        console.print("Stopped; the same command goes on.")
        return
    full = contact_sheet_figure(Pathfinder(length=14, count=18, seed=seed), show_paths=True)
    sheet = contact_sheet_figure(task, show_paths=True)
    figures = {"task": full, "small task": sheet, "learning": _curve_figure(result.curve)}
    replace_file(out / "report.html", _report(config, result, figures).encode())
    assert result.interval is not None and result.shortcut is not None
    low, high = result.interval
    console.print(
        f"[bold]{result.accuracy:.1%}[/] of {result.test_images:,} new images right "
        f"(95 % interval {low:.1%} to {high:.1%}), after {result.seconds:.0f} s of training. "
        f"Without following a path a probe gets {result.shortcut['accuracy']:.1%} (see "
        "docs/pathfinder.md)."
    )
    console.print(f"The report is {out / 'report.html'}", markup=False, soft_wrap=True)


def _curve_figure(curve: Sequence[Point]) -> Figure:
    with style():
        figure = new_figure(2.6, width=5.5)
        axes = figure.subplots()
        seen = [point.images for point in curve]
        # Marked, since a line through one point is not seen.
        axes.plot(seen, [point.accuracy for point in curve], "o-", color=PALETTE[1], markersize=3)
        accuracy_axis(axes)
        axes.set(xlabel="training images", ylabel="accuracy on new images")
    return figure


def _report(config: RunConfig, result: Result, figures: dict[str, Figure]) -> str:
    """Make one HTML file with its pictures inside."""
    assert result.interval is not None and result.shortcut is not None
    low, high = result.interval
    shortcut = result.shortcut
    canvas = config.task.changes["canvas"]
    captions = {
        "task": "The challenge: are the two discs connected? Target paths are coloured here; the "
        "network sees them white. Paths of 14 paddles, as in the paper.",
        "small task": "The same at the size of this run: paths of "
        f"{config.task.length} paddles on {canvas} x {canvas} pixels.",
        "learning": f"Learning: accuracy on {config.evaluation_images:,} images that it was not "
        "trained on.",
    }
    blocks = [
        f"<figure><img src='data:image/png;base64,{b64encode(render(figure, 'png')).decode()}' "
        f"alt='{name}'>"
        f"<figcaption>{html.escape(captions[name])}</figcaption></figure>"
        for name, figure in figures.items()
    ]
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>hgru-vision quickstart</title>
<style>
body {{ font: 16px/1.5 system-ui; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }}
img {{ max-width: 100% }} figure {{ margin: 2rem 0 }} figcaption {{ color: #555 }}
.number {{ font-size: 3rem; font-weight: 600 }}
</style>
<h1>A small hGRU on Pathfinder</h1>
<p><span class="number">{result.accuracy:.1%}</span> of {result.test_images:,} new images
right (95&nbsp;% interval {low:.1%} to {high:.1%}) after {result.images:,} training images
and {result.seconds:.0f} seconds on {html.escape(result.device)}; seed {config.seed}.</p>
<p>How much of that needs a path to be followed? A small probe ({shortcut["probe"]}) that sees no
path gets <b>{shortcut["accuracy"]:.1%}</b> (<code>hgru audit</code>; the preset
<code>matched</code> closes this shortcut at full size).</p>
{"".join(blocks)}
</html>
"""
