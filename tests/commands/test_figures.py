import json
from dataclasses import replace

import pytest

from hgru_vision.analysis.boundary_score import read_scores
from hgru_vision.cli import main
from hgru_vision.commands import figures
from hgru_vision.sweeps.ledger import append
from hgru_vision.training.config import Source, Stage


@pytest.fixture
def ledger(tmp_path, row):
    path = tmp_path / "results" / "a.jsonl"
    for length in (6, 14):
        append(path, row(length=length))
    append(path, row(recipe="curriculum", stages=3))
    return path


def test_all_figures_are_drawn_or_said_not_to_be(tmp_path, capsys, row):
    for model, length in (("hgru", 14), ("gru", 9)):
        run = row(model, length, recipe="curriculum", stages=3, points=0)
        append(tmp_path / "a.jsonl", run)
    out = tmp_path / "out"
    assert main(["figures", "--ledger", str(tmp_path), "--out", str(out)]) == 0
    names = {"accuracy", "exemplars", "supplement", "seeds"}
    drawn = {str(path.relative_to(out)) for path in out.rglob("*.*")}
    assert drawn == {"claims.md", *(f"curriculum-paper/{name}.png" for name in names)}
    said = capsys.readouterr().out
    assert f"wrote {out}/curriculum-paper/accuracy.png" in said
    assert "generalisation: not drawn; no network was measured; `hgru generalise` does it" in said
    assert (
        "boundaries: not drawn; no maps were scored; `hgru eval-boundaries --json results/boun"
        in said
    )
    assert "alc: not drawn; no run of its networks has an ALC (last stage)" in said
    assert "parameters: not drawn; only one of its networks has an accuracy" in said
    assert "beyond: not drawn" in said


def test_one_network_is_compared_with_none_unless_asked_for(tmp_path, capsys, row):
    append(tmp_path / "a.jsonl", row(length=14))
    where = ["--ledger", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(["figures", *where]) == 0
    names = {"exemplars.png", "curves.png", "seeds.png"}
    assert {path.name for path in (tmp_path / "out").glob("*/*")} == names
    assert "beyond: left out, of one model alone; drawn if named" in capsys.readouterr().out
    assert main(["figures", "accuracy", *where]) == 0
    assert {path.name for path in (tmp_path / "out").glob("*/*")} == names | {"accuracy.png"}


def test_every_study_has_a_folder(ledger, tmp_path, capsys):
    arguments = ["figures", "seeds", "--ledger", str(ledger.parent), "--out", str(tmp_path / "out")]
    assert main([*arguments, "--format", "svg"]) == 0
    drawn = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert drawn == {"synthetic-paper/seeds.svg", "curriculum-paper/seeds.svg"}
    said = capsys.readouterr().out
    assert "synthetic recipe, paper Pathfinder: 2 runs, 1 network, paths of 6, 14 paddles" in said


def test_a_half_written_row_is_told_and_passed_over(ledger, tmp_path, capsys):
    with ledger.open("a") as file:
        file.write('{"schema": 1, "ha')
    assert main(["figures", "seeds", "--ledger", str(ledger), "--out", str(tmp_path)]) == 0
    assert "note: " in capsys.readouterr().out


def test_what_cannot_be_drawn_is_an_error(ledger, tmp_path, capsys):
    assert main(["figures", "beyond", "--ledger", str(ledger), "--out", str(tmp_path)]) == 2
    assert "has nothing of what beyond shows" in capsys.readouterr().err
    assert main(["figures", "sedes", "--ledger", str(ledger)]) == 2
    assert "did you mean 'seeds'?" in capsys.readouterr().err


def test_no_ledger_and_an_empty_one(tmp_path, capsys):
    assert main(["figures", "--ledger", str(tmp_path / "none")]) == 2
    assert "no ledger" in capsys.readouterr().err
    (tmp_path / "empty.jsonl").touch()
    arguments = ["--ledger", str(tmp_path / "empty.jsonl"), "--out", str(tmp_path / "out")]
    assert main(["figures", *arguments]) == 0
    assert "empty.jsonl has no run yet; `hgru sweep` adds them" in capsys.readouterr().out
    assert "**not run yet**" in (tmp_path / "out/claims.md").read_text()
    assert main(["figures", "seeds", *arguments]) == 2
    assert "empty.jsonl has nothing of what seeds shows" in capsys.readouterr().err


def test_what_was_measured_of_trained_networks_is_drawn(tmp_path, capsys, measured):
    from hgru_vision.sweeps.jsonl import append_line

    (tmp_path / "results").mkdir()
    append_line(tmp_path / "results/generalisation/a.jsonl", measured("length", 6).to_json())
    where = ["--ledger", str(tmp_path / "results"), "--out", str(tmp_path)]
    assert main(["figures", "generalisation", *where]) == 0
    assert (tmp_path / "generalisation.png").stat().st_size > 10_000
    assert capsys.readouterr().out == f"wrote {tmp_path}/generalisation.png\n"


def test_scores_of_boundaries_are_drawn(tmp_path, capsys):
    folder = tmp_path / "results/boundaries"
    folder.mkdir(parents=True)
    point = {"threshold": 0.5, "recall": 0.7, "precision": 0.6, "f": 0.65}
    curve = {"threshold": [0.5] * 99, "recall": [0.7] * 99, "precision": [0.6] * 99}
    pictures = {str(number): point for number in range(200)}
    score = {"ods": point, "ois": point, "average_precision": 0.6, "curve": curve}
    score["pictures"] = pictures
    (folder / "network.json").write_text(json.dumps(score))
    where = ["--ledger", str(tmp_path / "results"), "--out", str(tmp_path)]
    assert main(["figures", "boundaries", *where]) == 0
    assert (tmp_path / "boundaries.png").stat().st_size > 10_000
    few = {"curve": {key: values[:9] for key, values in curve.items()}}
    raw = score | few | {"split": "val", "nms": False, "radius": 0.01}
    (folder / "raw.json").write_text(json.dumps(raw))
    told = "val, 200 pictures, no --nms, radius 0.01, 9 thresholds"  # of val there are 100
    assert set(read_scores(folder)) == {"network", f"raw ({told})"}
    (folder / "list.json").write_text(json.dumps(score | {"pictures": []}))
    assert main(["figures", "boundaries", *where]) == 2
    assert "list.json is no score" in capsys.readouterr().err
    (folder / "list.json").unlink()
    (folder / "other.json").write_text('{"ods": {}}')
    assert main(["figures", "boundaries", *where]) == 2
    said = capsys.readouterr().err
    assert (
        "other.json is no score, as hgru eval-boundaries --json writes it: KeyError('curve')"
        in said
    )


def test_the_contour_study_is_drawn_and_judged(tmp_path, capsys, row, monkeypatch):
    drawn = []
    figure = figures.contour_study_figure
    monkeypatch.setattr(
        figures, "contour_study_figure", lambda *a, **k: drawn.append(figure(*a, **k)) or drawn[0]
    )
    for length in (5, 9):
        append(tmp_path / "contours.jsonl", row("contour_hgru", length, dataset="contours"))
    wide = {"cells": 8, "cell": 1.0, "shear": 0.8, "eccentricity": 3.0}  # none of the paper's
    append(tmp_path / "contours.jsonl", row("contour_hgru", 3, dataset="contours", changes=wide))
    where = ["--ledger", str(tmp_path), "--out", str(tmp_path)]
    assert main(["figures", "contours", *where]) == 0
    assert (tmp_path / "contours.png").stat().st_size > 10_000
    assert "Does it behave as people do?" in capsys.readouterr().out
    note = drawn[0].get_supxlabel().replace("\N{NO-BREAK SPACE}", " ").replace("\n", " ")
    assert note.startswith("not run: 5 at 0.27°; ")
    assert note.count(";") == 25  # of 28, 5 and 9 paddles without shear were run
    assert main(["figures", "seeds", *where]) == 2
    said = capsys.readouterr()
    assert "has nothing of what seeds shows" in said.err
    assert said.out == ""


def test_what_cannot_be_drawn_does_not_keep_others_from_it(tmp_path, capsys, row):
    for images in (8_000, 16_000):
        stage = Stage(sources=(Source(dataset="contours", length=5),), images=images)
        study = row("contour_hgru", 5, dataset="contours")
        append(
            tmp_path / "all.jsonl", replace(study, config=replace(study.config, stages=(stage,)))
        )
    append(tmp_path / "all.jsonl", row("hgru", 14))
    where = ["--ledger", str(tmp_path), "--out", str(tmp_path), "--format", "png"]
    assert main(["figures", *where]) == 0
    assert "contours: not drawn; runs of contour_hgru differ in" in capsys.readouterr().out
    assert main(["figures", "contours", *where]) == 2
    assert "runs of contour_hgru differ in" in capsys.readouterr().err
