"""The memory that a program and its worker share, at the same addresses.

In: the arena's descriptor, its address and size. Out: a range for the emulator's Memory, and the words through which
the program learns what is done.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from functools import cache
from typing import Any

from luthier_py.errors import DeviceError
from luthier_py.runtime.native.protocol import CONTROL_BYTES

ARENA_FD = 4
_MAP_FIXED, _MAP_FIXED_NOREPLACE = 0x10, 0x100000
_FUTEX_WAKE = 1
_EVERYBODY = 2**31 - 1
_SYS_FUTEX = {"x86_64": 202, "aarch64": 98}
_libc = ctypes.CDLL(None, use_errno=True)
_futex = _SYS_FUTEX.get(os.uname().machine)


def wake(address: int) -> None:
    """Everybody who waits for the word at ``address``, in whichever process; see futex(2)."""
    if _futex is not None:
        _libc.syscall(ctypes.c_long(_futex), ctypes.c_void_p(address), _FUTEX_WAKE, _EVERYBODY, None, None, 0)


@cache
def _mmap() -> Any:
    function = ctypes.CDLL(None, use_errno=True).mmap  # of a library of its own: argument types are set
    function.restype = ctypes.c_void_p
    function.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
    return function


class Arena:
    """Mutable: the shared mapping."""

    def __init__(self, address: int, size: int) -> None:
        self._start = address
        self._map(address, size, ARENA_FD, 0, _MAP_FIXED_NOREPLACE)
        self.address = address + CONTROL_BYTES
        self.size = size - CONTROL_BYTES
        self._done = ctypes.c_uint64.from_address(address)
        self._bell = ctypes.c_uint32.from_address(address + 8)
        self._failure = ctypes.c_int32.from_address(address + 12)

    def map_file(self, address: int, size: int, offset: int, name: bytes) -> None:
        """Pages of another file at a place of the arena."""
        try:
            file = os.open(name, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise DeviceError(f"cannot open {os.fsdecode(name)}: {error.strerror}") from None
        try:
            self._map(address, size, file, offset, _MAP_FIXED)
        finally:
            os.close(file)

    def map_own(self, address: int, size: int) -> None:
        """The arena's own pages again."""
        self._map(address, size, ARENA_FD, address - self._start, _MAP_FIXED)

    def _map(self, address: int, size: int, file: int, offset: int, how: int) -> None:
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_NORESERVE", 0x4000) | how
        got = _mmap()(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, offset)
        if got != address:
            raise DeviceError(f"cannot map device memory at 0x{address:x}: {os.strerror(ctypes.get_errno())}")

    def done(self, ticket: int) -> None:
        """Everything up to ``ticket`` is carried out."""
        self._done.value = ticket
        self._bell.value = (self._bell.value + 1) & 0xFFFFFFFF
        wake(ctypes.addressof(self._bell))

    def fail(self, status: int) -> None:
        """Launches go wrong from here on; the first reason stays."""
        if self._failure.value == 0:
            self._failure.value = status

    @property
    def failed(self) -> bool:
        return self._failure.value != 0
