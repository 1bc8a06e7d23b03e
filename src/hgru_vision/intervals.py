"""Intervals for proportions, such as an accuracy over n images."""

from statistics import NormalDist


def wilson_interval(successes: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a binomial proportion.

    The set of proportions that a score test at level `confidence` does not reject (Wilson, 1927,
    J. Am. Stat. Assoc. 22:209). Unlike the normal approximation it stays inside [0, 1] and is not
    empty at 0 or n successes.

    Parameters
    ----------
    successes
        Number of successes, from 0 to `n`.
    n
        Number of independent trials. Without trials nothing is known: the interval is (0, 1).
    confidence
        Coverage aimed at, between 0 and 1.

    Returns
    -------
    low, high
        The ends of the interval.

    Examples
    --------
    >>> low, high = wilson_interval(81, 263)
    >>> print(f"{low:.4f} {high:.4f}")
    0.2553 0.3662
    """
    if n < 0:
        raise ValueError(f"n must be 0 or more, got {n}")
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be between 0 and n = {n}, got {successes}")
    if not 0 < confidence < 1:
        raise ValueError(
            f"confidence must be between 0 and 1 (0.95 for 95 %), both excluded, got {confidence}"
        )
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    proportion = successes / n
    centre = (proportion + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (proportion * (1 - proportion) / n + z**2 / (4 * n**2)) ** 0.5
    # Rounding may leave the exact ends 0 and 1 by a few units in the last place.
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return low, high
