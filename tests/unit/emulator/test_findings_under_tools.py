"""Findings of a kernel with a tool in it name the original's instruction; those in the tool's code say so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from launching import compile_hip, launch

from luthier_py import Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.binary.loader import load
from luthier_py.binary.loader.origins import HERE, object_name, read_origins
from luthier_py.emulator import EmulatorDevice, LaunchOptions
from luthier_py.emulator.options.checks import ALL
from luthier_py.isa import target
from luthier_py.program.ir import lift
from luthier_py.rewrite.pipeline import carry_out, instrument, plan
from luthier_py.rewrite.tool import load_tool

SOURCE = """
DEVICE static inline void put(u32 *p, u32 value) {
  *p = value;
}
KERNEL void k(u32 *p) {
  SHARED volatile u32 cells[128];
  for (u32 n = 0; n < p[0]; ++n) {
    cells[X] = X;
    put(p + (1 << 20) + X, cells[127 - X]);
  }
}
"""
WORDS = [np.full(64, 2, np.uint32)]


@hook(lanes="one")
def lost(total: ptr[u64]) -> None:
    total[1 << 28] = 7


class Lost(Tool):
    """Writes where nothing is, in front of the last instruction."""

    total = Variable(u64)

    def instrument(self, m: Mutator) -> None:
        m.at_exit(m.kernels[0], lost, self.total)


@pytest.fixture(scope="module")
def code(require_tool, tmp_path_factory):
    return compile_hip(require_tool("clang-22"), tmp_path_factory.mktemp("k"), SOURCE, "-g")


def apart(code, tool):
    """As programs have copies."""
    return carry_out(plan(code, tool, kernels=["k"]), apart=True).data


def found(kernel, *objects):
    """The last object has it."""
    device = EmulatorDevice(target("gfx90a"), options=LaunchOptions(checks=ALL))
    kept = [device.load(each) for each in objects[:-1]]
    launch(device, objects[-1], kernel, WORDS, block=(128, 1, 1))
    assert len(kept) == len(objects) - 1
    return [replace(each, address=None, what="") for each in device.findings]


@pytest.mark.parametrize("tool", ["instr_count", "branch_edges", "opcode_histogram"])
def test_the_original_s_places(code, tool):
    bare = found("k", code)
    assert len(bare) > 1 and all(each.where.lines for each in bare)
    assert any("inlined at" in each.text() for each in bare)
    here, alone = instrument(code, load_tool(tool, {})).data, apart(code, load_tool(tool, {}))
    assert found("k.luthier", here) == bare == found("k.luthier", code, alone)
    without = [replace(each, where=replace(each.where, lines=()),
                       other=None if each.other is None else replace(each.other, lines=())) for each in bare]
    assert found("k.luthier", alone) == without  # nobody knows the original


def test_the_same_places_where_waves_take_other_turns(code):
    """Its hooks have loops, behind which waves of the emulator take turns: how often a race shows depends on that."""
    def places(findings):
        return {(each.kind, each.where, each.other) for each in findings}

    tool = load_tool("memory_divergence", {})
    bare = places(found("k", code))
    assert places(found("k.luthier", instrument(code, tool).data)) == bare
    assert places(found("k.luthier", code, apart(code, tool))) == bare


def test_every_instruction_has_its_origin(code):
    """As the map says that reports of a copy are made by."""
    tool = load_tool("instr_count", {})
    for made, original in ((instrument(code, tool), HERE),
                           (carry_out(plan(code, tool, kernels=["k"]), apart=True), object_name(code))):
        obj = load(made.data)
        origins = read_origins(obj)
        (source,) = made.patched.maps
        start = obj.symbol(source.chunk).address
        wanted = {start + offset: instr.pc for instr, offset in source.instructions.items()}
        size = obj.symbol(source.chunk).size
        assert {pc: origins.at(pc) for pc in wanted} == wanted
        assert len(wanted) == len(list(lift(load(code)).functions[0].instrs))
        inside = set(wanted)
        for address, _, bytes_of_row in origins.rows:
            inside |= set(range(address, address + bytes_of_row, 4))
        assert all(origins.at(pc) is None for pc in range(start, start + size, 4) if pc not in inside)
        assert origins.original == original


def test_what_the_tool_does_wrong_is_the_tool_s(code):
    copy = instrument(code, Lost()).data
    (own,) = [each for each in found("k.luthier", copy) if each.where.inserted]
    last = list(lift(load(code)).functions[0].instrs)[-1]
    assert own.kernel == "k" and own.where.pc == last.pc and own.where.text.startswith("global_store_dwordx2")
    assert f"that the tool inserted before pc 0x{last.pc:x}" in own.text() and own.facts()["at"]["inserted"]


def test_a_table_that_is_cut_off_is_no_error(code):
    obj = load(instrument(code, load_tool("instr_count", {})).data)
    table = next(section for section in obj.sections if section.name == ".luthier.origins")
    for size in range(0, table.size, 7):
        cut = replace(obj, sections=tuple(replace(section, size=size) if section is table else section
                                          for section in obj.sections))
        origins = read_origins(cut)
        assert origins is None or len(origins.rows) == (size - 16) // 12
