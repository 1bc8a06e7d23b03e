import subprocess
import sys
from pathlib import Path

import pytest


def compile_all(*channels):
    """The names of the kernels that were compiled for Hopper."""
    pytest.importorskip("triton")
    script = Path(__file__).with_name("compile_kernels.py")
    done = subprocess.run([sys.executable, script, *channels], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {line.split()[0] for line in done.stdout.splitlines()}


def test_every_kernel_compiles_for_a_gpu():
    # What runs in the interpreter need not compile; no GPU is needed to see that it does.
    from hgru_vision.ops import hgru_kernels, map_kernels, mix_kernels, response_kernels

    modules = map_kernels, mix_kernels, response_kernels
    named = {each for module in modules for each in dir(module) if each.endswith("_kernel")}
    assert compile_all("8") == named | set(hgru_kernels.__all__) - {"CONSTANTS"}


@pytest.mark.slow
def test_every_kernel_compiles_at_other_widths():
    compile_all("1", "25", "128")
