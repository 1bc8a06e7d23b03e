"""Triton kernels run on the GPU where there is one, else on the CPU, in Triton's interpreter."""

from types import SimpleNamespace

import pytest
import torch

collect_ignore = ["compile_kernels.py"]  # a program of its own; doctests would import it


@pytest.fixture(scope="session")
def gpu_forms():
    """Import the modules whose kernels are Triton's, and say on which device they run."""
    pytest.importorskip("triton")
    from hgru_vision.ops import gemm, hgru, mix_kernels

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return SimpleNamespace(gemm=gemm, hgru=hgru, mix_kernels=mix_kernels, device=device)


@pytest.fixture
def poisoned(monkeypatch):
    """Fill with NaN whatever is allocated without a value, so that reading it shows.

    Bytes are exponents of states, and of a NaN that is 127. Gates have none: of them it is the
    largest number, 2.
    """

    def poison(make):
        def made(*args, **keywords):
            tensor = make(*args, **keywords)
            if tensor.device.type != "meta" and tensor.is_floating_point():
                tensor.fill_(float("nan"))
            elif tensor.dtype == torch.int8:
                tensor.fill_(127)
            elif tensor.dtype == torch.uint16:
                tensor.view(torch.int16).fill_(-1)
            return tensor

        return made

    for owner, name in [(torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty")]:
        monkeypatch.setattr(owner, name, poison(getattr(owner, name)))
