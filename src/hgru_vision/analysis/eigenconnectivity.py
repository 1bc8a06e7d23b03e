"""Eigenconnectivity: the patterns that learnt horizontal connections have in common.

Supp., near "We visualized hGRU horizontal connectivity": the kernels of each input channel are
rotated in space until the channel's preferred orientation is at 90 degrees; the principal
components of all of them, sorted by eigenvalue, are the patterns.

In W[i, j], channel j sends and channel i receives, and the place (y, x) in the kernel is where the
sender is, seen from the receiver. Angles go from the x axis (to the right) towards the y axis
(down), so that a channel of 90 degrees prefers vertical bars.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import ndimage
from torch import Tensor, nn

from hgru_vision.analysis.association import (
    LEAST_PAIRS,
    Association,
    measure_association,
    relative_orientation,
)
from hgru_vision.analysis.orientation_tuning import Tuning, measure_tuning
from hgru_vision.circuits import (
    Circuit,
    HGRUBatchNorm,
    HGRUSeparateKernels,
    SymmetricKernel,
)
from hgru_vision.papers.linsley2018 import COMMON_ORIENTATION, EIGEN_VARIANCE
from hgru_vision.stimuli._types import Array, Floats, Indices

__all__ = [
    "LEAST_SELECTIVITY",
    "Connections",
    "Eigenconnectivity",
    "align",
    "connections",
    "eigenconnectivity",
    "inner_disc",
]

LEAST_SIZE = 5  # smaller ones have no near and far, along and across

LEAST_SELECTIVITY = 0.25
"""From which a channel counts as oriented. The Gabors of the input stage start at 0.80 to 0.82, its
difference of Gaussians at 0; of 7x7 filters of white noise one half are below 0.17."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Connections:
    """What a network connects with: its horizontal kernel, and the tuning of what it connects.

    Parameters
    ----------
    weights
        The kernel that excites: W, or W_E where there are two. It is negated if the mean of beta is
        negative. A network in which W, alpha, mu, beta and omega are all negated computes the same
        (Eqs. 4 to 8), so that the sign of W alone means nothing; here a positive weight is one that
        excites, by the linear term of Eq. 8, on average over channels.
    tuning
        Of each channel's drive.
    beta
        The gain of excitation in each channel, negated with the weights; None if the circuit has
        none. ``beta[:, None, None, None] * weights`` has a sign in every channel.
    excited
        Share of the channels in which a positive weight does excite, if there is a beta.

    Shape
    -----
    weights : float64 (K, K, S, S), receiving channel first
    beta : float64 (K,)
    """

    weights: Floats
    beta: Floats | None
    tuning: Tuning
    excited: float | None

    def orientations(self, least_selectivity: float = LEAST_SELECTIVITY) -> Floats:
        """Give each channel's orientation, (K,) radians, and nan for those that have none."""
        return self.tuning.oriented(least_selectivity)


@torch.no_grad()
def connections(network: nn.Module) -> Connections:
    """Read the horizontal connections of a network and measure what its channels prefer.

    Parameters
    ----------
    network
        With an input stage ``input`` for grey images, and a circuit ``features`` behind it, driven
        by that stage or, if there is more between them, by what ``drive`` gives of images:
        ``create_model("hgru")``, its variants and controls, and what ``load_run`` gives.

    Examples
    --------
    >>> from hgru_vision import create_model
    >>> found = connections(create_model("hgru"))
    >>> found.weights.shape
    (25, 25, 15, 15)
    >>> np.isnan(found.orientations()).nonzero()  # the difference of Gaussians
    (array([24]),)
    """
    stage, circuit = getattr(network, "input", None), getattr(network, "features", None)
    if not isinstance(stage, nn.Module) or not isinstance(circuit, Circuit):
        raise TypeError(
            f"{type(network).__name__} has no input stage `input` with a recurrent circuit "
            "`features` behind it; give its kernel and its channels' orientations to "
            "eigenconnectivity()"
        )
    kernel: Any = circuit.w_e if isinstance(circuit, HGRUSeparateKernels) else circuit.w
    weights = kernel() if isinstance(kernel, SymmetricKernel) else kernel
    beta: Any = getattr(circuit, "beta", None)
    if isinstance(circuit, HGRUBatchNorm):  # C2 is scaled before beta sees it
        beta = beta.flatten() * circuit.norm_c2.delta[-1].flatten()
    sign = -1 if beta is not None and beta.mean() < 0 else 1
    device, drive = weights.device, getattr(network, "drive", stage)
    training = network.training
    network.eval()  # batch norm is not to be taught by gratings
    try:
        tuning = measure_tuning(lambda images: drive(images.to(device, weights.dtype)))
    finally:
        network.train(training)
    gains = None if beta is None else sign * beta.flatten().double().cpu().numpy()
    return Connections(
        weights=sign * weights.double().cpu().numpy(),
        beta=gains,
        tuning=tuning,
        excited=None if gains is None else float((gains > 0).mean()),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Eigenconnectivity:
    """What `eigenconnectivity` found.

    Parameters
    ----------
    channels, orientations
        Numbers of the n channels that have an orientation, and it in radians.
    left_out
        Numbers of the channels without one.
    mean
        Mean of the aligned kernels, which the components do not hold; 0 outside of `disc`.
    components
        The patterns, the largest eigenvalue first, each of unit norm; 0 outside of `disc`. As many
        as make up the share of the variance that was asked for.
    eigenvalues
        Variance of the aligned kernels along all components, also those beyond.
    scores
        How much of each component each aligned kernel holds, by receiving and sending channel.
    disc
        Places that stay within the kernel at every rotation; the rest is left out.
    association
        Profiles of the aligned kernels.

    Shape
    -----
    channels, orientations : (n,)
    mean, disc : (S, S); components : (C, S, S); eigenvalues : (all,); scores : (C, n, n)
    """

    channels: Indices
    orientations: Floats
    left_out: Indices
    mean: Floats
    components: Floats
    eigenvalues: Floats
    scores: Floats
    disc: npt.NDArray[np.bool_]
    association: Association

    @property
    def shares(self) -> Floats:
        """Share of the variance of each component, (all,)."""
        return self.eigenvalues / self.eigenvalues.sum()

    def to_json(self) -> dict[str, Any]:
        """Return all but the scores as JSON can hold it."""
        found = self.association
        profiles = ("along", "across", "around", "along_by_angle", "across_by_angle")
        estimates = ("collinearity", "likeness", "nearness")
        return {
            "channels": self.channels.tolist(),
            "orientations": np.rad2deg(self.orientations).tolist(),
            "left_out": self.left_out.tolist(),
            "eigenvalues": self.eigenvalues.tolist(),
            "shares": self.shares.tolist(),
            "mean": self.mean.tolist(),
            "components": self.components.tolist(),
            **{
                name: {key: _plain(value) for key, value in getattr(found, name)._asdict().items()}
                for name in (*estimates, *profiles)
            },
        }


def eigenconnectivity(
    weights: npt.ArrayLike | Tensor,
    orientations: npt.ArrayLike | Tensor,
    *,
    variance: float = EIGEN_VARIANCE,
    seed: int = 0,
) -> Eigenconnectivity:
    """Find the patterns that horizontal kernels have in common.

    Parameters
    ----------
    weights
        Horizontal kernel, receiving channel first.
    orientations
        Of the channels, in radians; nan for those without one, which are left out. Measured ones
        are in ``connections(network).orientations()``; `filter_tuning` and `measure_tuning` give
        those of other filters and stages.
    variance
        Share of the variance that the components must make up.
    seed
        Of the bootstrap of the profiles.

    Notes
    -----
    A component is as good a description as its negative. Here its sign is that with which kernels
    between channels of like orientation hold it: their scores, weighted by the cosine of twice the
    relative orientation, add up to more than zero. If they add up to nothing, the largest weight is
    positive.

    An orientation is the same after half a turn, and a kernel is not: of patterns that change sign
    under half a turn, such as one lobe up and another down, it depends on where the orientations
    are cut (at 0) which channels show them one way up. Profiles do not depend on it.

    The centre of a kernel is its middle, for an even size between four weights.

    Shape
    -----
    weights : (K, K, S, S), S from 5; orientations : (K,)

    Examples
    --------
    >>> from hgru_vision import create_model
    >>> found = connections(create_model("hgru"))
    >>> patterns = eigenconnectivity(found.weights, found.orientations())
    >>> bool(patterns.shares[: len(patterns.components)].sum() >= 0.8)
    True
    >>> patterns.association.collinearity.excludes_zero  # nothing is learnt yet
    False
    """
    kernels, angles = _as_array(weights), _as_array(orientations)
    _check(kernels, angles, variance)
    channels = np.flatnonzero(~np.isnan(angles))
    angles = angles[channels]
    aligned = align(kernels[np.ix_(channels, channels)], angles)
    disc = inner_disc(kernels.shape[-1])

    samples = aligned[:, :, disc].reshape(-1, disc.sum())  # (n * n, places)
    mean = samples.mean(axis=0)
    _, singular, patterns = np.linalg.svd(samples - mean, full_matrices=False)
    eigenvalues = singular**2 / (len(samples) - 1)
    if not eigenvalues[0] > 1e-20 * (1 + (mean**2).sum()):
        raise ValueError("all kernels are the same after rotation; there is nothing to find")
    reached = np.cumsum(eigenvalues) >= (variance - 1e-12) * eigenvalues.sum()
    patterns = patterns[: np.argmax(reached) + 1]  # (C, places)
    scores = patterns @ (samples - mean).T  # (C, n * n)
    signs = _signs(patterns, scores, np.cos(2 * relative_orientation(angles)).ravel())
    return Eigenconnectivity(
        channels=channels,
        orientations=angles,
        left_out=np.setdiff1d(np.arange(len(kernels)), channels),
        mean=_on_disc(mean, disc),
        components=_on_disc(signs * patterns, disc),
        eigenvalues=eigenvalues,
        scores=(signs * scores).reshape(-1, len(channels), len(channels)),
        disc=disc,
        association=measure_association(aligned, angles, disc, seed=seed),
    )


def align(weights: Floats, orientations: Floats) -> Floats:
    """Rotate kernels in space so that the sending channel's orientation becomes 90 degrees.

    By cubic splines, which blur less than linear interpolation does. Where kernels are symmetric
    between channels, aligning the receiving channel instead gives the same set of kernels.

    Parameters
    ----------
    weights
        Receiving channel first.
    orientations
        Of the sending channels, radians.

    Shape
    -----
    weights, output : (n, m, S, S), output 0 outside of `inner_disc`; orientations : (m,)

    Examples
    --------
    >>> row = np.zeros((1, 1, 3, 3))
    >>> row[..., 1, :] = 1  # weights along x
    >>> align(row, np.array([0.0]))[0, 0].round(6) + 0.0
    array([[0., 1., 0.],
           [0., 1., 0.],
           [0., 1., 0.]])
    """
    size = weights.shape[-1]
    disc = inner_disc(size)
    middle = (size - 1) / 2
    y, x = np.argwhere(disc).T - middle  # (places,)
    aligned = np.zeros(weights.shape)
    for sender, angle in enumerate(orientations):
        # The place that is turned to (x, y) lies back by the same turn.
        turn = angle - np.radians(COMMON_ORIENTATION)
        source_x = x * np.cos(turn) - y * np.sin(turn) + middle
        source_y = x * np.sin(turn) + y * np.cos(turn) + middle
        for receiver in range(len(weights)):
            # No place of the disc leaves the kernel; "mirror" is for the spline's own border.
            aligned[receiver, sender, disc] = ndimage.map_coordinates(
                weights[receiver, sender], [source_y, source_x], order=3, mode="mirror"
            )
    return aligned


def inner_disc(size: int) -> npt.NDArray[np.bool_]:
    """Mark the places of a kernel that stay within it at every rotation.

    Examples
    --------
    >>> inner_disc(3).astype(int)
    array([[0, 1, 0],
           [1, 1, 1],
           [0, 1, 0]])
    """
    offsets = np.arange(size) - (size - 1) / 2
    inside: npt.NDArray[np.bool_] = np.hypot(offsets[:, None], offsets) <= (size - 1) / 2 + 1e-9
    return inside


def _signs(patterns: Floats, scores: Floats, likeness: Floats) -> Floats:
    """Give the sign of each pattern, (C, 1); see the Notes of `eigenconnectivity`."""
    signs = np.sign(scores @ likeness)
    lean = abs(scores @ likeness) / np.linalg.norm(scores, axis=1) / np.linalg.norm(likeness)
    size = abs(patterns)
    # Of weights that are equal but for rounding, the first.
    first = np.argmax(size >= (1 - 1e-6) * size.max(axis=1, keepdims=True), axis=1)
    largest = np.sign(patterns[np.arange(len(patterns)), first])
    return np.where(lean > 1e-9, signs, largest)[:, None]


def _on_disc(values: Floats, disc: npt.NDArray[np.bool_]) -> Floats:
    """Put values (..., places) where they belong, (..., S, S)."""
    whole = np.zeros((*values.shape[:-1], *disc.shape))
    whole[..., disc] = values
    return whole


def _as_array(values: npt.ArrayLike | Tensor) -> Floats:
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values, np.float64)


def _plain(values: Any) -> Any:
    """Give numbers as JSON has them: lists for arrays, None for nan."""
    if np.ndim(values):
        return [_plain(value) for value in values]
    return None if np.isnan(values) else float(values)


def _check(kernels: Array, angles: Array, variance: float) -> None:
    shape = kernels.shape
    if len(shape) != 4 or shape[0] != shape[1] or shape[2] != shape[3] or shape[2] < LEAST_SIZE:
        raise ValueError(
            f"weights have shape {shape}; they must be (K, K, S, S), S from {LEAST_SIZE}"
        )
    if not np.isfinite(kernels).all():
        raise ValueError("weights hold nan or infinity")
    if angles.shape != shape[:1]:
        raise ValueError(
            f"orientations have shape {angles.shape}; they must be one a channel, ({shape[0]},)"
        )
    if np.isinf(angles).any():
        raise ValueError("an orientation is infinite; give radians, or nan for none")
    if np.nanmax(np.abs(angles), initial=0) > 2 * np.pi:
        raise ValueError(
            f"an orientation is {np.nanmax(np.abs(angles)):.4g}; they are in radians, of a turn or "
            "less: np.deg2rad()"
        )
    if (known := int((~np.isnan(angles)).sum())) < LEAST_PAIRS:
        raise ValueError(
            f"{known} of {len(angles)} channels have an orientation; {LEAST_PAIRS} or more "
            "must: give orientations, or lower the least selectivity"
        )
    if not 0 < variance <= 1:
        raise ValueError(f"variance is {variance}; it is a share, above 0 and at most 1")
