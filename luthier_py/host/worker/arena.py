"""The memory that a program and its worker share, at the same addresses.

In: the arena's descriptor, its address and size. Out: a range for the emulator's Memory, and the word through which
the program learns what went wrong.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from functools import cache
from typing import Any

from luthier_py.base.errors import DeviceError
from luthier_py.host.native.protocol import STATUS_ILLEGAL_ADDRESS, Control
from luthier_py.host.worker.mapped_files import MappedFiles

ARENA_FD = 4
_MAP_FIXED, _MAP_FIXED_NOREPLACE = 0x10, 0x100000


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
        self.control = address
        self.address = address + Control.BYTES
        self.size = size - Control.BYTES
        self._failure = ctypes.c_int32.from_address(address + Control.FAILURE)
        self._files = MappedFiles(address + Control.FAILURE, STATUS_ILLEGAL_ADDRESS)
        self._leaving = ctypes.c_uint32.from_address(address + Control.LEAVING)

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
        self._files.add(address, size)

    def map_own(self, address: int, size: int) -> None:
        """The arena's own pages again."""
        self._files.remove(address)
        self._map(address, size, ARENA_FD, address - self._start, _MAP_FIXED)

    def _map(self, address: int, size: int, file: int, offset: int, how: int) -> None:
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_NORESERVE", 0x4000) | how
        got = _mmap()(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, offset)
        if got != address:
            raise DeviceError(f"cannot map device memory at 0x{address:x}: {os.strerror(ctypes.get_errno())}")

    def fail(self, status: int) -> None:
        """Launches go wrong from here on; the first reason stays."""
        if self._failure.value == 0:
            self._failure.value = status

    @property
    def left(self) -> bool:
        """Whether the program ends, or has ended, by exit()."""
        return self._leaving.value != 0

    @property
    def failed(self) -> bool:
        """Whether a launch has gone wrong, after which none begins."""
        return self._failure.value != 0
