"""A program that launches through hip-python and brings a tool itself; prints what it saw as JSON.

argv: a code object of vector_add, and a tool.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import luthier_py
from luthier_py.base.errors import DeviceError, Invalid
from luthier_py.emulator.interface import pack_arguments
from luthier_py.host.hip.device import HipDevice, HipModule
from luthier_py.rewrite.tool import tools

N, BLOCK = 512, 256


def launch(device: HipDevice, module: HipModule) -> bool:
    """One launch; whether its result is right."""
    kernel = module.kernel("vector_add")
    a, b = np.arange(N, dtype=np.float32), np.full(N, 0.5, np.float32)
    buffers = [device.alloc(4 * N) for _ in range(3)]
    device.write(buffers[0].address, a.tobytes())
    device.write(buffers[1].address, b.tobytes())
    grid, block = (N // BLOCK, 1, 1), (BLOCK, 1, 1)
    device.launch(kernel, grid, block, pack_arguments(kernel.record, buffers, grid, block))
    device.synchronize()
    right = bool((np.frombuffer(device.read(buffers[2].address, 4 * N), np.float32) == a + b).all())
    for buffer in buffers:
        device.free(buffer)
    return right


def main() -> None:
    code, tool = Path(sys.argv[1]).read_bytes(), sys.argv[2]
    device = HipDevice()
    early = device.load(code)
    right = [launch(device, early)]
    with luthier_py.attach(tool) as first:
        module = device.load(code)
        right += [launch(device, module), launch(device, early), launch(device, module)]
        between = len(first.reports)
        try:
            luthier_py.attach(tool)
            refused = ""
        except Invalid as error:
            refused = str(error)
    right.append(launch(device, module))
    second = luthier_py.attach(tools()[tool], LUTHIER_KERNELS="vector")
    right.append(launch(device, module))
    module.unload()
    second.detach()
    try:
        luthier_py.attach(tool, none=1)
    except (Invalid, DeviceError) as error:
        refused += str(error)
    print(json.dumps({"right": right, "between": between, "refused": refused, "first": dict(first.verdict),
                      "second": second.reports}))  # fmt: skip


main()
