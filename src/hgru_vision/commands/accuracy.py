"""What a run's accuracy is a share of, in words."""

from hgru_vision.training.config import RunConfig
from hgru_vision.training.result import Result

__all__ = ["accuracy_in_words", "as_number"]


def as_number(accuracy: float, boundaries: bool) -> str:
    """Write an accuracy: in per cent, or as a fraction where it is an area under a curve.

    >>> as_number(0.9125, boundaries=False), as_number(0.9125, boundaries=True)
    ('91.2%', '0.912')
    """
    return f"{accuracy:.3f}" if boundaries else f"{accuracy:.1%}"


def accuracy_in_words(config: RunConfig, result: Result) -> str:
    """Tell how a run did on its test: of images or pixels how many right, or the pixel AUC.

    Parameters
    ----------
    config, result
        Of a run that was tested, which one that diverged was not.
    """
    assert result.accuracy is not None
    number = as_number(result.accuracy, config.boundaries)
    if config.boundaries:
        return f"pixel AUC {number}, the mean over {config.test_images:,} test pictures"
    if result.interval is None:
        judged, note = "pixels", f"overlap of masks {result.overlap:.3f}"
    else:
        low, high = result.interval
        judged, note = "images", f"95 % interval {low:.1%} to {high:.1%}"
    return f"{number} of {result.test_images:,} test {judged} right ({note})"
