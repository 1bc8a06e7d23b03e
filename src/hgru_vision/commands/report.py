"""hgru report: a ledger as one HTML file."""

from pathlib import Path

from hgru_vision.analysis.study import studies
from hgru_vision.commands.figures import no_runs, read_told, summary
from hgru_vision.figures.report import report_html
from hgru_vision.training.files import check_output, replace_file


def report(ledger: Path = Path("results"), out: Path = Path("report.html")) -> None:
    """Write tables and figures of all runs of a ledger as one HTML file, pictures inside.

    Example: hgru report --ledger results --out report.html

    Parameters
    ----------
    ledger
        File or folder that `hgru sweep` wrote.
    out
        The file to write.
    """
    check_output(out)
    rows = read_told(ledger)
    if not rows:
        raise ValueError(no_runs(ledger))
    found = studies(rows)
    for study in found:
        print(summary(study))
    replace_file(out, report_html(found).encode())
    print(f"wrote {out}")
