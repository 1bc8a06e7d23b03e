import pytest

from hgru_vision.recipes.quick import quick
from hgru_vision.training.loop import train


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_passes_90_percent_from_scratch(tmp_path, seed):
    result = train(quick(seed=seed), tmp_path, progress=False, device="cpu")
    assert result.accuracy > 0.9
