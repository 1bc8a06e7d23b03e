"""Launch every kernel on a GPU, at ragged sizes, for a checker of memory accesses to watch.

``compute-sanitizer --error-exitcode 1 python tests/ops/launch_kernels.py``, after a run without
it: Triton keeps what it has compiled, and under the checker compiling takes minutes.
`compile_kernels.py` goes through the same code with a compiler in the place of each launch.
"""

import torch


def launch_all(channels, storage, *, size=(8, 8), device="cpu"):
    """Go there and back through everything that has kernels."""
    from hgru_vision.circuits import HGRU
    from hgru_vision.ops.gemm import GemmKernel
    from hgru_vision.ops.hgru import Parameters, run
    from hgru_vision.ops.map_kernels import TwoMaps
    from hgru_vision.ops.mix_kernels import nearest_tf32
    from hgru_vision.ops.response_kernels import SquaredResponses

    layer = HGRU(channels, kernel_size=3, timesteps=2).to(device)
    names = Parameters._fields[1:]
    x = torch.rand(2, channels, *size, device=device)
    for state in (None, x.clone().requires_grad_()):
        parameters = Parameters(layer.w(), *(getattr(layer, name) for name in names))
        run(x.requires_grad_(), state, parameters, 2, storage).sum().backward()
    GemmKernel.prepare(layer.w(), x, storage)(x).sum().backward()
    features = torch.rand(2, *size, channels, device=device).movedim(3, 1).requires_grad_()
    TwoMaps.apply(features, torch.rand(2, channels, device=device)).sum().backward()
    filters = torch.rand(channels, 1, 7, 7, device=device, requires_grad=True)
    SquaredResponses.apply(x[:, :1].detach(), filters).sum().backward()
    nearest_tf32(torch.rand(8, device=device), torch.rand(8, device=device))


def in_every_storage(channels, **where):
    """Store in float16; in float32 and multiply that as itself; the same as TF32."""
    launch_all(channels, torch.float16, **where)
    for precision in ("highest", "high"):
        torch.set_float32_matmul_precision(precision)
        launch_all(channels, torch.float32, **where)


if __name__ == "__main__":
    for channels in (1, 7, 25):
        for size in ((1, 1), (13, 37)):
            in_every_storage(channels, size=size, device="cuda")
            torch.cuda.synchronize()
            print(f"{channels} channels, {size[0]} x {size[1]}: launched", flush=True)
