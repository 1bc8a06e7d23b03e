"""What the networks are called in figures, and the panels in which the paper shows them."""

from collections.abc import Iterable

from hgru_vision.analysis.study import Network, Study
from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.papers.linsley2018 import DEPTHS, FRACTIONS
from hgru_vision.references import is_reference

__all__ = ["BEYOND", "EVERY", "MAIN", "SUPPLEMENT", "Panels", "display", "not_run", "own", "short"]

Panels = dict[str, tuple[str, ...]]
"""Networks of each panel, by its title."""

_WHOLE = {
    "hgru": "hGRU",
    "hgru_no_linear": "hGRU, no linear",
    "hgru_no_quadratic": "hGRU, no quadratic",
    "hgru_no_time_gain": "hGRU, no time-gain",
    "hgru_bn": "hGRU (batchnorm)",
    "hgru_nonnegative": "hGRU (nonnegative)",
    "hgru_released": "hGRU (released)",
    "hgru_crbp": "hGRU (C-RBP)",
    "hgru_small": "hGRU, small",
    "gru": "GRU",
    "gru_2l": "GRU (2L)",
    "fcn": "FCN",
    "unet": "U-Net",
    "segnet": "SegNet",
    "vit": "ViT",
    "cornet_block": "CORnet block",
    "ff_unrolled": "hGRU, untied",
}


def display(network: Network) -> str:
    """Name a network as the paper does.

    >>> display(Network("resnet152_half")), display(Network("hgru", "timesteps=3"))
    ('ResNet-152 (1/2)', 'hGRU, timesteps=3')
    >>> display(Network("nets.py:leaky"))
    'leaky'
    """
    name = _display(network.model)
    return f"{name}, {network.variant}" if network.variant else name


def own(study: Study) -> tuple[str, ...]:
    """Name the networks of a study that are the user's own."""
    return tuple(dict.fromkeys(each.model for each in study.networks if is_reference(each.model)))


def short(network: Network, title: str) -> str:
    """Name a network in a panel, whose title says the rest.

    >>> short(Network("ff_small_3"), "Feedforward, 3 layers")
    'small kernels'
    """
    if title.startswith("Feedforward"):
        kind = network.model.split("_")[1]
        name = {"nonlocal": "non-local", "dilated": "dilated"}.get(kind, f"{kind} kernels")
        return f"{name}, {network.variant}" if network.variant else name
    return display(network)


def _display(model: str) -> str:
    if is_reference(model):
        return model.rpartition(":")[2]
    if model in _WHOLE:
        return _WHOLE[model]
    start, _, end = model.rpartition("_")
    if start == "hgru" and end.isdigit():
        return f"hGRU, {end} steps"
    if start.startswith("ff_"):
        return f"FF {start.removeprefix('ff_')} ({end}L)"
    if start == "highway":
        return f"highway ({end}L)"
    if end in FRACTIONS and start:
        return f"{_display(start)} (1/{FRACTIONS[end]})"
    if model.startswith("resnet"):
        return f"ResNet-{model.removeprefix('resnet')}"
    return model


def _names(family: str, place: str = "", end: str = "") -> tuple[str, ...]:
    return tuple(
        entry.name
        for entry in CATALOGUE.values()
        if entry.family == family and entry.reference.startswith(place) and entry.name.endswith(end)
    )


def _layers(depth: int) -> str:
    return f"{depth} layer" if depth == 1 else f"{depth} layers"


MAIN: Panels = {
    "Recurrent": _names("recurrent", "Main"),
    **{f"Feedforward, {_layers(d)}": _names("feedforward", end=f"_{d}") for d in DEPTHS},
    "Residual": _names("residual", "Main"),
    "Per-pixel": _names("per-pixel", "Main"),
}
"""Panels of Fig. 3a and 3b, with their networks."""

SUPPLEMENT: Panels = {
    "Recurrent, further": ("hgru", *_names("recurrent", "Supp.")),
    "Highway": _names("highway"),
    "Smaller ResNet-152": ("resnet152", *_names("residual", "Supp.")),
    "Smaller U-Net": ("unet", *_names("per-pixel", "Supp.")),
}
"""Panels of the supplement's comparison."""

BEYOND: Panels = {"Beyond the paper": ("hgru", *_names("beyond"))}
"""Networks that the paper does not have."""


def _once(panels: Panels) -> Panels:
    """Leave out of a panel what an earlier one has."""
    seen: set[str] = set()
    left: Panels = {}
    for title, models in panels.items():
        left[title] = tuple(model for model in models if model not in seen)
        seen.update(models)
    return left


EVERY: Panels = _once(MAIN | SUPPLEMENT | BEYOND)
"""All networks, each in one panel."""


def not_run(run: Iterable[str]) -> list[str]:
    """Name what is not among the models that were run: whole classes, and single networks.

    Nothing where one network was run alone, which was to be compared with none.

    >>> not_run(["hgru", "highway_1"])[11:15]
    ['Recurrent, further', 'highway (3L)', 'highway (5L)', 'Smaller ResNet-152']
    """
    known = set(run)
    if len(known) < 2:
        return []
    names: list[str] = []
    for title, models in EVERY.items():
        absent = [display(Network(model)) for model in models if model not in known]
        names += [title] if len(absent) == len(models) else absent
    return names
