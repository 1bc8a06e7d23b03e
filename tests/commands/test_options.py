import pytest

from hgru_vision.commands.options import configure, parse_duration
from hgru_vision.stimuli import preset


def test_changes_are_read_by_the_type_of_their_field():
    assert configure("paper", 6, ("canvas=200", "contrast=0.5", "antialias=true")) == preset(
        "paper", length=6, canvas=200, contrast=0.5, antialias=True
    )
    assert configure("authors", None, ("margins=2,3",)).margins == (2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("canvas", "--set takes field=value, such as canvas=300; got 'canvas'"),
        ("canvas=big", "canvas must be a whole number; got 'big'"),
        ("contrast=x", "contrast must be a number; got 'x'"),
        ("antialias=yes", "antialias must be true or false; got 'yes'"),
        ("length=9", "length has a flag of its own: --length 9"),
        ("name=lra-32", "name has a flag of its own: --preset lra-32"),
    ],
)
def test_bad_changes_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        configure("paper", None, (change,))


def test_an_unknown_field_gets_the_nearest():
    with pytest.raises(TypeError, match="no parameter 'canvass'; did you mean 'canvas'"):
        configure("paper", None, ("canvass=3",))


def test_a_duration_has_a_unit():
    assert [parse_duration(text) for text in ("90s", "9m", "1.5h", "0s")] == [90, 540, 5400, 0]


@pytest.mark.parametrize("text", ["", "9", "m", "9d", "-1s", "nanm", "infh"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError) as error:
        parse_duration(text)
    assert "a time is a number with s, m or h, such as 90s, 9m or 2h" in str(error.value)
    assert repr(text) in str(error.value)
