import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "src/**/*.md", "results/*.md")
    for page in ROOT.glob(pattern)
)


def blocks(page):
    """Give the Python of a page, piece by piece."""
    return BLOCK.findall((ROOT / page).read_text())


def anchors(page):
    """Give what a link into a page may name: its headings as GitHub spells them, and names."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    spelled = (re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings)
    return {*spelled, *re.findall(r'<a name="([^"]+)">', text)}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hgru_vision.training.outcome._shortcut", lambda _: None)  # takes seconds


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), f"{page} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page} links to {link}"


@pytest.mark.parametrize("page", PAGES)
def test_tables_are_whole(page):
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, rule, *_ = [*table.splitlines(), ""]
        assert re.fullmatch(r"[|: -]+", rule), f"{page}: no line of a table's head, {head}"


def test_the_readme_runs():
    names = {}
    (text,) = blocks("README.md")
    exec(compile(text, "README.md", "exec"), names)
    found = names["trained"](names["image"][None]).softmax(1)[0, 1] > 0.5
    assert bool(found) == bool(names["label"])
    assert names["layer"].timesteps == 8


def test_the_page_of_circuits_runs(capsys):
    names = {}
    for text in blocks("docs/circuits.md"):
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

    (text,) = (each for each in blocks("docs/circuits.md") if each.startswith("# nets.py\n"))
    Path("nets.py").write_text(text)
    run = make_run("quick", model=f"nets.py:{name}")
    network = build(run)
    try_network(network, run, torch.device("cpu"))
    other = build(make_run("quick", model=f"nets.py:{name}", seed=1))
    key = {"leaky": "lateral.weight", "small_hgru": "1.u1", "circuit": "features.w"}[name]
    assert not torch.equal(network.state_dict()[key], other.state_dict()[key])


def test_the_page_of_python_runs(capsys):
    names = {}
    for text in blocks("docs/python.md"):
        exec(compile(text, "python.md", "exec"), names)
    assert "on distance and directions" in capsys.readouterr().out
    assert names["images"].shape == (4, 1, 150, 150) and names["logits"].shape == (4, 2)
    assert names["masks"].shape == (4, 150, 150) and names["fast"].shape == (64, 150, 150)
    assert names["states"].h1.shape == (6, 2, 16, 40, 40)
    assert len(names["again"]) == 100
    assert len(names["result"].curve) == 2
    assert names["found"].right.shape == (8,) and names["found"].accuracy > 0.5
    assert [each.state for each in names["outcomes"]] == ["missing"] * 5
    assert names["steps"].maps.shape == (8, 150, 150)
    assert 2 < names["fit"].curve.threshold < 4


# Blocks from the first on that need no files but the project's own; None for all.
RUN = {
    "docs/contextual.md": None,
    "docs/contours.md": 3,
    "docs/pathfinder.md": None,
    "docs/sweeps.md": None,
    "docs/training.md": None,
}


@pytest.mark.parametrize("page", RUN)
def test_the_code_of_the_page_runs(page):
    Path("results").symlink_to(ROOT / "results")
    names = {}
    for text in blocks(page)[: RUN[page]]:
        exec(compile(text, page, "exec"), names)
