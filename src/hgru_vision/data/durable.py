"""Files that appear whole or not at all: a folder for partial ones, flushed, then moved.

For POSIX systems; reading a dataset needs none of this.
"""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

PARTIAL_NAME = ".partial"
MANY_FILES = 32
_NO_LOCKS = frozenset({errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})


@contextlib.contextmanager
def only_writer(directory: Path) -> Iterator[None]:
    """Hold a lock on a directory, which the system drops even after a kill.

    Raises
    ------
    BlockingIOError
        If another process holds it.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BlockingIOError(
                error.errno, f"another process writes to {directory}; wait for it or stop it"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:  # some network file systems
                raise
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def partial_folder(directory: Path) -> Iterator[Path]:
    """Make the folder for partial files, on the file system where they will stay; remove it."""
    partial = directory / PARTIAL_NAME
    partial.mkdir()
    try:
        yield partial
    finally:
        remove(partial)


def flush(folder: Path) -> None:
    """Force everything below a folder to the disk."""
    paths = [folder, *folder.rglob("*")]
    if len(paths) > MANY_FILES:
        os.sync()  # the whole system's files at once, far sooner than thousands one by one
    else:
        for path in paths:
            _flush_one(path)


def move_into_place(partial: Path, directory: Path, name: str) -> None:
    """Rename a flushed file or folder from one directory to the other, and flush the rename."""
    target = directory / name
    target.parent.mkdir(exist_ok=True)
    os.replace(partial / name, target)
    _flush_one(target.parent)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _flush_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
