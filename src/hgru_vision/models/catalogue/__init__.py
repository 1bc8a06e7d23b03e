"""Every network's name, place in the paper and size, known without loading torch.

One file a family, named as the file in `hgru_vision.models` that builds it; see that folder's
README.
"""

from hgru_vision.models.catalogue import (
    beyond,
    contour,
    dense,
    feedforward,
    highway,
    recurrent,
    resnet,
)
from hgru_vision.models.catalogue.entry import Entry, Family

__all__ = ["CATALOGUE", "NATURAL", "NETWORKS", "Entry", "Family"]

_FILES = (recurrent, feedforward, highway, resnet, dense, beyond)

CATALOGUE: dict[str, Entry] = {entry.name: entry for file in _FILES for entry in file.ENTRIES}
"""The networks of the Pathfinder study by name, in the paper's order."""

NATURAL: dict[str, Entry] = {entry.name: entry for entry in contour.ENTRIES}
"""Those that find contours in natural images."""

NETWORKS = CATALOGUE | NATURAL
"""All that `create_model` makes."""
