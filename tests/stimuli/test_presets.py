import hashlib
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest

from hgru_vision.stimuli import PRESETS, images, preset

# sha256 of images 0 to 15 of seed 0, as bits brighter than 127.
GOLDEN = {
    "paper": "efca810766db0e66",
    "matched": "ed544585f67a2c28",
    "authors": "2415aa25722b8342",
    "lra-32": "9d533ffdfaa3afb2",
    "lra-64": "4e45d497a0d8b2a9",
    "lra-128": "ba5bb0042731e532",
    "lra-128-released": "bc99389aaa03951c",
    "lra-256": "545488de9aa18847",
    "crbp-14": "ad232d80c1b0e534",
    "crbp-20": "9ef0e3a36beb47ea",
    "crbp-25": "fe1fd97580b7822e",
}


def digest(drawn):
    return hashlib.sha256(np.packbits(drawn > 127).tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("name", PRESETS)
def test_images_are_the_ones_they_have_always_been(name):
    assert digest(images(preset(name), 0, np.arange(16))) == GOLDEN[name]


def test_processes_in_any_order_draw_the_same_images():
    order = np.random.default_rng(0).permutation(16)
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        for name in PRESETS:
            draw = partial(images, preset(name), 0, threads=1)
            drawn = np.concatenate(list(pool.map(draw, [[int(index)] for index in order])))
            assert digest(drawn[np.argsort(order)]) == GOLDEN[name]


def test_distractors_follow_the_length():
    assert [preset("authors", length=k).distractors for k in (6, 9, 14)] == [15, 10, 7]
    assert [preset("authors", length=k).paddles for k in (6, 9, 14)] == [42, 48, 56]
    assert [preset("paper", length=k).paddles for k in (6, 9, 14)] == [150, 150, 150]
    assert preset("crbp-25").length == 25
    assert preset("lra-128-released").paddles == 96


def test_a_long_path_leaves_no_distractors():
    assert preset("paper", length=80).distractor_paddles == 0


def test_unknown_names_get_the_nearest():
    with pytest.raises(ValueError, match="no preset 'papr'; did you mean 'paper'"):
        preset("papr")
    with pytest.raises(ValueError, match=r"no preset 'zzz'; there are paper, .* or crbp-25"):
        preset("zzz")
    with pytest.raises(
        TypeError, match="preset 'paper' has no parameter 'canvass'; did you mean 'canvas'"
    ):
        preset("paper", canvass=3)
    with pytest.raises(
        TypeError, match="preset 'paper' has no parameter 'q'; it has length, canvas"
    ):
        preset("paper", q=3)


@pytest.mark.parametrize("length", [0, -3, True, 2.5, "6"])
def test_a_length_that_is_no_whole_number_is_refused(length):
    with pytest.raises(ValueError, match="length must be a whole number, 1 or more; got"):
        preset("paper", length=length)
