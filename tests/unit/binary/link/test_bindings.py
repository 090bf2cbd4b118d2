"""What a copy without the original names of it: every address, and what it becomes."""

from __future__ import annotations

import pytest

from luthier_py.binary.link import apply_bindings
from luthier_py.binary.loader import load
from luthier_py.isa import instruction_set, target
from luthier_py.rewrite.pipeline import carry_out, plan
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

BASE = 0x7F12_3456_7000


@pytest.mark.parametrize("name", ("function_pointers", "device_call", "vector_add"))
def test_bindings(name: str) -> None:
    code = sample(name).path.read_bytes()
    made = carry_out(plan(code, load_tool("instr_count")), apart=True)
    isa, original = instruction_set(target("gfx90a"), 64), load(code)
    if name != "function_pointers":  # nothing of the object is named but its own code, which is cloned
        assert made.bindings == ()
        return
    table = original.symbol("operations")
    assert table is not None
    pointed = {int.from_bytes(original.read(r.address, 8), "little") or r.addend for r in original.relocations}
    assert {binding.address for binding in made.bindings} == {table.address, min(pointed)}
    loaded = apply_bindings(made.data, made.bindings, BASE)
    changed = {at - at % 4 for at, byte in enumerate(loaded) if byte != made.data[at]}
    assert changed <= {at for b in made.bindings for at in (b.getpc, b.low, b.high)}
    for binding in made.bindings:
        before, after = isa.decode(made.data, binding.getpc), isa.decode(loaded, binding.getpc)
        assert before.op.mnemonic == "s_getpc_b64" and after.op.mnemonic == "s_mov_b64"
        pair = before.operands[0].reg
        assert pair is not None and after.operands[0].reg == pair and after["src0"].value == 0
        adds = [isa.decode(loaded, offset - 4) for offset in (binding.low, binding.high)]
        assert [add.op.mnemonic for add in adds] == ["s_add_u32", "s_addc_u32"]
        assert [add.operands[0].reg.index for add in adds] == [pair.index, pair.index + 1]
        literals = [int.from_bytes(loaded[at : at + 4], "little") for at in (binding.low, binding.high)]
        assert literals[0] + (literals[1] << 32) == BASE + binding.address
