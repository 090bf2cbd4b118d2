"""The memory that generated code, native support code and Python share.

In: nothing. Out: byte offsets of fields. Everything is little endian; every field of these
records is a u64 unless said otherwise. Invariant: this file alone knows where anything lies.
"""

from __future__ import annotations

from enum import IntEnum

from luthier_py.isa.encoding.instruction import Counter
from luthier_py.isa.model.registers import EXEC, MODE, SCC

STRIP = 16
"""Lanes that generated code handles at once: a DPP row, two AVX2 registers of dwords."""

# A wave: scalar registers, then fields, then rows of vector registers.
SCALARS = 140  # dwords, by index in the scalar file; SCC and MODE among them, and TEMPORARY_MASKS
assert max(EXEC + 1, SCC, MODE) < SCALARS
NAMED_SCALARS = 104
"""So many of the first ones are SGPRs like any other: a wave that has no instruction that names one needs no value."""


def sgpr_offset(index: int) -> int:
    """Where a scalar register is in a wave's record, in bytes from its start; ``index``: in the scalar file."""
    return 4 * index


def _fields(start: int, *names: str) -> dict[str, int]:
    return {name: start + 8 * i for i, name in enumerate(names)}


WAVE = _fields(
    SCALARS * 4,
    "pc",             # absolute address to continue at
    "status",         # Status, as of the last return
    "budget",         # until the wave gives way: see budgets
    "worker",         # address of the Worker that runs it
    "lds", "lds_bytes",
    "scratch",        # address of this wave's private memory: rows of one dword of every lane
    "scratch_bytes",  # of one lane
    "meeting",        # address of the count of waves that have come to a grid barrier
    "expected",       # what it counts when this wave may continue
    "skips",          # whether vector instructions are skipped (S_SETVSKIP)
    "released",       # whether it has given back its vector registers (MSG_DEALLOC_VGPRS)
    "signalled",      # whether it has come to the barrier, and not all others have yet
    "group",          # address of the work-group's record
    "members",        # waves that the work-group began with
    "barriers",       # address of its named barriers
    "joined",         # address of that which this wave can wait for; 0 for none
    "seen",           # how often all had come to it when this wave was there last
    "fault_site", "fault_lane", "fault_address", "fault_kind",
    "left_at",        # address of the last instruction that left for a place in a register
    "time",           # address of its TIME record, with the cycle model
    "number",         # which wave of the work-group
    "watched",        # address of what watching native code knows of it; 0 at first
    "ignored",        # where work-group ids go that the kernel does not ask for, and accesses that do nothing
    "ignored_high",   # the widest of these have 16 bytes
)
WAVE_HEADER_BYTES = 832
COPIED_BYTES = 32
"""At once, of a wave's image."""
assert not (sgpr_offset(NAMED_SCALARS) % COPIED_BYTES or WAVE_HEADER_BYTES % COPIED_BYTES)
assert max(WAVE.values()) < WAVE_HEADER_BYTES
AGPR_ROW = 256
"""AGPRs are rows from here on, whatever accum_offset is: an instruction names the file."""
EVERYTHING = -1
"""All of them, as a set of rows."""


def row_offset(row: int, wave_size: int) -> int:
    """Where a row (a dword of each lane) is in a wave's record, in bytes from its start."""
    return WAVE_HEADER_BYTES + row * wave_size * 4


VECTOR_ROWS = 512
TEMPORARY_ROW = VECTOR_ROWS
"""Rows past the registers, for addresses and halves."""
ZERO_ROW = TEMPORARY_ROW + 6
PROPAGATION_ROW = TEMPORARY_ROW + 8
"""Four rows for what passes from memory to LDS, and one for addresses there."""
LOADED_ROW = TEMPORARY_ROW + 16
"""Eight rows for what loads give lane by lane, and two for their addresses."""
GIVEN_SHADOWS, ROUTED_SHADOWS, WRITTEN_LANES = LOADED_ROW, LOADED_ROW + 2, LOADED_ROW + 4
"""The same rows before an instruction that crosses lanes, where checks follow values: two that have 1 in lanes where a
source was never written, two with what lanes read of these, and one that has 1 in lanes that are written."""
SCALED_ROW = TEMPORARY_ROW + 26
"""A pair: for offsets that count elements, and for sums of a scalar base and a lane's offset."""
TEMPORARY_ROWS = 28
TEMPORARY_MASKS = (132, 134, 136, 138)
"""Indices in the scalar file of pairs that are no registers."""
assert max(TEMPORARY_MASKS) + 2 <= SCALARS


def wave_stride(wave_size: int) -> int:
    """Distance of two waves: pages and a cache line, so that their rows do not collide in the cache."""
    return -(-row_offset(VECTOR_ROWS + TEMPORARY_ROWS, wave_size) // 4096) * 4096 + 64


# A named barrier of a work-group.
NAMED_BARRIER = _fields(
    0,
    "members",  # waves that have to come
    "came",     # of them, since all had come last
    "times",    # how often all had come
)
NAMED_BARRIER_BYTES = 32
NAMED_BARRIERS_BYTES = 32 * NAMED_BARRIER_BYTES
"""Of all that five bits can name."""


# What a worker (one thread's share of a launch) hands to generated code.
WORKER = _fields(
    0,
    "counters",      # address of u64 counters, see translate
    "sites",         # address of Site records
    "allocations",   # address of a word: where the table is, see allocations
    "code_base",     # load address of the module's address 0
    "table", "table_entries",           # function to enter for each dword of code, 0 where unknown
    "code_start",    # absolute address of the table's first dword
    "shared_base", "private_base",      # apertures
    "meetings",      # address of a GRID_RESOURCE for each global wave sync resource
    "clock",         # address of what clocks has: how many instructions each counter stands for
    "watch",         # address of what watching native code knows of the launch
    "changes",       # how often its waves may have changed what others see, or read the clock; counted afterwards
    "outside_lds",   # address of a site that accessed what is outside of LDS; 0 for none
    "alone",         # 1 where only its waves write their memory while they run
)

SITE = _fields(0, "base", "end")  # a memory instruction's last allocation; empty where base == end
SITE_BYTES = 16
ALLOCATION = _fields(0, "base", "end", "access")
ALLOCATION_BYTES = 24
WRITABLE, FINE = 1, 2
"""Bits of an allocation's access; FINE: float atomics do nothing there, and give 0. Above them is the
address of a heap whose slabs it may hold."""


# What the cycle model keeps of a wave, in cycles.
TIME = _fields(
    0,
    "now",           # when its next instruction can issue
    "arrived",       # at the last barrier that it came to
    "released",      # from the last one of the work-group
    "vector", "matrix", "scalar", "lds", "memory", "other",  # how long it has held each Pipe, for others too
    "lds_free", "memory_free", "other_free",  # when the wave's own accesses are through
)
TIME_COUNTERS_AT = 8 * len(TIME)
TIME_COUNTERS = {counter: number for number, counter in enumerate(Counter)}
"""Behind the fields, for each: how many accesses it has counted, and when the last TIME_RING of them were there."""
TIME_RING = 64
TIME_PATTERNS_AT = TIME_COUNTERS_AT + 8 * (TIME_RING + 1) * len(TIME_COUNTERS)
TIME_PATTERNS = 8
"""Last come so many patterns of addresses in LDS, with what their banks take: that is the same for every wave."""
TIME_PATTERN_BYTES = 3 * 8 + 4 * 64
TIME_BYTES = TIME_PATTERNS_AT + TIME_PATTERNS * TIME_PATTERN_BYTES


GRID_RESOURCES = 64
"""Global wave sync resources of a launch."""
GRID_RESOURCE = _fields(
    0,
    "came",   # waves that have come to its barriers
    "taken",  # numbers drawn by waves that wait for it as a semaphore
    "given",  # up to which number they may
    "unused",
)
GRID_RESOURCE_BYTES = 8 * len(GRID_RESOURCE)
MEETINGS_BYTES = GRID_RESOURCES * GRID_RESOURCE_BYTES


class Status(IntEnum):
    """Why a generated function returned."""

    DONE = 0
    BARRIER = 1   # continue at pc when all waves are here
    JUMP = 2      # continue at pc, in whatever function that is
    YIELD = 3     # budget used up, or s_sleep
    FAULT = 4     # see fault_*
    MEETING = 5   # continue at pc when ``meeting`` counts ``expected``
    MESSAGE = 6   # notify the host, and continue at pc
    SIGNAL = 7    # count as come to the barrier, and continue at pc
    WAIT = 8      # continue at pc when all waves have come since this one has


class Fault(IntEnum):
    """What a wave did wrong: the field ``fault_kind`` of its record."""

    ADDRESS = 1    # no allocation there
    MISALIGNED = 2
    READ_ONLY = 3
    LDS = 4        # outside the work-group's LDS
    SCRATCH = 5    # outside the lane's private memory
    JUMP = 6       # pc outside the module's code
    TRAP = 7
    MODE = 8       # came from a register, and has a value for which there is no code
    SKIPS = 9      # the function is left while vector instructions are skipped
    SURFACE = 10   # a resource, or what is stored there, without a known meaning; the address is a SurfaceRefusal
    RELEASED = 11  # vector registers or private memory are needed that the wave has deallocated


class SurfaceRefusal(IntEnum):
    """Which part of a resource, or of a request to it, is refused."""

    FORMAT = 1           # no format has that number, or it is one that is not converted here
    RESERVED_SELECT = 2  # a destination select of 2 or 3
    NARROW_INTEGER = 3   # an integer of more than 16 bits to 16 bits
    SELECTED_TWICE = 4   # two components go to one channel
    DOES_NOT_FIT = 5     # an integer that the field cannot hold; a scaled integer, of which only loads are defined
    SWIZZLE = 6          # an order of bytes that is not known
    DATA_TYPE = 7        # of LDS_DIRECT_LOAD, in M0
    IMAGE = 8            # not linear, several levels, samples, compressed; or rows of unknown length
    LANE_GROUP = 9       # lanes in groups that are no power of two, or one so far away that no source says which it is
    OTHER_LANE = 10      # one that is not active


# One launch, and one resident work-group of it.
LAUNCH = _fields(
    0,
    "next",                  # index of the next work-group to start; workers take it atomically
    "total", "count_x", "count_y",
    "sgpr_x", "sgpr_y", "sgpr_z",  # byte offset in the wave of each work-group id, or of a field that no code reads
    "waves",                 # of a work-group that is complete
    "image_stride",          # distance of the images of two waves
    "scalar_bytes",          # of a wave's initial image: NAMED_SCALARS that it needs, a multiple of COPIED_BYTES
    "id_bytes",              # and rows of work-item ids; what is between these parts it always gets
    "vector_bytes",          # bytes after the image to clear: the other VGPRs
    "agpr_bytes",            # bytes of AGPR rows to clear
    "lds_bytes",
    "stop",                  # not 0: come back before the next turn
    "edges",                 # dimensions, as bits, whose last work-groups have fewer work-items
    "edge_stride",           # distance of the images for two sets of such dimensions; all zero is the first
    "watcher",               # address of the function that gets GroupEvents, with the cycle model: see scheduler
    "ids_share",             # 1 where the id in z is in the upper half of the register of y; else 0
    "waves_0", "waves_1", "waves_2", "waves_3", "waves_4", "waves_5", "waves_6", "waves_7",  # for each such set
)
GROUP = _fields(
    0,
    "active",                # whether a work-group is in it
    "left",                  # waves that have not ended
    "waiting",               # waves at the barrier
    "waves",                 # address of the first wave; the others follow at wave_stride
    "images",                # address of their initial images
    "lds",
    "wave",                  # the wave that needs attention
    "index",                 # of the work-group in the launch
    "slice",                 # the budget of a wave's turn
    "resume",                # of a round that was broken off: twice the waves that have had their turn, and 1 more if
                             # the next one is in the middle of it; at random: 1 + the wave
    "rounds",                # that are left of a span of them; 0: the next one begins
    "spans",                 # since the work-group began: how often as many rounds as were to be had are over
    "turns",                 # at random: how many are left
    "random",                # the state that the next one comes from
    "budget",                # of the wave whose turn it is
)
GROUP_BYTES = 8 * len(GROUP)

# What native code needs to begin a launch that is like one before.
READY = _fields(
    0,
    "valid",                 # 0: its kernel's code object was unloaded
    "run",                   # address of the scheduler
    "worker", "launch", "group", "meetings",  # addresses of records
    "rounds", "slice",       # see scheduler
    "again",                 # nanoseconds in which it continues after that while work-groups end; all ones: ever
    "kernarg",               # address of the kernarg segment
    "kernarg_words",         # of 64 bits
    "given", "fixed",        # addresses of as many words: bits that the launch gives, and the others
    "preload", "preload_bytes",  # where that is which each launch finds in user SGPRs
    "preload_to",            # where these are in the first image
    "images",                # how many there are, at a stride of image_stride
    "sites", "site_bytes",   # addresses: of Site records, and of a word that says how many bytes there are
)


class Outcome(IntEnum):
    """Why the native scheduler came back."""

    FINISHED = 0     # no work-group is left to start, and this one is done
    TIRED = 1        # turns used up
    FAULT = 2        # wave ``wave`` of the group
    NEEDS_CODE = 3   # no function is known for pc of wave ``wave``
    MESSAGE = 4      # a wave has one for the host


class GroupEvent(IntEnum):
    """What a watcher gets of a work-group, with the address of its record."""

    BEGINS = 0    # in this record, from now on
    RELEASES = 1  # all its waves have come to the barrier, and are about to continue
    ENDS = 2
