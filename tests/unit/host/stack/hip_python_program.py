"""Launches vector_add through hip-python. argv: its code object, the runtime library that is to be used."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
from hip import hip

N, BLOCK = 1000, 256


def checked(answer: tuple[Any, ...]) -> Any:
    error, *results = answer
    assert error == hip.hipError_t.hipSuccess, error
    return results[0] if results else None


def main(code: str, library: str) -> None:
    image = Path(code).read_bytes()  # ROCr's list of code objects, from which kernels get their names, points to it
    module = checked(hip.hipModuleLoadData(image))
    kernel = checked(hip.hipModuleGetFunction(module, b"_Z10vector_addPKfS0_Pfi"))
    a, b, c = np.arange(N, dtype=np.float32), np.full(N, 0.5, np.float32), np.zeros(N, np.float32)
    buffers = [checked(hip.hipMalloc(a.nbytes)) for _ in range(3)]
    for buffer, values in zip(buffers, (a, b), strict=False):
        checked(hip.hipMemcpy(buffer, values, values.nbytes, hip.hipMemcpyKind.hipMemcpyHostToDevice))
    groups = -(-N // BLOCK)
    arguments = (*buffers, ctypes.c_int(N))
    checked(hip.hipModuleLaunchKernel(
        kernel, groups, 1, 1, BLOCK, 1, 1, sharedMemBytes=0, stream=None, kernelParams=None, extra=arguments
    ))
    checked(hip.hipMemcpy(c, buffers[2], c.nbytes, hip.hipMemcpyKind.hipMemcpyDeviceToHost))
    loaded = {Path(line.split()[-1]).name for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line}
    assert any(name.startswith(library) for name in loaded), "another HIP runtime"
    print("PASSED" if (c == a + b).all() else "other numbers")


main(*sys.argv[1:])
