"""Where vector instructions of the application may be skipped, or mean other registers."""

from __future__ import annotations

import pytest
from emulated import LANES, code_object
from shown_kernels import END, S, everywhere, instrumented

from luthier_py import Mutator, Variable, u64
from luthier_py.base.errors import CheckFailed, EditConflict
from luthier_py.isa import instruction_set, target
from luthier_py.isa.properties.vector_modes import Turned, classify_mode_switch
from luthier_py.program.analysis import Facts
from luthier_py.proof.addresses import AddressFlow
from luthier_py.proof.code import decode_functions
from luthier_py.proof.graph import body, build_graph
from luthier_py.proof.modes import solve_modes, step_modes

ISA = instruction_set(target("gfx942"))


def modes_before_the_end(listing: str):
    data = ISA.assemble(listing)
    code = decode_functions(ISA, [("k", [(0, len(data))])], lambda start, size: data[start:start + size])[0]
    graph = build_graph([body("k", 0, code, [0], True, code.end(len(code) - 1))], [AddressFlow()], ())
    last = len(graph.nodes) - 1
    modes = solve_modes(graph)[last]
    for at in graph.nodes[last].span[:-1]:
        modes = step_modes(ISA, code.inst(at), modes)
    return modes


@pytest.mark.parametrize(("listing", "skips"), [
    ("s_cbranch_scc0 there\ns_setvskip 0, 0\nthere:\ns_waitcnt vmcnt(0)\ns_endpgm", False),
    ("s_cbranch_scc0 there\ns_setvskip 0, 0\nthere:\ns_endpgm", True),
    ("s_cbranch_scc0 there\ns_setvskip s0, 0\nthere:\ns_waitcnt vmcnt(0)\ns_endpgm", True),
    ("s_setvskip s0, 0\ns_cbranch_scc0 there\ns_setvskip 0, 0\nthere:\ns_waitcnt vmcnt(0)\ns_endpgm", True),
    ("s_setvskip s0, 0\ns_setvskip 0, 0\ns_nop 0\ns_cbranch_scc0 there\ns_nop 0\nthere:\ns_endpgm", False),
])
def test_skipping_ends_one_instruction_behind_the_switch(listing: str, skips: bool) -> None:
    assert modes_before_the_end(listing).skips is skips


@pytest.mark.parametrize(("text", "does"), [
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 8), 0xf0", Turned.NOT),
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 8), 0x10f0", Turned.RELATIVE_ON),  # beside the field
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 12, 8), 1", Turned.RELATIVE_ON),
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1", Turned.NOT),
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 4), 1", Turned.BOTH_ON),
    ("s_setreg_b32 hwreg(HW_REG_WAVE_MODE, 0, 8), s0", Turned.RELATIVE_ON),
    ("s_setreg_b32 hwreg(HW_REG_WAVE_MODE, 12, 8), s0", Turned.RELATIVE_ON),
    ("s_setreg_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), s0", Turned.NOT),
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 0x1000", Turned.NOT),
    ("s_getreg_b32 s0, hwreg(HW_REG_WAVE_MODE)", Turned.NOT),
])
def test_values_of_mode_choose_banks_of_vector_registers(text: str, does: Turned) -> None:
    inst, without = instruction_set(target("gfx1250")).parse(text), target("gfx1201")
    assert classify_mode_switch(target("gfx1250"), inst) is does
    assert classify_mode_switch(without, inst) is (does if does is Turned.BOTH_ON else Turned.NOT)


def on_way(taken: bool) -> None:
    """Vector code on one of two ways to a place: on the other one vector instructions may still be skipped."""
    data = code_object({"k": [("s_cbranch_scc1", "there"), ("s_setvskip", S(20), 3), ("s_nop", 0),
                              ("s_setvskip", 0, 0), "there:", ("s_nop", 1), ("s_nop", 7), END]})

    def visit(tool: object, m: Mutator) -> None:
        (function,) = m.functions()
        last = function.blocks[-1].address
        (edge,) = (edge for edge in m.edges(function) if edge.target.address == last and edge.taken is taken)
        m.at_edge(edge, everywhere, tool.rows)

    instrumented(data, visit, rows=Variable(u64, LANES, name="rows"))


def test_vector_code_may_stand_on_a_way_where_nothing_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    on_way(taken=True)
    with pytest.raises(EditConflict, match="s_setvskip"):
        on_way(taken=False)
    monkeypatch.setattr(Facts, "obstacle", lambda *args, **kwargs: None)
    with pytest.raises(CheckFailed, match="mean something else"):
        on_way(taken=False)
