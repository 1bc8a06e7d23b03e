import math

import numpy as np
import pytest
import torch
from torch import nn

from hgru_vision.analysis.psychometric import Psychometric
from hgru_vision.analysis.psychophysics import (
    Score,
    can_be_fitted,
    fit_scores,
    read_scores,
    score_two_alternatives,
    score_yes_no,
    write_scores,
)
from hgru_vision.data.contours import SyntheticContours
from hgru_vision.data.datasets import Pathfinder
from hgru_vision.intervals import wilson_interval

DATA = SyntheticContours(
    length=3, shear=0.2, count=40, canvas=32, cells=8, eccentricity=0.5, split="test"
)


class Oracle(nn.Module):
    """Knows the images of `DATA`, and says of the first ones the contrary of what it knows.

    `bias` makes it say "present" too often, which the choice between two images does not mind.
    """

    def __init__(self, data, wrong=0, bias=0.0):
        super().__init__()
        label = data.labels(np.arange(len(data)))
        evidence = np.where(label == 1, 1.0, -1.0)
        evidence[:wrong] *= -1
        images = data.batch(np.arange(len(data)))
        self.known = {
            image.tobytes(): bias + value for image, value in zip(images, evidence, strict=True)
        }

    def forward(self, images):
        keys = (255 * images[:, 0]).round().to(torch.uint8).numpy()
        evidence = torch.tensor([self.known[key.tobytes()] for key in keys])
        of_both = 10 * images[:, 0, 16].sum(dim=1)  # and so of no consequence
        return torch.stack([of_both, evidence + of_both], dim=1)


def score(**changes):
    made = {"observer": "a", "length": 9, "spacing": 0.35, "proportion": 0.8, "trials": 100}
    return Score(**made | changes)


def test_a_network_is_scored_by_images():
    found = score_yes_no(Oracle(DATA, wrong=10), DATA, observer="oracle", batch=16)
    assert (found.observer, found.length, found.trials, found.correct) == ("oracle", 3, 40, 30)
    assert found.spacing == DATA.config.spacing
    assert found.interval == wilson_interval(30, 40)


def test_a_network_is_scored_by_pairs():
    found = score_two_alternatives(Oracle(DATA, wrong=10), DATA, observer="oracle", batch=16)
    assert (found.trials, found.correct) == (20, 15)


def test_a_bias_to_say_present_does_not_change_a_choice_between_two():
    biased = Oracle(DATA, bias=5.0)
    assert score_yes_no(biased, DATA, observer="b").proportion == 0.5
    assert score_two_alternatives(biased, DATA, observer="b").proportion == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_wrong(value):
    assert score_two_alternatives(Oracle(DATA, bias=value), DATA, observer="b").proportion == 0


def test_the_mode_of_the_network_is_kept():
    network = Oracle(DATA).train()
    modes = []
    network.register_forward_pre_hook(lambda network, images: modes.append(network.training))
    score_two_alternatives(network, DATA, observer="b")
    assert network.training and modes == [False]


def test_other_images_have_no_pairs():
    with pytest.raises(TypeError, match="data is Pathfinder; give SyntheticContours, in pairs"):
        score_two_alternatives(Oracle(DATA), Pathfinder(6, count=4), observer="b")


def test_pairs_need_an_even_number_of_images():
    data = SyntheticContours(count=3, config=DATA.config)
    with pytest.raises(
        ValueError, match="trials are pairs of images; got an odd number of them, 3"
    ):
        score_two_alternatives(nn.Identity(), data, observer="b")


def test_a_network_without_two_logits_is_refused():
    with pytest.raises(ValueError, match=r"gives \(40, 1, 32, 32\) for 40 images; two logits"):
        score_two_alternatives(nn.Identity(), DATA, observer="b")


def test_right_answers_are_whole():
    assert 0.29 * 100 < 29  # in floating point
    assert score(proportion=0.29).correct == 29


def test_an_unknown_number_of_trials_has_no_interval():
    assert score(trials=None).interval is None
    assert score(trials=None).correct is None


@pytest.mark.parametrize(
    ("along", "levels", "truth"),
    [
        ("spacing", (0.27, 0.32, 0.37, 0.42, 0.47), 0.4),
        ("length", (2, 5, 9, 14, 17), 8.0),
    ],
)
def test_fits_fall_with_spacing_and_rise_with_length(along, levels, truth):
    curve = Psychometric(
        threshold=truth, slope=2.4 / truth, lapse=0.02, shape="weibull", falling=along == "spacing"
    )
    scores = [
        score(proportion=float(curve(level)), trials=5000, **{along: level}) for level in levels
    ]
    fit = fit_scores(scores, along=along)
    assert fit.curve.threshold == pytest.approx(truth, rel=0.02)
    assert fit.curve.falling == (along == "spacing")
    logistic = fit_scores(scores, along=along, shape="logistic", largest_lapse=0).curve
    assert (logistic.shape, logistic.lapse) == ("logistic", 0)


def test_what_can_be_fitted():
    three = [score(spacing=spacing) for spacing in (0.3, 0.4, 0.5)]
    assert can_be_fitted(three)
    assert not can_be_fitted(three[:2])
    assert not can_be_fitted(three, along="length")
    assert not can_be_fitted([*three, score(trials=None)])


def test_a_fit_is_of_one_observer_and_one_length_with_known_trials():
    with pytest.raises(ValueError, match="a fit along spacing is of one observer; got a, b"):
        fit_scores([score(), score(observer="b")])
    with pytest.raises(ValueError, match="a fit along spacing is of one length; got 5, 9"):
        fit_scores([score(), score(length=5)])
    message = r"number of trials of 'a' at length 9, spacing 0\.35 is not known"
    with pytest.raises(ValueError, match=message):
        fit_scores([score(trials=None)])


def test_a_fit_of_nothing_or_along_something_else_is_refused():
    with pytest.raises(ValueError, match="there are no scores to fit"):
        fit_scores([])
    with pytest.raises(ValueError, match="along must be spacing or length; got 'contrast'"):
        fit_scores([score()], along="contrast")


def test_spacings_off_a_figure_are_one_spacing():
    scores = [score(length=n, spacing=x) for n, x in ((5, 0.352), (9, 0.354), (14, 0.353))]
    assert fit_scores(scores, along="length", confidence=None).levels == 3
    with pytest.raises(ValueError, match=r"along length is of one spacing; got 0\.352, .*, 0\.39"):
        fit_scores([*scores, score(length=17, spacing=0.39)], along="length")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("length", 9.5, "length must be a whole number from 1 on; got 9.5"),
        ("length", 0, "length must be a whole number from 1 on; got 0"),
        ("proportion", float("nan"), "proportion must be from 0 to 1; got nan"),
        ("proportion", 1.2, "proportion must be from 0 to 1; got 1.2"),
        ("spacing", 0.0, "spacing must be greater than 0; got 0.0"),
        ("trials", 0, "trials must be 1 or more, or None; got 0"),
    ],
)
def test_what_is_no_score_is_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        score(**{field: value})


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([score(observer="#1")], "an observer is '#1'; lines with # first are comments"),
        ([score(observer="")], "an observer is ''; one line without spaces"),
        ([score(observer="a\nb")], r"an observer is 'a\\nb'; one line without spaces"),
        ([score(observer="a\n")], r"an observer is 'a\\n'; one line without spaces"),
        ([score(observer=" a")], "an observer is ' a'; one line without spaces"),
        (
            [score(proportion=0.7), score(proportion=0.8)],
            r"two scores are of 'a' at length 9, spacing 0\.35; a file has one of each, .*`pooled`",
        ),
    ],
)
def test_what_would_not_be_read_is_not_written(tmp_path, scores, message):
    with pytest.raises(ValueError, match=message):
        write_scores(scores, tmp_path / "scores.csv")
    assert not list(tmp_path.iterdir())


def test_scores_are_read_as_they_were_written(tmp_path):
    scores = [score(), score(observer="b, c", trials=None), score(spacing=1 / 3, proportion=2 / 3)]
    write_scores(scores, tmp_path / "new" / "scores.csv")
    assert read_scores(tmp_path / "new" / "scores.csv") == scores


def test_a_file_by_hand(tmp_path):
    file = tmp_path / "by-hand.csv"
    header = "observer , spacing_deg,length,proportion_correct"
    file.write_text(f"# made up\n{header}\n\n# a comment\nX, 0.5 ,9,1\nX,0.6,9,.5\n")
    assert read_scores(file) == [
        Score(observer="X", length=9, spacing=0.5, proportion=1.0),
        Score(observer="X", length=9, spacing=0.6, proportion=0.5),
    ]


def test_a_file_of_a_spreadsheet(tmp_path):
    file = tmp_path / "scores.csv"
    write_scores([score()], file)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert read_scores(file) == [score()]


HEADER = "observer,length,spacing_deg,proportion_correct,trials\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r": empty; the first line names the columns: observer, length, spacing_deg,"),
        (HEADER, r": no scores below the header in line 1"),
        (HEADER.replace("length", "lenght"), r"line 1: no column is called 'lenght'; did you mean"),
        (HEADER.replace("length", "xyz"), r"line 1: no column is called 'xyz'; there are observer"),
        (HEADER.replace("length", "observer"), r"line 1: column 'observer' is there twice"),
        ("# x\nobserver,length\n", r"line 2: column 'spacing_deg' is missing; it has observer, le"),
        (HEADER + "a,9,0.3\n", r"line 2: 3 cells, the header has 5"),
        (HEADER + ",9,0.3,0.8,10\n", r"line 2, column observer: empty; a name is wanted"),
        (
            HEADER + "a,9.5,0.3,0.8,10\n",
            r"line 2, column length: '9\.5'; a whole number, 1 or more",
        ),
        (HEADER + "a,9,wide,0.8,10\n", r"column spacing_deg: 'wide'; a number, 0 or more, is wan"),
        (HEADER + "a,9,0,0.8,10\n", r"line 2, column spacing_deg: 0; a number above 0 is wanted"),
        (HEADER + "a,9,inf,0.8,10\n", r"column spacing_deg: 'inf'; a number, 0 or more"),
        (HEADER + "a,9,0.3,80,10\n", r"column proportion_correct: '80'; a number, from 0 to 1"),
        (HEADER + "a,9,0.3,nan,10\n", r"column proportion_correct: 'nan'; a number, from 0 to 1"),
        (HEADER + "a,9,0.3,.8,0\n", r"line 2, column trials: '0'; a whole number, 1 or more"),
        (
            HEADER + "a,9,0.3,.8,\nb,9,0.3,.8,\na,9,0.30,.7,\n",
            r"line 4: 'a' at length 9, spacing 0\.3 is already in line 2",
        ),
    ],
)
def test_a_wrong_file_is_refused_by_line_and_column(tmp_path, text, message):
    file = tmp_path / "scores.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"scores\.csv.*" + message):
        read_scores(file)


def test_what_is_not_text_is_refused(tmp_path):
    file = tmp_path / "scores.xls"
    file.write_bytes(b"\xd0\xcf\x11\xe0")
    with pytest.raises(ValueError, match=r"scores\.xls: not text in UTF-8 .*; save it as CSV"):
        read_scores(file)
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        read_scores(tmp_path / "none.csv")


def test_the_gains_of_monkeys_are_no_scores_of_people(shared_data):
    with pytest.raises(ValueError, match=r"li2006-v1-gain\.csv, line 3: no column is called"):
        read_scores(shared_data / "reference" / "li2006-v1-gain.csv")
