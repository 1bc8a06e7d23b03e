"""Recurrent circuits: the hGRU of section 2, its relatives, and the model that it came from.

`hgru_vision.circuits.contextual` has that model, Eqs. 1 and 2; it is imported by its own name, as
it brings in scipy.
"""

from hgru_vision.circuits.base import Circuit, Horizontal, Start, Trajectory
from hgru_vision.circuits.conv_gru import ConvGRU, ConvGRU2L
from hgru_vision.circuits.equilibrium import (
    EquilibriumHGRU,
    EquilibriumWarning,
    contractor_penalty,
    equilibrium,
)
from hgru_vision.circuits.hgru import HGRU
from hgru_vision.circuits.lesions import (
    LESIONS,
    HGRUNoAlpha,
    HGRUNoBeta,
    HGRUNoKappa,
    HGRUNoLinear,
    HGRUNoMu,
    HGRUNoOmega,
    HGRUNoQuadratic,
    HGRUNoTimeGain,
    LesionedHGRU,
)
from hgru_vision.circuits.released import HGRUReleased
from hgru_vision.circuits.symmetric import SymmetricKernel
from hgru_vision.circuits.variants import (
    HGRUBatchNorm,
    HGRUGatesWithDrive,
    HGRUNonnegative,
    HGRUSeparateKernels,
    HGRUSharedBatchNorm,
)

__all__ = [
    "HGRU",
    "LESIONS",
    "Circuit",
    "ConvGRU",
    "ConvGRU2L",
    "EquilibriumHGRU",
    "EquilibriumWarning",
    "HGRUBatchNorm",
    "HGRUGatesWithDrive",
    "HGRUNoAlpha",
    "HGRUNoBeta",
    "HGRUNoKappa",
    "HGRUNoLinear",
    "HGRUNoMu",
    "HGRUNoOmega",
    "HGRUNoQuadratic",
    "HGRUNoTimeGain",
    "HGRUNonnegative",
    "HGRUReleased",
    "HGRUSeparateKernels",
    "HGRUSharedBatchNorm",
    "Horizontal",
    "LesionedHGRU",
    "Start",
    "SymmetricKernel",
    "Trajectory",
    "contractor_penalty",
    "equilibrium",
]
