"""hgru figures eigenconnectivity: the patterns of trained networks' horizontal connections."""

import json
from pathlib import Path
from typing import Any

from hgru_vision.analysis.association import Estimate
from hgru_vision.analysis.eigenconnectivity import Eigenconnectivity, connections, eigenconnectivity
from hgru_vision.commands.networks import open_network
from hgru_vision.figures.eigenconnectivity import eigenconnectivity_figure
from hgru_vision.figures.style import save_figure
from hgru_vision.training.files import replace_file


def draw_eigenconnectivity(networks: tuple[str, ...], path: Path) -> None:
    """Draw the eigenconnectivity of networks, print its numbers and write all to a JSON file.

    Parameters
    ----------
    networks
        Folders of runs, or FILE.py:FUNCTION.
    path
        Of the picture; the JSON file lies beside it.
    """
    if not networks:
        raise ValueError("eigenconnectivity needs --networks: folders of runs (hgru train)")
    found: dict[str, Eigenconnectivity] = {}
    numbers: dict[str, Any] = {}
    for name in networks:
        try:
            read = connections(open_network(name).network)
            found[name] = eigenconnectivity(read.weights, read.orientations())
        except (ValueError, TypeError) as error:
            raise ValueError(f"{name}: {error}") from error
        numbers[name] = {
            "selectivity": read.tuning.selectivity.tolist(),
            "excited": read.excited,
            **found[name].to_json(),
        }
        print(summary(name, found[name], read.excited))
    save_figure(eigenconnectivity_figure(found), path)
    print(f"wrote {path}")
    replace_file(path.with_suffix(".json"), f"{json.dumps(numbers, indent=2)}\n".encode())
    print(f"wrote {path.with_suffix('.json')}")


def summary(name: str, found: Eigenconnectivity, excited: float | None) -> str:
    """Say in a few lines what was found in a network."""
    count = len(found.components)
    total = len(found.channels) + len(found.left_out)
    largest = ", ".join(f"{share:.1%}" for share in found.shares[: min(count, 5)])
    lines = [
        f"{name}: {len(found.channels)} of {total} channels have an orientation",
        f"  components: {count} to {found.shares[:count].sum():.0%} of the variance; {largest}",
        f"  along - across, like orientations: {_words(found.association.collinearity)}",
        f"  like - orthogonal orientations, along: {_words(found.association.likeness)}",
        f"  near - far, like orientations: {_words(found.association.nearness)}",
    ]
    if excited is not None:
        lines.append(f"  positive weights excite (beta) in {excited:.0%} of the channels")
    return "\n".join(lines)


def _words(estimate: Estimate) -> str:
    if estimate.value != estimate.value:
        return "too few pairs"
    return f"{estimate.value:+.2g} ({estimate.low:+.2g} to {estimate.high:+.2g})"
