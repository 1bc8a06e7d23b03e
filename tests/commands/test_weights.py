import pytest
from safetensors.torch import save

from hgru_vision import weights
from hgru_vision.cli import main
from hgru_vision.commands.weights import sparkline
from hgru_vision.recipes import make_run
from hgru_vision.training.checkpoint import build
from hgru_vision.training.files import write_json
from hgru_vision.training.result import Point


@pytest.fixture
def run(tmp_path, monkeypatch, row):
    """Give the folder of a run that no training made; nothing is published yet."""
    monkeypatch.setattr(weights, "FOLDER", tmp_path / "shelf")
    monkeypatch.setenv("COLUMNS", "200")
    config = make_run("quick")
    folder = tmp_path / "run"
    write_json(folder / "config.json", config.to_json())
    result = row(accuracy=0.9876).result.to_json()
    write_json(folder / "result.json", result)
    (folder / "weights.safetensors").write_bytes(save(build(config).state_dict()))
    return folder


def test_without_weights_the_list_says_so(run, capsys):
    assert main(["weights"]) == 0
    assert "None yet; hgru weights publish RUN --tag TAG adds" in capsys.readouterr().out


def test_what_is_published_is_listed_and_shown(run, capsys):
    publish = ["weights", "publish", str(run), "--tag", "small3", "--note", "A [note] [/x]."]
    assert main(publish) == 0
    out = " ".join(capsys.readouterr().out.split())
    name = "hgru_small.small3"
    digest = weights.card(name).sha256
    command = f"hgru train --config {name} --out runs/{name}"
    assert f"Published {name}: " in out and f"To make it again: {command}" in out
    assert main(["weights"]) == 0
    line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith(name))
    assert line.split()[:5] == [name, "paper-3", "98.8%", "80.0%", "640,000"]
    assert main(["weights", "show", name]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for text in (
        f"name {name}",
        "note A [note] [/x].",
        "accuracy 98.8% of 10,000 test images right (95 % interval 98.5% to 99.0%)",
        "without a path 80.0% by a probe (hgru audit)",
        f"sha256 {digest}",
        f"command {command}",
        "paper-3 to 640,000 50.0% 98.8% 98.8% ▁",
    ):
        assert text in out


def test_boundaries_are_listed_with_their_auc(run, capsys, row):
    natural = row("contour_vgg", accuracy=0.875, dataset="bsds500", path="BSR",
                  target="segmentation", shortcut=None)  # fmt: skip
    write_json(run / "config.json", natural.config.to_json())
    write_json(run / "result.json", natural.result.to_json())
    (run / "weights.safetensors").write_bytes(save(build(natural.config).state_dict()))
    assert main(["weights", "publish", str(run), "--tag", "bsds"]) == 0
    capsys.readouterr()
    assert main(["weights"]) == 0
    line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("contour_vgg"))
    assert line.split()[:5] == ["contour_vgg.bsds", "bsds500", "AUC", "0.875", "640,000"]


def test_the_list_fits_into_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["weights"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert not any("…" in line for line in lines)
    assert {line.split()[0] for line in lines[1:] if line} >= set(weights.list_weights())


@pytest.mark.parametrize("name", weights.list_weights())
def test_a_card_fits_into_a_terminal(monkeypatch, capsys, name):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["weights", "show", name]) == 0
    assert "…" not in capsys.readouterr().out


def test_weights_are_replaced_only_when_asked(run, capsys):
    publish = ["weights", "publish", str(run), "--tag", "small3"]
    assert main(publish) == 0
    assert main(publish) == 2
    told = (
        "there are weights hgru_small.small3; give another tag, or ask to replace them (--replace"
    )
    assert told in capsys.readouterr().err
    assert main([*publish, "--replace", "--note", "Another."]) == 0
    assert weights.card("hgru_small.small3").note == "Another."


def test_bad_names_and_runs_are_told_in_a_line(run, capsys):
    assert main(["weights", "show", "hgru.x"]) == 2
    assert "hgru: no weights 'hgru.x'; there are none yet" in capsys.readouterr().err
    assert main(["weights", "publish", str(run.parent), "--tag", "x"]) == 2
    assert "is no run's folder: it has no config.json" in capsys.readouterr().err


def test_a_long_curve_is_averaged_to_its_width():
    points = [
        Point(stage=0, batch=n, images=n, loss=0.0, accuracy=0.5 + n / 400, seconds=0.0)
        for n in range(200)
    ]
    drawn = sparkline(points, width=8)
    assert drawn == "▁▂▃▄▅▆▇█"


def test_boundaries_have_an_area_and_no_accuracy(capsys):
    assert main(["weights", "show", "contour_hgru.bsds500"]) == 0
    said = capsys.readouterr().out
    assert "Pixel AUC of held-out crops" in said and "pixel AUC 0.921" in said
