import pytest

from hgru_vision.intervals import wilson_interval


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [  # Newcombe (1998), Statistics in Medicine 17:857, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_published_values(successes: int, n: int, low: float, high: float) -> None:
    assert wilson_interval(successes, n) == pytest.approx((low, high), abs=5e-5)


def test_failures_mirror_successes() -> None:
    low, high = wilson_interval(7, 50)
    assert wilson_interval(43, 50) == pytest.approx((1 - high, 1 - low), abs=1e-12)


def test_ends_are_exact() -> None:
    assert wilson_interval(0, 7)[0] == 0.0
    assert wilson_interval(7, 7)[1] == 1.0


def test_no_trials_say_nothing() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_more_confidence_is_wider() -> None:
    low_95, high_95 = wilson_interval(30, 100)
    low_99, high_99 = wilson_interval(30, 100, confidence=0.99)
    assert low_99 < low_95 < 0.3 < high_95 < high_99


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, -1), r"n must be 0 or more, got -1"),
        ((5, 4), r"successes must be between 0 and n = 4, got 5"),
        ((-1, 4), r"successes must be between 0 and n = 4, got -1"),
        ((1, 4, 95), r"confidence must be between 0 and 1 \(0.95 for 95 %\).*got 95"),
    ],
)
def test_bad_input(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wilson_interval(*arguments)  # type: ignore[arg-type]
