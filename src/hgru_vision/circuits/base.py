"""What the recurrent circuits share: the loop over time, the start, and the checks of the input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as recompute

from hgru_vision.circuits.start import as_generator
from hgru_vision.ops import Backend, PreparedKernel, in_order, is_exporting
from hgru_vision.papers.linsley2018 import CHANNELS, KERNEL_SIZE, TIMESTEPS

__all__ = ["Circuit", "Horizontal", "Start", "Trajectory"]

Start = Literal["zero", "random", "learned"]
"""Where the hidden state starts."""


# Numbers of a state that run together on a CPU. Larger tensors cost page faults in every operation.
_CPU_PART = 1 << 21


class Horizontal(NamedTuple):
    """The horizontal kernels of a circuit, prepared for one forward pass."""

    inhibition: PreparedKernel
    excitation: PreparedKernel


class Trajectory(NamedTuple):
    """States and gates of one step, (B, K, H, W) each, or of all steps, (T, B, K, H, W) each."""

    h1: Tensor
    h2: Tensor
    g1: Tensor
    g2: Tensor


class Circuit(nn.Module, ABC):
    """A layer that runs a circuit for a number of steps over a constant drive.

    A circuit says what its parameters are (`build`), how its kernels are made ready for a forward
    pass (`prepare`) and what one `step` is.

    Parameters
    ----------
    channels, kernel_size, timesteps
        K, S (odd) and T of the paper.
    start
        Where H2[0] starts when no state is given: "zero"; "learned", one trained value a channel;
        or "random", as in the paper's supplement ("Model architecture details"), which gives no
        scale: uniform within the Xavier bound of W, sqrt(3 / (K S^2)). "random" draws from the
        generator passed to `forward`; without one it is the same draw in every call and for every
        image, so that an output never depends on what else is in the batch. An exporter is refused:
        its graph would draw anew in every call.
    backend
        How the horizontal convolution is computed: see `hgru_vision.ops`.
    checkpoint
        Store one state a step for the backward pass and compute the rest again: less memory, a
        third more time; on a GPU several times as much for the hGRU, which goes step by step then.
    generator
        For the starting values of the parameters; a new one of seed 0 if not given.
    """

    def __init__(
        self,
        channels: int = CHANNELS,
        kernel_size: int = KERNEL_SIZE,
        timesteps: int = TIMESTEPS,
        *,
        start: Start = "zero",
        backend: Backend = "auto",
        checkpoint: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        _check_count("channels", channels)
        _check_count("kernel_size", kernel_size)
        if kernel_size % 2 == 0:
            raise ValueError(
                f"kernel_size is {kernel_size}; it must be odd, so that a kernel has a centre"
            )
        _check_count("timesteps", timesteps)
        if start not in get_args(Start):
            raise ValueError(f"start is {start!r}; choose one of {', '.join(get_args(Start))}")
        if backend not in get_args(Backend):
            raise ValueError(
                f"backend is {backend!r}; choose one of {', '.join(get_args(Backend))}"
            )
        self.channels = channels
        self.kernel_size = kernel_size
        self.timesteps = timesteps
        self.start = start
        self.backend = backend
        self.checkpoint = checkpoint
        device = torch.get_default_device()
        with torch.device("cpu"):  # where draws are the same whatever the device
            if start == "learned":
                self.h0 = nn.Parameter(torch.zeros(channels, 1, 1))
            self.build(as_generator(generator))
        self.to(device)  # as torch's own layers do

    @abstractmethod
    def build(self, generator: torch.Generator) -> None:
        """Make the parameters, with starting values from `generator`."""

    @abstractmethod
    def prepare(self, x: Tensor) -> Horizontal:
        """Make the kernels ready for a drive like `x`: once a forward pass, used in every step."""

    @abstractmethod
    def step(
        self, x: Tensor, h2: Tensor, t: int, horizontal: Horizontal | None = None
    ) -> Trajectory:
        """Go from H2[t-1] to step t.

        Parameters
        ----------
        x
            Drive.
        h2
            H2[t-1].
        t
            Step, counted from 0.
        horizontal
            What `prepare` gave; made for this one step if not given.

        Shape
        -----
        x, h2 and each output : (B, K, H, W)
        """

    def run_at_once(self, x: Tensor, state: Tensor | None, steps: int) -> Tensor | None:
        """Run all steps in one piece, where a circuit has a way that fits the drive: the last H2.

        `state` is None for a start at zero.
        """
        return None

    def forward(
        self,
        x: Tensor,
        state: Tensor | None = None,
        timesteps: int | None = None,
        return_trajectory: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor | Trajectory:
        """Run the circuit on a drive that is constant in time.

        Parameters
        ----------
        x
            Drive. NaN is not looked for, which would make a GPU wait: it spreads from its pixel
            through the horizontal connections of its own image, and of no other.
        state
            H2[0]; if not given, as `start` says.
        timesteps
            Steps to run, T if not given. Beyond T, what is learnt step by step (the time-gain,
            per-step batch norm) goes on with its last value.
        return_trajectory
            Give H1, H2, G1 and G2 of all steps, not the last H2 alone.
        generator
            For `start="random"`.

        Shape
        -----
        x, state, output : (B, K, H, W)
        trajectory : four of (T, B, K, H, W)
        """
        steps = self.timesteps if timesteps is None else timesteps
        _check_count("timesteps", steps)
        self._check_drive(x)
        state = self._first_state(x, state, generator)
        recomputes = self.checkpoint and torch.is_grad_enabled()
        if not (return_trajectory or recomputes):
            last = self.run_at_once(x, state, steps)
            if last is not None:
                return last
        x = in_order(x, self.channels, self.kernel_size, self.backend)
        h2 = torch.zeros_like(x) if state is None else state
        horizontal = self.prepare(x)
        parts = [
            self._run(part, start, steps, horizontal, return_trajectory)
            for part, start in zip(self._parts(x), self._parts(h2), strict=True)
        ]
        whole = [
            each[0] if len(each) == 1 else torch.cat(each, dim=-4)
            for each in zip(*parts, strict=True)
        ]
        return Trajectory(*whole) if return_trajectory else whole[0]

    def _run(
        self, x: Tensor, h2: Tensor, steps: int, horizontal: Horizontal, return_trajectory: bool
    ) -> tuple[Tensor, ...]:
        """Run all steps for some of the images: the last H2, or what a trajectory has."""
        history: list[Trajectory] = []
        for t in range(steps):
            if self.checkpoint and torch.is_grad_enabled():
                # A compiler keeps statistics from being counted twice by itself.
                traced = torch.compiler.is_compiling()
                own: dict[str, Any] = {} if traced else {"context_fn": self._contexts}
                now = recompute(self.step, x, h2, t, horizontal, use_reentrant=False, **own)
            else:
                now = self.step(x, h2, t, horizontal)
            h2 = now.h2
            if return_trajectory:
                history.append(now)
        if return_trajectory:
            return tuple(torch.stack(each) for each in zip(*history, strict=True))
        return (h2,)

    def _parts(self, x: Tensor) -> tuple[Tensor, ...]:
        """Cut into images that run together; a few at a time stay in the cache of a CPU."""
        if x.device.type != "cpu" or torch.compiler.is_compiling() or self._images_interact():
            return (x,)  # not even split(len(x)), which fixes the number of images for an exporter
        return x.split(max(1, _CPU_PART // x[0].numel()))

    def _images_interact(self) -> bool:
        """Say whether an image's result depends on the others of its batch."""
        return False

    def extra_repr(self) -> str:
        """Show what the layer was made with."""
        return (
            f"channels={self.channels}, kernel_size={self.kernel_size}, "
            f"timesteps={self.timesteps}, start={self.start!r}, backend={self.backend!r}, "
            f"checkpoint={self.checkpoint}"
        )

    def _contexts(self) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        """Contexts of a checkpointed step and of its recomputation."""
        return nullcontext(), nullcontext()

    def _first_state(
        self, x: Tensor, state: Tensor | None, generator: torch.Generator | None
    ) -> Tensor | None:
        """Check the state that was given, or start as `start` says; None stands for zero."""
        if state is not None:
            self._check_state(x, state)
            return state
        if self.start == "zero":
            return None
        if self.start == "learned":
            return self.h0.expand_as(x)
        if is_exporting():
            raise RuntimeError(
                "start is 'random', which an exported network would draw anew in every call; pass "
                "state, or make the layer with start 'zero' or 'learned'"
            )
        bound = (3 / (self.channels * self.kernel_size**2)) ** 0.5
        shape = tuple(x.shape)
        if generator is None:
            generator, shape = torch.Generator().manual_seed(0), (1, *shape[1:])
        uniform = torch.rand(shape, generator=generator, device=generator.device, dtype=x.dtype)
        return ((2 * uniform - 1) * bound).to(x.device).expand_as(x)

    def _check_drive(self, x: Tensor) -> None:
        if not isinstance(x, Tensor):
            raise TypeError(f"x is {type(x).__name__}; this layer takes a torch tensor")
        if x.ndim != 4 or x.shape[1] != self.channels or x.numel() == 0:
            raise ValueError(
                f"x has shape {tuple(x.shape)}; this layer takes (B, {self.channels}, H, W), none "
                "of them 0"
            )
        dtype = next((each.dtype for each in self.parameters()), x.dtype)  # it may have none
        if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
            raise TypeError(
                f"x is {x.dtype} and the layer {dtype}; convert one of them, or use torch.autocast"
            )

    def _check_state(self, x: Tensor, state: Tensor) -> None:
        if state.shape != x.shape:
            raise ValueError(
                f"state has shape {tuple(state.shape)}; it must be that of x, {tuple(x.shape)}"
            )
        if state.dtype != x.dtype and not torch.is_autocast_enabled(x.device.type):
            raise TypeError(f"state is {state.dtype} and x {x.dtype}; convert one of them")


def _check_count(name: str, value: int) -> None:
    """Refuse what torch would refuse later, in words of its own."""
    if not isinstance(value, Integral):
        raise TypeError(f"{name} is {value!r}; it must be a whole number")
    if value < 1:
        raise ValueError(f"{name} is {value}; it must be 1 or more")
