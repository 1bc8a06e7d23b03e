"""The horizontal convolution: one contract, a plain reference, fast forms. See README.md here."""

from hgru_vision.ops.dispatch import (
    Backend,
    Choice,
    PreparedKernel,
    explain,
    horizontal_conv,
    in_order,
    is_exporting,
    prepare,
    storage_at_once,
)
from hgru_vision.ops.maps import two_maps
from hgru_vision.ops.responses import squared_responses

__all__ = [
    "Backend",
    "Choice",
    "PreparedKernel",
    "explain",
    "horizontal_conv",
    "in_order",
    "is_exporting",
    "prepare",
    "squared_responses",
    "storage_at_once",
    "two_maps",
]
