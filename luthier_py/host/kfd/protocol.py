"""Messages between a program's side of the driver (C) and its worker (Python), and what both see in shared memory.

The framing is host/native/protocol's. Shared memory is one file without names (a memfd) in which everything lies
at its own virtual address: the page at address A is the file's page at offset A, on both sides. ARENA is where both
map all of it; memory of the program's own that it registers is mapped page by page, where it lies.
"""

from __future__ import annotations

from enum import IntEnum

from luthier_py.host.native import protocol as native

ARENA_START, ARENA_BYTES = 0x2000_0000_0000, 1 << 42
DRIVER_START, DRIVER_BYTES = ARENA_START + ARENA_BYTES, 1 << 37  # memory of the worker's own that kernels see
MAX_GPUS = 16
EVENTS = 4096  # KFD_SIGNAL_EVENT_LIMIT of kfd_ioctl.h
EVENT_WORDS = 12  # u32 state, type, times it was set, threads that wait; 32 bytes for kfd_event_data's union
EVENTS_OFFSET = 1 << 12
DOORBELL_BYTES = 8192  # of a process on one GPU: 1,024 of 8 bytes (KFD, from generation 9 on)
DOORBELLS_OFFSET = 1 << 18
DOORBELL_TAG, GPU_SHIFT, FIRST_GPU = 3 << 62, 46, 0x1000
"""Offsets for mmap of a process's doorbells on a GPU: KFD_MMAP_TYPE_DOORBELL and KFD_MMAP_GPU_ID of amdkfd. The names
of GPUs count from FIRST_GPU."""
CONTROL_BYTES = 1 << 20
"""Start of the arena: u32 doorbell (a futex: some event changed); then events and doorbells at their offsets."""


class KfdMessage(IntEnum):
    """Requests; those from native.FIRST_COMMAND on have no reply."""

    OPEN = 1  # -> path of the folder that stands for sysfs
    IOCTL = 2  # i32 minor of a render node, or -1: /dev/kfd; u32 request; its arguments, arrays -> i32 errno, the same
    SHARED_FILE = 3  # u64 handle of user memory, offset in a file, whose pages it is, its inode; a name -> i32 errno
    SVM_FILE = 4  # u64 address, bytes, offset in a file, whose pages these are, its inode; a name -> i32 errno
    RING = 64  # u32 queue, u64 packets that the program has put on it: its doorbell was rung
    CODE = 65  # u64 load address; ELF image: ROCr has loaded it
    SVM_GONE = 68  # u64 address, bytes of shared virtual memory that the program has unmapped
    LEAVE = 67  # the program ends by exit()
    EVENT_PAGE = 66  # u64 handle of the memory into whose slots kernels write events (kfd_ioctl_create_event_args)


assert KfdMessage.IOCTL < native.FIRST_COMMAND <= KfdMessage.RING


def header() -> str:
    """kfd_protocol.h."""
    numbers = {name: value for name, value in globals().items() if name.isupper() and isinstance(value, int)}
    lines = [f"#define MESSAGE_{message.name} {message.value}u" for message in KfdMessage]
    return "\n".join([*lines, *(f"#define {name} {value:#x}ul" for name, value in numbers.items()), ""])
