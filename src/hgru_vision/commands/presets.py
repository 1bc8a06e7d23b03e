"""hgru presets: the named Pathfinders."""

from rich.console import Console
from rich.table import Table

from hgru_vision.stimuli.presets import PRESETS


def presets() -> None:
    """List the Pathfinders that have a name, with their sources.

    Example: hgru presets
    """
    table = Table()
    table.add_column("preset", no_wrap=True)
    for column in ("length", "pixels", "paddles"):
        table.add_column(column, justify="right")
    table.add_column("source", overflow="fold")
    for name, preset in PRESETS.items():
        config = preset.at_length(preset.config.length)
        table.add_row(
            name, str(config.length), str(config.size), str(config.paddles), preset.source
        )
    Console().print(table)
