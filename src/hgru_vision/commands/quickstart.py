"""hgru quickstart: images, a small hGRU trained on them, and a report, in minutes on a laptop."""

import html
import io
import json
import time
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from hgru_vision.circuits import HGRU
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.figures.contact_sheet import contact_sheet_figure
from hgru_vision.intervals import wilson_interval
from hgru_vision.models.stages import Readout, xavier
from hgru_vision.stimuli import PathfinderConfig, cues
from hgru_vision.stimuli.audit import audit

BATCH = 32
LEARNING_RATE = 5e-3
EVALUATE_EVERY = 50  # batches
VALIDATION, TEST, AUDIT = 512, 2_000, 4_000  # images

# The paper's task at a size that a laptop learns: short paths, few distractors, a small canvas.
SMALL = PathfinderConfig(
    length=3,
    canvas=32,
    edge_margin=3,
    seed_radius=5,
    marker_radius=1.5,
    distractor_length=2,
    distractor_paddles=8,
    antialias=True,
)


class SmallNetwork(nn.Module):
    """Filters, squared; an hGRU; and the paper's readout: the standard architecture, made small.

    Shape
    -----
    image : (B, 1, H, W); output : (B, 2) logits
    """

    def __init__(self, channels: int, kernel_size: int, timesteps: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.filters = nn.utils.skip_init(nn.Conv2d, 1, channels, 7, padding=3)
        xavier(self.filters, generator)
        self.circuit = HGRU(channels, kernel_size, timesteps, generator=generator)
        self.readout = Readout(channels, generator)

    def forward(self, image: Tensor) -> Tensor:
        """Classify images."""
        return self.readout(self.circuit(self.filters(image) ** 2))


@dataclass(frozen=True, kw_only=True)
class Point:
    """One evaluation on the way."""

    images: int
    loss: float
    accuracy: float


def quickstart(out: Path = Path("quickstart"), images: int = 24_000, seed: int = 0) -> None:
    """Draw Pathfinder images, train a small hGRU on them, and write a report.

    Takes a few minutes on a laptop's CPU.

    Example: hgru quickstart --out quickstart

    Parameters
    ----------
    out
        Folder for the pictures, the numbers and report.html.
    images
        Number of training images.
    seed
        Of the images and of the network.
    """
    if images < BATCH * EVALUATE_EVERY:
        raise ValueError(f"--images must be {BATCH * EVALUATE_EVERY} or more; got {images}")
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    train = Pathfinder(count=images, seed=seed, config=SMALL)
    sheet = contact_sheet_figure(train, show_paths=True)
    full = contact_sheet_figure(Pathfinder(length=14, count=18, seed=seed), show_paths=True)
    network = SmallNetwork(channels=8, kernel_size=7, timesteps=4, seed=seed)
    console.print(
        f"Training an hGRU of {sum(p.numel() for p in network.parameters()):,} parameters on "
        f"{images:,} images of {SMALL.canvas} x {SMALL.canvas} pixels, on the CPU."
    )
    began = time.perf_counter()
    curve = list(_train(network, train, console))
    seconds = time.perf_counter() - began
    test = Pathfinder(count=TEST, seed=seed, split="test", config=SMALL)
    correct = round(evaluate(network, test) * TEST)
    low, high = wilson_interval(correct, TEST)
    shortcut = audit(cues(SMALL, seed, np.arange(AUDIT)), seed=seed).best
    result = {
        "accuracy": correct / TEST,
        "interval": [low, high],
        "shortcut": asdict(shortcut),
        "test_images": TEST,
        "train_images": images,
        "seconds": round(seconds, 1),
        "seed": seed,
        "task": train.describe(),
        "curve": [asdict(point) for point in curve],
    }
    (out / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    figures = {"task": full, "small task": sheet, "learning": _curve_figure(curve)}
    (out / "report.html").write_text(_report(result, figures))
    console.print(
        f"[bold]{correct / TEST:.1%}[/] of {TEST:,} new images right "
        f"(95 % interval {low:.1%} to {high:.1%}), after {seconds:.0f} s of training. "
        f"Without following a path a probe gets {shortcut.accuracy:.1%} (see docs/pathfinder.md)."
    )
    console.print(f"The report is {out / 'report.html'}")


def _train(network: SmallNetwork, data: Pathfinder, console: Console) -> Iterator[Point]:
    """Train for one pass over the data; yield an evaluation now and then."""
    optimiser = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    held_out = Pathfinder(count=VALIDATION, seed=data.seed, split="validation", config=data.config)
    batches = len(data) // BATCH
    losses: list[float] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=batches)
        for batch in range(1, batches + 1):
            image, label = tensors(data, np.arange((batch - 1) * BATCH, batch * BATCH))
            loss = nn.functional.cross_entropy(network(image), label)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            losses.append(loss.item())
            progress.advance(task)
            if batch % EVALUATE_EVERY == 0:
                accuracy = evaluate(network, held_out)
                progress.update(
                    task, description=f"loss {np.mean(losses):.3f}  accuracy {accuracy:.1%}"
                )
                yield Point(images=batch * BATCH, loss=float(np.mean(losses)), accuracy=accuracy)
                losses.clear()


def tensors(data: Pathfinder, indices: np.ndarray) -> tuple[Tensor, Tensor]:
    """Return images (B, 1, H, W) in [0, 1] and labels (B,)."""
    image = torch.from_numpy(data.batch(indices)).unsqueeze(1).float().div_(255)
    return image, torch.from_numpy(data.labels(indices))


@torch.no_grad()
def evaluate(network: nn.Module, data: Pathfinder) -> float:
    """Return the share of a dataset that a network gets right."""
    network.eval()
    right = 0
    for start in range(0, len(data), 256):
        image, label = tensors(data, np.arange(start, min(start + 256, len(data))))
        right += int((network(image).argmax(1) == label).sum())
    network.train()
    return right / len(data)


def _curve_figure(curve: list[Point]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    seen = [point.images for point in curve]
    axes.plot(seen, [point.accuracy for point in curve], color="#0072B2")
    axes.axhline(0.5, color="#777777", linewidth=0.8, linestyle=":")
    axes.annotate("chance", (seen[-1], 0.5), ha="right", va="bottom", color="#777777", fontsize=8)
    axes.set(xlabel="training images", ylabel="accuracy on new images", ylim=(0.4, 1.01))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _report(result: dict[str, Any], figures: dict[str, Any]) -> str:
    """Make one HTML file with its pictures inside."""
    low, high = result["interval"]
    shortcut = result["shortcut"]
    captions = {
        "task": "The challenge: are the two discs connected? Target paths are coloured here; the "
        "network sees them white. Paths of 14 paddles, as in the paper.",
        "small task": "The same at the size of this run: paths of "
        f"{SMALL.length} paddles on {SMALL.canvas} x {SMALL.canvas} pixels.",
        "learning": f"Learning: accuracy on {VALIDATION} images that it was not trained on.",
    }
    blocks = [
        f"<figure><img src='data:image/png;base64,{_png(figure)}' alt='{name}'>"
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
<p><span class="number">{result["accuracy"]:.1%}</span> of {result["test_images"]:,} new images
right (95&nbsp;% interval {low:.1%} to {high:.1%}) after {result["train_images"]:,} training images
and {result["seconds"]:.0f} seconds on the CPU; seed {result["seed"]}.</p>
<p>How much of that needs a path to be followed? A small probe that sees {shortcut["features"]}
and no path gets <b>{shortcut["accuracy"]:.1%}</b> (<code>hgru audit</code>; the preset
<code>matched</code> closes this shortcut at full size).</p>
{"".join(blocks)}
</html>
"""


def _png(figure: Any) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return b64encode(buffer.getvalue()).decode()
