"""Straight-line code of any length: each value is made of the one before it, and Python's stack is no deeper for that.

Chains are of each kind of value that is written when it is asked for, and (-m slow) of every instruction.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from emulated import LANES, Bench, code_object
from every_case import check_all
from reference.campaign import rows
from reference.cases import Cases, Place

from luthier_py.base.llvm import Effort
from luthier_py.emulator.options.settings import Settings
from luthier_py.emulator.reading.discover import CodeBlock, discover
from luthier_py.emulator.translation.host_functions import DividedFunction
from luthier_py.isa import Inst, InstructionSet, OpInfo, instruction_set, sgpr, target, vgpr

ISA = instruction_set(target("gfx90a"))
MODE = 0xF0 | 0x300
STACK = 100  # frames that translating a single instruction may take
LENGTH = 240  # instructions of a chain, in one block
PARTS = 16  # of all instructions, each some minutes

CHAINS = {
    "sums": ("v_add_u32_e32 v1, v0, v1",),
    "differences": ("v_sub_u32_e32 v1, v1, v0",),
    "sums of itself": ("v_add_u32_e32 v1, v1, v1",),
    "multiples": ("v_lshlrev_b32_e32 v1, 1, v1",),
    "products with a scalar": ("v_mul_lo_u32 v1, v1, s4",),
    "what is above": ("v_lshl_add_u32 v1, v1, 16, v0", "v_lshrrev_b32_e32 v1, 16, v1"),
    "bits of what all lanes share": ("v_xor_b32_e32 v2, s4, v2", "v_or_b32_e32 v2, s5, v2", "v_and_b32_e32 v2, s6, v2"),
    "copies": ("v_mov_b32_e32 v2, v1", "v_mov_b32_e32 v1, v2"),
    "signed and unsigned": ("v_add_u32_e32 v1, v0, v1", "v_max_i32_e32 v1, v0, v1"),
    "64 bits": ("v_add_co_u32_e32 v2, vcc, v0, v2", "v_addc_co_u32_e32 v3, vcc, 0, v3, vcc"),
    "shifts of 64 bits": ("v_lshlrev_b64 v[2:3], 1, v[2:3]", "v_add_co_u32_e32 v2, vcc, v0, v2"),
    "choices": ("v_cmp_lt_u32_e32 vcc, s4, v2", "v_cndmask_b32_e32 v2, v0, v2, vcc"),
    "masks": ("v_cmp_lt_u32_e64 s[8:9], v0, v1", "s_and_b64 vcc, vcc, s[8:9]", "v_cndmask_b32_e32 v1, v0, v1, vcc"),
    "lanes by turns": (
        "s_mov_b64 exec, s[8:9]", "v_mov_b32_e32 v1, v0", "s_mov_b64 exec, s[10:11]", "v_mov_b32_e32 v1, 5"),
    "scalars": ("s_lshl_b64 s[8:9], s[8:9], 1", "s_add_u32 s8, s8, s9", "s_addc_u32 s9, s9, s8"),
    "floats": ("v_fma_f32 v1, v1, v0, v1", "v_cvt_f16_f32_e32 v1, v1", "v_cvt_f32_f16_e32 v1, v1"),
    "halves": ("v_pk_add_u16 v1, v0, v1", "v_add_u16_sdwa v1, v1, v0 dst_sel:WORD_1 src0_sel:BYTE_2"),
    "loads": ("global_load_dword v1, v1, s[0:1]",),
    "loads and stores": ("ds_read_b32 v2, v1", "v_add_u32_e32 v1, 4, v1", "ds_write_b32 v1, v2"),
    "accumulators": ("v_accvgpr_write_b32 a0, v1", "v_accvgpr_read_b32 v1, a0"),
    "other lanes": ("v_mov_b32_dpp v1, v1 row_shr:1", "v_readlane_b32 s8, v1, 3", "v_add_u32_e32 v1, s8, v1"),
}  # fmt: skip


@contextmanager
def shallow_stack() -> Iterator[None]:
    """As deep as it is, and STACK frames more."""
    frame, depth, limit = sys._getframe(), 0, sys.getrecursionlimit()
    while (back := frame.f_back) is not None:
        frame, depth = back, depth + 1
    sys.setrecursionlimit(depth + STACK)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def blocks_of(isa: InstructionSet, insts: Sequence[Inst]) -> list[CodeBlock]:
    """``insts`` as a block, behind which another one reads v1, v2 and v3."""
    at: dict[int, Inst] = {}
    pc = 0
    reads = ["s_branch 0", *(f"v_mov_b32_e32 v{row}, v{row}" for row in (1, 2, 3)), "s_endpgm"]
    for inst in (*insts, *map(isa.parse, reads)):
        at[pc] = inst
        pc += inst.size_bytes
    return discover(at.__getitem__, 0)


def check_translation(isa: InstructionSet, insts: Sequence[Inst]) -> None:
    """As loops, for lanes that are even and for others, and as calls; RecursionError where that takes a deep stack."""
    function = DividedFunction(blocks_of(isa, insts), 0, Settings(isa.wave_size, MODE, isa.target))
    for effort in (Effort.GENERATE, Effort.FAST):
        with shallow_stack():
            for part in function.parts:
                function.translate_part(part, effort)


@pytest.mark.parametrize("kind", CHAINS)
def test_the_stack_is_no_deeper_for_longer_code(kind: str) -> None:
    insts = [ISA.parse(line) for line in CHAINS[kind]]
    check_translation(ISA, insts * (LENGTH // len(insts)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", ["gfx90a", "gfx1201"])
def test_the_stack_is_no_deeper_for_longer_code_of_any_instruction(name: str, part: int) -> None:
    isa = instruction_set(target(name))

    def check(op: OpInfo) -> None:
        """Each reads what the one before it has written, where the encoding lets it."""
        made = (Cases(isa, 1).make(op, Place(2, 60), (f"vdst {source}", 0), False)
                for source in ("src0", "src1", "vdata", "vaddr", "addr"))
        for inst in {case.inst.raw: case.inst for case in made if case is not None}.values():
            check_translation(isa, [inst] * LENGTH)

    check_all(check, list(rows(isa))[part::PARTS])


@pytest.mark.parametrize("terms", [192, 450])
def test_a_sum_of_many_terms_is_what_it_is(terms: int) -> None:
    """In waves whose lanes are all active it is ``first + step * lane``, which is written at its end."""
    sums = [("v_add_u32", vgpr(3), vgpr(0) if place % 3 else sgpr(6), vgpr(3)) for place in range(terms)]
    code = code_object({"k": [
        ("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_lshlrev_b32", vgpr(1), 2, vgpr(0)),
        ("v_mov_b32", vgpr(3), vgpr(1)), *sums, ("global_store_dword", vgpr(1), vgpr(3), sgpr(0, 2)), ("s_endpgm",),
    ]})
    (found, *_) = Bench(bytes(4 * LANES)).run(code, "k").buffers
    assert struct.unpack(f"<{LANES}I", found) == tuple((4 + terms - -(-terms // 3)) * lane for lane in range(LANES))
