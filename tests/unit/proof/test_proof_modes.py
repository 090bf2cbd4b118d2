"""Where vector instructions of the application may be skipped, or mean other registers."""

from __future__ import annotations

import pytest

from luthier_py.isa import instruction_set, target
from luthier_py.proof.addresses import Goes
from luthier_py.proof.code import decoded
from luthier_py.proof.graph import body, joined
from luthier_py.proof.modes import solved_modes, stepped

ISA = instruction_set(target("gfx942"))


def modes_before_the_end(listing: str):
    data = ISA.assemble(listing)
    code = decoded(ISA, [(0, len(data))], lambda start, size: data[start:start + size], "k")
    graph = joined([body("k", 0, code, [0], True, code.end(len(code) - 1))], [Goes()], ())
    last = len(graph.nodes) - 1
    modes = solved_modes(graph)[last]
    for at in graph.nodes[last].span[:-1]:
        modes = stepped(ISA, code.inst(at), modes)
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
