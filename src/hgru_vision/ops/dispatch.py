"""The one entrance to the horizontal convolution, and the choice of the way it is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, get_args

import torch
from torch import Tensor

from hgru_vision.ops.dft import circle
from hgru_vision.ops.reference import DirectKernel
from hgru_vision.ops.spectral import FourierKernel, MatrixKernel
from hgru_vision.ops.tiling import plan

__all__ = [
    "MOST_CHANNELS",
    "STORAGE",
    "Backend",
    "Choice",
    "PreparedKernel",
    "explain",
    "has_triton",
    "horizontal_conv",
    "in_order",
    "is_exporting",
    "prepare",
    "storage_at_once",
    "takes_kernels",
]

Backend = Literal["auto", "reference", "fft", "matmul", "gemm", "gemm32"]
"""Names of the ways to compute; "auto" takes the fastest for the case."""

MOST_CHANNELS = 128
"""That the hGRU's steps in one piece take: more do not fit into the registers of a program."""

STORAGE: dict[Backend, torch.dtype] = {"gemm": torch.float16, "gemm32": torch.float32}
"""What the GPU forms keep between products."""

PreparedKernel = Callable[[Tensor], Tensor]
"""A kernel made ready for images of one shape: (B, K_in, H, W) -> (B, K_out, H, W)."""

# The currency is a multiply-add of a direct convolution. HISTORY.md has the measurements.
# On a CPU, 57 of them take a nanosecond on one core where output channels fill vectors of 16.
_VECTOR = 16  # output channels are computed by as many
_TRANSFORM_COST = 270  # of one point, there or back
_MIX_COST = 6  # of one complex product at one frequency
# On an H200 these three are a fit to the table of shapes in README.md.
_GPU_TRANSFORM_COST = 540
_GPU_MIX_COST = 6
_GPU_LEAST = 32e9  # of a whole batch: with fewer the direct form is done before all is launched


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What `prepare` takes for a case, and why it takes nothing else.

    Attributes
    ----------
    backend
        What is taken, never "auto".
    reasons
        One sentence for each name but "auto".
    """

    backend: Backend
    reasons: dict[Backend, str]

    def __str__(self) -> str:
        lines = [f"{self.backend} (taken): {self.reasons[self.backend]}"]
        lines += [f"{k}: {why}" for k, why in self.reasons.items() if k != self.backend]
        return "\n".join(lines)


def horizontal_conv(x: Tensor, weight: Tensor, backend: Backend = "auto") -> Tensor:
    """Convolve an image with large kernels, size unchanged, zeros beyond the border.

    The W * H of Eqs. 4 and 7; a cross-correlation, as `torch.nn.functional.conv2d` has it. To use
    one kernel many times, as a recurrent circuit does, `prepare` it once.

    Parameters
    ----------
    x
        Images.
    weight
        Kernels, square and of odd size S.
    backend
        "reference" (direct), "fft", "matmul" (the Fourier transform as matrix products: for
        exporters, and for compilers on a CPU), "gemm" and "gemm32" (the same for GPUs, with kernels
        of our own, stored in float16 or float32; differentiable once), or "auto". `explain` tells
        what "auto" takes.

    Returns
    -------
    Tensor
        In the dtype of `x`; under autocast in that of autocast where `conv2d` computes it.

    Shape
    -----
    x : (B, K_in, H, W)
    weight : (K_out, K_in, S, S)
    output : (B, K_out, H, W)

    Examples
    --------
    >>> x, weight = torch.ones(1, 2, 40, 40), torch.ones(3, 2, 5, 5)
    >>> horizontal_conv(x, weight).shape
    torch.Size([1, 3, 40, 40])
    >>> float(horizontal_conv(x, weight, backend="reference")[0, 0, 20, 20])
    50.0
    """
    return prepare(weight, x, backend)(x)


def prepare(weight: Tensor, x: Tensor, backend: Backend = "auto") -> PreparedKernel:
    """Make a kernel ready for images like `x`.

    All that depends on the kernel alone is done here, once; gradients of every later use meet in
    the prepared form and go through it to `weight` once. Of `x` only shape, dtype and device count.

    Parameters
    ----------
    weight
        (K_out, K_in, S, S), S odd.
    x
        An example of the images to come, (B, K_in, H, W).
    backend
        As in `horizontal_conv`.

    Examples
    --------
    >>> x = torch.ones(1, 1, 8, 8)
    >>> conv = prepare(torch.ones(1, 1, 3, 3), x)
    >>> torch.equal(conv(x), conv(x))
    True
    """
    _check(x, weight, backend)
    name = _choose(x, weight.shape, backend)
    if name == "reference":
        return DirectKernel(weight)
    if name in STORAGE:
        from hgru_vision.ops.gemm import GemmKernel  # needs Triton

        return GemmKernel.prepare(weight, x, STORAGE[name])
    return (FourierKernel if name == "fft" else MatrixKernel).prepare(weight, x)


def explain(x: Tensor, weight: Tensor, backend: Backend = "auto") -> Choice:
    """Say which way `prepare` takes for images like `x`, and why not the others.

    A pure function of shapes, dtype and device, of the backend asked for, of whether Triton is
    there, whether torch may convolve as TF32 (``torch.backends.cudnn.allow_tf32``), whether
    autocast is on, and whether a compiler, an exporter or torch.func is tracing.

    It tells of one convolution. On a GPU an hGRU runs all its steps in one piece, which pays where
    a convolution alone does not: for that ask `storage_at_once`.

    Examples
    --------
    >>> print(explain(torch.empty(1, 25, 150, 150), torch.empty(25, 25, 15, 15)))
    fft (taken): 635.9 million operations an image, 4,050.0 million for the direct form
    reference: 4,050.0 million operations an image, 635.9 million in the frequency domain
    matmul: slower than the fast transform; for compilers and exporters
    gemm: x is on the cpu; the GPU forms need CUDA
    gemm32: x is on the cpu; the GPU forms need CUDA
    """
    _check(x, weight, backend)
    taken = _choose(x, weight.shape, backend)
    if backend != "auto":
        return Choice(backend=taken, reasons=dict.fromkeys(_WAYS, f"{taken!r} was asked for"))
    missing = _gpu_form_lacks(x)
    counts = _operations(x, weight.shape, on_gpu=missing is None)
    direct, spectral = (f"{count / 1e6:,.1f} million" for count in counts)
    fewer = f"{spectral} operations an image, {direct} for the direct form"
    reasons: dict[Backend, str] = {
        "reference": f"{direct} operations an image, {spectral} in the frequency domain",
        "fft": fewer,
        "matmul": fewer,
        "gemm": missing or fewer,
        "gemm32": missing or "twice the memory and time of gemm; where TF32 is not allowed",
    }
    if missing is None and taken == "reference" and counts[1] < counts[0]:
        of_all = f"{len(x) * counts[0] / 1e6:,.1f} million operations of all images"
        reasons["reference"] = f"{of_all} are done before the GPU form is launched"
        reasons["fft"] = reasons["matmul"] = reasons["gemm"] = f"{of_all} are few for its launches"
    if taken == "gemm32":
        reasons["gemm"] = "about as exact as TF32, which torch.backends.cudnn does not allow"
        reasons["gemm32"] = fewer
    if taken in STORAGE:
        reasons["fft"] = reasons["matmul"] = "slower than the GPU form"
    elif taken == "fft":
        reasons["matmul"] = "slower than the fast transform; for compilers and exporters"
    elif taken == "matmul":
        reasons["fft"] = "the compiler or exporter that is tracing knows no complex numbers"
    return Choice(backend=taken, reasons=reasons)


_WAYS: tuple[Backend, ...] = get_args(Backend)[1:]
_TRITON = find_spec("triton") is not None  # found once: a compiler does not trace the search


def storage_at_once(
    x: Tensor, channels: int, kernel_size: int, backend: Backend
) -> torch.dtype | None:
    """Say how the hGRU's steps in one piece (`ops/hgru.py`) store; None if another way is taken.

    What happens at a pixel is in their kernels too, so that "auto" takes them on a GPU where a
    convolution alone would go the direct way (measured: README.md in this folder).
    """
    if channels > MOST_CHANNELS:
        return None
    if backend == "auto" and _gpu_form_lacks(x) is None:
        return STORAGE[_gpu_form(x)]
    taken = _choose(x, (channels, channels, kernel_size, kernel_size), backend)
    return STORAGE.get(taken)


def in_order(x: Tensor, channels: int, kernel_size: int, backend: Backend) -> Tensor:
    """Put a drive's channels side by side in memory where the GPU form is taken for its circuit.

    It keeps whatever order it gets, and so does what happens at a pixel: with this order batch norm
    and 1x1 convolutions need not search all of memory for the few channels of a pixel.
    """
    taken = _choose(x, (channels, channels, kernel_size, kernel_size), backend)
    return x.contiguous(memory_format=torch.channels_last) if taken in STORAGE else x


def _choose(x: Tensor, shape: Sequence[int], backend: Backend) -> Backend:
    if backend in STORAGE and (missing := _gpu_form_lacks(x)):
        raise ValueError(f"backend is {backend!r}, but {missing}")
    if backend != "auto":
        return backend
    on_gpu = _gpu_form_lacks(x) is None
    direct, spectral = _operations(x, shape, on_gpu=on_gpu)
    if direct <= spectral or (on_gpu and len(x) * direct < _GPU_LEAST):
        return "reference"
    if on_gpu:
        return _gpu_form(x)
    return "matmul" if torch.compiler.is_compiling() else "fft"


def _gpu_form(x: Tensor) -> Backend:
    """Pick a GPU form as exact as `conv2d` may be: `gemm` is about as exact as TF32."""
    exact = x.dtype == torch.float32 and not torch.is_autocast_enabled(x.device.type)
    return "gemm32" if exact and not _allows_tf32() else "gemm"


def _allows_tf32() -> bool:
    """Say whether torch may convolve float32 as TF32, as it may unless it is told otherwise."""
    if torch.compiler.is_compiling():  # which cannot trace the newer switch
        return torch.backends.cudnn.allow_tf32
    return torch.backends.cudnn.conv.fp32_precision == "tf32"  # type: ignore[attr-defined]


def _gpu_form_lacks(x: Tensor) -> str | None:
    """Say what the Triton forms miss to work on `x`; None if nothing."""
    if x.device.type != "cuda":
        return f"x is on the {x.device.type}; the GPU forms need CUDA"
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return f"x is {x.dtype}; the GPU forms compute in float16 or float32"
    if is_exporting() or torch._C._are_functorch_transforms_active():
        return "an exporter or torch.func is tracing; the GPU forms are opaque to both"
    if not has_triton():
        return "Triton is not installed"
    return None


def is_exporting() -> bool:
    """Say whether `torch.export` is tracing, by which ONNX export goes too."""
    # The flag, and not `torch.compiler.is_exporting()`: torch.compile of torch 2.11 takes that for
    # True wherever it traces (pytorch issue 176347).
    return torch.compiler._is_exporting_flag


def takes_kernels(*tensors: Tensor) -> bool:
    """Say whether a kernel that torch cannot look into may take these: float32, and nobody traces.

    Examples
    --------
    >>> takes_kernels(torch.ones(2))  # on a CPU
    False
    """
    return (
        all(each.dtype == torch.float32 for each in tensors)
        and all(_gpu_form_lacks(each) is None for each in tensors)
        and not torch.is_autocast_enabled("cuda")
        and not torch.compiler.is_compiling()
    )


def has_triton() -> bool:
    """Say whether kernels of our own can be compiled here."""
    return _TRITON


def _operations(x: Tensor, shape: Sequence[int], *, on_gpu: bool) -> tuple[int, int]:
    """Multiply-adds an image of the direct form and, in the same currency, of the spectral one."""
    k_out, k_in, size, _ = shape
    height, width = x.shape[-2:]
    if on_gpu:
        domain = circle(height, width, size)
        points, vector = domain.rows * domain.x_size, 1
        mix, transform = _GPU_MIX_COST, _GPU_TRANSFORM_COST
    else:
        points, vector = plan(height, width, size, x.device.type).points, _VECTOR
        mix, transform = _MIX_COST, _TRANSFORM_COST
    direct = height * width * (-(-k_out // vector) * vector) * k_in * size**2
    return direct, points * (mix * k_out * k_in + transform * (k_out + k_in))


def _check(x: Tensor, weight: Tensor, backend: Backend) -> None:
    if backend not in get_args(Backend):
        raise ValueError(f"backend is {backend!r}; choose one of {', '.join(get_args(Backend))}")
    if weight.ndim != 4 or weight.shape[2] != weight.shape[3] or weight.shape[2] % 2 == 0:
        raise ValueError(
            f"weight has shape {tuple(weight.shape)}; it must be (K_out, K_in, S, S) with S odd, "
            "so that a kernel has a centre"
        )
    if x.ndim != 4 or x.numel() == 0:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; it must be (B, K_in, H, W), none of them 0"
        )
    if x.shape[1] != weight.shape[1]:
        raise ValueError(f"x has {x.shape[1]} channels, weight takes {weight.shape[1]}")
    if not x.is_floating_point():
        raise TypeError(f"x is {x.dtype}; convert it to a floating-point dtype")
    if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(
            f"x is {x.dtype} and weight {weight.dtype}; convert one of them, or use torch.autocast"
        )
