"""hgru weights: the trained networks that come with the package."""

from rich.console import Console
from rich.table import Table

from hgru_vision.intervals import wilson_interval
from hgru_vision.weights import Card, card, list_weights


def weights(name: str | None = None, /) -> None:
    """List the trained networks that come with the package, or tell all about one.

    Example: hgru weights hgru.pathfinder14

    Parameters
    ----------
    name
        architecture.tag; all if not given.
    """
    console = Console()
    if name is not None:
        _tell(card(name), console)
        return
    names = list_weights()
    if not names:
        console.print("No trained networks come with this version yet.")
        return
    table = Table()
    for column, justify in [("name", "left"), ("task", "left"), ("accuracy", "right"),
                            ("probe", "right"), ("images", "right")]:  # fmt: skip
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for each in map(card, names):
        shortcut = each.result.shortcut
        table.add_row(
            each.name,
            each.config.task.name,
            f"{each.result.accuracy:.1%}",
            "" if shortcut is None else f"{shortcut['accuracy']:.1%}",
            f"{each.result.images:,}",
        )
    console.print(table)
    console.print("probe: what is reached without following a path (docs/pathfinder.md)")


def _tell(known: Card, console: Console) -> None:
    result, task = known.result, known.config.task
    low, high = wilson_interval(result.correct, result.test_images)
    lines = [
        f"[bold]{known.name}[/]: {result.accuracy:.2%} of {result.test_images:,} new images of "
        f"{task.name} (95 % interval {low:.2%} to {high:.2%})",
        f"after {result.images:,} training images; seed {known.config.seed}, data seed "
        f"{known.config.data_seed}; {result.device}, commit {result.commit}",
        f"sha256 {known.sha256}",
        f"made by: {known.command}",
        "learning: " + "  ".join(f"{p.images:,}: {p.accuracy:.1%}" for p in result.curve[::4]),
    ]
    if known.note:
        lines.append(known.note)
    console.print("\n".join(lines))
