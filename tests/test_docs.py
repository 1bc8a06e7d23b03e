import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """Give the Python of a page, piece by piece."""
    return BLOCK.findall((ROOT / "docs" / page).read_text())


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hgru_vision.training.outcome._shortcut", lambda _: None)  # takes seconds


def test_the_page_of_circuits_runs(capsys):
    names = {}
    for text in blocks("circuits.md"):
        if text.startswith("# nets.py\n"):
            Path("nets.py").write_text(text)
        else:
            exec(compile(text, "circuits.md", "exec"), names)
    assert "reference (taken): " in capsys.readouterr().out
    assert names["longer"].shape == names["onwards"].shape == (2, 8, 40, 40)
    assert names["path"].h1.shape == (6, 2, 8, 40, 40)
    assert names["network"].steps == 8 and names["run"].network == "leaky"
    assert len(list(names["grid"])) == 18


@pytest.mark.parametrize("name", ["leaky", "small_hgru", "circuit"])
def test_each_network_of_the_page_can_be_trained(name):
    import torch

    from hgru_vision.recipes import make_run
    from hgru_vision.training.checkpoint import build
    from hgru_vision.training.trial import try_network

    (text,) = (each for each in blocks("circuits.md") if each.startswith("# nets.py\n"))
    Path("nets.py").write_text(text)
    run = make_run("quick", model=f"nets.py:{name}")
    network = build(run)
    try_network(network, run, torch.device("cpu"))
    other = build(make_run("quick", model=f"nets.py:{name}", seed=1))
    key = {"leaky": "lateral.weight", "small_hgru": "1.u1", "circuit": "features.w"}[name]
    assert not torch.equal(network.state_dict()[key], other.state_dict()[key])
