"""The contour study: a network trained further on each condition, and its scores from the ledger.

`study_runs` gives the runs for `hgru sweep`, `scores_of_rows` turns the ledger that it writes into
scores, which the fits, findings and figures take.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from hgru_vision.analysis.psychophysics import Score
from hgru_vision.papers import linsley2018
from hgru_vision.recipes import Recipe, make_run
from hgru_vision.stimuli.contours import SPACED_BY, conditions
from hgru_vision.sweeps.ledger import LedgerRow
from hgru_vision.training.config import RunConfig
from hgru_vision.training.data import contour_config

__all__ = ["pooled", "scores_of_rows", "study_runs"]


def study_runs(
    *,
    count: int = linsley2018.CONTOUR_DATASETS,
    seeds: Iterable[int] = (0,),
    recipe: str | Recipe = "contours",
    **keywords: Any,
) -> Iterator[RunConfig]:
    """Give a run for each condition of the paper; all have one seed before any has the next.

    Parameters
    ----------
    count
        28 conditions or 20; see `conditions`.
    seeds
        Of the runs of a condition. What separate trainings differ by is not in the error bars of
        one; several tell it.
    recipe
        That takes ``length``, ``shear`` and ``seed``: a name, FILE.py:FUNCTION, or the function.
    keywords
        For the recipe, such as ``start="runs/boundaries"``, the weights to begin from.

    Examples
    --------
    >>> runs = list(study_runs(count=20, images=640))
    >>> len(runs), runs[1].task.name, runs[1].task.changes["shear"]
    (20, 'contours-5', -0.3)
    """
    configs = conditions(count)
    for seed in seeds:
        for config in configs:
            changes = {"length": config.length, "shear": config.shear}
            yield make_run(recipe, seed=seed, **changes, **keywords)


def scores_of_rows(rows: Iterable[LedgerRow]) -> list[Score]:
    """Give the score of each run on synthetic contours; a trial is a test image.

    Other rows are passed over, and runs that diverged: they have no accuracy.

    Parameters
    ----------
    rows
        Of one study, from `read_ledger`. Runs of one network may differ in condition and seed.

    Returns
    -------
    list of Score
        One a run, in the order of the rows; the observer is the name of the network.

    Raises
    ------
    ValueError
        If there is none, or runs of one network differ in anything else; the text says in what.
    """
    scores = []
    first: dict[str, RunConfig] = {}
    for row in rows:
        config, result = row.config, row.result
        if config.task.dataset != "contours" or config.target != "label":
            continue
        _check_alike(first.setdefault(config.model, config), config)
        if result.accuracy is None:
            continue
        condition = contour_config(config.task)
        scores.append(
            Score(
                observer=config.model,
                length=condition.length,
                spacing=condition.spacing,
                proportion=result.accuracy,
                trials=result.test_images,
            )
        )
    if not scores:
        raise ValueError("the ledger has no finished run on synthetic contours")
    return scores


def pooled(scores: Iterable[Score]) -> list[Score]:
    """Give one score a condition and observer: all its runs together.

    Where a number of trials is not known, runs weigh the same and that of all is not known.

    Examples
    --------
    >>> runs = [Score(observer="a", length=9, spacing=0.35, proportion=p, trials=100)
    ...         for p in (0.7, 0.8)]
    >>> [(score.proportion, score.trials) for score in pooled(runs)]
    [(0.75, 200)]
    """
    groups: dict[tuple[str, int, float], list[Score]] = defaultdict(list)
    for score in scores:
        groups[score.observer, score.length, score.spacing].append(score)
    found = []
    for (observer, length, spacing), group in groups.items():
        trials = [score.trials for score in group if score.trials is not None]
        known = len(trials) == len(group)
        share = np.average([score.proportion for score in group], weights=trials if known else None)
        found.append(
            Score(
                observer=observer,
                length=length,
                spacing=spacing,
                proportion=float(share),
                trials=sum(trials) if known else None,
            )
        )
    return found


def _check_alike(first: RunConfig, other: RunConfig) -> None:
    """Refuse two runs of a network that are no runs of one study."""
    for name, value in _without_condition(first).items():
        got = _without_condition(other)[name]
        if got != value:
            raise ValueError(
                f"runs of {first.model} differ in {name}, {value!r} and {got!r}: they are of "
                "several studies; give the rows of one"
            )


def _without_condition(config: RunConfig) -> dict[str, Any]:
    """Give all that runs of one study have in common."""
    kept = dict(config.experiment)
    *before, last = kept.pop("stages")
    for stage in before:
        if stage["sources"] == last["sources"]:  # the condition itself
            stage["sources"] = "the same"
    source = last["sources"][-1]
    changes = {key: value for key, value in source["changes"].items() if key not in SPACED_BY}
    stage = {name: value for name, value in last.items() if name != "sources"}
    others = last["sources"][:-1]
    return kept | stage | {"changes": changes, "other sources": others, "earlier stages": before}
