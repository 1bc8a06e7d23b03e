import pytest

from hgru_vision.recipes.quick import quick
from hgru_vision.training.loop import train


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_passes_90_percent_from_scratch(tmp_path, seed):
    result = train(quick(seed=seed), tmp_path, progress=False, device="cpu")
    assert result.accuracy > 0.9


def test_too_few_images_are_told_as_such():
    with pytest.raises(ValueError, match="images is 1, less than a batch, 32"):
        quick(images=1)
