"""Words of memory that a program looks at while they change.

In: addresses that are mapped here. Invariant: what several may change at once changes in one step.
"""

from __future__ import annotations

import ctypes

from luthier_py.host.worker.native import load_worker_library


def add(address: int, value: int, bits: int = 64) -> None:
    """``value`` may be negative."""
    library = load_worker_library()
    (library.luthier_add_64 if bits == 64 else library.luthier_add_32)(address, value & (1 << bits) - 1)


def wake(address: int) -> None:
    """All threads that wait for the word of 32 bits, in any process."""
    load_worker_library().luthier_wake(address)


def load(address: int, bits: int = 64) -> int:
    """The word of 16, 32 or 64 bits at an address, unsigned."""
    return int(_WORDS[bits].from_address(address).value)


def store(address: int, value: int, bits: int = 64) -> None:
    """Write a word of 16, 32 or 64 bits; higher bits of ``value`` are cut off."""
    _WORDS[bits].from_address(address).value = value & (1 << bits) - 1


_WORDS = {16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}
