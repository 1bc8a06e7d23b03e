import pytest

from hgru_vision.analysis.tables import read_table

COLUMNS = ("angle", "share", "observer")


def table(tmp_path, text, **settings):
    file = tmp_path / "table.csv"
    file.write_text(text)
    return read_table(file, COLUMNS, **settings)


def test_rows_know_their_place_and_columns_may_come_in_any_order(tmp_path):
    (row,) = table(tmp_path, '# x\nshare, angle\n\n# y\n"0.5", 15\n', optional=("observer",))
    assert row.place.endswith("table.csv, line 5")
    assert row.number("share", high=1) == 0.5
    assert row.whole("angle") == 15
    assert "observer" not in row.cells


def test_a_header_may_be_a_comment(tmp_path):
    text = "# what this is, at length\n# angle,share,observer\n0,1,A\n# later\n1,.5,B\n"
    rows = table(tmp_path, text, commented_header=True)
    assert [row.name("observer") for row in rows] == ["A", "B"]


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("", {}, r": empty; the first line names the columns: angle, share, observer"),
        ("# angle\n", {}, r": empty; the first line"),
        ("angle,share,observer\n", {"rows": "points"}, r": no points below the header in line 1"),
        ("# angle,share,observer\n", {"commented_header": True}, r": no rows below the header in"),
        ("angel,share\n", {}, r", line 1: no column is called 'angel'; did you mean 'angle'\?"),
        ("xyz,share\n", {}, r", line 1: no column is called 'xyz'; there are angle, share, obs"),
        ("angle,angle\n", {}, r", line 1: column 'angle' is there twice"),
        ("angle,share\n", {}, r", line 1: column 'observer' is missing; it has angle, share"),
        ("angle,share,observer\n1,2\n", {}, r", line 2: 2 cells, the header has 3"),
    ],
)
def test_a_wrong_table_is_refused_by_line_and_column(tmp_path, text, settings, message):
    with pytest.raises(ValueError, match=r"table\.csv" + message):
        table(tmp_path, text, **settings)


def test_a_wrong_cell_is_refused_by_its_column(tmp_path):
    (row,) = table(tmp_path, "angle,share,observer\n1.5,80,\n")
    with pytest.raises(ValueError, match=r"line 2, column angle: '1\.5'; a whole number, 1 or mo"):
        row.whole("angle")
    with pytest.raises(ValueError, match=r"line 2, column share: '80'; a number, from 0 to 1, is"):
        row.number("share", high=1)
    with pytest.raises(ValueError, match=r"line 2, column observer: empty; a name is wanted"):
        row.name("observer")


def test_what_is_not_text_is_refused(tmp_path):
    file = tmp_path / "table.xls"
    file.write_bytes(b"\xd0\xcf\x11\xe0")
    with pytest.raises(ValueError, match=r"table\.xls: not text in UTF-8 .*; save it as CSV"):
        read_table(file, COLUMNS)
