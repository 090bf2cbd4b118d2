"""Bytes to bytes: what holds whatever the tool is."""

from __future__ import annotations

import pytest
from emulated import code_object

from luthier_py import Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.errors import OutOfRegisters
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.isa import sgpr
from luthier_py.loader import load
from luthier_py.pipeline import instrument
from luthier_py.tool import load_tool


class EveryWave(Tool):
    """Wants vector registers at every kernel's first marker."""

    rows = Variable(u64, 64)

    @hook(lanes="all")
    def note(rows: ptr[u64]) -> None:
        atomic_add(rows + lane_id(), u64(1))

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in function.instrs:
                if instr.inst.op.base == "S_NOP":
                    m.before(instr, self.note, self.rows)


def full_kernel():
    """A kernel that uses all SGPRs at its marker, beside one that has many to spare."""
    writes = [("s_mov_b32", sgpr(i), 1) for i in range(102)]
    reads = [("s_add_u32", sgpr(0), sgpr(0), sgpr(i)) for i in range(102)]
    marker, end = ("s_nop", 7), ("s_endpgm",)
    functions = {"full": [*writes, marker, *reads, end], "easy": [marker, end]}
    return code_object(functions, ("full", "easy"), sgprs=102)


def test_original_bytes_stay_where_they_are(sample):
    code = sample.path.read_bytes()
    data = instrument(code, load_tool("instr_count")).data
    old, new = load(code), load(data)
    for part in old.text_ranges:
        assert new.read(part.start, len(part)) == old.read(part.start, len(part))
    assert {k.name for k in new.kernels} == {n + s for n in (k.name for k in old.kernels) for s in ("", ".luthier")}


def test_the_same_input_gives_the_same_bytes(sample):
    code = sample.path.read_bytes()
    assert instrument(code, load_tool("opcode_histogram")).data == instrument(code, load_tool("opcode_histogram")).data


def test_one_kernel_that_cannot_be_served_stops_everything_or_is_left_alone():
    data = full_kernel()
    with pytest.raises(OutOfRegisters, match=r"kernel full, pc 0x"):
        instrument(data, EveryWave(), kernels=["full", "easy"])
    made = instrument(data, EveryWave(), kernels=["full", "easy"], keep_going=True)
    assert [(r.kernel, r.where.text) for r in made.refused] == [("full", "s_nop 7")]
    names = {kernel.name for kernel in load(made.data).kernels}
    assert "easy.luthier" in names and "full.luthier" not in names


def test_only_chosen_kernels_are_cloned():
    made = instrument(full_kernel(), EveryWave(), kernels=["easy"])
    assert [row.name for row in made.patched.report] == ["easy"]
