"""Shared by all tests."""

import hashlib
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# numba's cache looks at the time stamp of the compiled function's own file, not at the files that
# it calls into. A cache of its own for each state of the sources is never stale.
_sources = sorted((ROOT / "src/hgru_vision/stimuli").glob("*.py"))
_digest = hashlib.sha256(b"".join(path.read_bytes() for path in _sources)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / f"numba-{_digest}"))


# Workers of pytest-xdist share the cores; threads of torch besides would wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


# Triton's kernels run in its interpreter where there is no GPU. It asks when it is imported, which
# torch may do long before a test does.
if not Path("/dev/nvidia0").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real data beside the checkout; tests that need it are skipped without it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the folder of real data, ../shared/data, beside the checkout")
    return folder
