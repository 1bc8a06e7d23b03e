from hgru_vision.analysis.profile import accuracy_by_quantile
from hgru_vision.figures.evaluation import evaluation_figure
from hgru_vision.figures.style import render

ALL = {"accuracy": 0.9, "low": 0.85, "high": 0.94, "n": 100}
NONE = {"accuracy": None, "low": 0.0, "high": 1.0, "n": 0}


def test_a_panel_for_each_thing_that_was_measured():
    strata = {"everywhere": ALL, "right": ALL, "unsure": NONE, "wrong": NONE, "confidence": 0.9}
    report = {
        "network": "runs/a",
        **ALL,
        "timesteps": 2,
        "steps": {1: ALL, 2: ALL},
        "by": {"marker distance": accuracy_by_quantile([1, 2, 3], [True, True, False], bins=2)},
        "strata": strata,
        "shortcut": {"accuracy": 0.8},
    }
    figure = evaluation_figure(report)
    names = [axes.get_xlabel() for axes in figure.axes]
    assert names == ["steps of the circuit", "marker distance", "images by what the probe says"]
    labels = [label.get_text() for label in figure.axes[2].get_xticklabels()]
    assert labels == ["all\n100", "right\n100", "unsure\n0", "wrong\n0"]
    assert figure.get_suptitle() == "runs/a: 90.0% on 100 images (85.0% to 94.0%)"
    assert figure.axes[0].get_ylim()[0] < 0.15  # the lowest interval is seen
    assert render(figure, "png")


def test_accuracy_alone():
    figure = evaluation_figure({"network": "net", **ALL})
    assert "\n50%\nchance" in _levels(figure)


def test_pixels_have_an_overlap_and_no_chance_of_one_half():
    figure = evaluation_figure({"network": "net", **ALL, "overlap": 0.5})
    assert figure.get_suptitle().endswith("intersection over union 0.500")
    assert "50%" in _levels(figure)


def _levels(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]
