import re
from pathlib import Path

from hgru_vision.figures.claims import claims_page
from hgru_vision.sweeps.ledger import read_ledger

ROOT = Path(__file__).parents[2]


def test_an_empty_ledger_gives_a_page_that_says_so():
    page = claims_page([])
    assert page.startswith("# The claims, one by one\n")
    assert "| 1 | The hGRU is hardly strained by length | **not run yet** |" in page
    assert "## Networks under every protocol\n\nNot run yet.\n" in page
    assert "Why:" not in page


def test_numbers_verdicts_and_reasons_are_on_the_page(row):
    rows = [row("hgru", n, 0, a, recipe="screen") for n, a in ((6, 0.99), (9, 0.97), (14, 0.9))]
    rows += [row("hgru", 14, seed, 0.95 + seed / 100, recipe="curriculum") for seed in (0, 1)]
    rows += [row("hgru", 14, 2, None, recipe="curriculum", preset="matched", shortcut=None)]
    rows += [row("hgru", 14, 0, 0.97, recipe="curriculum", target="segmentation")]
    rows += [row("gru", 14, 0, 0.5, recipe="curriculum"), row("unet", 14, 0, 0.91)]
    page = claims_page(rows)
    assert "## 1. The hGRU is hardly strained by length: partly" in page
    assert "| `hgru` solves 6 | 99.0% (98.8% to 99.2%), 1 run | yes |" in page
    assert "Why: `hgru` solves 14: 90.0% is all it reached in 640,000 images" in page
    assert "| `hgru` | curriculum | paper | 14 | 2 | 0 | 96.0% | 95.5% | 640,000 | 80.0% |" in page
    assert "| curriculum | matched | 14 | 1 | 1 | diverged |  | 640,000 |  |" in page
    assert "| `gru` | curriculum | paper | 14 | 1 | 1 | 50.0% |" in page
    assert "segmentation" not in page
    assert "| `unet` | synthetic | paper | 14 | 1 | 0 | 91.0% |" in page
    assert "variants" not in page


def test_every_percentage_is_of_the_ledger(row):
    rows = [row("hgru", n, 0, a, recipe="screen") for n, a in ((6, 0.991), (9, 0.983), (14, 0.9))]
    stated = {"75%", "95%", "1%", "2%", "95 %"}  # the page's own rules
    known = {f"{row.result.accuracy:.1%}" for row in rows} | {"80.0%"}
    known |= {f"{bound:.1%}" for row in rows for bound in row.result.interval}
    assert set(re.findall(r"[\d.]+ ?%", claims_page(rows))) <= known | stated


def test_variants_are_named(row):
    rows = [row("hgru", 6, 0, recipe="screen", cuda_graph=graph) for graph in (True, False)]
    page = claims_page(rows)
    assert "several variants (hGRU, cuda_graph=false; hGRU, cuda_graph=true) the one" in page


def test_the_page_of_the_project_is_that_of_its_ledger():
    ledger = ROOT / "results"
    rows = read_ledger(ledger) if ledger.is_dir() else []
    page = (ROOT / "docs/reproduce/claims.md").read_text()
    assert page == claims_page(rows), "`hgru figures claims` writes it anew"
