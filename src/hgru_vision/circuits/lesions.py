"""hGRUs without some of their parameters (Main, "Recurrent models").

The paper lesions "parameters controlling linear or quadratic horizontal interactions". Read on
Eqs. 5 and 8: the quadratic ones are alpha and omega, each of which multiplies a product of a state
and a convolution; the linear ones are mu, and kappa and beta, the linear terms of Eq. 8. kappa on
its own is the peephole, not a horizontal connection; it goes too because the authors' own lesion
takes away kappa (H1 + gamma C2), both at once.
"""

from __future__ import annotations

from typing import ClassVar

import torch

from hgru_vision.circuits.hgru import HGRU

__all__ = [
    "LESIONS",
    "HGRUNoAlpha",
    "HGRUNoBeta",
    "HGRUNoKappa",
    "HGRUNoLinear",
    "HGRUNoMu",
    "HGRUNoOmega",
    "HGRUNoQuadratic",
    "HGRUNoTimeGain",
    "LesionedHGRU",
]


class LesionedHGRU(HGRU):
    """An hGRU some of whose parameters are fixed where they do nothing: 0, or 1 for eta.

    Takes the arguments of `HGRU`. A lesioned parameter is not trained, counted or saved. A subclass
    names what it lacks:

    Examples
    --------
    >>> class Subtractive(LesionedHGRU):
    ...     lesioned = ("alpha",)
    >>> dict(Subtractive(channels=2, kernel_size=3).named_parameters()).keys() >= {"mu", "eta"}
    True
    >>> Subtractive(channels=2, kernel_size=3).alpha.flatten()
    tensor([0., 0.])
    """

    lesioned: ClassVar[tuple[str, ...]] = ()

    def build(self, generator: torch.Generator) -> None:
        """Make the parameters, then put constants in the place of the lesioned ones."""
        super().build(generator)
        if not set(self.lesioned) <= self._parameters.keys():
            raise ValueError(
                f"{type(self).__name__}.lesioned is {self.lesioned!r}; it must be a tuple of names "
                f"out of {', '.join(self._parameters)}"
            )
        for name in self.lesioned:
            value = getattr(self, name).detach()
            delattr(self, name)
            neutral = torch.ones_like(value) if name == "eta" else torch.zeros_like(value)
            self.register_buffer(name, neutral, persistent=False)


class HGRUNoLinear(LesionedHGRU):
    """Without linear interactions: mu, kappa and beta are 0. Takes the arguments of `HGRU`."""

    lesioned = ("mu", "kappa", "beta")


class HGRUNoQuadratic(LesionedHGRU):
    """Without quadratic interactions: alpha and omega are 0. Takes the arguments of `HGRU`."""

    lesioned = ("alpha", "omega")


class HGRUNoTimeGain(LesionedHGRU):
    """Without the time-gain: eta is 1. Takes the arguments of `HGRU`."""

    lesioned = ("eta",)


class HGRUNoAlpha(LesionedHGRU):
    """Without alpha, the quadratic inhibition of Eq. 5. Takes the arguments of `HGRU`."""

    lesioned = ("alpha",)


class HGRUNoMu(LesionedHGRU):
    """Without mu, the linear inhibition of Eq. 5. Takes the arguments of `HGRU`."""

    lesioned = ("mu",)


class HGRUNoKappa(LesionedHGRU):
    """Without kappa, the peephole of Eq. 8. Takes the arguments of `HGRU`."""

    lesioned = ("kappa",)


class HGRUNoBeta(LesionedHGRU):
    """Without beta, the linear excitation of Eq. 8. Takes the arguments of `HGRU`."""

    lesioned = ("beta",)


class HGRUNoOmega(LesionedHGRU):
    """Without omega, the quadratic excitation of Eq. 8. Takes the arguments of `HGRU`."""

    lesioned = ("omega",)


LESIONS: dict[str, type[LesionedHGRU]] = {
    "linear": HGRUNoLinear,
    "quadratic": HGRUNoQuadratic,
    "time_gain": HGRUNoTimeGain,
    "alpha": HGRUNoAlpha,
    "mu": HGRUNoMu,
    "kappa": HGRUNoKappa,
    "beta": HGRUNoBeta,
    "omega": HGRUNoOmega,
}
"""Every lesion by the name of what is missing."""
