"""Tables and figures of a ledger as one HTML file that needs nothing else."""

import html
import math
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from hgru_vision.analysis.psychophysics_study import scores_of_rows
from hgru_vision.analysis.study import LEARNT, Cell, Network, Study
from hgru_vision.figures.names import display
from hgru_vision.figures.psychophysics_study import contour_study_figure
from hgru_vision.figures.registry import FIGURES, draw, figures_of
from hgru_vision.figures.style import WIDTH, render
from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.papers.linsley2018 import RUNS

__all__ = ["report_html"]

WIDEST = 60  # rem: of a figure of a page's width
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1b1b }
h1, h2, h3 { line-height: 1.2 } h2 { margin-top: 3rem; border-top: 2px solid #1b1b1b }
h2, h3 { padding-top: .6rem }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: 13px;
       font-variant-numeric: tabular-nums }
th, td { padding: .2rem .5rem; text-align: right; white-space: nowrap }
tr:first-child th:first-child, td:first-child { text-align: left }
thead th { border-bottom: 1px solid #1b1b1b; vertical-align: bottom }
tbody tr:nth-child(odd) { background: #f5f5f5 }
td.start, th.start { border-left: 1px solid #ccc } small, .none, figcaption { color: #6e6e6e }
figure { margin: 2rem 0 } img { max-width: 100% } code { font-size: 13px }
.below { color: #9a4a00 }
"""


_PIXELS = """<p>These runs are judged pixel by pixel, and most pixels are background: accuracy is
high before anything is learnt, and chance is not 50&nbsp;%. The overlap, the mean over images of
the intersection over union of the true and the predicted mask, tells more. Failures are not
counted, and the runs are left out of all figures in which chance is 50&nbsp;%.</p>"""


_BOUNDARIES = """<p>These runs find boundaries. <b>Best</b> and <b>mean</b> are of the pixel AUC,
the mean over test images of the area under the ROC curve of an image's pixels; one half is chance.
It is not the score of the benchmark, which <code>hgru eval-boundaries</code> computes.</p>"""


def report_html(studies: Sequence[Study]) -> str:
    """Write the report.

    Parameters
    ----------
    studies
        What `studies` made of a ledger's rows; one section each.
    """
    runs = sum(len(study.rows) for study in studies)
    links = "".join(f"<li><a href='#{s.folder}'>{html.escape(s.name)}</a></li>" for s in studies)
    written = max(row.written for study in studies for row in study.rows)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>hgru-vision: results</title>
<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>
<h1>Results of {runs} {"run" if runs == 1 else "runs"}</h1>
<p>Last run: {html.escape(written)}. Made by <code>hgru report</code> from the ledger alone.</p>
<p><b>Best</b> is the accuracy on test images of the most accurate of up to {RUNS} runs, as in the
paper, with its 95&nbsp;% Wilson interval over images; <b>ALC</b>, the area under the learning
curve, is the mean accuracy over the evaluations of that run, or of its last stage if it has
several. <b>Mean</b> ± standard deviation is over all runs that ended. A run <b>failed</b> if it
diverged or ended below {LEARNT:.0%}, stopped early or not. <b>Without a path</b> is how well small
probes read the label without following one (<code>hgru audit</code>): an accuracy that is not above
it (<span class="below">marked so</span>) says nothing of tracing. The tables are in per cent.</p>
<ul>{links}</ul>
{"".join(map(_section, studies))}
</body></html>
"""


def _section(study: Study) -> str:
    run = {network.model for network in study.networks}
    wanted = CATALOGUE if study.pathfinder else ()
    absent = ", ".join(f"<code>{model}</code>" for model in wanted if model not in run)
    pictures = "".join(_picture(name, study) for name in figures_of(study) if study.pathfinder)
    if any(row.config.task.dataset == "contours" for row in study.rows):
        pictures = _embedded(
            "Accuracy against spacing", lambda: contour_study_figure(scores_of_rows(study.rows))
        )
    return f"""<h2 id="{study.folder}">{html.escape(study.name)}</h2>
{_BOUNDARIES if study.boundaries else _PIXELS if study.segmentation else ""}
<div class="wide">{_accuracies(study)}</div>
{f"<p class='none'>Not run: {absent}.</p>" if absent else ""}
{pictures}
<h3>How the runs were made</h3>
<div class="wide">{_machines(study)}</div>
"""


def _accuracies(study: Study) -> str:
    top, second = [], []
    for length in study.lengths:
        cells = (cell for (_, other), cell in study.cells.items() if other == length)
        known = sorted(cell.shortcut for cell in cells if cell.shortcut is not None)
        ends = map(_percent, known[:1] + known[-1:])  # spacings of contours have their own
        without = " to ".join(dict.fromkeys(ends)) or "not measured"
        way = "a path" if study.pathfinder else "linking"
        images, note = f"{length} paddles", f"without {way}: {without}"
        if study.segmentation:
            note = "of the pixels"
        if study.boundaries:
            images, note = "BSDS500", "pixel AUC"
        top.append(f"<th colspan='4' class='start'>{images}<br><small>{note}</small></th>")
        third = "overlap" if study.segmentation else study.name_of_alc
        second.append(f"<th class='start'>best</th><th>mean ± sd</th><th>{third}</th><th>runs</th>")
    rows = "".join(_row(study, network) for network in study.networks)
    return (
        f"<table><thead><tr><th rowspan='2'>network</th><th rowspan='2'>parameters</th>"
        f"{''.join(top)}</tr><tr>{''.join(second)}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _row(study: Study, network: Network) -> str:
    pixels = study.segmentation
    cells = [_cell(study.cells.get((network, length)), pixels) for length in study.lengths]
    count = max(cell.parameters for (each, _), cell in study.cells.items() if each == network)
    multiple = f"<br><small>{count / CATALOGUE['hgru'].parameters:.3g}x</small>"
    return (
        f"<tr><td>{html.escape(display(network))}<br><small><code>{html.escape(network.model)}"
        f"</code></small></td><td>{count:,}{multiple}</td>{''.join(cells)}</tr>"
    )


def _cell(cell: Cell | None, of_pixels: bool) -> str:
    if cell is None:
        return "<td colspan='4' class='start none' style='text-align:center'>not run</td>"
    best, spread, failures = cell.best, cell.mean_and_sd("accuracy"), cell.failures
    if best is None or best.accuracy is None or spread is None:
        first = "<td class='start none'>diverged</td><td></td><td></td>"
    else:
        below = cell.shortcut is not None and best.accuracy <= cell.shortcut
        interval = "" if best.interval is None else " to ".join(map(_percent, best.interval))
        mean, sd = spread
        deviation = "" if math.isnan(sd) else f" ± {_percent(sd)}"
        third = best.overlap if of_pixels else best.alc
        first = (
            f"<td class='start{' below' if below else ''}'><b>{_percent(best.accuracy)}</b><br>"
            f"<small>{interval}</small></td><td>{_percent(mean)}{deviation}</td>"
            f"<td>{'' if third is None else _percent(third)}</td>"
        )
    failed = ""
    if failures.failed and not of_pixels:
        failed = (
            f"<br><small title='95 % interval {failures.low:.0%} to {failures.high:.0%}'>"
            f"{failures.failed} failed</small>"
        )
    return f"{first}<td>{failures.runs}{failed}</td>"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _picture(name: str, study: Study) -> str:
    # The stimuli are pixels; all else is lines.
    return _embedded(FIGURES[name], lambda: draw(name, study), pixels=name == "exemplars")


def _embedded(caption: str, make: Callable[[], Figure], *, pixels: bool = False) -> str:
    caption = html.escape(caption)
    try:
        figure = make()
    except ValueError as error:  # there is nothing to draw, or it cannot be drawn together
        return f"<p class='none'>{caption}: not drawn; {html.escape(str(error))}.</p>"
    kind, mime = ("png", "png") if pixels else ("svg", "svg+xml")
    data = b64encode(render(figure, kind)).decode()
    width = WIDEST * figure.get_figwidth() / WIDTH
    return (
        f"<figure><img alt='{caption}' style='width:{width:.0f}rem' "
        f"src='data:image/{mime};base64,{data}'><figcaption>{caption}</figcaption></figure>"
    )


def _short(commit: str | None) -> str:
    """Give the first digits of a commit; what is beyond a hyphen is no digit."""
    digits, hyphen, rest = (commit or "unknown").partition("-")
    return digits[:12] + hyphen + rest


def _machines(study: Study) -> str:
    """Say with what, where and how fast the runs were made."""
    groups: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in study.rows:
        result = row.result
        versions = ", ".join(f"{name} {text}" for name, text in sorted(result.versions.items()))
        key = result.device, versions, _short(result.commit)
        shared = 0.0 if result.shared is None else result.shared["seconds"]
        groups[key].append(result.seconds - shared)
    rows = "".join(
        f"<tr><td>{html.escape(device)}</td><td>{html.escape(versions)}</td>"
        f"<td><code>{html.escape(commit)}</code></td><td>{len(seconds)}</td>"
        f"<td>{sum(seconds) / 3600:.1f}</td></tr>"
        for (device, versions, commit), seconds in groups.items()
    )
    return (
        "<table><thead><tr><th>device</th><th>versions</th><th>commit</th><th>runs</th>"
        f"<th>hours</th></tr></thead><tbody>{rows}</tbody></table>"
    )
