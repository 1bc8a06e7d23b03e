import pytest
import torch

from hgru_vision.benchmarks import hgru_gpu_parts as parts


@pytest.mark.parametrize("make", [parts.images, parts.drive])
def test_what_is_drawn_is_a_function_of_the_draw(make, monkeypatch):
    monkeypatch.setattr(parts, "DEVICE", "cpu")
    monkeypatch.setattr(parts, "CANVAS", 8)
    assert torch.equal(make(2, 1), make(2, 1))
    assert not torch.equal(make(2, 1), make(2, 2))


@pytest.mark.parametrize("tf32", [True, False])
def test_switches_are_set_back(tf32):
    cudnn = torch.backends.cudnn

    def found():
        return torch.get_float32_matmul_precision(), cudnn.allow_tf32, cudnn.benchmark

    before = found()
    with parts.switches(tf32=tf32):
        assert found() == ("high" if tf32 else "highest", tf32, True)
    assert found() == before
