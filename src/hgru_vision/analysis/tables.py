"""Small tables of numbers in CSV files, read with errors that name file, line and column."""

import csv
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

__all__ = ["Row", "read_table"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table.

    Attributes
    ----------
    cells
        From the name of a column to what stands there; a column that is left out is not in it.
    place
        File and line, for the text of errors.
    """

    cells: dict[str, str]
    place: str

    def name(self, column: str) -> str:
        """Give a cell that must not be empty."""
        if not self.cells[column]:
            raise ValueError(f"{self.place}, column {column}: empty; a name is wanted")
        return self.cells[column]

    def number(self, column: str, low: float = 0, high: float = math.inf) -> float:
        """Give the number in a cell, from `low` to `high`."""
        return self._parse(column, low, high, whole=False)

    def whole(self, column: str, low: int = 1) -> int:
        """Give the whole number in a cell, `low` or more."""
        return int(self._parse(column, low, math.inf, whole=True))

    def _parse(self, column: str, low: float, high: float, *, whole: bool) -> float:
        text = self.cells[column]
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high or math.isinf(value):
            kind = "whole number" if whole else "number"
            wanted = f"{low:g} or more" if high == math.inf else f"from {low:g} to {high:g}"
            raise ValueError(
                f"{self.place}, column {column}: {text!r}; a {kind}, {wanted}, is wanted"
            )
        return value


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    optional: Sequence[str] = (),
    rows: str = "rows",
    commented_header: bool = False,
) -> list[Row]:
    r"""Read a CSV file with a header; lines that begin with ``#`` are comments.

    Parameters
    ----------
    path
        The file, UTF-8.
    columns
        Names that the header may have, in any order.
    optional
        Those that it may lack.
    rows
        What the rows are, for the text of errors.
    commented_header
        The header is the last comment above the first row, as digitised figures have it.

    Raises
    ------
    ValueError
        Naming the file, the line and the column, and what was expected there.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = file.write_text("# made up\nangle, share\n15, 0.9\n")
    >>> [row.number("share", high=1) for row in read_table(file, ("angle", "share"))]
    [0.9]
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets put a mark in front
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not text in UTF-8 ({error}); save it as CSV") from error
    lines = list(enumerate(text.splitlines(), 1))
    kept = [(number, line) for number, line in lines if line.strip() and not _comment(line)]
    if commented_header:
        first = kept[0][0] if kept else len(lines) + 1
        above = [(number, line) for number, line in lines[: first - 1] if _comment(line)]
        kept = [(number, line.removeprefix("#")) for number, line in above[-1:]] + kept
    if not kept:
        raise ValueError(f"{path}: empty; the first line names the columns: {', '.join(columns)}")
    (number, line), *below = kept
    header = _cells(line)
    _check_header(header, columns, optional, f"{path}, line {number}")
    if not below:
        raise ValueError(f"{path}: no {rows} below the header in line {number}")
    return [_row(_cells(line), header, f"{path}, line {number}") for number, line in below]


def _comment(line: str) -> bool:
    return line.startswith("#")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line]))]


def _check_header(
    header: list[str], columns: Sequence[str], optional: Sequence[str], place: str
) -> None:
    for name in header:
        if name not in columns:
            near = get_close_matches(name, columns, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(columns)}"
            raise ValueError(f"{place}: no column is called {name!r}; {hint}")
        if header.count(name) > 1:
            raise ValueError(f"{place}: column {name!r} is there twice")
    for name in columns:
        if name not in header and name not in optional:
            raise ValueError(f"{place}: column {name!r} is missing; it has {', '.join(header)}")


def _row(cells: list[str], header: list[str], place: str) -> Row:
    if len(cells) != len(header):
        raise ValueError(f"{place}: {len(cells)} cells, the header has {len(header)}")
    return Row(cells=dict(zip(header, cells, strict=True)), place=place)
