"""Audit of synthetic contours: what their label can be read from without linking paddles.

The probes are told the direction that a contour has or would have, and the exact angle of every
paddle: they know more than any observer of the image. `LINKING` features are no shortcut. They say
what two or more neighbours say together, which is the task itself, and stand beside the others to
show what there is to find.
"""

import numpy as np
import numpy.typing as npt

from hgru_vision.intervals import wilson_interval
from hgru_vision.stimuli import contours
from hgru_vision.stimuli._types import Array, Floats
from hgru_vision.stimuli.audit import AuditReport, AuditRow
from hgru_vision.stimuli.contours import ContourConfig
from hgru_vision.stimuli.growth import ANGLE, X, Y
from hgru_vision.stimuli.probes import (
    Probe,
    lookup,
    out_of_fold,
    quadratic_logistic,
    stratified_folds,
)
from hgru_vision.stimuli.scenes import check_indices

LINKING = ("aligned neighbours", "longest aligned run")
BANDS = tuple(np.deg2rad((1.0, 3.0, 10.0, 30.0)))  # half widths around the contour's direction
ALIGNED = BANDS[1]
BLOCKS = 3  # the image in 3 x 3 parts
CHUNK = 1024  # images at a time, so that memory stays flat


def contour_features(config: ContourConfig, seed: int, indices: npt.ArrayLike) -> dict[str, Floats]:
    """Features of images, by the name of their set.

    Parameters
    ----------
    config, seed, indices
        Which images.

    Returns
    -------
    sets
        From each name to an array (n, number of features): "ink" (mean brightness), "ink by ninths"
        of the image, "directions" (paddles in bands around the contour's direction, and the mean
        of twice the angle to it), "directions near the centre" (in the inner half of the field),
        "aligned by ninths" (where paddles in that direction lie), and those of `LINKING`.

    Examples
    --------
    >>> sets = contour_features(ContourConfig(length=5), 0, range(4))
    >>> sets["ink by ninths"].shape, sets["longest aligned run"].shape
    ((4, 9), (4, 1))
    """
    indices = check_indices(indices)
    starts = range(0, indices.size, CHUNK)
    parts = [_features(config, seed, indices[start : start + CHUNK]) for start in starts]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def audit_contours(
    config: ContourConfig, seed: int = 0, count: int = 20_000, folds: int = 5, first: int = 0
) -> AuditReport:
    """Measure how well the label can be read from each set of features, cross-validated.

    Parameters
    ----------
    config
        The condition.
    seed
        Of the images and of the folds.
    count
        Images, an even number.
    folds
        Number of folds, 2 or more.
    first
        Number of the first image.

    Returns
    -------
    report
        One row a set of features. The best is the best shortcut: rows of `LINKING` do not compete.

    Examples
    --------
    >>> config = ContourConfig(length=17, scattered=False)  # the directions tell
    >>> audit_contours(config, count=200, folds=2).best.accuracy > 0.9
    True
    """
    if folds < 2:
        raise ValueError(f"folds must be 2 or more, got {folds}")
    if count < 2 * folds or count % 2:
        raise ValueError(f"count must be even and at least {2 * folds}, got {count}")
    indices = first + np.arange(count)
    label = contours.labels(config, seed, indices)
    fold = stratified_folds(label, folds, np.random.default_rng(seed))
    found: list[tuple[AuditRow, Floats]] = []
    for name, features in contour_features(config, seed, indices).items():
        single = features.shape[1] == 1
        probe: Probe = lookup if single else quadratic_logistic
        probability = out_of_fold(probe, features, label, fold)
        correct = int(np.sum((probability > 0.5) == label))
        low, high = wilson_interval(correct, count)
        row = AuditRow(
            features=name,
            probe="20-bin lookup" if single else "quadratic logistic",
            accuracy=correct / count,
            low=low,
            high=high,
            n=count,
        )
        found.append((row, probability))
    shortcuts = [pair for pair in found if pair[0].features not in LINKING]
    best, probability = max(shortcuts, key=lambda pair: pair[0].accuracy)
    rows = tuple(row for row, _ in found)
    return AuditReport(
        rows=rows, best=best, probability=probability, label=label, folds=folds, seed=seed
    )


def _features(config: ContourConfig, seed: int, indices: Array) -> dict[str, Floats]:
    grown = contours.scenes(config, seed, indices)
    painted = contours.images(config, seed, indices)
    angle = grown.paddles[..., ANGLE] - grown.directions[:, None]
    off = np.abs((angle + np.pi / 2) % np.pi - np.pi / 2)  # paddles have no head: 0 to 90 degrees
    place = grown.paddles[..., [X, Y]] / config.canvas  # 0 to 1
    central = np.all(np.abs(place - 0.5) < 0.25, axis=-1)
    everywhere = np.ones_like(central)
    aligned = off < ALIGNED
    grid = aligned.reshape(-1, config.cells, config.cells)
    return {
        "ink": painted.mean(axis=(1, 2))[:, None],
        "ink by ninths": _by_ninths(painted),
        "directions": _directions(angle, off, everywhere),
        "directions near the centre": _directions(angle, off, central),
        "aligned by ninths": _counts_by_ninths(place, aligned),
        "aligned neighbours": _linked(grid, grid, 1).sum(axis=(1, 2), dtype=np.float64)[:, None],
        "longest aligned run": _longest_run(grid)[:, None],
    }


def _directions(angle: Floats, off: Floats, where: Array) -> Floats:
    counts = [np.sum((off < band) & where, axis=1) for band in BANDS]
    number = np.maximum(where.sum(axis=1), 1)
    means = [np.sum(wave(2 * angle) * where, axis=1) / number for wave in (np.cos, np.sin)]
    return np.stack([*counts, *means], axis=1).astype(np.float64)


def _by_ninths(images: Array) -> Floats:
    edges = np.linspace(0, images.shape[1], BLOCKS + 1).round().astype(int)[:-1]
    rows = np.add.reduceat(images.astype(np.int64), edges, axis=1)
    return np.add.reduceat(rows, edges, axis=2).reshape(len(images), -1).astype(np.float64)


def _counts_by_ninths(place: Floats, aligned: Array) -> Floats:
    column, row = np.clip(place * BLOCKS, 0, BLOCKS - 1).astype(int).transpose(2, 0, 1)
    block = row * BLOCKS + column
    counts = [np.sum((block == number) & aligned, axis=1) for number in range(BLOCKS**2)]
    return np.stack(counts, axis=1).astype(np.float64)


def _linked(run: Array, grid: Array, step: int) -> Array:
    """Cells, from row ``step`` on, that carry on what ends at the cell before on their diagonal."""
    return np.roll(run, 1, axis=2)[:, :-1] & grid[:, step:]


def _longest_run(grid: Array) -> Floats:
    longest = np.zeros(len(grid))
    run = grid  # cells at which a run of at least `step` aligned paddles ends
    for step in range(1, grid.shape[1] + 1):
        longest += run.any(axis=(1, 2))
        run = _linked(run, grid, step)
    return longest
