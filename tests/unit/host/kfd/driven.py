"""Programs that drive the driver as a thunk does, in a Python below the library: what each test sends there.

In: a program's text, which has ``kfd`` from below. Out: what it prints. The numbers and structures are written here
once more, by hand from linux/kfd_ioctl.h, so that a mistake in the driver's own table shows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from patience import PATIENCE

from luthier_py.host.kfd import device_library

PRELUDE = f"PATIENCE = {PATIENCE / 2}" + '''
import ctypes, errno, fcntl, mmap, os, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
PAGE, GPU = 4096, 0x1000
VRAM, GTT, USERPTR, DOORBELL, WRITABLE = 1, 2, 4, 8, 1 << 31

def request(number, size, direction=3, kind=ord("K")):
    return direction << 30 | size << 16 | kind << 8 | number

def ioctl(fd, number, form, *values, kind=ord("K"), size=None):
    """The fields after the call; OSError as the C library has it."""
    data = bytearray(struct.pack("<" + form, *values).ljust(size or 0, b"\\0"))
    memory = (ctypes.c_char * len(data)).from_buffer(data)
    if libc.ioctl(fd, request(number, len(data), kind=kind), memory) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return struct.unpack_from("<" + form, data)

def refused(call, *args, **names):
    try:
        call(*args, **names)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "nothing"

def place(size, address=None):
    """Address space, as the thunk reserves it; or memory of this program's own."""
    got = libc.mmap(address, size, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    assert got != ctypes.c_void_p(-1).value
    return got

class Memory:
    """A buffer object that is mapped on both sides."""

    def __init__(self, kfd, drm, address, size, flags=VRAM | WRITABLE):
        self.kfd, self.address, self.size = kfd, address, size
        fields = ioctl(kfd, 0x16, "QQQQII", address, size, 0, address if flags & USERPTR else 0, GPU, flags)
        self.handle, self.offset = fields[2], fields[3]
        gpus = (ctypes.c_uint32 * 1)(GPU)
        assert ioctl(kfd, 0x18, "QQII", self.handle, ctypes.addressof(gpus), 1, 0)[3] == 1
        if not flags & USERPTR:
            assert libc.mmap(address, size, 3, mmap.MAP_SHARED | 0x10, drm, self.offset) == address

    def word(self, index, size=4):
        kinds = {2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}
        return kinds[size].from_address(self.address + index)

    def free(self):
        ioctl(self.kfd, 0x17, "Q", self.handle)

class Ring:
    """A queue: a ring with its pointers behind it, and its doorbell."""

    def __init__(self, kfd, drm, address, kind, ring_bytes=PAGE):
        self.memory = Memory(kfd, drm, address, ring_bytes + PAGE)
        self.ring_bytes, self.kfd = ring_bytes, kfd
        pointers = address + ring_bytes
        # amd_queue_t begins 56 bytes before the write index
        self.write, self.read = pointers + 56, pointers + 128
        fields = ioctl(kfd, 0x02, "QQQQIIIIIIQQQII", address, self.write, self.read, 0, ring_bytes, GPU, kind, 100, 7,
                       *[0] * 6)
        self.number, doorbell = fields[9], fields[3]
        page = libc.mmap(None, 8192, 3, mmap.MAP_SHARED, kfd, ctypes.c_long(doorbell & ~8191).value)
        self.doorbell = ctypes.c_uint64.from_address(page + (doorbell & 8191))

    def put(self, at, data):
        ctypes.memmove(self.memory.address + at % self.ring_bytes, data, len(data))

    def read_index(self):
        return ctypes.c_uint64.from_address(self.read).value

def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.001)

kfd = os.open("/dev/kfd", os.O_RDWR | os.O_CLOEXEC)
drm = os.open("/dev/dri/renderD128", os.O_RDWR | os.O_CLOEXEC)
ARENA = 0x2000_0000_0000
'''


def drive(text: str, folder: Path, device: str = "emulator:gfx90a", before: str = "", **variables: str) -> str:
    """What the program prints; AssertionError with its errors if it does not end well."""
    program = folder / "driven.py"
    program.write_text(PRELUDE + before + textwrap.dedent(text))
    environment = {**os.environ, "LD_PRELOAD": str(device_library()), "LUTHIER_DEVICE": device, **variables}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout
