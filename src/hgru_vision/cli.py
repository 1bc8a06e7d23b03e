"""The command `hgru`: finds the function behind a command and lets tyro read its flags.

A command is a function; its signature gives the flags and its docstring the help. Modules are
imported when their command is called, so that `hgru --help` answers at once.
"""

import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import get_type_hints

COMMANDS = {
    "quickstart": ("quickstart:quickstart", "the whole story in minutes, ending in a report"),
    "generate pathfinder": ("generate:pathfinder", "write Pathfinder images to files"),
    "generate contours": ("generate:contours", "write synthetic contours to files"),
    "generate --verify": ("generate:verify", "check files written before, byte by byte"),
    "audit pathfinder": ("audit:pathfinder", "how well the label is read without tracing a path"),
    "audit contours": ("audit:contours", "how well a contour is told without linking paddles"),
    "presets": ("presets:presets", "the Pathfinders that have a name, and their sources"),
    "models": ("models:models", "the networks of the study, with their sizes"),
    "train": ("train:train", "train a network by a recipe; resumes after a kill"),
    "eval": ("eval:evaluate", "how well a trained network does, and where"),
    "eval-boundaries": ("eval_boundaries:eval_boundaries", "the BSDS500 score of boundary maps"),
    "generalise": ("generalise:generalise", "a trained network on images of other kinds"),
    "sweep": ("sweep:sweep", "the runs of a grid, inside a time budget"),
    "figures": ("figures:figures", "the paper's figures, from the ledger"),
    "report": ("report:report", "all results in one page"),
    "weights": ("weights:weights", "the trained networks of this package"),
    "weights show": ("weights:show", "what is known of one of them, and how to make it again"),
    "weights publish": ("weights:publish", "put a run's network among them"),
    "bench": ("bench:bench", "measure speed on this machine, as ratios"),
}


def usage() -> str:
    """List the commands."""
    width = max(map(len, COMMANDS))
    lines = [f"  hgru {name:<{width}}  {what}" for name, (_, what) in COMMANDS.items()]
    return "\n".join(
        ["usage: hgru COMMAND [FLAGS]", "", *lines, "", "hgru COMMAND --help tells the flags."]
    )


def find(arguments: Sequence[str]) -> tuple[str, list[str]] | None:
    """Split a command line into the name of its command and the rest."""
    for words in (2, 1):
        name = " ".join(arguments[:words])
        if name in COMMANDS and len(arguments) >= words:
            return name, list(arguments[words:])
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()  # or Python does at its end, where no reader left is an error
    except BrokenPipeError:
        # The output is read no further, as by `head`: end quietly, as rich does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(arguments: Sequence[str]) -> int:
    """Run a command; tell in one line what goes wrong."""
    found = find(arguments)
    if found is None:
        return _refuse(arguments)
    name, rest = found
    module, function = COMMANDS[name][0].split(":")
    try:
        import tyro

        run = getattr(import_module(f"hgru_vision.commands.{module}"), function)
        if twice := _given_twice(run, rest):
            raise ValueError(
                f"{twice} is there twice; give all its values after one, as {twice} FIRST SECOND"
            )
        # Shorter help: no "{None}|STR" for what may be left out.
        tyro.cli(run, prog=f"hgru {name}", args=rest, config=(tyro.conf.DisallowNone,))
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, ImportError, ArithmeticError) as error:
        # What the user gave was wrong, or the machine is: one line, no traceback.
        print(f"hgru: {_in_words(error)}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        from hgru_vision.training.environment import is_of_memory

        if not is_of_memory(error):
            raise
        told = f"there is too little memory for this{f': {error}' if str(error) else ''}"
        print(f"hgru: {told}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("hgru: interrupted", file=sys.stderr)
        return 130
    return 0


def _in_words(error: Exception) -> str:
    """Tell an error as a sentence: what the system says comes without its number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _given_twice(run: Callable[..., object], flags: Sequence[str]) -> str | None:
    """Find a flag of several values that is there again: those of the first would be lost."""
    names = [each.partition("=")[0] for each in flags]
    several = (name for name, kind in get_type_hints(run).items() if "tuple[" in str(kind))
    again = (f"--{name.rstrip('_').replace('_', '-')}" for name in several)
    return next((name for name in again if names.count(name) > 1), None)


def _refuse(arguments: Sequence[str]) -> int:
    """Show the usage; exit with an error unless it was asked for."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if arguments[0] == "--version":
        from hgru_vision import __version__

        print(__version__)
        return 0
    asked = " ".join(arguments[:2])
    choices = [name for name in COMMANDS if name.startswith(f"{arguments[0]} ")]
    if choices and (
        len(arguments) == 1 or arguments[1].startswith("-h") or arguments[1] == "--help"
    ):
        print("\n".join(f"hgru {name}  {COMMANDS[name][1]}" for name in choices))
        return 0 if len(arguments) > 1 else 2
    near = get_close_matches(asked, COMMANDS, n=1, cutoff=0.5)
    hint = f"; did you mean 'hgru {near[0]}'?" if near else ""
    print(f"hgru: no command {asked!r}{hint}\n\n{usage()}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
