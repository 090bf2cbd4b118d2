"""Why operations have no meaning here: one row for each reason, with the operations that it is true of.

In: an operation of a target. Out: :class:`WhyRefused`, whose text the emulator, `luthier coverage` and the pages show.
Invariant: whatever the emulator does not run on a target is refused here; what has neither a meaning nor a row is
UNWRITTEN.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache

from luthier_py.isa.encoding.instruction import OpInfo
from luthier_py.isa.model.target import Target
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.cdna4 import TransposedLoad
from luthier_py.isa.semantics.control import Switch


class WhyRefused(Enum):
    """Its value: why, and what to do."""

    PIPELINE = ("only waves of the graphics pipeline have what it works on: vertices, primitives, pixels",
                "compile the program as a compute kernel")
    SAMPLING = ("it filters texels, which no manual describes to the bit",
                "read texels by image loads, or use buffers")
    RAYS = ("how units for ray tracing walk a tree no manual describes to the bit",
            "use a library's traversal in software")
    PRIVILEGED = ("only a trap handler may, and the device's own is not part of a program",
                  "leave it out: a kernel's s_trap ends the launch, and says so")
    DEBUGGER = ("it asks for what a debugger has set, and none is attached to the emulator",
                "compile without it")
    SHARED_DATA = ("no compute launch is given what it works on: global data share, order of waves",
                   "use atomics on global memory")
    DISCARDS = ("it throws away what a cache holds, so what memory has then no manual says",
                "write the cache back instead")
    FORKS = ("it splits a wave by a stack of the hardware's, which no compiler uses",
             "branch by EXEC, as compilers do")
    SUBVECTORS = ("it runs a loop for half of a wave after the other, which no compiler uses",
                  "branch by EXEC, as compilers do")
    ILLEGAL = ("it is there to be illegal", "do not let waves come to it")
    PACKED_TEXELS = ("no source says whether components of packed texels come in a register each, or side by side",
                     "use image_load and image_store, or buffers")
    HALF_TILES = ("which part of a tile each of 64 lanes loads no source says", "compile for waves of 32 lanes")
    RENAMED = ("it changes which registers the operands of later instructions name, which is not emulated",
               "on this target keep to the first 256 vector registers, and index by s_set_gpr_idx_on or v_movrel")
    PARTS = ("it is the first half of an instruction with scales, which the second completes",
             "let the assembler write both")
    CONTRADICTED = ("public sources contradict each other, or leave open, which lane or register gets what",
                    "use the plain instructions that it stands for")
    TENSORS = ("it moves tiles by descriptors whose fields no public manual gives",
               "load by global_load_async_to_lds, or by lanes")
    RESIZES = ("it changes how many vector registers a wave has, or which barriers it belongs to, while it runs",
               "ask for all registers at the launch, and stay with the barriers that the kernel begins with")
    UNWRITTEN = ("it has no meaning here yet", "docs/adding/instruction.md says how to add one")

    @property
    def reason(self) -> str:
        return self.value[0]

    @property
    def advice(self) -> str:
        return self.value[1]


# Whole names as regular expressions. Sources: AMD Instinct MI200 ISA, 4.2 (program control), 12.5 (SOPP), 12.13 (DS,
# GWS); Vega ISA, 11 (exports), 12.16 (VINTRP); RDNA 3 ISA, 10 (image), 11.2 (LDS parameters), 12 (exports), 16.5.
_ROWS: tuple[tuple[WhyRefused, str], ...] = (
    (WhyRefused.PIPELINE, r"EXP(_ROW)?(_DONE)?|V_INTERP_\w+|(LDS|DS)_PARAM_LOAD|S_ENDPGM_ORDERED_PS_DONE|S_SENDMSGHALT"
                       r"|V_SCREEN_PARTITION_4SE_B32|IMAGE_MSAA_LOAD\w*|DS_(ADD|SUB)_GS_REG"),
    (WhyRefused.SAMPLING, r"IMAGE_(SAMPLE|GATHER)\w*|IMAGE_GET_LOD"),
    (WhyRefused.PACKED_TEXELS, r"IMAGE_(LOAD|STORE)(_MIP)?_PCK(_SGN)?"),
    (WhyRefused.RAYS, r"IMAGE_BVH\w+|DS_BVH_\w+"),
    (WhyRefused.PRIVILEGED, r"S_RFE_(RESTORE_)?B64"),
    (WhyRefused.DEBUGGER, r"S_CBRANCH_CDBG\w+|S_SETKILL"),
    (WhyRefused.SHARED_DATA, r"DS_ORDERED_COUNT|GLOBAL_ATOMIC_ORDERED_ADD_B64"),
    (WhyRefused.DISCARDS, r"S_DCACHE_DISCARD(_X2)?"),
    (WhyRefused.FORKS, r"S_CBRANCH_([GI]_FORK|JOIN)"),
    (WhyRefused.SUBVECTORS, r"S_SUBVECTOR_LOOP_(BEGIN|END)"),
    (WhyRefused.PARTS, r"V_(WMMA|MFMA)_LD_SCALE\w*"),
    (WhyRefused.CONTRADICTED, r"(DS|GLOBAL)_LOAD_TR[46]_B\d+"
                             r"|V_CVT_SR_PK_B?F16_F32|V_SWMMAC_BF16F32_\w+|DS_ATOMIC_(ASYNC_)?BARRIER_ARRIVE_B64"),
    (WhyRefused.TENSORS, r"TENSOR_\w+"),
    (WhyRefused.RESIZES, r"S_ALLOC_VGPR|S_BARRIER_LEAVE|S_WAKEUP_BARRIER_\w+"),
    (WhyRefused.ILLEGAL, r"V_ILLEGAL"),
)


def refusal(op: OpInfo, target: Target) -> WhyRefused | None:
    """Why the emulator does not run ``op``; None if it does."""
    row = find_meaning(op)
    if row is None:
        return _reason(op.base)
    if isinstance(row, Switch) and row is not Switch.SKIP:
        return WhyRefused.RENAMED
    if isinstance(row, TransposedLoad) and ("vdst", row.dwords) not in [(one.name, one.dwords) for one in op.operands]:
        return WhyRefused.HALF_TILES
    return None


@cache
def _reason(base: str) -> WhyRefused:
    return next((why for why, names in _ROWS if re.fullmatch(names, base)), WhyRefused.UNWRITTEN)
