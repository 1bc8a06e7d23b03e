"""The folder of a run: its files, each of which appears whole or not at all.

=====================  ==============================================================
config.json            the `RunConfig`
curve.jsonl            one evaluation a line
checkpoint.pt          weights, optimiser, position and random states, to go on from
checkpoint.previous.pt the one before
weights.safetensors    the trained network, at the end
result.json            the `Result`, at the end
NAME.py                of a network of a user's own: a copy of its file, which is loaded
=====================  ==============================================================
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hgru_vision.data.durable import flush
from hgru_vision.references import find_file
from hgru_vision.training.config import WITHOUT_EFFECT, RunConfig
from hgru_vision.training.fields import differences, from_json, to_json
from hgru_vision.training.result import Point, Result

__all__ = [
    "CHECKPOINT",
    "CHECKPOINTS",
    "CONFIG",
    "CURVE",
    "FRESH",
    "PREVIOUS",
    "RESULT",
    "WEIGHTS",
    "check_output",
    "check_run",
    "check_same",
    "flush_names",
    "has_checkpoint",
    "keep_network",
    "located",
    "read_config",
    "read_curve",
    "read_network",
    "read_result",
    "replace_file",
    "write_curve",
    "write_json",
]

CONFIG, CURVE, RESULT = "config.json", "curve.jsonl", "result.json"
CHECKPOINT, PREVIOUS = "checkpoint.pt", "checkpoint.previous.pt"
FRESH = ".checkpoint.pt.fresh"
"""A whole checkpoint that has not come to its name: there after a kill between two renames."""
CHECKPOINTS = (FRESH, CHECKPOINT, PREVIOUS)
"""The newest first."""
WEIGHTS = "weights.safetensors"


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in one step: whatever the moment of a kill, it is the old or the new one.

    Its folder is made if need be.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(content)
        flush(partial)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    flush_names(path.parent)


def check_output(path: Path) -> None:
    """Refuse a file that could not be written: better now than after hours of work."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a file")
    folder = next(each for each in path.absolute().parents if each.exists())
    if not folder.is_dir():
        raise NotADirectoryError(f"{path} cannot be written: {folder} is no folder")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise PermissionError(f"{path} cannot be written: no permission")


def flush_names(folder: Path) -> None:
    """Force the names in a folder, new or changed, to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    """Write JSON for people and programs."""
    replace_file(path, (json.dumps(value, indent=2) + "\n").encode())


def write_curve(folder: Path, curve: Iterable[Point]) -> None:
    """Write the learning curve, one JSON line a point."""
    lines = "".join(json.dumps(to_json(point)) + "\n" for point in curve)
    replace_file(folder / CURVE, lines.encode())


def read_curve(folder: Path) -> list[Point]:
    """Read the learning curve of a run's folder, as far as it has come."""
    path = folder / CURVE
    lines = path.read_text().splitlines() if path.exists() else []
    return [from_json(Point, json.loads(line)) for line in lines]


def read_config(folder: Path) -> RunConfig | None:
    """Read the configuration of a run's folder; None where there is none.

    A network of a user's own is that of the copy which the folder has of its file.
    """
    value = _read_json(folder / CONFIG)
    if value is None:
        return None
    try:
        return located(RunConfig.from_json(value), folder)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{folder / CONFIG} is no run's configuration: {error}") from None


def read_result(folder: Path) -> Result | None:
    """Read the result of a run's folder; None before its end."""
    value = _read_json(folder / RESULT)
    return None if value is None else Result.from_json(value)


def located(config: RunConfig, folder: Path) -> RunConfig:
    """Let a network of a user's own come from the copy of its file in a folder, if that has one."""
    copy = folder / _file_name(config)
    if config.model_sha256 is None or not copy.is_file():
        return config
    same = hashlib.sha256(copy.read_bytes()).hexdigest() == config.model_sha256
    return replace(config, model_folder=str(folder)) if same else config


def read_network(config: RunConfig) -> bytes:
    """Read the file of a network of a user's own; refuse another one than the run's."""
    path = find_file(config.reference, "network")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != config.model_sha256:
        raise ValueError(
            f"{path} is not the file of the run: its sha256 is {found[:12]}..., model_sha256 says "
            f"{(config.model_sha256 or '')[:12]}..."
        )
    return content


def keep_network(config: RunConfig, folder: Path) -> RunConfig:
    """Copy the file of a network of a user's own to a folder, and give the run with the copy."""
    if config.model_sha256 is not None and located(config, folder) is config:
        content, name = read_network(config), _file_name(config)
        folder.mkdir(parents=True, exist_ok=True)
        # Sweeps that begin at once keep the same file; each writes it in a place of its own.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as own:
            replace_file(Path(own) / name, content)
            os.replace(Path(own) / name, folder / name)
        flush_names(folder)
    return located(config, folder)


def has_checkpoint(folder: Path) -> bool:
    """Whether a run can go on from here."""
    return any((folder / name).exists() for name in CHECKPOINTS)


def check_run(folder: Path, config: RunConfig, *, resume: bool) -> Result | None:
    """Check that a run may begin or go on in a folder.

    Parameters
    ----------
    folder
        Of the run.
    config
        Of the run.
    resume
        Whether a run that is there may be gone on with.

    Returns
    -------
    result or None
        The result if the run is over.
    """
    there = read_config(folder)
    begun = there is not None or has_checkpoint(folder)
    if begun and not resume:
        raise FileExistsError(f"{folder} holds a run; resume it (--resume), or give another folder")
    if not begun and folder.is_dir() and (other := _content(folder)):
        raise FileExistsError(f"{folder} holds {other!r} and no run; give an empty or a new folder")
    if there is not None:
        check_same(there, config, folder)
        result = read_result(folder)
        if result is not None and result.outcome != "diverged":
            return result
    return None


def check_same(there: RunConfig, here: RunConfig, folder: Path) -> None:
    """Refuse to go on with another configuration than the folder's, naming the fields."""
    old, new = (
        {key: value for key, value in each.to_json().items() if key not in WITHOUT_EFFECT}
        for each in (there, here)
    )
    if there.model == here.model and there.model_sha256 != here.model_sha256:
        raise ValueError(
            f"{_file_name(here)} has changed since the run in {folder} began. To go on with the "
            f"copy from then: hgru train --config {folder} --out {folder} --resume. For the "
            "changed network give another folder"
        )
    if differ := differences(old, new):
        raise ValueError(
            f"{folder} holds another run: {'; '.join(differ)}. Give the old values to resume, or "
            "another folder"
        )


def _file_name(config: RunConfig) -> str:
    return config.model.rpartition(":")[0]


def _content(folder: Path) -> str | None:
    """Name something in a folder that was there before a run began.

    TensorBoard's files may be of this run, of a start that failed.
    """
    ours = ".", "events.out.tfevents"
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith(ours))
    return names[0] if names else None


def _read_json(path: Path) -> Any:
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); remove it to do without it") from None
