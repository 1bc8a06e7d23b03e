"""hgru figures dynamics: what trained recurrent networks do over their steps."""

from hgru_vision.analysis.dynamics import Unfolding, check_circuit, first_right, unfold
from hgru_vision.commands.network_figures import Measured
from hgru_vision.commands.networks import Opened
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.figures.dynamics import dynamics_figure
from hgru_vision.training.data import final_data

__all__ = ["draw", "measure"]

draw = dynamics_figure


def measure(name: str, opened: Opened) -> Measured[list[Unfolding]]:
    """Follow a network on the first test image of each label that it gets right."""
    config = opened.config
    if config is None:
        raise ValueError(
            "the network does not say what it was trained on; give trained weights (hgru weights) "
            "or a run's folder (hgru train)"
        )
    task = config.task
    if task.dataset != "pathfinder" or task.path is not None or config.target != "label":
        raise ValueError(
            "dynamics is drawn for networks that label a Pathfinder drawn on the fly; this one was "
            f"trained on {task.name}, target {config.target!r}"
        )
    check_circuit(opened.network)
    data = final_data(config)
    assert isinstance(data, Pathfinder)
    found = [
        unfold(opened.network, data, first_right(opened.network, data, label)) for label in (1, 0)
    ]
    return Measured(
        title=f"{name} on test images of {task.name}",
        shown=found,
        words="\n".join([f"{name}, test images of {task.name}:", *map(_line, found)]),
        numbers={
            "task": task.name,
            "data_seed": config.data_seed,
            "images": [image.to_json() for image in found],
        },
    )


def _line(image: Unfolding) -> str:
    steps = " ".join(f"{value:.3f}" for value in image.probability)
    state = "connected" if image.label else "not connected"
    return f"  item {image.item}, {state}; probability of connected by step: {steps}"
