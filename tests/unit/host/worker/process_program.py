"""A program that launches through hip-python, and what processes do: argv: a code object of vector_add, and what to do.

Prints how many launches gave the right result.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType

import numpy as np

from luthier_py.emulator.interface import pack_arguments
from luthier_py.host.hip.device import HipDevice, HipModule

N, BLOCK = 512, 256


class Program:
    """Mutable: a device, and how many launches were right."""

    def __init__(self, code: Path) -> None:
        self.code = code.read_bytes()
        self.device = HipDevice()
        self.module = self.device.load(self.code)
        self.right = 0

    def launch(self, times: int = 1, module: HipModule | None = None) -> None:
        kernel, device = (module or self.module).kernel("vector_add"), self.device
        a, b = np.arange(N, dtype=np.float32), np.full(N, 0.5, np.float32)
        buffers = [device.alloc(4 * N) for _ in range(3)]
        device.write(buffers[0].address, a.tobytes())
        device.write(buffers[1].address, b.tobytes())
        grid, block = (N // BLOCK, 1, 1), (BLOCK, 1, 1)
        for _ in range(times):
            device.launch(kernel, grid, block, pack_arguments(kernel.record, buffers, grid, block))
        device.synchronize()
        self.right += times * int((np.frombuffer(device.read(buffers[2].address, 4 * N), np.float32) == a + b).all())

    def toggle(self) -> None:
        """Launches 0 and 3 with the tool, 1 and 2 without."""
        self.launch()
        os.kill(os.getpid(), signal.SIGUSR1)
        self.launch(2)
        os.kill(os.getpid(), signal.SIGUSR1)
        self.launch()

    def own_handler(self) -> None:
        def handle(number: int, frame: FrameType | None) -> None:
            self.right += 10

        signal.signal(signal.SIGUSR1, handle)
        self.launch()
        os.kill(os.getpid(), signal.SIGUSR1)
        self.launch()

    def fork(self) -> None:
        """The child, which may not use the GPU, ends as it likes."""
        self.launch()
        child = os.fork()
        if child == 0:
            sys.exit(7)
        self.right += 10 * (os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7)
        self.launch()

    def execute(self) -> None:
        self.launch()
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, __file__, sys.argv[1], "leave"])

    def leave(self) -> None:
        self.launch(2)
        os.write(1, f"{self.right}\n".encode())
        os._exit(5)

    def killed(self) -> None:
        self.launch(3)
        os.kill(os.getpid(), signal.SIGKILL)

    def reload(self) -> None:
        for _ in range(3):
            module = self.device.load(self.code)
            self.launch(2, module)
            module.unload()


def main() -> None:
    program = Program(Path(sys.argv[1]))
    getattr(program, sys.argv[2])()
    print(program.right)


main()
