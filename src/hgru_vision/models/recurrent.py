"""Recurrent networks: a circuit between the input and the readout stage.

Main, "Recurrent models", and Supp., "Additional recurrent models". All have 25 channels and 15x15
horizontal kernels, whose convolution is computed as `backend` says (see `hgru_vision.ops`).
"""

from __future__ import annotations

from torch import Generator, nn

from hgru_vision.circuits import (
    HGRU,
    Circuit,
    ConvGRU,
    ConvGRU2L,
    HGRUBatchNorm,
    HGRUNoLinear,
    HGRUNonnegative,
    HGRUNoQuadratic,
    HGRUNoTimeGain,
)
from hgru_vision.circuits.equilibrium import EquilibriumHGRU
from hgru_vision.models.registry import Head
from hgru_vision.models.stages import StandardNetwork
from hgru_vision.ops import Backend
from hgru_vision.papers.linsley2018 import SHORTER_TIMESTEPS, TIMESTEPS

__all__ = [
    "DRIVE_GAIN",
    "gru",
    "gru_2l",
    "hgru",
    "hgru_4",
    "hgru_6",
    "hgru_bn",
    "hgru_crbp",
    "hgru_no_linear",
    "hgru_no_quadratic",
    "hgru_no_time_gain",
    "hgru_nonnegative",
]

DRIVE_GAIN = 0.5
"""Factor on the drive. The paper has none; networks with half of the drive were seen to start to
learn sooner (docs/differences.md)."""


def _network(circuit: Circuit, head: Head, drive_gain: float, generator: Generator) -> nn.Module:
    return StandardNetwork(circuit, circuit.channels, head, generator, gain=drive_gain)


def hgru(
    *,
    generator: Generator,
    head: Head,
    timesteps: int = TIMESTEPS,
    drive_gain: float = DRIVE_GAIN,
    backend: Backend = "auto",
) -> nn.Module:
    """Make the hGRU network, Eqs. 3 to 9."""
    circuit = HGRU(timesteps=timesteps, backend=backend, generator=generator)
    return _network(circuit, head, drive_gain, generator)


def hgru_6(
    *,
    generator: Generator,
    head: Head,
    drive_gain: float = DRIVE_GAIN,
    backend: Backend = "auto",
) -> nn.Module:
    """Make the hGRU network with 6 steps."""
    circuit = HGRU(timesteps=SHORTER_TIMESTEPS[0], backend=backend, generator=generator)
    return _network(circuit, head, drive_gain, generator)


def hgru_4(
    *,
    generator: Generator,
    head: Head,
    drive_gain: float = DRIVE_GAIN,
    backend: Backend = "auto",
) -> nn.Module:
    """Make the hGRU network with 4 steps."""
    circuit = HGRU(timesteps=SHORTER_TIMESTEPS[1], backend=backend, generator=generator)
    return _network(circuit, head, drive_gain, generator)


def hgru_no_linear(
    *,
    generator: Generator,
    head: Head,
    timesteps: int = TIMESTEPS,
    drive_gain: float = DRIVE_GAIN,
    backend: Backend = "auto",
) -> nn.Module:
    """Lesion the linear horizontal interactions."""
    circuit = HGRUNoLinear(timesteps=timesteps, backend=backend, generator=generator)
    return _network(circuit, head, drive_gain, generator)


def hgru_no_quadratic(
    *,
    generator: Generator,
    head: Head,
    timesteps: int = TIMESTEPS,
    drive_gain: float = DRIVE_GAIN,
    backend: Backend = "auto",
) -> nn.Module:
    """Lesion the quadratic horizontal interactions."""
    circuit = HGRUNoQuadratic(timesteps=timesteps, backend=backend, generator=generator)
    return _network(circuit, head, drive_gain, generator)


def hgru_no_time_gain(
    *,
    generator: Generator,
    head: Head,
    timesteps: int = TIMESTEPS,
    drive_gain: float = DRIVE_GAIN,
    backend: Backend = "auto",
) -> nn.Module:
    """Lesion the time-gain of Eq. 9."""
    circuit = HGRUNoTimeGain(timesteps=timesteps, backend=backend, generator=generator)
    return _network(circuit, head, drive_gain, generator)


def gru(
    *,
    generator: Generator,
    head: Head,
    timesteps: int = TIMESTEPS,
    drive_gain: float = DRIVE_GAIN,
    backend: Backend = "auto",
) -> nn.Module:
    """Put a convolutional GRU in the place of the hGRU."""
    circuit = ConvGRU(timesteps=timesteps, backend=backend, generator=generator)
    return _network(circuit, head, drive_gain, generator)


def gru_2l(
    *,
    generator: Generator,
    head: Head,
    timesteps: int = TIMESTEPS,
    drive_gain: float = DRIVE_GAIN,
    backend: Backend = "auto",
) -> nn.Module:
    """Give the GRU two layers of convolution."""
    circuit = ConvGRU2L(timesteps=timesteps, backend=backend, generator=generator)
    return _network(circuit, head, drive_gain, generator)


def hgru_bn(
    *,
    generator: Generator,
    head: Head,
    timesteps: int = TIMESTEPS,
    drive_gain: float = DRIVE_GAIN,
    backend: Backend = "auto",
) -> nn.Module:
    """Replace the time-gain by batch norm, a set for each step."""
    circuit = HGRUBatchNorm(timesteps=timesteps, backend=backend, generator=generator)
    return _network(circuit, head, drive_gain, generator)


def hgru_nonnegative(
    *,
    generator: Generator,
    head: Head,
    timesteps: int = TIMESTEPS,
    drive_gain: float = DRIVE_GAIN,
    backend: Backend = "auto",
) -> nn.Module:
    """Rectify the states, with kernels for inhibition and for excitation."""
    circuit = HGRUNonnegative(timesteps=timesteps, backend=backend, generator=generator)
    return _network(circuit, head, drive_gain, generator)


def hgru_crbp(
    *,
    generator: Generator,
    head: Head,
    steps: int = 64,
    drive_gain: float = DRIVE_GAIN,
    backend: Backend = "auto",
) -> nn.Module:
    """Run the hGRU to its fixed point and train it there, by C-RBP; see `EquilibriumHGRU`."""
    circuit = EquilibriumHGRU(steps=steps, backend=backend, generator=generator)
    return _network(circuit, head, drive_gain, generator)
