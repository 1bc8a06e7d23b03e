import pytest

from hgru_vision.commands.accuracy import accuracy_in_words


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({}, "91.2% of 10,000 test images right (95 % interval 90.6% to 91.7%)"),
        ({"target": "segmentation"}, "91.2% of 10,000 test pixels right (overlap of masks 0.250)"),
        (
            {"dataset": "bsds500", "path": "BSR", "target": "segmentation", "test_images": 200},
            "pixel AUC 0.912, the mean over 200 test pictures",
        ),
    ],
)
def test_it_is_said_what_an_accuracy_is_a_share_of(row, keywords, words):
    made = row(accuracy=0.912, **keywords)
    assert accuracy_in_words(made.config, made.result) == words
