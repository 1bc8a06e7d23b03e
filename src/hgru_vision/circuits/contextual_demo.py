"""Surround suppression and contour facilitation in the contextual model, with kernels set by hand.

The stimuli are fields of oriented elements, one to a hypercolumn: no image is drawn, the drive of a
unit is the contrast of its element times its orientation tuning. Channel k of K prefers the
orientation k 180 / K degrees, counted anticlockwise from horizontal.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hgru_vision.circuits.contextual import ContextualModel, ContextualState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

__all__ = [
    "ContourFacilitation",
    "SurroundSuppression",
    "association_field",
    "contextual_figure",
    "contour_facilitation",
    "hand_set_model",
    "inhibitory_surround",
    "surround_suppression",
]

FIELD = 21  # hypercolumns on a side
LINE = 9  # elements of the contour
CENTRE = slice((FIELD - LINE) // 2, (FIELD + LINE) // 2)  # six hypercolumns from every border
TUNING = 4.0  # concentration of the drive's orientation tuning: half-width 17 degrees


class SurroundSuppression(NamedTuple):
    """Response of the centre unit, (R,), for each radius of a parallel or orthogonal surround."""

    radii: np.ndarray
    parallel: np.ndarray
    orthogonal: np.ndarray


class ContourFacilitation(NamedTuple):
    """Responses for each rotation (degrees) of the elements of a line among distractors.

    `line` and `distractors` (R,) are means over elements and fields, of the distractors over those
    in the central square, since the ones at a border have half a surround and respond more.
    `angles` (radians) and `response` (R, H, W) are those of the first field.
    """

    rotations: np.ndarray
    line: np.ndarray
    distractors: np.ndarray
    angles: np.ndarray
    response: np.ndarray


def association_field(orientations: int, *, reach: float = 2.0, sharpness: float = 6.0) -> Tensor:
    """Make far excitation: units whose elements continue each other excite each other.

    The weight between two units falls off with their distance as a Gaussian, and with the angle
    between the line that joins them and the orientation of either, as two von Mises curves. So it
    is strong when both elements lie along one line and weak when they are side by side: the
    association field of Field, Hayes & Hess (1993). Exchanging the two channels changes nothing.

    Parameters
    ----------
    orientations
        K, the number of orientation channels.
    reach
        Standard deviation of the Gaussian, in hypercolumns.
    sharpness
        Concentration of the von Mises curves.

    Returns
    -------
    Tensor
        Weights (K, K, S, S) in float32, S reaching two standard deviations each way. None comes
        from the own hypercolumn; over all inputs of a unit they add up to one (mean of channels).

    Examples
    --------
    >>> horizontal = association_field(4)[0, 0]
    >>> bool(horizontal[4, 5] > 100 * horizontal[5, 4])  # beside it, against below it
    True
    """
    dy, dx, gaussian = _surround(reach)
    direction = torch.atan2(-dy, dx)  # rows grow downwards
    angles = _preferred(orientations)
    weights = gaussian * _tuning(direction - angles[:, None, None, None], sharpness)
    return _unit_sum(weights * _tuning(direction - angles[:, None, None], sharpness))


def inhibitory_surround(orientations: int, *, reach: float = 3.0, sharpness: float = 1.5) -> Tensor:
    """Make far inhibition: broad, the same in all directions, strongest between like orientations.

    Parameters
    ----------
    orientations
        K, the number of orientation channels.
    reach
        Standard deviation of the Gaussian fall-off with distance, in hypercolumns.
    sharpness
        Concentration of the von Mises curve over the difference in orientation.

    Returns
    -------
    Tensor
        Weights (K, K, S, S) as those of `association_field`.
    """
    _, _, gaussian = _surround(reach)
    angles = _preferred(orientations)
    between = _tuning(angles[:, None] - angles, sharpness)  # (K, K)
    return _unit_sum(between[:, :, None, None] * gaussian)


def hand_set_model(orientations: int = 8) -> ContextualModel:
    """Make the model of the two demonstrations, with eta = epsilon = tau = sigma = 1.

    Near excitation passes each unit on to itself; far excitation is an `association_field`; near
    inhibition is even over the channels of the own hypercolumn; far inhibition is an
    `inhibitory_surround`. The four strengths (1, 1.5, 0.3, 4) and mu = 0.5 were set by hand so that
    both effects are plain and Eq. 1 comes to rest; they are not fitted to any data.

    Parameters
    ----------
    orientations
        K, the number of orientation channels.

    Returns
    -------
    ContextualModel
        The model.

    Examples
    --------
    >>> hand_set_model().channels
    8
    """
    own = torch.eye(orientations, dtype=torch.float32)[:, :, None, None]
    return ContextualModel(
        near_excitation=own,
        far_excitation=1.5 * association_field(orientations),
        near_inhibition=0.3 * torch.full_like(own, 1 / orientations),
        far_inhibition=4.0 * inhibitory_surround(orientations),
        alpha=1.0,
        mu=0.5,
    )


def surround_suppression(
    model: ContextualModel | None = None, *, largest: int = 8, contrast: float = 1.0
) -> SurroundSuppression:
    """Measure the output H2 of a centre unit against the radius of the surround of its element.

    Parameters
    ----------
    model
        Any with orientation channels; `hand_set_model()` when it is not given.
    largest
        Largest radius of the disc of elements around the centre, in hypercolumns. Radius 0 is the
        centre alone.
    contrast
        Contrast of the surround; that of the centre is 1.

    Returns
    -------
    SurroundSuppression
        Responses for surrounds parallel and orthogonal to the centre.

    Examples
    --------
    >>> result = surround_suppression(largest=4)
    >>> bool(result.parallel[-1] < result.orthogonal[-1] < result.parallel[0])
    True
    """
    model = model or hand_set_model()
    if not 1 <= largest <= FIELD // 2:
        raise ValueError(f"largest must be between 1 and {FIELD // 2}, got {largest}")
    offsets = torch.arange(FIELD, dtype=torch.float32) - FIELD // 2
    distance = torch.hypot(offsets[:, None], offsets)  # (H, W)
    radii = torch.arange(largest + 1)
    contrasts = contrast * (distance <= radii[:, None, None]).float()  # (R, H, W)
    contrasts[:, distance == 0] = 1.0
    parallel, orthogonal = (
        _settle(model, torch.where(distance > 0, angle, 0.0).expand_as(contrasts), contrasts).h2
        for angle in (0.0, math.pi / 2)
    )
    centre = (slice(None), 0, FIELD // 2, FIELD // 2)
    return SurroundSuppression(radii.numpy(), parallel[centre].numpy(), orthogonal[centre].numpy())


def contour_facilitation(
    model: ContextualModel | None = None,
    *,
    fields: int = 4,
    generator: torch.Generator | None = None,
) -> ContourFacilitation:
    """Measure the output H2 along a line of elements among randomly oriented distractors.

    The response to an element is that of the most active unit of its hypercolumn. The elements of
    the horizontal line all turn by the same angle, from aligned (0) to side by side (90 degrees),
    in steps of one channel; the distractors stay as they are. So at all angles the line holds the
    same elements, parallel to each other, and only their alignment changes.

    Parameters
    ----------
    model
        Any with orientation channels; `hand_set_model()` when it is not given.
    fields
        How many fields of distractors to average over.
    generator
        Source of the distractors' orientations; a fresh one with seed 0 when it is not given.

    Returns
    -------
    ContourFacilitation
        Mean responses of line and distractors for each rotation, and the first field's maps.

    Examples
    --------
    >>> result = contour_facilitation(fields=1)
    >>> bool(result.line[0] > 1.2 * result.line[-1])
    True
    """
    model = model or hand_set_model()
    generator = generator or torch.Generator().manual_seed(0)
    if fields < 1:
        raise ValueError(f"fields must be at least 1, got {fields}")
    on_line = torch.zeros(FIELD, FIELD, dtype=torch.bool)
    on_line[FIELD // 2, CENTRE] = True
    central = torch.zeros_like(on_line)
    central[CENTRE, CENTRE] = True
    preferred = _preferred(model.channels)
    distractors = preferred[
        torch.randint(model.channels, (fields, FIELD, FIELD), generator=generator)
    ]
    rotations = preferred[: model.channels // 2 + 1]
    angles = torch.where(on_line, rotations[:, None, None, None], distractors)  # (R, N, H, W)
    h2 = _settle(model, angles.flatten(0, 1), torch.ones_like(angles.flatten(0, 1))).h2
    response = h2.amax(dim=1).reshape(angles.shape)  # (R, N, H, W)
    return ContourFacilitation(
        rotations=np.degrees(rotations.numpy()),
        line=response[..., on_line].mean(dim=(1, 2)).numpy(),
        distractors=response[..., central & ~on_line].mean(dim=(1, 2)).numpy(),
        angles=angles[:, 0].numpy(),
        response=response[:, 0].numpy(),
    )


def contextual_figure(model: ContextualModel | None = None) -> Figure:
    """Draw both demonstrations: the kernels, size tuning, and a line among distractors.

    Parameters
    ----------
    model
        Any with orientation channels; `hand_set_model()` when it is not given.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; ``figure.savefig("contextual.png")`` writes it.
    """
    from matplotlib.figure import Figure

    model = model or hand_set_model()
    surround, contour = surround_suppression(model), contour_facilitation(model)
    figure = Figure(figsize=(10.5, 6.4), dpi=150, layout="constrained")
    ((excitation, inhibition, size), (aligned, turned, rotation)) = figure.subplots(2, 3)

    panels = (
        (excitation, model.far_excitation, "Reds", "far excitation"),
        (inhibition, model.far_inhibition, "Blues", "far inhibition"),
    )
    for axes, kernel, colours, title in panels:
        r = kernel.shape[-1] // 2
        weights = kernel[0].detach().sum(dim=0).numpy()  # over the orientations of the inputs
        axes.imshow(weights, cmap=colours, extent=(-r - 0.5, r + 0.5, -r - 0.5, r + 0.5))
        axes.plot([-0.4, 0.4], [0, 0], color="black", linewidth=2.5)
        axes.set(title=f"{title} of a horizontal unit", xlabel="hypercolumns")
        axes.set(xlim=(-6.5, 6.5), ylim=(-6.5, 6.5), xticks=[-5, 0, 5], yticks=[-5, 0, 5])

    size.plot(surround.radii, surround.parallel, "o-", color="tab:blue", label="parallel")
    size.plot(surround.radii, surround.orthogonal, "s--", color="tab:gray", label="orthogonal")
    size.set(title="surround suppression", xlabel="radius of the surround (hypercolumns)")
    size.set(ylabel="output H2 at the centre", ylim=(0, 1.1))
    size.legend(title="surround", frameon=False, loc="lower left")

    drawn = (slice(None), slice(3, -3), slice(3, -3))  # a border has half a surround
    angles, response = contour.angles[drawn], contour.response[drawn]
    limits = float(response.min()), float(response.max())
    _draw_elements(aligned, angles[0], response[0], limits)
    aligned.set_title("a line of nine, aligned")
    lines = _draw_elements(turned, angles[-1], response[-1], limits)
    turned.set_title("the nine turned by 90°")
    figure.colorbar(lines, ax=[aligned, turned], shrink=0.8, label="output H2")

    turns, grey = contour.rotations, "tab:gray"
    rotation.plot(turns, contour.line, "o-", color="tab:red", label="line")
    rotation.plot(turns, contour.distractors, "s--", color=grey, label="distractors")
    rotation.set(title="contour facilitation", xlabel="rotation of the line's elements (°)")
    rotation.set(ylabel="mean output H2", ylim=(0, 1.1), xticks=[0, 45, 90])
    rotation.legend(frameon=False, loc="lower left")
    return figure


def _draw_elements(
    axes: Axes, angles: np.ndarray, response: np.ndarray, limits: tuple[float, float]
) -> LineCollection:
    from matplotlib.collections import LineCollection

    rows, columns = np.indices(angles.shape)
    half = 0.4 * np.stack([np.cos(angles), -np.sin(angles)], axis=-1)  # rows grow downwards
    centres = np.stack([columns, rows], axis=-1)
    segments = np.stack([centres - half, centres + half], axis=-2).reshape(-1, 2, 2)
    lines = LineCollection(list(segments), array=response.ravel(), cmap="plasma", linewidths=2.5)
    lines.set_clim(*limits)
    axes.add_collection(lines)
    axes.set(xlim=(-1, len(angles)), ylim=(len(angles), -1), aspect="equal", xticks=[], yticks=[])
    axes.set_facecolor("black")
    return lines


@torch.no_grad()
def _settle(model: ContextualModel, angles: Tensor, contrasts: Tensor) -> ContextualState:
    """Run Eq. 1 to rest on fields of elements, (N, H, W) each."""
    preferred = _preferred(model.channels)[:, None, None]
    drive = contrasts[:, None] * _tuning(preferred - angles[:, None], TUNING)  # (N, K, H, W)
    drive = drive.to(model.near_excitation.dtype)
    # Half of the special step: stable where Eq. 2 would jump, and far cheaper than the solver.
    state = model.euler(drive, model.special_step / 2, steps=32).final
    speed = max(float(part.abs().max()) for part in model.velocity(drive, state))
    if not speed < 1e-3:
        raise RuntimeError(
            f"the model is not at rest after 32 steps of {model.special_step / 2:g}: activity "
            f"still changes at a rate of {speed:.2g}; weaken its kernels"
        )
    return state


def _preferred(orientations: int) -> Tensor:
    if orientations < 2 or orientations % 2:
        raise ValueError(
            f"{orientations} orientation channels: the number must be even, "
            "so that each has an orthogonal one"
        )
    return torch.arange(orientations, dtype=torch.float32) * math.pi / orientations


def _tuning(angle: Tensor, sharpness: float) -> Tensor:
    """Von Mises curve over orientation, with a peak of one."""
    return torch.exp(sharpness * (torch.cos(2 * angle) - 1))


def _surround(reach: float) -> tuple[Tensor, Tensor, Tensor]:
    """Offsets dy, dx to two standard deviations, and a Gaussian of them without its centre."""
    offsets = torch.arange(-math.ceil(2 * reach), math.ceil(2 * reach) + 1, dtype=torch.float32)
    dy, dx = torch.meshgrid(offsets, offsets, indexing="ij")
    gaussian = torch.exp(-(dy**2 + dx**2) / (2 * reach**2))
    return dy, dx, torch.where((dy == 0) & (dx == 0), 0.0, gaussian)


def _unit_sum(weights: Tensor) -> Tensor:
    """Divide all by one number: one for each channel would undo the symmetry between channels."""
    return weights * len(weights) / weights.sum()
