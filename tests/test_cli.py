import json
import os
import subprocess
import sys

import pytest
import torch

from hgru_vision import __version__
from hgru_vision.cli import COMMANDS, main


def run(capsys, *arguments):
    try:
        status = main(list(arguments))
    except SystemExit as stop:  # tyro leaves in this way after --help or a flag it does not know
        status = stop.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_usage_lists_every_command(capsys):
    for arguments in ((), ("--help",), ("help",)):
        status, out, _ = run(capsys, *arguments)
        assert status == 0
        assert all(f"hgru {name}" in out for name in COMMANDS)


def test_version(capsys):
    assert run(capsys, "--version") == (0, f"{__version__}\n", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(capsys, name):
    status, out, _ = run(capsys, *name.split(), "--help")
    assert status == 0
    assert f"Example: hgru {name.split()[0]}" in " ".join(out.replace("│", " ").split())


def test_the_help_of_what_is_on_unless_told_names_the_flag_that_it_is_of(capsys):
    _, out, _ = run(capsys, "generate", "contours", "--help")
    assert "--antialias, --no-antialias" in out  # of which "Grey edges, ..." tells the first


def test_an_unknown_command_gets_the_nearest(capsys):
    status, _, err = run(capsys, "quickstrat")
    assert status == 2
    assert "no command 'quickstrat'; did you mean 'hgru quickstart'?" in err


def test_half_a_command_lists_the_rest(capsys):
    status, out, _ = run(capsys, "generate")
    assert status == 2
    assert "hgru generate pathfinder" in out
    assert run(capsys, "audit", "--help")[0] == 0


def test_an_unknown_flag_is_refused(capsys):
    status, _, err = run(capsys, "generate", "pathfinder", "--lenght", "6")
    assert status == 2
    assert "lenght" in err


def test_a_flag_of_several_values_is_refused_the_second_time(capsys):
    for flags in (("--set", "canvas=300", "--set", "contrast=1"), ("--set=a=1", "--set=b=2")):
        status, _, err = run(capsys, "audit", "pathfinder", *flags)
        assert status == 2
        assert err == (
            "hgru: --set is there twice; give all its values after one, as --set FIRST SECOND\n"
        )


def test_bad_input_is_one_line_without_a_traceback(capsys):
    status, out, err = run(capsys, "generate", "pathfinder", "--preset", "papr", "--out", "x")
    assert (status, out) == (2, "")
    assert err == "hgru: no preset 'papr'; did you mean 'paper'?\n"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(13, "Permission denied", "out"), "hgru: out: Permission denied"),
        (BlockingIOError(11, "another process writes to out"), "hgru: another process writes to o"),
        (FileNotFoundError("out has no files"), "hgru: out has no files"),
        (OverflowError("too large to convert"), "hgru: too large to convert"),
        (MemoryError(), "hgru: there is too little memory for this"),
        (MemoryError("9 GiB"), "hgru: there is too little memory for this: 9 GiB"),
        (torch.OutOfMemoryError("CUDA"), "hgru: there is too little memory for this: CUDA"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate"),
            "hgru: there is too little memory for this: DefaultCPUAllocator: can't allocate",
        ),
    ],
)
def test_what_the_machine_refuses_is_one_line_too(capsys, monkeypatch, error, told):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("tyro.cli", fail)
    status, _, said = run(capsys, "presets")
    assert status == 2
    assert said.startswith(told) and said.count("\n") == 1


def test_an_error_of_the_program_itself_keeps_its_traceback(capsys, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("a bug")

    monkeypatch.setattr("tyro.cli", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["presets"])


@pytest.mark.parametrize("place", ["commands.bench.run", "cli.import_module"])
def test_an_interrupt_is_quiet_even_while_the_command_is_loaded(capsys, monkeypatch, place):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"hgru_vision.{place}", stop)
    assert run(capsys, "bench") == (130, "", "hgru: interrupted\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["--version"], ["models", "--help"], ["models"]])
def test_a_reader_that_has_gone_is_no_error(arguments, unbuffered):
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-m", "hgru_vision.cli", *arguments],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_importing_the_package_or_the_command_line_loads_nothing_heavy():
    code = (
        "import sys, json, hgru_vision, hgru_vision.cli;"
        "heavy = ('torch', 'numba', 'matplotlib', 'triton');"
        "print(json.dumps([module for module in heavy if module in sys.modules]))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(out.stdout) == []


def test_public_names_resolve_and_others_do_not():
    import hgru_vision as hv

    for name in hv.__all__:
        assert getattr(hv, name) is not None
        assert name in dir(hv)
    with pytest.raises(AttributeError, match="module 'hgru_vision' has no attribute 'HGRUU'"):
        _ = hv.HGRUU
