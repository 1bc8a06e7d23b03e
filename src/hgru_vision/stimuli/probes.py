"""Small classifiers that ask how well a label can be read from a few numbers.

A probe is a function ``(train, label, test) -> probability``: it learns from the features `train`
(n, F) and their labels (n,), and gives the probability of label 1 for each row of `test` (m, F).
None of them reads or moves a global random state.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch.nn import functional as F

from hgru_vision.stimuli._types import Floats, Indices

Probe = Callable[[Floats, Indices, Floats], Floats]

BINS = 20
RIDGE = 1e-4
MAX_NEWTON_STEPS = 50

# A net wide enough to draw any smooth boundary between a dozen features, stopped early enough not
# to learn 16,000 labels by heart.
HIDDEN = 32
BATCHES, SMALLEST_BATCH = 64, 64  # batches an epoch, images a batch
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 0.3
MAX_EPOCHS = 100
PATIENCE = 8
HELD_OUT_FRACTION = 8  # one eighth of the training images decides when to stop


@dataclass(frozen=True, kw_only=True, eq=False)
class Cues:
    """What n Pathfinder images tell without following a path.

    Angles are in the frame of the positions: an angle a points to (cos a, sin a) in (x, y).

    Parameters
    ----------
    label
        1 where the markers are connected, else 0.
    markers
        Marker centres (x, y) in pixels; first the one at a path's origin, then that at a far end.
    directions
        Direction in radians in which each marked paddle points at its marked tip, away from its
        own path.
    canvas
        Height and width in pixels.
    ink
        Mean intensity of each image.
    curvature
        Sum of the absolute turns of both target paths, in radians.

    Shape
    -----
    label, ink, curvature (n,); markers (n, 2, 2); directions (n, 2)

    Examples
    --------
    >>> cues = Cues(label=[1], markers=[[[10, 20], [40, 60]]], directions=[[0, 1]],
    ...             canvas=(150, 150), ink=[0.1], curvature=[2.5])
    >>> cues.markers.shape
    (1, 2, 2)
    """

    label: Indices
    markers: Floats
    directions: Floats
    canvas: tuple[int, int]
    ink: Floats
    curvature: Floats

    def __post_init__(self) -> None:
        """Turn the fields into arrays and refuse what is not n images of two classes."""
        n = np.size(self.label)
        shapes = {"label": (n,), "markers": (n, 2, 2), "directions": (n, 2)}
        shapes |= {"ink": (n,), "curvature": (n,)}
        for name, shape in shapes.items():
            array = np.asarray(getattr(self, name), dtype=np.float64)
            if array.shape != shape:
                raise ValueError(
                    f"cues.{name} must have shape {shape} for {n} labels, got {array.shape}"
                )
            finite = np.isfinite(array.reshape(n, -1)).all(axis=1)
            if not finite.all():
                raise ValueError(
                    f"cues.{name} must be finite, got {array[~finite][0].tolist()} "
                    f"at image {np.flatnonzero(~finite)[0]}"
                )
            object.__setattr__(self, name, array)
        other = ~np.isin(self.label, (0, 1))
        if other.any():
            raise ValueError(
                f"cues.label must be 0 or 1, got {self.label[other][0]:g} "
                f"at image {np.flatnonzero(other)[0]}"
            )
        object.__setattr__(self, "label", self.label.astype(np.int64))
        if len(self.canvas) != 2 or min(self.canvas) < 1:
            raise ValueError(
                f"cues.canvas must be (height, width) in pixels, such as (150, 150), "
                f"got {self.canvas}"
            )


def feature_sets(cues: Cues) -> dict[str, Floats]:
    """Features that the probes see, by the name of their set.

    Directions are angles from the line to the other marker: 0 where the marked paddle points
    straight at it. Exchanging the two markers leaves the distance as it is and exchanges the
    columns of each marker in the other sets. "marker geometry" adds the positions and each marker's
    distance to the nearest edge.

    Curvature is a property of the target paths, which nobody sees without finding them. It is
    there because, with the distance, it tells whether the markers are as far apart as a path so
    curved would reach: "everything" asks more than what is visible at the markers.

    Parameters
    ----------
    cues
        Cues of n images.

    Returns
    -------
    sets
        From each name to an array (n, number of features).

    Examples
    --------
    >>> cues = Cues(label=[1], markers=[[[10, 20], [40, 60]]], directions=[[0, 1]],
    ...             canvas=(150, 150), ink=[0.1], curvature=[2.5])
    >>> {name: features.shape[1] for name, features in feature_sets(cues).items()}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'marker distance': 1, 'marker directions': 4, 'distance and directions': 5,
     'marker geometry': 11, 'ink': 1, 'curvature': 1, 'everything': 13}
    """
    towards = np.stack([cues.markers[:, 1] - cues.markers[:, 0]] * 2, axis=1)
    towards[:, 1] *= -1  # (n, marker, xy): from each marker to the other
    relative = cues.directions - np.arctan2(towards[..., 1], towards[..., 0])

    distance = np.hypot(towards[:, 0, 0], towards[:, 0, 1])[:, None]
    directions = np.column_stack([np.cos(relative), np.sin(relative)])
    height, width = cues.canvas
    to_edge = np.minimum(cues.markers, np.array([width, height]) - cues.markers).min(axis=2)
    positions = np.column_stack([cues.markers.reshape(-1, 4), to_edge])
    ink, curvature = cues.ink[:, None], cues.curvature[:, None]
    return {
        "marker distance": distance,
        "marker directions": directions,
        "distance and directions": np.hstack([distance, directions]),
        "marker geometry": np.hstack([distance, directions, positions]),
        "ink": ink,
        "curvature": curvature,
        "everything": np.hstack([distance, directions, positions, ink, curvature]),
    }


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch to one thread: products this small gain nothing from a second.

    Where the cores are busy, waiting for the second thread took ten times as long as the work.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def lookup(train: Floats, label: Indices, test: Floats) -> Floats:
    """Share of label 1 in each of 20 equally filled bins of a single feature.

    Parameters
    ----------
    train, label, test
        Features (n, 1), labels (n,) of 0 and 1, and features (m, 1) to predict for.

    Returns
    -------
    probability
        Probability of label 1, (m,); an empty bin says one half.

    Examples
    --------
    >>> x = np.arange(40.0)[:, None]
    >>> lookup(x, (x[:, 0] > 19).astype(np.int64), np.array([[3.0], [30.0]])).tolist()
    [0.25, 0.75]
    """
    edges = np.quantile(train[:, 0], np.arange(1, BINS) / BINS)
    train_bin = np.searchsorted(edges, train[:, 0], side="right")
    ones = np.bincount(train_bin, weights=label, minlength=BINS)
    total = np.bincount(train_bin, minlength=BINS)
    # Laplace's rule of succession keeps sparse bins from being certain.
    share: Floats = (ones + 1) / (total + 2)
    return share[np.searchsorted(edges, test[:, 0], side="right")]


@_one_thread()
def quadratic_logistic(train: Floats, label: Indices, test: Floats) -> Floats:
    """Logistic regression on the features, their squares and all their products.

    Fitted to its minimum by Newton's method, with steps halved until they descend; a small ridge
    makes the minimum unique where products are collinear (cos² + sin² = 1) or the classes separate.

    Parameters
    ----------
    train, label, test
        Features (n, F), labels (n,) of 0 and 1, and features (m, F) to predict for.

    Returns
    -------
    probability
        Probability of label 1, (m,).

    Examples
    --------
    >>> x = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    >>> (quadratic_logistic(x, np.array([1, 0, 0, 1]), x) > 0.5).tolist()
    [True, False, False, True]
    """
    train, test = _standardise(*(_with_products(x) for x in _standardise(train, test)))
    inputs, test_inputs = (F.pad(torch.from_numpy(x), (0, 1), value=1.0) for x in (train, test))
    target = torch.from_numpy(label).double()
    n, width = inputs.shape
    ridge = RIDGE * torch.eye(width, dtype=torch.float64)

    def loss(weights: torch.Tensor) -> torch.Tensor:
        fit = F.binary_cross_entropy_with_logits(inputs @ weights, target)
        return fit + weights @ ridge @ weights / 2

    weights = torch.zeros(width, dtype=torch.float64)
    for _ in range(MAX_NEWTON_STEPS):
        probability = torch.sigmoid(inputs @ weights)
        gradient = inputs.T @ (probability - target) / n + ridge @ weights
        hessian = (inputs.T * (probability * (1 - probability) / n)) @ inputs + ridge
        step = torch.linalg.solve(hessian, gradient)
        if step.abs().max() < 1e-6:
            break
        while loss(weights - step) > loss(weights):
            step /= 2
        weights -= step
    return torch.sigmoid(test_inputs @ weights).numpy()


@_one_thread()
def multilayer_perceptron(train: Floats, label: Indices, test: Floats, *, seed: int) -> Floats:
    """Two hidden layers of 32 units, stopped when a held-out eighth of `train` says so.

    Parameters
    ----------
    train, label, test
        Features (n, F), labels (n,) of 0 and 1, and features (m, F) to predict for.
    seed
        Seed of the initial weights, the held-out part and the order of the batches.

    Returns
    -------
    probability
        Probability of label 1, (m,).

    Examples
    --------
    >>> x = np.linspace(-1, 1, 200)[:, None]
    >>> inside = (abs(x[:, 0]) < 0.5).astype(np.int64)
    >>> probability = multilayer_perceptron(x, inside, np.array([[-0.9], [0.0], [0.9]]), seed=0)
    >>> (probability > 0.5).tolist()
    [False, True, False]
    """
    generator = torch.Generator().manual_seed(seed)
    inputs, test_inputs = (torch.from_numpy(x).float() for x in _standardise(train, test))
    target = torch.from_numpy(label).float()
    shuffled = torch.randperm(len(target), generator=generator)
    held_out, fit = shuffled.tensor_split([max(1, len(target) // HELD_OUT_FRACTION)])
    batch_size = max(SMALLEST_BATCH, len(fit) // BATCHES)

    parameters = _initial_parameters([train.shape[1], HIDDEN, HIDDEN, 1], generator)
    optimizer = torch.optim.AdamW(
        parameters, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True
    )
    best = [parameter.detach().clone() for parameter in parameters]
    best_loss, waited = float("inf"), 0
    for _ in range(MAX_EPOCHS):
        for batch in fit[torch.randperm(len(fit), generator=generator)].split(batch_size):
            optimizer.zero_grad()
            logit = _forward(parameters, inputs[batch])
            F.binary_cross_entropy_with_logits(logit, target[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            logit = _forward(parameters, inputs[held_out])
            loss = F.binary_cross_entropy_with_logits(logit, target[held_out]).item()
        waited += 1
        if loss < best_loss:
            best_loss, waited = loss, 0
            best = [parameter.detach().clone() for parameter in parameters]
        if waited == PATIENCE:
            break
    return torch.sigmoid(_forward(best, test_inputs)).double().numpy()


def stratified_folds(label: Indices, folds: int, rng: np.random.Generator) -> Indices:
    """Assign each image to a fold at random, both classes evenly spread.

    Without the even spread a fold rich in one class leaves the other in the majority for training,
    and a probe that knows nothing scores below chance.

    Parameters
    ----------
    label
        Indices (n,).
    folds
        Number of folds.
    rng
        Source of the random order.

    Returns
    -------
    fold
        Fold of each image, (n,), from 0 to ``folds - 1``.

    Examples
    --------
    >>> fold = stratified_folds(np.array([0, 0, 1, 1]), 2, np.random.default_rng(0))
    >>> sorted(fold[:2].tolist()), sorted(fold[2:].tolist())
    ([0, 1], [0, 1])
    """
    shuffled = rng.permutation(len(label))
    by_class = shuffled[np.argsort(label[shuffled], kind="stable")]
    fold = np.empty(len(label), dtype=np.int64)
    fold[by_class] = np.arange(len(label)) % folds
    return fold


def out_of_fold(probe: Probe, features: Floats, label: Indices, fold: Indices) -> Floats:
    """Probability of label 1 for each image, by the probe trained on the other folds.

    Parameters
    ----------
    probe
        Which probe to train.
    features, label, fold
        Features (n, F), labels (n,) and folds (n,) of the images.

    Returns
    -------
    probability
        Out-of-fold probability of label 1, (n,).

    Examples
    --------
    >>> label = np.array([0, 0, 1, 1])
    >>> features = 10.0 * label[:, None]
    >>> (out_of_fold(quadratic_logistic, features, label, np.array([0, 1, 0, 1])) > 0.5).tolist()
    [False, False, True, True]
    """
    probability = np.empty(len(label))
    for held_out in np.unique(fold):
        test = fold == held_out
        probability[test] = probe(features[~test], label[~test], features[test])
    return probability


def _standardise(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Shift and scale both by the mean and the standard deviation of `train`."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    # A feature that is constant but for rounding stays as it is, at zero.
    scale = np.where(deviation > 1e-9 * np.abs(mean), deviation, 1.0)
    return (train - mean) / scale, (test - mean) / scale


def _with_products(features: Floats) -> Floats:
    """Append the products of all pairs of columns, squares included."""
    first, second = np.triu_indices(features.shape[1])
    return np.column_stack([features, features[:, first] * features[:, second]])


def _initial_parameters(widths: list[int], generator: torch.Generator) -> list[torch.Tensor]:
    """Weights and biases, layer by layer (He et al., 2015), from an explicit generator."""
    parameters = []
    for fan_in, fan_out in pairwise(widths):
        weight = torch.randn(fan_out, fan_in, generator=generator, dtype=torch.float32)
        parameters += [weight * (2 / fan_in) ** 0.5, torch.zeros(fan_out, dtype=torch.float32)]
    return [parameter.requires_grad_() for parameter in parameters]


def _forward(parameters: list[torch.Tensor], inputs: torch.Tensor) -> torch.Tensor:
    """Logit (n,) of label 1."""
    hidden = inputs
    for weight, bias in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
        hidden = F.silu(F.linear(hidden, weight, bias))
    return F.linear(hidden, *parameters[-2:]).squeeze(1)
