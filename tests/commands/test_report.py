from hgru_vision.cli import main
from hgru_vision.sweeps.ledger import append


def test_a_ledger_becomes_one_page(tmp_path, capsys, row):
    append(tmp_path / "a.jsonl", row(points=3))
    out = tmp_path / "page" / "report.html"
    assert main(["report", "--ledger", str(tmp_path), "--out", str(out)]) == 0
    assert f"wrote {out}" in capsys.readouterr().out
    page = out.read_text()
    assert page.startswith("<!doctype html>") and "Results of 1 runs" not in page
    assert "Results of 1 run<" in page


def test_without_a_ledger_there_is_no_report(tmp_path, capsys):
    assert main(["report", "--ledger", str(tmp_path / "none")]) == 2
    assert "no ledger" in capsys.readouterr().err


def test_a_folder_is_no_page(tmp_path, capsys, row):
    append(tmp_path / "a.jsonl", row(points=3))
    assert main(["report", "--ledger", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert f"{tmp_path} is a folder; give a file" in capsys.readouterr().err
