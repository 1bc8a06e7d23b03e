import subprocess
import sys

import pytest

from hgru_vision.references import find_function, is_reference, place_of

FILE = """
from pathlib import Path

def make():
    return 3

def other():
    return Path

number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_a_known_name_comes_before_a_file():
    assert find_function("max", "rule", {"max": max}) is max


def test_a_function_of_a_file(file):
    assert find_function(f"{file}:make", "rule", {"max": max})() == 3


@pytest.mark.parametrize(
    ("reference", "error", "text"),
    [
        ("mx", ValueError, "no rule 'mx'; give max, min or FILE.py:FUNCTION; did you mean 'max'?"),
        ("zzz", ValueError, "no rule 'zzz'; give max, min or FILE.py:FUNCTION"),
        ("a.txt:make", ValueError, "no rule 'a.txt:make'; give max, min or FILE.py:FUNCTION"),
        ("gone.py:make", FileNotFoundError, "no file gone.py (from the rule gone.py:make)"),
    ],
)
def test_what_is_not_there_is_refused(reference, error, text):
    with pytest.raises(error) as refused:
        find_function(reference, "rule", {"max": max, "min": min})
    assert str(refused.value) == text


@pytest.mark.parametrize("name", ["mak", "number", ""])
def test_a_file_without_the_function_tells_what_it_defines_itself(file, name):
    with pytest.raises(ValueError) as refused:
        find_function(f"{file}:{name}", "rule", {})
    assert str(refused.value) == f"{file} defines no function {name!r}; it has make, other"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\nimport nosuchmodule", r":2 cannot be run: ModuleNotFoundError: No module named"),
        ("{}['a']", r":1 cannot be run: KeyError: 'a'"),
        ("def make(:", r" cannot be run: SyntaxError: .* line 1\)"),
    ],
)
def test_a_file_that_cannot_be_run_is_named(tmp_path, text, why):
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(ImportError, match=rf"broken\.py{why}"):
        find_function(f"{tmp_path}/broken.py:make", "rule", {})


def test_a_file_without_functions_says_so(tmp_path):
    (tmp_path / "empty.py").touch()
    with pytest.raises(ValueError, match="defines no function 'make'; it has none"):
        find_function(f"{tmp_path}/empty.py:make", "rule", {})


def test_where_nothing_has_a_name_a_file_is_asked_for():
    with pytest.raises(ValueError, match=r"^no network 'net'; give FILE\.py:FUNCTION$"):
        find_function("net", "network", {})


def test_it_needs_no_torch():
    code = "import sys, hgru_vision.references; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_reference_is_told_from_a_name():
    assert is_reference("a/nets.py:leaky") and is_reference("nets.py:")
    assert not any(map(is_reference, ("hgru", "nets.py", "nets.txt:leaky", ":leaky")))


def test_an_error_has_its_place_in_the_file(file):
    make = find_function(f"{file}:make", "rule", {})
    with pytest.raises(TypeError) as call:
        make(3)
    assert place_of(call.value, str(file)) is None  # the call is wrong, not the file
    file.write_text("def make():\n    return inner()\n\ndef inner():\n    return 1 // 0\n")
    with pytest.raises(ZeroDivisionError) as inside:
        find_function(f"{file}:make", "rule", {})()
    assert place_of(inside.value, str(file)) == f"{file}:5"
