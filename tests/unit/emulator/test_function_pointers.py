"""Kernels are given addresses of functions, of their own module or of another one."""

from __future__ import annotations

import struct

import pytest
from emulated import ISA, code_object

from luthier_py.base.errors import DeviceError
from luthier_py.emulator import EmulatorDevice
from luthier_py.isa import sgpr, vgpr

RETURN = sgpr(30, 2)
CALLER = [
    ("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_mov_b32", vgpr(3), 0),
    ("s_swappc_b64", RETURN, sgpr(2, 2)), ("global_store_dword", vgpr(3), vgpr(2), sgpr(0, 2)), ("s_endpgm", 0),
]


def function(value: int) -> list[tuple[object, ...]]:
    return [("v_mov_b32", vgpr(2), value), ("s_setpc_b64", RETURN)]


def test_of_other_modules() -> None:
    """Two loads of one file, another file, and the caller's own."""
    device = EmulatorDevice(ISA.target)
    data = code_object({"call": CALLER, "f": function(42)}, ("call", "f"))
    other = code_object({"f": function(7), "unused": [("s_endpgm", 0)]}, ("f",))
    modules = [device.load(data), device.load(data), device.load(other)]
    buffer, kernel = device.alloc(4), modules[0].kernel("call")
    for module, value in zip([*modules, *modules], [42, 42, 7] * 2, strict=True):
        place = module.base + module.kernel("f").record.entry
        device.launch(kernel, (1, 1, 1), (1, 1, 1), struct.pack("<QQ", buffer.address, place))
        assert device.read(buffer.address, 4) == value.to_bytes(4, "little")
        profile = device.profile
        assert profile is not None and profile.total == len(CALLER) + 2


def test_of_a_module_that_was_unloaded() -> None:
    device = EmulatorDevice(ISA.target)
    data = code_object({"call": CALLER, "f": function(42)}, ("call", "f"))
    module, gone = device.load(data), device.load(data)
    place = gone.base + gone.kernel("f").record.entry
    gone.unload()
    arguments = struct.pack("<QQ", device.alloc(4).address, place)
    with pytest.raises(DeviceError, match=f"jump to 0x{place:x}, which is not code; ") as caught:
        device.launch(module.kernel("call"), (1, 1, 1), (1, 1, 1), arguments)
    where = caught.value.where
    assert where is not None and where.kernel == "call" and where.text is not None
    assert where.text.startswith("s_swappc_b64")
