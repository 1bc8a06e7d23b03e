"""Runs of a second or two, for tests that train for real."""

import pytest

from hgru_vision.training.config import RunConfig, Source, Stage

SMALL = {
    "canvas": 32,
    "edge_margin": 3,
    "seed_radius": 5,
    "marker_radius": 1.5,
    "distractor_length": 2,
    "distractor_paddles": 4,
}


def small_config(seed=0, images=64, **changes):
    """Make a run on small images; segmentations need no audit, which would take longer than it."""
    stages = (Stage(sources=(Source(length=3, changes=SMALL),), images=images),)
    settings = {
        "recipe": "small",
        "model": "gru",
        "options": {"timesteps": 1},
        "stages": stages,
        "seed": seed,
        "target": "segmentation",
        "batch": 16,
        "evaluate_every": 2,
        "evaluation_images": 16,
        "test_images": 16,
        "statistics_batches": 1,
        "checkpoint_every": 1,
    }
    return RunConfig(**(settings | changes))


@pytest.fixture(name="small_config")
def _small_config():
    return small_config
