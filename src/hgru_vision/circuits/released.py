"""The hGRU as in the authors' code, https://github.com/serre-lab/hgru_share.

Where it differs from the paper:

- Eq. 8 is tanh(kappa (H1 + gamma C2) + omega H1 gamma C2), with gamma where the paper has beta;
- the mix of Eq. 9 is inverted: H2[t] = eta (G2 H2[t-1] + (1 - G2) candidate), and with it the sign
  of the chronos start of b2 (but b2 is minus b1, not a draw of its own);
- W is stored whole and is symmetric at the start only as far as training keeps it so;
- the layer is followed by one more batch norm (`hgru_bn` in their networks);
- eta starts from U(0, 1).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgru_vision.circuits.base import Circuit, Horizontal, Trajectory
from hgru_vision.circuits.hgru import run_by_kernels
from hgru_vision.circuits.start import chronos, xavier_kernel, xavier_vector
from hgru_vision.ops import prepare

__all__ = ["HGRUReleased"]

_PORT_NAMES = {
    "w.weight": "w",
    "u_1.weight": "u1",
    "u_2.weight": "u2",
    "b_1": "b1",
    "b_2": "b2",
    "alpha": "alpha",
    "mu": "mu",
    "gamma": "gamma",
    "kappa": "kappa",
    "omega": "omega",
    "n": "eta",
    "bn.weight": "norm.weight",
    "bn.bias": "norm.bias",
    "bn.running_mean": "norm.running_mean",
    "bn.running_var": "norm.running_var",
}


class HGRUReleased(Circuit):
    """The authors' released hGRU (their `layers/recurrent/hgru.py` and the batch norm after it).

    Takes the arguments of `HGRU`. The module's docstring lists what differs from the paper. With
    `return_trajectory=True` the states come as the circuit has them, before the last batch norm.

    Examples
    --------
    >>> layer = HGRUReleased(channels=2, kernel_size=3)
    >>> layer(torch.rand(1, 2, 5, 5)).shape
    torch.Size([1, 2, 5, 5])
    """

    def build(self, generator: torch.Generator) -> None:
        """Make the parameters with the authors' start."""
        k, s = self.channels, self.kernel_size
        whole = xavier_kernel(k, k, s, s, fan=k * s * s, generator=generator)
        self.w = nn.Parameter((whole + whole.transpose(0, 1)) / 2)
        self.u1 = nn.Parameter(xavier_kernel(k, k, 1, 1, fan=k, generator=generator))
        self.u2 = nn.Parameter(xavier_kernel(k, k, 1, 1, fan=k, generator=generator))
        self.b1 = nn.Parameter(chronos(k, self.timesteps, generator))
        self.b2 = nn.Parameter(-self.b1.detach())
        self.alpha = nn.Parameter(xavier_vector(k, generator))
        self.mu = nn.Parameter(xavier_vector(k, generator))
        self.gamma = nn.Parameter(xavier_vector(k, generator))
        self.kappa = nn.Parameter(xavier_vector(k, generator))
        self.omega = nn.Parameter(xavier_vector(k, generator))
        self.eta = nn.Parameter(
            torch.rand(self.timesteps, generator=generator, device=generator.device).cpu()
        )
        # The defaults of TensorFlow's layer.
        self.norm = nn.BatchNorm2d(k, eps=1e-3, momentum=0.01)

    @classmethod
    def from_checkpoint(cls, checkpoint: Mapping[str, Tensor]) -> HGRUReleased:
        """Make the layer of a checkpoint that has the names of a plain PyTorch port.

        ======================== ============================================ =================
        checkpoint               the authors' TensorFlow variable              here
        ======================== ============================================ =================
        w.weight                 hgru_1_horizontal, permuted (3, 2, 0, 1)      w
        u_1.weight, u_2.weight   hgru_1_gain, hgru_1_mix, permuted likewise    u1, u2
        b_1, b_2                 hgru_1_gain_bias, hgru_1_mix_bias             b1, b2
        alpha, mu, gamma, kappa, hgru_1_alpha, hgru_1_mu, hgru_1_gamma, ...    the same
        omega
        n                        hgru_1_eta                                    eta
        bn.weight, bn.bias       hgru_bn/gamma, hgru_bn/beta                   norm.weight, .bias
        bn.running_mean, _var    hgru_bn/moving_mean, moving_variance          norm.running_...
        ======================== ============================================ =================

        Vectors may have axes of size 1 around them, as (1, K, 1, 1). K, S and T are read from
        `w.weight` and `n`.
        """
        missing = sorted(_PORT_NAMES.keys() - checkpoint.keys())
        unknown = sorted(checkpoint.keys() - _PORT_NAMES.keys() - {"bn.num_batches_tracked"})
        if missing or unknown:
            raise ValueError(
                f"not a checkpoint of the released hGRU: missing {missing}, unknown {unknown}; "
                "the table in the documentation of from_checkpoint has the names"
            )
        channels, _, size, _ = checkpoint["w.weight"].shape
        layer = cls(channels, size, checkpoint["n"].numel()).to(checkpoint["w.weight"].dtype)
        state = layer.state_dict()
        for theirs, ours in _PORT_NAMES.items():
            got, want = checkpoint[theirs].shape, state[ours].shape
            fits = got == want
            if not theirs.endswith("weight") or theirs.startswith("bn."):  # vectors
                fits = [n for n in got if n > 1] == [n for n in want if n > 1]
            if not fits:
                raise ValueError(f"{theirs} is {tuple(got)}; it must be {tuple(want)}")
            state[ours] = checkpoint[theirs].reshape(want)
        layer.load_state_dict(state)
        return layer

    def prepare(self, x: Tensor) -> Horizontal:
        """Make W ready."""
        w = prepare(self.w, x, self.backend)
        return Horizontal(inhibition=w, excitation=w)

    def step(
        self, x: Tensor, h2: Tensor, t: int, horizontal: Horizontal | None = None
    ) -> Trajectory:
        """Go from H2[t-1] to step t as the authors' code does; see `Circuit.step`."""
        w = horizontal or self.prepare(x)
        eta = self.eta[min(t, self.timesteps - 1)]

        g1 = torch.sigmoid(F.conv2d(h2, self.u1, self.b1))
        c1 = w.inhibition(g1 * h2)
        h1 = torch.tanh(x - c1 * (self.alpha * h2 + self.mu))

        g2 = torch.sigmoid(F.conv2d(h1, self.u2, self.b2))
        excitation = self.gamma * w.excitation(h1)
        candidate = torch.tanh(self.kappa * (h1 + excitation) + self.omega * h1 * excitation)
        h2 = eta * (g2 * h2 + (1 - g2) * candidate)
        return Trajectory(h1, h2, g1, g2)

    def run_at_once(self, x: Tensor, state: Tensor | None, steps: int) -> Tensor | None:
        """Run all steps by the kernels of Eqs. 3 to 9, of which these equations are a case.

        The mix of the paper is 1 - G2, and 1 - sigma(z) = sigma(-z); beta is kappa gamma, and omega
        stands for omega gamma.
        """
        return run_by_kernels(
            self, HGRUReleased, x, state, steps,
            lambda: (
                self.w, self.u1, self.b1, -self.u2, -self.b2, self.alpha, self.mu, self.kappa,
                self.kappa * self.gamma, self.omega * self.gamma, self.eta,
            ),
        )  # fmt: skip

    def forward(
        self,
        x: Tensor,
        state: Tensor | None = None,
        timesteps: int | None = None,
        return_trajectory: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor | Trajectory:
        """Run the circuit, then the batch norm that follows it; see `Circuit.forward`."""
        out = super().forward(x, state, timesteps, return_trajectory, generator)
        return self.norm(out) if isinstance(out, Tensor) else out
