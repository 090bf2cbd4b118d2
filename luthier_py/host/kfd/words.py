"""Words of memory that a program looks at while they change.

In: addresses that are mapped here. Invariant: what several may change at once changes in one step.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

from luthier_py.base.llvm import Effort, HostCode, host_object

_ADD = "define void @add{bits}(ptr %p, i{bits} %n) {{ %old = atomicrmw add ptr %p, i{bits} %n seq_cst\n ret void }}\n"


_made: dict[int, tuple[HostCode, Callable[[int, int], None]]] = {}
_making = threading.Lock()


def _make_adder(bits: int) -> Callable[[int, int], None]:
    """Made once, whoever comes first: code that nobody holds is gone, even while a thread is in it."""
    with _making:
        if bits not in _made:
            name = f"add{bits}"
            code = HostCode(host_object(_ADD.format(bits=bits), Effort.FAST), [name], {})
            number = ctypes.c_uint64 if bits == 64 else ctypes.c_uint32
            _made[bits] = code, ctypes.CFUNCTYPE(None, ctypes.c_uint64, number)(code.address(name))
        return _made[bits][1]


def add(address: int, value: int, bits: int = 64) -> None:
    """``value`` may be negative."""
    _make_adder(bits)(address, value & (1 << bits) - 1)


def load(address: int, bits: int = 64) -> int:
    """The word of 16, 32 or 64 bits at an address, unsigned."""
    return int(_WORDS[bits].from_address(address).value)


def store(address: int, value: int, bits: int = 64) -> None:
    """Write a word of 16, 32 or 64 bits; higher bits of ``value`` are cut off."""
    _WORDS[bits].from_address(address).value = value & (1 << bits) - 1


_WORDS = {16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}
