"""Compile every kernel for a Hopper GPU, on a machine that need not have one.

Runs the code that launches them (`launch_kernels.py`) on tensors of the CPU and compiles, in the
place of each launch, the kernel with the arguments it was given. Prints registers, bytes on the
stack (spilled) and instructions of each: ``python tests/ops/compile_kernels.py``. Not to be
imported: Triton decides at its import whether kernels are compiled or interpreted.
"""

import os
import re
import subprocess
import sys
import tempfile

os.environ["TRITON_INTERPRET"] = "0"

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

HOPPER = GPUTarget("cuda", 90, 32)
TYPES = {
    torch.float16: "fp16",
    torch.float32: "fp32",
    torch.uint16: "u16",
    torch.int8: "i8",
}
compiled = set()


def compile_launch(kernel, *args, grid, warmup, num_warps=4, num_stages=3, **keywords):
    """Take the place of `JITFunction.run`."""
    given = dict(zip(kernel.arg_names, args, strict=False)) | keywords
    signature, constants, hints = {}, {}, {}
    for place, parameter in enumerate(kernel.params):
        value = given.pop(parameter.name)
        if isinstance(value, torch.Tensor):
            signature[parameter.name] = f"*{TYPES[value.dtype]}"
            hints[(place,)] = [["tt.divisibility", 16]]
        elif parameter.is_constexpr or value is None or value == 1:
            signature[parameter.name] = "constexpr"
            constants[(place,)] = value
        else:
            signature[parameter.name] = "i32"
            if value % 16 == 0:
                hints[(place,)] = [["tt.divisibility", 16]]
    if given:
        raise TypeError(f"{kernel.__name__} takes no {', '.join(given)}")
    options = {"num_warps": num_warps, "num_stages": num_stages}
    case = kernel.__name__, *signature.items(), *constants.items(), *options.items()
    if case in compiled:
        return
    compiled.add(case)
    source = ASTSource(kernel, signature, constants, hints)
    made = triton.compile(source, target=HOPPER, options=options)
    storage = "float16" if "*fp16" in signature.values() else "float32"
    print(f"{kernel.__name__:24} {storage} {usage(made.asm['cubin'])}", flush=True)


def usage(cubin):
    """Say what a kernel takes, by NVIDIA's own program, which comes with Triton."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [triton.knobs.nvidia.cuobjdump.path, "-res-usage", "-sass", file.name]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", said).groups()
    instructions = len(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/", said, re.M))
    return f"{registers:>3} registers {stack:>3} bytes {instructions:>5} instructions"


if __name__ == "__main__":
    from launch_kernels import in_every_storage

    JITFunction.run = compile_launch
    for width in map(int, sys.argv[1:] or ["25"]):
        in_every_storage(width)
