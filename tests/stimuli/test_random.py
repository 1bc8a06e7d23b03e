import numpy as np
import pytest

from hgru_vision.stimuli.random import (
    LABEL,
    SCENE,
    STREAM_SIZE,
    balanced_labels,
    draw_word,
    integer,
    open_stream,
    philox,
    uniform,
)


# Known answers of philox4x32-10 from the Random123 distribution (kat_vectors).
@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (
            [0xFFFFFFFF] * 4,
            [0xFFFFFFFF] * 2,
            [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        ),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_known_answers(counter, key, expected):
    words = philox(*(np.uint64(word) for word in (*counter, *key)))
    assert [int(word) for word in words] == expected


def words(seed, index, purpose, count):
    stream = np.empty(STREAM_SIZE, np.uint64)
    open_stream(stream, seed, index, purpose)
    return [int(draw_word(stream)) for _ in range(count)]


def test_a_stream_is_a_function_of_seed_index_and_purpose():
    first = words(3, 2**40 + 5, SCENE, 9)
    assert first == words(3, 2**40 + 5, SCENE, 9)
    others = [words(4, 2**40 + 5, SCENE, 9), words(3, 5, SCENE, 9), words(3, 2**40 + 5, LABEL, 9)]
    for other in others:
        assert not set(first) & set(other)


def test_uniform_covers_the_interval():
    stream = np.empty(STREAM_SIZE, np.uint64)
    open_stream(stream, 0, 0, SCENE)
    drawn = np.array([uniform(stream) for _ in range(20_000)])
    assert drawn.min() >= 0
    assert drawn.max() < 1
    counts, _ = np.histogram(drawn, bins=20, range=(0, 1))
    assert ((counts - 1000) ** 2 / 1000).sum() < 43.8  # chi-squared, 19 degrees, p = 0.001


def test_integer_is_uniform_below_its_bound():
    stream = np.empty(STREAM_SIZE, np.uint64)
    open_stream(stream, 1, 0, SCENE)
    counts = np.bincount([integer(stream, 7) for _ in range(14_000)], minlength=7)
    assert counts.size == 7
    assert ((counts - 2000) ** 2 / 2000).sum() < 22.5  # chi-squared, 6 degrees, p = 0.001


def test_of_each_pair_of_images_one_is_positive():
    indices = np.arange(10_000)
    labels = np.empty(indices.size, np.int64)
    balanced_labels(7, indices, labels)
    assert (labels.reshape(-1, 2).sum(axis=1) == 1).all()
    first = labels[::2]
    assert 0.47 < first.mean() < 0.53  # which of the two is a coin
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.06
