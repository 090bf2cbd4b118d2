"""Messages between a program's side (C) and its worker (Python): codes and sizes, for both.

A message is code and byte count (two u32), then its content; a reply is status (i32, a hipError_t) and byte count, then
its content. Everything is little endian. Contents are listed with the codes.
"""

from __future__ import annotations

import struct
from enum import IntEnum

PROPERTIES_BYTES = 4096

STATUS_OK, STATUS_INVALID_VALUE, STATUS_OUT_OF_MEMORY, STATUS_NOT_INITIALIZED, STATUS_INVALID_IMAGE = 0, 1, 2, 3, 200
STATUS_NO_DEVICE, STATUS_NO_BINARY, STATUS_ILLEGAL_ADDRESS = 100, 209, 700
STATUS_LAUNCH_TIMEOUT, STATUS_LAUNCH_FAILURE = 702, 719
STATUS_NOT_SUPPORTED, STATUS_UNKNOWN = 801, 999


class Control(IntEnum):
    """Places in the start of the arena (host/hip/control.h), by writer, each group on its own cache line."""

    COMPLETED = 0  # u64, the worker: the last command that is done
    BELL = 8       # u32, a futex: another one when threads are woken that wait for commands
    FAILURE = 12   # i32: why launches go wrong from here on, or 0
    WAKE_AT = 16   # u64, both: the first command that a thread waits for
    WRITTEN = 64   # u64, the program: bytes of the ring, counted from its first use and not wrapped
    POSTED = 72    # u32, a futex: another one when the worker is woken
    ASLEEP = 76    # u32, both: whether it has to be
    LEAVING = 80   # u32, the program: it ends by exit()
    TAKEN = 128    # u64, the worker: bytes of the ring that are free again, counted as those that are written
    STAMPS = 4096  # u64 each: times of events
    RING = 1 << 22  # of commands (host/hip/ring.c): their number is a power of two
    BYTES = (1 << 22) + (1 << 19)  # of all of this


class ReportPlace(IntEnum):
    """Places in memory of the program that has what launches counted (preload/reports.c), until a tool's worker has
    it."""

    WRITTEN = 0    # u64, the program: slots, counted from the first use and not wrapped
    FAILED = 8     # u64, the program: 1: launches that are not done will not be
    TAKEN = 64     # u64, the worker: of these slots
    ASLEEP = 72    # u64, both: REPORTED is to come with the next one
    FIRST_SLOT = 4096
    SLOTS = 128
    SLOT_BYTES = 8192  # u32 its number, counted from 1, when what follows is there; u32 bytes; u64 how many RESULT
    # messages since REPORTS are before it; then what these have


COUNTS = struct.Struct("<6Q")
"""How many launches a program has made so far (struct launch_counts): seen, selected, failed, explained, unseen, those
of the seen while the tool was detached. They lie in a file that a tool's worker inherits, so it knows them however the
program ends."""
COUNTS_BYTES, COUNTS_NAME = 4096, "luthier-launches"


class Message(IntEnum):
    """Requests; those from FIRST_COMMAND on have no reply, and are carried out in their order. To a device they come
    through the ring of commands, as long as there is room."""

    OPEN = 1  # u64 address and size of the arena -> u32 devices, device_facts of each (device.c reads them)
    ALLOCATE = 2  # u64 bytes, 1 if fine-grained (0 if left out) -> u64 address
    FREE = 3  # u64 address
    LOAD = 4  # u32 device; then a code object or bundle -> module (modules.c reads it)
    UNLOAD = 5  # u32 module
    OCCUPANCY = 6  # u32 module, kernel, work-items, dynamic LDS bytes -> u32 work-groups of a compute unit
    HOSTCALLS = 7  # u64 addresses: the buffer through which kernels ask, the word that says what is printed
    IMAGE = 8  # u32 number, device, Form; the device in PROPERTIES_BYTES of that form; then a code object or bundle
    INSTRUMENT = 9  # u32 image, device, 1 for all of the image in the copy; a name -> clone (clone.c reads it) or u32 0
    FINISH = 10  # the program or the tool ends -> status: all is well
    SETTINGS = 11  # u32 bytes, a tool's name; its options (none: those of the environment) -> settings (tool.h)
    VERDICT = 12  # nothing -> JSON
    RESERVE = 13  # u64 bytes -> u64 address of memory that kernels cannot touch yet
    REGISTER = 14  # u64 address, bytes, 1 if fine-grained (0 if left out): they can touch this part of it
    UNREGISTER = 15  # u64 address: no longer
    HEAP = 16  # u64 device, bytes that the heap of kernels' malloc begins with
    GRAIN = 17  # u64 address of an allocation, 1 if it is fine-grained from now on
    BEGIN = 20  # as RESULT, without variables: a launch begins -> the values of its parameters, u64 each
    SIZES = 21  # as BEGIN -> u64 bytes of each variable that this launch sizes; a status: it is to run as it is
    REPORTS = 22  # u32 process, number of a file that it has open; u64 where reports begin there (ReportPlace)
    RANGE = 23  # the name of a range in which there is a launch -> u8 1: launches there are chosen
    ALLOCATIONS = 24  # as BEGIN, u64 where the copy's table belongs, where the original is (tool.h), its base; of each
    # allocation u64 start, end, u32 1 if it is freed, bytes of text, text -> the table; nothing: it is not known
    MAP = 18  # u64 address and bytes of reserved pages, offset; then a file's name: its pages are there from now on
    UNMAP = 19  # u64 address, bytes: no longer
    LAUNCH = 64  # u32 module, kernel, grid x y z, block x y z, dynamic LDS bytes, cooperative, number and count of the
    # grids that are launched together (0: it is alone), work-items that the last work-groups lack x y z, 0; then the
    # kernarg segment
    STAMP = 65  # u64 address of the word that gets the time
    RESULT = 66  # u32 image, device, launch, launches, grid x y z, block x y z, bytes of a name and of names; the
    # kernel's name; those of the ranges that it was in, each ended by a zero; its variables' bytes
    FORGET = 67  # u32 image: its module was unloaded
    RECORDS = 68  # u32 channel, device; u64 records dropped there so far; slots that were taken from its ring
    COPY = 69  # u64 address to copy to, address to copy from, bytes
    REPORTED = 71  # nothing: there is a report
    ARGUMENTS = 72  # as RESULT of a launch that has begun, with the kernarg segment; what is hidden there is 0
    FILL = 70  # u64 address, elements, their value, bytes of one (1, 2 or 4)


FIRST_COMMAND = Message.LAUNCH


TRACED = struct.Struct("<4I8Q")
"""A record there (struct traced): kind, process, thread, device; stream, what the program calls it, number; when it was
requested, began, ended; bytes of memory, bytes of a name, which follows."""


class Traced(IntEnum):
    """What a record of the file is about that LUTHIER_TRACED names (traced.h has its fields)."""

    PUSH = 1  # a range of a thread begins; its name
    POP = 2  # and ends
    START = 3  # one of the process begins, with this number; its name
    STOP = 4  # and ends
    MARK = 5  # a moment; its name
    THREAD = 6  # its name from now on; of the next two, too
    STREAM = 7
    DEVICE = 8
    LAUNCH = 9  # carried out on a stream: by the worker, which reports this number, or from `begin` to `end`
    COPY = 10
    FILL = 11
    CALL = 12
    EVENT = 13
    DONE = 14  # by the worker: this number, from `begin` to `end`


class Form(IntEnum):
    """How IMAGE says what device it is."""

    R0000 = 0  # hipDeviceProp_t before HIP 6
    R0600 = 1  # hipDeviceProp_t since then
    ISA = 2  # the name of an HSA agent's instruction set, ended by a zero


def header() -> str:
    """protocol.h."""
    lines = [f"#define MESSAGE_{message.name} {message.value}u" for message in Message]
    lines += [f"#define FORM_{form.name} {form.value}u" for form in Form]
    lines += [f"#define REPORT_{place.name} {place.value}u" for place in ReportPlace]
    lines += [f"#define TRACED_{kind.name} {kind.value}u" for kind in Traced]
    lines += [f"#define CONTROL_{place.name} {place.value}u" for place in Control]
    lines += [f"#define PROPERTIES_BYTES {PROPERTIES_BYTES}u", f"#define COUNTS_BYTES {COUNTS_BYTES}u"]
    return "\n".join([*lines, f'#define COUNTS_NAME "{COUNTS_NAME}"', ""])
