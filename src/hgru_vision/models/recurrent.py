"""Recurrent networks: a circuit between the input and the readout stage.

Main, "Recurrent models", and Supp., "Additional recurrent models". All have 25 channels and 15x15
horizontal kernels, whose convolution is computed as `backend` says (see `hgru_vision.ops`).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
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
    HGRUReleased,
)
from hgru_vision.circuits.equilibrium import EquilibriumHGRU
from hgru_vision.models.filters import released_bank
from hgru_vision.models.registry import Head
from hgru_vision.models.stages import InputStage, PoolFirstReadout, Readout, StandardNetwork
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
    "hgru_released",
    "start_mostly_new",
    "start_time_gain",
]

DRIVE_GAIN = 0.5
"""Factor on the drive. The paper has none; networks with half of the drive were seen to start to
learn sooner, in trials that were not kept (docs/differences.md)."""


def start_time_gain(
    circuit: HGRU | HGRUReleased, least: float, most: float, generator: Generator
) -> None:
    """Let the time-gain start from U(least, most), or from a number if both are the same.

    The paper gives no start; the released code has U(0, 1), and a port of it that learns length 14
    from scratch U(-2, 2) (docs/stuck.md). Activity fades from step to step below 1, and changes its
    sign below 0.
    """
    for name, value in (("least_time_gain", least), ("most_time_gain", most)):
        if not -2 <= value <= 2:
            raise ValueError(f"{name} is {value}; it must be from -2 to 2")
    if least > most:
        raise ValueError(f"least_time_gain is {least}, more than most_time_gain, {most}")
    if least == most:
        nn.init.constant_(circuit.eta, least)
    else:
        nn.init.uniform_(circuit.eta, least, most, generator=generator)


def start_mostly_new(circuit: HGRU | HGRUReleased) -> None:
    """Let the mix start with three quarters of the new state, not with a quarter.

    That is chronos with the other sign: what is new spreads sooner and is forgotten sooner. The
    paper gives no sign; the port has this one (docs/stuck.md).
    """
    with torch.no_grad():
        circuit.b2.neg_()


def _network(
    circuit: Circuit, head: Head, drive_gain: float, generator: Generator
) -> StandardNetwork:
    return StandardNetwork(circuit, circuit.channels, head, generator, gain=drive_gain)


def hgru(
    *,
    generator: Generator,
    head: Head,
    timesteps: int = TIMESTEPS,
    drive_gain: float = DRIVE_GAIN,
    least_time_gain: float = 1.0,
    most_time_gain: float = 1.0,
    mostly_new: bool = False,
    backend: Backend = "auto",
) -> nn.Module:
    """Make the hGRU network, Eqs. 3 to 9.

    It starts as `start_time_gain` and, with `mostly_new`, `start_mostly_new` say.
    """
    circuit = HGRU(timesteps=timesteps, backend=backend, generator=generator)
    start_time_gain(circuit, least_time_gain, most_time_gain, generator)
    if mostly_new:
        start_mostly_new(circuit)
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


def _with(circuit: type[Circuit], what: str) -> Callable[..., nn.Module]:
    """Give a function that puts a circuit in the place of the hGRU, and say what that does."""

    def build(
        *,
        generator: Generator,
        head: Head,
        timesteps: int = TIMESTEPS,
        drive_gain: float = DRIVE_GAIN,
        backend: Backend = "auto",
    ) -> nn.Module:
        made = circuit(timesteps=timesteps, backend=backend, generator=generator)
        return _network(made, head, drive_gain, generator)

    build.__doc__ = what
    return build


hgru_no_linear = _with(HGRUNoLinear, "Lesion the linear horizontal interactions.")
hgru_no_quadratic = _with(HGRUNoQuadratic, "Lesion the quadratic horizontal interactions.")
hgru_no_time_gain = _with(HGRUNoTimeGain, "Lesion the time-gain of Eq. 9.")
hgru_bn = _with(HGRUBatchNorm, "Replace the time-gain by batch norm, a set for each step.")
hgru_nonnegative = _with(HGRUNonnegative, "Rectify the states; two kernels, one for each stage.")
gru = _with(ConvGRU, "Put a convolutional GRU in the place of the hGRU.")
gru_2l = _with(ConvGRU2L, "Give the GRU two layers of convolution.")


def hgru_released(
    *,
    generator: Generator,
    head: Head,
    timesteps: int = TIMESTEPS,
    drive_gain: float = 1.0,
    least_time_gain: float = 0.0,
    most_time_gain: float = 1.0,
    mostly_new: bool = False,
    backend: Backend = "auto",
) -> nn.Module:
    """Make the hGRU network of the authors' released code: its filters, circuit and readout.

    Their state starts from noise besides (docs/differences.md).
    """
    circuit = HGRUReleased(timesteps=timesteps, backend=backend, generator=generator)
    if (least_time_gain, most_time_gain) != (0, 1):  # with which the circuit starts by itself
        start_time_gain(circuit, least_time_gain, most_time_gain, generator)
    if mostly_new:
        start_mostly_new(circuit)
    network = _network(circuit, head, drive_gain, generator)
    network.input = InputStage(drive_gain, bias=True)
    network.input.start_from(released_bank())
    if isinstance(network.readout, Readout):
        network.readout = PoolFirstReadout.of(network.readout, generator)
    return network


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
