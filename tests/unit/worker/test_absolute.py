"""What a copy names of the original object: every place, and what it becomes."""

from __future__ import annotations

import pytest

from luthier_py.isa import instruction_set, target
from luthier_py.loader import load
from luthier_py.pipeline import instrument
from luthier_py.samples import sample
from luthier_py.tool import load_tool
from luthier_py.worker.absolute import places

BASE = 0x7F12_3456_7000


@pytest.mark.parametrize("name", ("function_pointers", "device_call", "vector_add"))
def test_places(name: str) -> None:
    code = sample(name).path.read_bytes()
    made = instrument(code, load_tool("instr_count"))
    found, isa, original = places(made), instruction_set(target("gfx90a"), 64), load(code)
    if name != "function_pointers":  # nothing of the object is named but its own code, which is cloned
        assert found == ()
        return
    table = original.symbol("operations")
    assert table is not None
    pointed = {int.from_bytes(original.read(r.address, 8), "little") or r.addend for r in original.relocations}
    assert {place.address for place in found} == {table.address, min(pointed)}
    for place in found:
        before = isa.decode(made.data, place.getpc)
        after = isa.decode(place.move.to_bytes(4, "little"), 0)
        assert before.op.mnemonic == "s_getpc_b64" and after.op.mnemonic == "s_mov_b64"
        pair = before.operands[0].reg
        assert pair is not None and after.operands[0].reg == pair and after["src0"].value == 0
        adds = [isa.decode(made.data, offset - 4) for offset in (place.low, place.high)]
        assert [add.op.mnemonic for add in adds] == ["s_add_u32", "s_addc_u32"]
        assert [add.operands[0].reg.index for add in adds] == [pair.index, pair.index + 1]
