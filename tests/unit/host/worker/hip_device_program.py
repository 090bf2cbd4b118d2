"""A program that launches through hip-python and prints what it got as JSON. argv: a code object of vector_add."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from luthier_py.base.errors import DeviceError, Invalid
from luthier_py.emulator.interface import pack_arguments
from luthier_py.host.hip.device import HipDevice

N, BLOCK = 512, 256


def main() -> None:
    device = HipDevice()
    module = device.load(Path(sys.argv[1]).read_bytes())
    kernel = module.kernel("vector_add")
    a, b = np.arange(N, dtype=np.float32), np.full(N, 0.5, np.float32)
    buffers = [device.alloc(4 * N) for _ in range(3)]
    device.write(buffers[0].address, a.tobytes())
    device.write(buffers[1].address, b.tobytes())
    kernarg = pack_arguments(kernel.record, buffers, (N // BLOCK, 1, 1), (BLOCK, 1, 1))
    for _ in range(2):
        device.launch(kernel, (N // BLOCK, 1, 1), (BLOCK, 1, 1), kernarg)
    device.synchronize()
    result = np.frombuffer(device.read(buffers[2].address, 4 * N), np.float32)
    refused = []
    for attempt in (
        lambda: module.kernel("none"),
        lambda: device.read(buffers[0].address, 1 << 30),
        lambda: HipDevice(3),
    ):
        try:
            attempt()
        except (DeviceError, Invalid) as error:
            refused.append(str(error))
    for buffer in buffers:
        device.free(buffer)
    module.unload()
    print(json.dumps({"target": device.target.name, "right": bool((result == a + b).all()), "refused": refused}))


main()
