"""Layout: displacements, islands, PC-relative literals."""

from __future__ import annotations

import struct

import pytest

from luthier_py.binary.patch import Fixup, FixupKind
from luthier_py.isa import build, instruction_set, sgpr, target
from luthier_py.isa.columns import read_columns
from luthier_py.program.ir.model import instr_at
from luthier_py.rewrite.inject import relax as relaxing
from luthier_py.rewrite.inject.items import Clone, Label, Reference, Referent, Single, Slice
from luthier_py.rewrite.inject.layout import Placed, lay_out
from luthier_py.rewrite.inject.relax import REACH_BYTES, STEP_BYTES, relax
from luthier_py.rewrite.inject.text import parse_clone
from luthier_py.rewrite.inject.verify import verify
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

ISA = instruction_set(target("gfx90a"))
START, END = 0x1000, 0x2000  # block addresses in the imagined original


def clone(middle: int, first: str = "s_cbranch_scc0", last: str = "s_cbranch_scc1") -> Clone:
    """Forward over ``middle`` instructions, and back again."""
    begin, end = Label(START), Label(END)
    insts = [ISA.make(first, 0), *[ISA.make("s_nop", 0)] * middle, ISA.make(last, 0), ISA.make("s_endpgm")]
    (code,) = read_columns(ISA, [(START, b"".join(inst.raw for inst in insts))])
    items = [begin, Single(insts[0], instr_at(code, 0), jump=end), Slice(code, 1, middle + 1), end,
             Single(insts[-2], instr_at(code, middle + 1), jump=begin), Slice(code, middle + 2, middle + 3)]
    return Clone(START, "f", tuple(item for item in items if not isinstance(item, Slice) or item.start < item.stop),
                 {START: begin, END: end})


def placed(clone: Clone) -> Placed:
    made = relax(ISA, clone)
    return lay_out(ISA, made, {})


def at(placed: Placed, label: Label) -> int:
    return placed.offsets[placed.clone.items.index(label)]


def walk(code: bytes, at: int, taken: bool) -> int:
    """Follow one branch, and unconditional ones after it, to an instruction that is none."""
    inst = ISA.decode(code, at)
    at = inst.branch_target(at) if taken else at + inst.size_bytes
    while (inst := ISA.decode(code, at)).op.base == "S_BRANCH":
        at = inst.branch_target(at)
    return at


@pytest.mark.parametrize("middle", [0, 1, 1000, 32766, 32767, 70_000])
def test_branches_reach_their_targets_both_ways(middle):
    made = clone(middle)
    done = placed(made)
    code, head, tail = done.chunk.code, at(done, made.labels[START]), at(done, made.labels[END])
    assert walk(code, head, taken=True) == tail
    assert walk(code, tail, taken=True) == head
    islands = len(code) // 4 - middle - 3
    assert (islands > 0) == (-4 * middle - 8 not in REACH_BYTES)  # the way back is the longer one
    assert sum(item.stop - item.start for item in done.clone.items if isinstance(item, Slice)) == middle + 1


def test_code_around_an_island_falls_over_it():
    done = placed(clone(70_000))
    pc, seen = 0, 0
    end = done.offsets[-1]
    while pc != end:  # not taken at conditional branches
        inst = ISA.decode(done.chunk.code, pc)
        seen += inst.op.base == "S_NOP"
        pc = inst.branch_target(pc) if inst.op.base == "S_BRANCH" else pc + inst.size_bytes
    assert seen == 70_000


@pytest.mark.core
def test_no_island_between_the_pc_and_what_counts_from_it():
    """The end of s_getpc is where a group of islands would stand."""
    text = "\n".join(["clone f of 0x1000", ".x1000:", "  wait + s_cbranch_scc1 -> .1",
                      *["  wait + s_nop 0"] * (STEP_BYTES // 4 - 2),
                      "  wait + s_getpc_b64 s[4:5]", ".2:", "  wait + s_add_u32 s4, s4, ? -> low v - .2",
                      *[f"  0x{pc:x} | s_nop 0" for pc in range(0x8000, 0x8000 + 4 * 40_000, 4)], ".1:"])
    made = relax(ISA, parse_clone(ISA, text))
    number = next(n for n, item in enumerate(made.items)
                  if isinstance(item, Single) and item.inst.op.base == "S_GETPC_B64")
    assert isinstance(made.items[number + 1], Label)
    assert made.items[number + 2].inst.op.base == "S_BRANCH"  # over the islands


def test_a_literal_for_a_block_is_filled_in_and_others_become_fixups():
    base, block = Label(), Label(END)
    inside = Reference(FixupKind.REL32_LO, Referent(label=block), base)
    outside = Reference(FixupKind.REL32_HI, Referent(variable="v", offset=24), base)
    (code,) = read_columns(ISA, [(END, ISA.make("s_endpgm").raw)])
    items = (Single(build.program_counter(ISA, sgpr(4, 2))), base,
             Single(build.add(ISA, sgpr(4), sgpr(4)), reference=inside),
             Single(build.add_with_carry(ISA, sgpr(5), sgpr(5)), reference=outside), block, Slice(code, 0, 1))
    chunk = lay_out(ISA, Clone(END, "f", items, {END: block}), {}).chunk
    assert struct.unpack_from("<I", chunk.code, 8) == (len(chunk.code) - 4 - 4,)
    assert chunk.fixups == (Fixup(16, FixupKind.REL32_HI, "v", 24, 4),)


@pytest.mark.parametrize(("name", "nops"), [("gfx1010", 1), ("gfx1030", 0)])
def test_branches_do_not_go_where_they_would_hang(name: str, nops: int) -> None:
    isa = instruction_set(target(name))
    between = "\n".join(f"  0x{pc:x} | s_mov_b32 s0, s1" for pc in range(0x1004, 0x1004 + 4 * 0x3F, 4))
    made = parse_clone(isa, f"clone f of 0x1000\n.x1000:\n  0x1000 = s_branch -> .x1100\n{between}\n.x1100:\n"
                            "  0x1100 | s_endpgm\n")
    verify(made, "relax")
    code = lay_out(isa, relax(isa, made), {}).chunk.code
    assert isa.decode(code).operands[0].value == 0x3F + nops
    assert code[-4:] == isa.make("s_endpgm").raw


@pytest.mark.parametrize(("name", "tool", "options"), [
    ("function_pointers", "opcode_histogram", {}),
    ("mandelbrot", "opcode_histogram", {"EXCLUDE_PRED_OFF": "1", "COUNT_WARP_LEVEL": "0"}),
])
def test_control_comes_to_all_that_stands_around_islands(monkeypatch, name, tool, options):
    """None jump over islands behind a branch that is always taken: the proof would find that nothing comes there."""
    def code() -> bytes:
        return instrument(sample(name).path.read_bytes(), load_tool(tool, options), name).data

    far = code()
    monkeypatch.setattr(relaxing, "REACH_BYTES", range(-4 * 60, 4 * 60))
    monkeypatch.setattr(relaxing, "STEP_BYTES", 4 * 40)
    monkeypatch.setattr(relaxing, "GROUP_BYTES", 4 * 24)
    assert code() != far
