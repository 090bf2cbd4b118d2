"""Small kernels whose registers are shown in memory, hooks for them, and how they are instrumented and run.

In: rows of instructions. Out: bytes of code objects, and what ran.
"""

from __future__ import annotations

import struct

from emulated import ISA, LANES

from luthier_py import Lane, Tool, hook, ptr, sgpr, u32, u64
from luthier_py.binary.loader import load
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.isa import agpr, vgpr
from luthier_py.rewrite.pipeline import instrument

WORDS = 16
S, V, A = sgpr, vgpr, agpr
POINTERS = [("s_load_dwordx4", S(0, 4), S(4, 2), 0), ("s_waitcnt", 0)]
END = ("s_endpgm",)


@hook(lanes="all")
def everywhere(rows: ptr[u64]) -> None:
    atomic_add(rows + lane_id(), u64(1))


@hook
def note_lanes(slot: ptr[u32], x: Lane[u32]) -> None:
    atomic_add(slot, x)


def stores(*regs):
    """Rows that show registers: the n-th one in word n of the second buffer, one word for each lane."""
    rows = [("v_lshlrev_b32", V(30), 2, V(0))]
    for number, reg in enumerate(regs):
        move = "v_accvgpr_read_b32" if reg.file is agpr(0).file else "v_mov_b32"
        rows += [(move, V(31), reg),
                 ISA.make("global_store_dword", V(30), V(31), S(2, 2), offset=4 * LANES * number).raw]
    return rows


def words(ran, number):
    return struct.unpack_from(f"<{LANES}I", ran.buffers[1], 4 * LANES * number)


def full(file, count):
    """Rows that write all registers of a file and read them again behind a marker."""
    write, add_ = ("s_mov_b32", "s_add_u32") if file is S else ("v_mov_b32", "v_add_u32")
    each = range(count)
    return [*((write, file(i), 1) for i in each), ("s_nop", 7), *((add_, file(0), file(0), file(i)) for i in each)]


def instrumented(data, visit, **hooks):
    """``data`` with a tool that is made of hooks and variables, and whose `instrument` is ``visit``."""
    tool = type("Edges", (Tool,), {**hooks, "instrument": lambda self, m: visit(self, m)})()
    names = [kernel.name for kernel in load(data).kernels if kernel.name != "vector_add"]
    return tool, instrument(data, tool, kernels=names)
