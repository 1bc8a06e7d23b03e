"""hgru figures eigenconnectivity: the patterns of trained networks' horizontal connections."""

from hgru_vision.analysis.association import Estimate
from hgru_vision.analysis.eigenconnectivity import Eigenconnectivity, connections, eigenconnectivity
from hgru_vision.commands.network_figures import Measured
from hgru_vision.commands.networks import Opened
from hgru_vision.figures.eigenconnectivity import eigenconnectivity_figure

__all__ = ["draw", "measure"]

draw = eigenconnectivity_figure


def measure(name: str, opened: Opened) -> Measured[Eigenconnectivity]:
    """Find the eigenconnectivity of a network."""
    read = connections(opened.network)
    found = eigenconnectivity(read.weights, read.orientations())
    return Measured(
        title=name,
        shown=found,
        words=summary(name, found, read.excited),
        numbers={
            "selectivity": read.tuning.selectivity.tolist(),
            "excited": read.excited,
            **found.to_json(),
        },
    )


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
