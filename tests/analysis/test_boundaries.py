import json

import numpy as np
import pytest
from PIL import Image
from scipy.io import loadmat

from hgru_vision.analysis.boundaries import (
    Counts,
    average_precision,
    best_point,
    check_map,
    count_matches,
    score_boundaries,
    spread_thresholds,
    summarise,
)
from hgru_vision.analysis.boundary_score import BoundaryScore, f_measure, read_scores


class Pictures:
    """Annotated pictures in memory."""

    def __init__(self, maps):
        self.maps = maps

    @property
    def ids(self):
        return tuple(self.maps)

    def annotations(self, name):
        return self.maps[name]


@pytest.fixture
def scene():
    """A prediction of two lines, and two annotators who marked one of them, or both."""
    prediction = np.zeros((50, 70))
    prediction[10, 5:65], prediction[40, 5:65] = 0.8, 0.4
    annotations = np.zeros((2, 50, 70), np.uint8)
    annotations[0, 10, 5:65] = annotations[1, 40, 5:65] = annotations[1, 25, 5:65] = 1
    return prediction, annotations


@pytest.fixture(scope="session")
def bench(shared_data):
    folder = shared_data / "bsds500-bench" / "data"
    names = sorted(path.stem for path in (folder / "groundTruth").glob("*.mat"))
    people = {
        name: loadmat(folder / "groundTruth" / f"{name}.mat")["groundTruth"] for name in names
    }
    maps = {
        name: np.stack([cell["Boundaries"][0, 0] for cell in cells[0]])
        for name, cells in people.items()
    }
    predictions = {
        name: np.asarray(Image.open(folder / "png" / f"{name}.png")) / 255 for name in names
    }
    return folder, predictions, Pictures(maps)


@pytest.mark.parametrize("run", [1, 2, 3, 4])
def test_the_official_score_of_five_pictures_comes_out(bench, run):
    # The four runs of the official program differ by up to 2e-4: it draws random numbers.
    folder, predictions, data = bench
    score = score_boundaries(predictions, data, thresholds=5)
    official = np.loadtxt(folder / f"test_{run}" / "eval_bdry.txt")[1:]
    ours = [
        *(score.ods.recall, score.ods.precision, score.ods.f),
        *(score.ois.recall, score.ois.precision, score.ois.f),
        score.average_precision,
    ]
    np.testing.assert_allclose(ours, official, atol=5e-4)
    f = f_measure(score.recall, score.precision)
    np.testing.assert_allclose(
        f, np.loadtxt(folder / f"test_{run}" / "eval_bdry_thr.txt")[:, 3], atol=5e-4
    )
    # Single pictures differ by up to 8e-4 between the official runs.
    best = [point.f for point in score.pictures.values()]
    np.testing.assert_allclose(
        best, np.loadtxt(folder / f"test_{run}" / "eval_bdry_img.txt")[:, 4], atol=1.5e-3
    )


@pytest.mark.parametrize("run", [1, 2, 3, 4])
def test_official_curves_give_official_summaries(bench, run):
    folder, _, _ = bench
    thresholds, recall, precision, _ = np.loadtxt(folder / f"test_{run}" / "eval_bdry_thr.txt").T
    official = np.loadtxt(folder / f"test_{run}" / "eval_bdry.txt")
    point = best_point(thresholds, recall, precision)
    ours = [point.threshold, point.recall, point.precision, point.f]
    np.testing.assert_allclose(ours, official[:4], atol=1e-6)
    assert average_precision(recall, precision) == pytest.approx(official[7], abs=1e-6)


def test_recall_counts_people_and_precision_counts_pixels_once(scene):
    counts = count_matches(*scene, np.array([0.2, 0.6, 0.9]))
    assert counts.predicted.tolist() == [120, 60, 0]
    assert counts.right.tolist() == [120, 60, 0]
    assert counts.annotated.tolist() == [180, 180, 180]
    assert counts.found.tolist() == [120, 60, 0]
    both = np.stack([scene[1][0], scene[1][0]])  # a second person of the same opinion
    counts = count_matches(scene[0], both, np.array([0.2]))
    assert (counts.found[0], counts.annotated[0], counts.right[0]) == (120, 120, 60)


def test_thresholds_between_which_nothing_changes_are_not_counted_anew(scene):
    many = count_matches(*scene, spread_thresholds(19))
    for level, threshold in enumerate(spread_thresholds(19)):
        one = count_matches(*scene, np.array([threshold]))
        assert [v[level] for v in vars(many).values()] == [v[0] for v in vars(one).values()]


def test_thick_predictions_are_thinned(scene):
    prediction, annotations = scene
    prediction[9:12, 5:65] = 0.8
    counts = count_matches(prediction, annotations, np.array([0.6]))
    assert counts.predicted[0] < 70 and counts.precision[0] == 1


def test_the_best_point_lies_between_thresholds():
    point = best_point(np.array([0.2, 0.4]), np.array([0.9, 0.3]), np.array([0.3, 0.9]))
    assert point.f == pytest.approx(0.6, abs=1e-4)
    assert point.threshold == pytest.approx(0.3, abs=2e-3)
    alone = best_point(np.array([0.5]), np.array([0.4]), np.array([0.4]))
    assert (alone.threshold, alone.f) == (0.5, pytest.approx(0.4))


def test_average_precision_is_the_area_where_the_curve_is():
    assert average_precision(np.array([1.0, 0.5, 0.0]), np.array([1.0, 1.0, 1.0])) == (
        pytest.approx(1.01)  # 101 steps of 0.01, as in the benchmark
    )
    assert average_precision(np.array([0.8, 0.305]), np.array([0.5, 0.5])) == pytest.approx(0.25)
    assert average_precision(np.array([0.7, 0.7]), np.array([0.5, 0.6])) == 0


def counts_of(found, right, predicted):
    return Counts(
        found=np.array(found),
        annotated=np.full(len(found), 100),
        right=np.array(right),
        predicted=np.array(predicted),
    )


def test_each_picture_at_its_own_threshold_beats_one_for_all():
    easy, hard = counts_of([90, 40], [80, 40], [100, 40]), counts_of([90, 80], [20, 75], [100, 90])
    score = summarise({"easy": easy, "hard": hard}, np.array([0.3, 0.6]))
    # OIS: easy at 0.3, hard at 0.6, sums before ratios.
    assert score.ois.recall == pytest.approx(170 / 200)
    assert score.ois.precision == pytest.approx(155 / 190)
    assert score.ois.threshold is None
    assert score.recall.tolist() == [0.9, 0.6] and score.precision.tolist() == [0.5, 115 / 130]
    assert score.ods.f < score.ois.f
    assert list(score.pictures) == ["easy", "hard"]
    stored = json.loads(json.dumps(score.to_json()))
    assert stored["curve"]["threshold"] == [0.3, 0.6]
    assert BoundaryScore.from_json(stored).to_json() == stored


def test_stored_scores_are_read_best_first(tmp_path):
    right = [[30, 20], [90, 40], [60, 30]]
    for name, found in zip("abc", right, strict=True):
        score = summarise({"1": counts_of(found, found, [100, 50])}, np.array([0.3, 0.6]))
        (tmp_path / f"{name}.json").write_text(json.dumps({"nms": True, **score.to_json()}))
    scores = read_scores(tmp_path)
    assert list(scores) == [f"{name} (1 picture, 2 thresholds)" for name in "bca"]
    assert scores["b (1 picture, 2 thresholds)"].recall.tolist() == [0.9, 0.4]


def test_a_data_set_is_scored_on_several_threads(scene):
    prediction, annotations = scene
    data = Pictures({name: annotations for name in "abcde"})
    done = []
    score = score_boundaries(
        dict.fromkeys("abcde", prediction), data, thresholds=9, workers=3, progress=done.append
    )
    assert done == [1, 2, 3, 4, 5]
    assert list(score.pictures) == list("abcde")
    one = summarise({"a": count_matches(*scene, spread_thresholds(9))}, spread_thresholds(9))
    assert score.ods == one.ods and score.ois == one.ois
    assert score.ods.recall == pytest.approx(2 / 3) and score.ods.precision == 1


def test_what_cannot_be_scored_is_named(scene):
    prediction, annotations = scene
    data = Pictures({"a": annotations, "b": annotations})
    with pytest.raises(ValueError, match="1 of 2 pictures have no prediction; the first is b"):
        score_boundaries({"a": prediction}, data)
    with pytest.raises(ValueError, match="prediction b is 70x50; its picture is 50x70"):
        score_boundaries({"a": prediction, "b": prediction.T}, data, thresholds=2)
    with pytest.raises(ValueError, match="there must be 1 threshold or more; got 0"):
        score_boundaries({"a": prediction, "b": prediction}, data, thresholds=0)
    with pytest.raises(ValueError, match="there is no picture to score"):
        summarise({}, spread_thresholds(3))
    with pytest.raises(ValueError, match=r"one annotator or more; got shape \(0, 50, 70\)"):
        count_matches(prediction, annotations[:0])


def test_a_map_must_hold_probabilities():
    good = np.linspace(0, 1, 6).reshape(2, 3)
    assert check_map(good.astype(np.float32), (2, 3), "it").dtype == np.float64
    assert check_map(good > 0.5, (2, 3), "it").tolist() == [[0, 0, 0], [1, 1, 1]]
    bad = good.copy()
    bad[1, 2] = 1.25
    with pytest.raises(ValueError, match=r"x\.npy has 1\.25 at row 1, column 2; boundary prob"):
        check_map(bad, (2, 3), "x.npy")
    bad[1, 2] = np.nan
    with pytest.raises(ValueError, match="has nan at row 1, column 2"):
        check_map(bad, (2, 3), "x.npy")
    with pytest.raises(ValueError, match="holds uint8; probabilities as floats are wanted"):
        check_map(np.zeros((2, 3), np.uint8), (2, 3), "x.npy")
    with pytest.raises(ValueError, match=r"x\.npy is a single number; its picture is 2x3"):
        check_map(np.zeros(()), (2, 3), "x.npy")
