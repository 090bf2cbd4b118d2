"""What a module held is free when it is unloaded: device memory, host code, LLVM's notes of it."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from luthier_py.base.llvm import Effort, HostCode, host_object
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.interface import pack_arguments
from luthier_py.isa import target
from luthier_py.samples import FOLDER

CODE = (FOLDER / "vector_add.co").read_bytes()
SHAPE = (1, 1, 1), (64, 1, 1)


def resident() -> int:
    """Bytes of this process that are its own."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("this system has no /proc")
    line = next(line for line in status.read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


def test_host_code_is_given_back() -> None:
    """LLVM's linker keeps 9 kB of every library that was ever linked; so linkers do not live for ever."""
    code = host_object("define i32 @f(i32 %x) {\n  ret i32 %x\n}\n", Effort.FAST)

    def link(times: int) -> int:
        for _ in range(times):
            HostCode(code, ["f"], {}).address("f")
        gc.collect()
        return resident()

    kept = [HostCode(code, ["f"], {}) for _ in range(100)]  # linkers that are full, and in use
    before = link(300)
    assert link(600) - before < 600 * 1024
    assert len({one.address("f") for one in kept}) == 100


def test_modules_come_and_go() -> None:
    device = EmulatorDevice(target("gfx90a"))
    buffers = [device.alloc(256) for _ in range(3)]

    def load(times: int) -> int:
        for _ in range(times):
            module = device.load(CODE)
            kernel = module.kernel("vector_add")
            device.launch(kernel, *SHAPE, pack_arguments(kernel.record, buffers, *SHAPE))
            module.unload()
        return resident()

    before = load(130)
    assert load(260) - before < 260 * 2048
