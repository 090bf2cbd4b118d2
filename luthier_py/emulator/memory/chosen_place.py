"""Memory at addresses that the caller chose.

In: start and size, in pages. Out: zeros there, until they are left. Invariant: what was there before stays; where that
leaves no room it is a DeviceError.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from luthier_py.base.errors import DeviceError

_NORESERVE, _FIXED_NOREPLACE = getattr(mmap, "MAP_NORESERVE", 0x4000), 0x100000
_FAILED = (1 << 64) - 1


def take_place(start: int, size: int) -> tuple[int, int]:
    """The same two numbers, for :class:`.memory.Memory`; until :func:`give_back`."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE | _FIXED_NOREPLACE
    found = _libc().mmap(start, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if found != start:
        why = os.strerror(ctypes.get_errno())
        if found != _FAILED:
            give_back((found, size))  # a system that takes the address for a hint
        raise DeviceError(f"this process has no room for {size} bytes of memory at 0x{start:x}: {why}; try again, or "
                          "with more address space (ulimit -v)")
    return start, size


def give_back(place: tuple[int, int]) -> None:
    """Unmap what :func:`take_place` gave: (start, bytes)."""
    _libc().munmap(*place)


@contextmanager
def reserve_place(start: int, size: int) -> Iterator[tuple[int, int]]:
    """What :func:`take_place` gives, for a while."""
    place = take_place(start, size)
    try:
        yield place
    finally:
        give_back(place)


@cache
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long
    library.munmap.argtypes = ctypes.c_void_p, ctypes.c_size_t
    return library
