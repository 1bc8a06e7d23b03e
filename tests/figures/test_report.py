import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from hgru_vision.analysis.study import studies
from hgru_vision.commands.figures import summary
from hgru_vision.figures.report import report_html
from hgru_vision.figures.style import NothingToDraw


class Checker(HTMLParser):
    """Gathers text, and complains of tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.text, self.images = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.images.append(dict(attributes))
        elif tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    return " ".join(" ".join(checker.text).split()), checker.images


@pytest.fixture(scope="module")
def page(partial):
    return report_html([partial])


def test_numbers_stand_in_the_table(page):
    text, _ = read(page)
    assert "Results of 10 runs" in text
    assert "hGRU hgru 75,843 1x 91.0 90.4 to 91.5 90.5 ± 0.7" in text
    assert "without a path: 80.0" in text


def test_missing_diverged_and_failed_are_said(page):
    text, _ = read(page)
    assert "U-Net unet 25,856,266 341x 80.0" in text
    assert "diverged 2 2 failed" in text
    assert "not run" in text and "Not run: hgru_6 , hgru_4" in text
    assert "Networks that the paper does not have: not drawn" in text


def test_accuracies_not_above_the_shortcut_are_marked(page):
    marked = re.findall(r"class='start below'><b>([\d.]+)<", page)
    assert marked == ["80.0", "70.0"]  # of the U-Net, where the probe has 80 %


def test_the_file_needs_no_other(page):
    _, images = read(page)
    assert len(images) == 6
    assert all(image["src"].startswith("data:image/") for image in images)
    assert "http" not in re.sub(r"base64,[^']+", "", page)


def test_devices_versions_and_time_are_there(page):
    text, _ = read(page)
    assert "synthetic device hgru_vision 0.1.0, numpy 2.0.0, python 3.12.0, torch 2.11.0" in text
    assert "000000000000 10 3.4" in text  # ten runs of 1,234.5 seconds


def test_pixels_are_told_by_their_overlap(row):
    found = studies([row(target="segmentation", accuracy=0.7, shortcut=None, points=2)])
    text, images = read(report_html(found))
    assert "judged pixel by pixel" in text
    assert "best mean ± sd overlap runs" in text
    assert "not run 70.0 70.0 25.0 1" in text  # no interval, no failure
    assert "1 failed" not in text
    diverged, _ = read(report_html(studies([row(target="segmentation", accuracy=None)])))
    assert "1 failed" not in diverged
    assert "not drawn; its runs are judged by pixels" in text
    assert len(images) == 1  # the exemplars


@pytest.fixture
def _without_pictures(monkeypatch):
    """Spare a test of the text the seconds that pictures take."""

    def nothing(name, study):
        raise NothingToDraw("spared")

    monkeypatch.setattr("hgru_vision.figures.report.draw", nothing)


@pytest.mark.usefixtures("_without_pictures")
def test_the_alc_of_several_stages_is_named_so(row):
    text, _ = read(report_html(studies([row(stages=2, points=4)])))
    assert "best mean ± sd ALC (last stage) runs" in text


@pytest.mark.usefixtures("_without_pictures")
def test_names_from_outside_cannot_become_tags(row):
    found = studies([row(recipe="<b>", path="a&b", shortcut=None, points=0)])
    text, _ = read(report_html(found))
    assert "<b> recipe, a&b Pathfinder" in text
    assert "without a path: not measured" in text


@pytest.mark.usefixtures("_without_pictures")
def test_time_that_runs_share_is_counted_once(row):
    first, second = row("hgru", 6), row("hgru", 14)
    hours = [replace(each.result, seconds=7200.0, shared=None) for each in (first, second)]
    shared = {"run": first.hash, "images": 64_000, "seconds": 3600.0}
    hours[1] = replace(hours[1], shared=shared)
    rows = [replace(each, result=new) for each, new in zip((first, second), hours, strict=True)]
    assert "<td>2</td><td>3.0</td>" in report_html(studies(rows))


@pytest.mark.usefixtures("_without_pictures")
def test_a_changed_checkout_is_told_behind_its_commit(row):
    first = row()
    changed = replace(first, result=replace(first.result, commit="12" * 20 + "-dirty"))
    assert "<code>121212121212-dirty</code>" in report_html(studies([changed]))


def test_boundaries_are_told_by_their_auc(row):
    (study,) = studies([row("contour_hgru", dataset="bsds500", path="BSR", target="segmentation")])
    text, _ = read(report_html([study]))
    assert "of the pixel AUC, the mean over test images" in text and "BSDS500 pixel AUC" in text
    assert "Not run" not in text and "paddles" not in text.partition("BSDS500")[2]
    assert summary(study).endswith("1 run, 1 network, natural images")


def test_contours_are_no_pathfinder_to_be_completed(row):
    (study,) = studies([row("hgru", 9, dataset="contours")])
    assert study.lengths == [9]


def test_conditions_of_contours_are_drawn_together(row):
    rows = [
        row(
            "contour_hgru", length, dataset="contours", changes={"shear": shear},
            shortcut=0.52 + 0.04 * (shear == -0.6),
        )
        for length in (5, 9)
        for shear in (0.2, -0.6, -0.2)
    ]  # fmt: skip
    (study,) = studies(rows)
    shears = [network.variant for network in study.networks]
    assert shears == ["shear=-0.6", "shear=-0.2", "shear=0.2"]
    assert "6 runs, 1 network, contours of 5, 9 paddles" in summary(study)
    text, images = read(report_html([study]))
    assert len(images) == 1
    assert "not drawn" not in text and "9 paddles without linking: 52.0 to 56.0" in text
    other = row("contour_hgru", 14, dataset="contours", changes={"shear": 0.2}, cool_down=3)
    text, images = read(report_html(studies([*rows, other])))
    assert not images
    assert "not drawn; runs of contour_hgru differ in cool_down, 0 and 3" in text


def test_one_network_is_compared_with_none(row, partial):
    (alone,) = studies([row("hgru", length, 0, 0.9) for length in (6, 9, 14)])
    assert "Fig. 3a" in report_html([partial])
    page = report_html([alone])
    assert "Fig. 3a" not in page and "Supplement: " not in page
    assert "Fig. 3d" in page and "Learning curves of all runs" in page
