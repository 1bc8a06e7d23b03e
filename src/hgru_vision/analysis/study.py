"""Rows of a ledger, sorted into comparisons: networks by lengths, a cell of runs for each pair.

Only what may be compared comes together. A study has one recipe and one task (but for the length,
and the spacing of contours); the runs of a cell differ in their seeds alone. Where rows of one
network differ in anything else, a number of steps or a learning rate, they become networks of their
own, named by the fewest fields that tell them apart; so do the spacings of contours.
"""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Any, NamedTuple

from hgru_vision.analysis.learning import (
    FailureRate,
    best_of,
    failure_rate,
    mean_and_sd,
    name_of_alc,
)
from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.models.registry import in_natural_order
from hgru_vision.papers.linsley2018 import PATH_LENGTHS
from hgru_vision.stimuli.contours import SPACED_BY
from hgru_vision.sweeps.ledger import LedgerRow
from hgru_vision.training.config import RunConfig
from hgru_vision.training.result import Result

__all__ = ["LEARNT", "Cell", "Network", "Study", "studies"]

LEARNT = 0.75
"""Halfway from chance to perfect: a run that ends below it counts as failed."""

MOST_NAMED = 3  # fields that a network's name has room for


class Network(NamedTuple):
    """A model's name, and what tells it from other rows of the same model."""

    model: str
    variant: str = ""


@dataclass(frozen=True)
class Cell:
    """The runs of one network on one length, in the order of their seeds."""

    rows: tuple[LedgerRow, ...]

    @property
    def results(self) -> list[Result]:
        """What came of each run."""
        return [row.result for row in self.rows]

    @property
    def best(self) -> Result | None:
        """The paper's measure: the most accurate of the first five runs."""
        return best_of(self.results)

    def values(self, measure: str) -> list[float]:
        """Give a measure, "accuracy" or "alc", of all runs that have it."""
        values = (getattr(result, measure) for result in self.results)
        return [value for value in values if value is not None]

    def best_value(self, measure: str) -> float | None:
        """Give a measure of the best run."""
        return None if self.best is None else getattr(self.best, measure)

    def mean_and_sd(self, measure: str) -> tuple[float, float] | None:
        """Give mean and standard deviation over runs; None where no run has the measure."""
        values = self.values(measure)
        return mean_and_sd(values) if values else None

    @property
    def failures(self) -> FailureRate:
        """How many runs diverged or ended below `LEARNT`."""
        return failure_rate(self.results, LEARNT)

    @property
    def parameters(self) -> int:
        """Trained parameters of the network."""
        return max(result.parameters for result in self.results)

    @property
    def shortcut(self) -> float | None:
        """Accuracy with which the label is read without following a path."""
        return next((r.shortcut["accuracy"] for r in self.results if r.shortcut is not None), None)


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """What may be compared.

    Parameters
    ----------
    recipe
        By which the networks were trained.
    task
        Name of the Pathfinder, without its length.
    cells
        Runs by network and length; a pair that was not run is not there.
    """

    recipe: str
    task: str
    cells: dict[tuple[Network, int], Cell]

    @property
    def name(self) -> str:
        """For people: ``screen recipe, paper Pathfinder``."""
        return f"{self.recipe} recipe, {self.task}{' Pathfinder' if self.pathfinder else ''}"

    @property
    def folder(self) -> str:
        """For file systems: ``screen-paper``."""
        return re.sub(r"[^\w.=+-]+", "_", f"{self.recipe}-{self.task}").strip("._")

    @cached_property
    def networks(self) -> list[Network]:
        """All that were run, in the paper's order; those that it does not have come last."""
        order = {model: place for place, model in enumerate(CATALOGUE)}
        found = {network for network, _ in self.cells}

        def place(each: Network) -> tuple[Any, ...]:
            numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", each.variant)]
            return (
                order.get(each.model, len(order)),
                in_natural_order(each.model),
                numbers,
                each.variant,
            )

        return sorted(found, key=place)

    @cached_property
    def lengths(self) -> list[int]:
        """Those that were run; with them all of the paper's, if one is its and on a Pathfinder."""
        run = {length for _, length in self.cells}
        of_paper = self.pathfinder and run & set(PATH_LENGTHS)
        return sorted(run | set(PATH_LENGTHS) if of_paper else run)

    @property
    def rows(self) -> list[LedgerRow]:
        """All runs."""
        return [row for cell in self.cells.values() for row in cell.rows]

    @property
    def pathfinder(self) -> bool:
        """Whether its runs are on a Pathfinder, drawn or from files."""
        return all(row.config.task.dataset == "pathfinder" for row in self.rows)

    @property
    def boundaries(self) -> bool:
        """Whether its runs find boundaries, and their accuracy is a pixel AUC."""
        return all(row.config.boundaries for row in self.rows)

    @property
    def segmentation(self) -> bool:
        """Whether its runs decide about pixels, boundaries among them."""
        return any(row.config.target == "segmentation" for row in self.rows)

    @property
    def name_of_alc(self) -> str:
        """The ALC, and of which stage it is where there are several."""
        return name_of_alc(row.config for row in self.rows)

    def shortcut(self, length: int) -> float | None:
        """Accuracy with which the label of a length is read without following a path."""
        cells = (cell for (_, other), cell in self.cells.items() if other == length)
        return next((cell.shortcut for cell in cells if cell.shortcut is not None), None)

    def of(self, models: Iterable[str]) -> list[Network]:
        """Give the networks of some models, each model that was not run standing for itself."""
        found: list[Network] = []
        for model in models:
            run = [network for network in self.networks if network.model == model]
            found += run or [Network(model)]
        return found

    def missing(self, network: Network) -> list[int]:
        """Give the lengths that a network was not run on."""
        return [length for length in self.lengths if (network, length) not in self.cells]


def studies(rows: Sequence[LedgerRow]) -> list[Study]:
    """Sort the rows of a ledger into studies, in the order in which they first appear.

    Parameters
    ----------
    rows
        What `read_ledger` gave.

    Examples
    --------
    >>> studies([])
    []
    """
    groups: dict[tuple[str, str], list[LedgerRow]] = defaultdict(list)
    for row in rows:
        groups[row.config.recipe, _task(row.config)].append(row)
    return [
        Study(recipe=recipe, task=task, cells=_cells(group))
        for (recipe, task), group in groups.items()
    ]


def _task(config: RunConfig) -> str:
    source = config.task
    name = source.preset if source.path is None else source.path
    if source.dataset != "pathfinder":
        name = source.dataset
    told = sorted(source.changes)
    if source.dataset == "contours":
        told = [key for key in told if key not in SPACED_BY]  # the conditions of one study
    changes = _naming(source.changes, told)
    target = config.target if config.target != "label" else ""
    return " ".join(filter(None, (name, changes, target)))


def _cells(rows: list[LedgerRow]) -> dict[tuple[Network, int], Cell]:
    alike: dict[str, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        alike[row.config.model][row.config.task.length].append(_flat(row.config))
    telling = {model: _telling(list(by_length.values())) for model, by_length in alike.items()}
    shared = Counter(model.rpartition(":")[2] for model in alike.keys() | CATALOGUE.keys())
    groups: dict[tuple[Network, int], list[LedgerRow]] = defaultdict(list)
    for row in rows:
        config = row.config
        variant = _naming(_flat(config), telling[config.model], MOST_NAMED)
        if shared[config.network] > 1:  # the short name of a user's network is another's, too
            file = config.model.rpartition(":")[0]
            variant = ", ".join(filter(None, (file, variant)))
        groups[Network(config.model, variant), config.task.length].append(row)

    def seeds(row: LedgerRow) -> tuple[int, int]:
        return row.config.seed, row.config.data_seed

    return {key: Cell(tuple(sorted(group, key=seeds))) for key, group in groups.items()}


def _telling(groups: list[list[dict[str, Any]]]) -> list[str]:
    """Choose the fewest fields that tell apart what differs among configurations.

    Those of two lengths may differ in their stages, and be the same protocol. Options
    of the network and what it began from come first, then fields of the run itself, the shortest
    before others; fields of its stages serve where those do not do. All that differ, where
    `MOST_NAMED` are too few.

    Parameters
    ----------
    groups
        For each length the configurations of one network, as `_flat` gives them.
    """

    def distinct(configs: Iterable[dict[str, Any]], chosen: Sequence[str]) -> int:
        return len({json.dumps([config.get(key) for key in chosen]) for config in configs})

    def different(chosen: Sequence[str]) -> int:
        within = sum(distinct(configs, chosen) for configs in groups)
        return within + distinct(chain(*groups), [key for key in chosen if not of_stages(key)])

    def of_stages(key: str) -> bool:
        return key.startswith("stages.")

    def length(key: str) -> int:
        return max(len(_naming(config, [key])) for configs in groups for config in configs)

    known = {key for configs in groups for config in configs for key in config}
    keys = [key for key in known if different([key]) > len(groups) + 1]
    first = ("options.", "start")
    ordered = sorted(keys, key=lambda key: (not key.startswith(first), length(key), key))
    own = [key for key in ordered if not of_stages(key)]
    sizes = range(min(len(keys), MOST_NAMED) + 1)
    candidates = chain.from_iterable(
        combinations(among, size) for among in (own, ordered) for size in sizes
    )
    wanted = different(ordered)
    return list(next((each for each in candidates if different(each) == wanted), sorted(keys)))


def _naming(values: dict[str, Any], keys: list[str], most: int = 2) -> str:
    """Tell values apart by a few fields, or by a digest where it takes more."""
    if len(keys) <= most:
        names = {
            key: re.sub(r"^(options|stages\.-1(\.sources\.0\.changes)?)\.", "", key) for key in keys
        }
        given = [key for key in keys if key in values]  # an option that is not has its default
        return ", ".join(f"{names[key]}={_short(values[key])}" for key in given)
    text = json.dumps([values.get(key) for key in keys])
    return f"config {hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _flat(config: RunConfig) -> dict[str, Any]:
    """Give what repetitions have in common as ``{"stages.-1.images": ...}``.

    Stages are counted from the last, the one with the task itself: a longer task has more before.
    """
    flat: dict[str, Any] = {}

    def visit(value: Any, path: str) -> None:
        if isinstance(value, dict | list):
            first = -len(value) if path == "stages" else 0
            pairs = value.items() if isinstance(value, dict) else enumerate(value, first)
            for key, each in pairs:
                visit(each, f"{path}.{key}" if path else str(key))
        else:
            flat[path] = value

    visit(config.experiment, "")
    flat["file"] = (flat.pop("model_sha256") or "")[:8]  # tells versions of a user's own network
    if config.start is not None:
        flat["start"] = config.start  # a name says more than its check sum
    lengths = [source.length for source in config.stages[-1].sources]
    if len(set(lengths)) > 1:  # and so do these than the fields of each source
        flat["lengths"] = "+".join(map(str, lengths))
    return flat


def _short(value: Any) -> str:
    if value is None:
        return "None"
    return json.dumps(value, separators=(",", ":")).replace('"', "")
