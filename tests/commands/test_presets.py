from hgru_vision.cli import main
from hgru_vision.stimuli import PRESETS


def test_all_presets_are_listed(capsys):
    assert main(["presets"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in PRESETS)
    (authors,) = (line.split() for line in out.splitlines() if " authors " in line)
    assert authors[3:8:2] == ["14", "150", "56"]
