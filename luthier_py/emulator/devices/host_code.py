"""What the emulator makes of a kernel: its machine code for this computer, to be looked at.

In: a code object, a kernel. Out: the bytes of each host function, by the address of the GPU function it stands for.
"""

from __future__ import annotations

from luthier_py.base import llvm
from luthier_py.binary.loader import CodeObject
from luthier_py.binary.loader.initial import start_of
from luthier_py.emulator.code.engine import object_code
from luthier_py.emulator.devices.emulator_device import EmulatorDevice
from luthier_py.emulator.reading.discover import discover
from luthier_py.emulator.reading.parts import effort
from luthier_py.emulator.translation.host_functions import translate


def host_code(obj: CodeObject, kernel: str) -> bytes:
    """Machine code of ``kernel``'s own function, without those that it calls."""
    record = obj.kernel(kernel)
    module = EmulatorDevice(obj.target).load(obj.data, obj.name)
    settings = module.settings(record, obj.target)
    code = module.code(settings)
    start = start_of(obj.target, record)
    blocks = discover(code.decode, start)
    functions = translate(blocks, start, settings)
    return b"".join(llvm.text_section(object_code(function.ir, effort(blocks))) for function in functions)
