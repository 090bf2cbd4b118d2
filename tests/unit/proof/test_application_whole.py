"""The claim has all of the application's code to which control may go: none can be left out of a clone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from luthier_py.base.errors import CheckFailed
from luthier_py.isa import OpFlag, instruction_set, target
from luthier_py.program.ir import discover
from luthier_py.program.ir.model import Ending, Instrs
from luthier_py.proof.code import decode_functions
from luthier_py.proof.graph import body
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

ISA = instruction_set(target("gfx942"))
BEHIND = "v_mov_b32_e32 v0, v1\n s_endpgm\n"


def body_without(listing: str, missing: range, size: int | None = None):
    """What the proof makes of a function of so many bytes, of which the claim has not some."""
    data = ISA.assemble(listing)
    ranges = [(start, stop - start) for start, stop in ((0, missing.start), (missing.stop, len(data))) if start < stop]
    code = decode_functions(ISA, [("f", ranges)], lambda start, size: data[start:start + size])[0]
    return body("f", 0, code, [0], False, len(data) if size is None else size)


WAYS = {
    "not taken": ("s_cbranch_scc1 1\n v_nop\n s_endpgm\n", range(4, 8)),
    "taken": ("s_cbranch_scc1 1\n s_endpgm\n v_nop\n s_endpgm\n", range(8, 16)),
    "taken over a distance": ("s_getpc_b64 s[0:1]\n s_add_u32 s0, s0, 12\n s_addc_u32 s1, s1, 0\n s_setpc_b64 s[0:1]\n"
                              " v_nop\n s_endpgm\n", range(16, 20)),
    "behind a call": ("s_swappc_b64 s[30:31], s[2:3]\n v_nop\n s_endpgm\n", range(4, 12)),
    "between a call and what is jumped to": (
        "s_cbranch_scc1 2\n s_swappc_b64 s[30:31], s[2:3]\n v_nop\n s_endpgm\n", range(8, 12)),
    "behind a trap": ("s_trap 2\n v_nop\n s_endpgm\n", range(4, 12)),
    "behind plain code": ("v_nop\n v_nop\n s_endpgm\n", range(4, 12)),
}


@pytest.mark.parametrize("way", WAYS)
def test_code_may_be_missing_nowhere(way):
    listing, missing = WAYS[way]
    body_without(listing, range(0))
    with pytest.raises(CheckFailed, match="the claim (says nothing|knows)"):
        body_without(listing, missing)


@pytest.mark.parametrize("last", ["s_swappc_b64 s[30:31], s[2:3]\n", "s_trap 2\n"])
def test_a_function_may_end_with_what_does_not_come_back(last):
    size = len(ISA.assemble("v_nop\n" + last))
    found = body_without("v_nop\n" + last + BEHIND, range(size, size + 8), size)
    assert found.following == ((),)
    with pytest.raises(CheckFailed, match="the claim knows"):
        body_without("v_nop\n" + last + BEHIND, range(size, size + 8), size + 4)


def unread_behind_branches(columns, blocks):
    """Blocks without what stands between a conditional branch and its target."""
    for block in blocks:
        if block.ending is Ending.CONDITIONAL and len(block.successors) == 2 and block.successors[0] > block.address:
            to, following = block.successors
            inner = [each for each in blocks if following <= each.address < to]
            return [replace(each, successors=(to,)) if each is block else each for each in blocks if each not in inner]
    return blocks


def unread_behind_calls(columns, blocks):
    found = []
    for block in blocks:
        at = next((k for k in range(block.start, block.stop) if OpFlag.CALL in columns.inst(k).op.flags), None)
        found.append(block if at is None else replace(
            block, instrs=Instrs(columns, block.start, at + 1), successors=(), ending=Ending.NO_RETURN))
    return found


@pytest.mark.parametrize(("name", "unread", "why"), [
    ("reduce", unread_behind_branches, "says nothing"),
    ("device_call", unread_behind_calls, "runs off the code"),
    ("function_pointers", unread_behind_calls, "runs off the code"),
])
def test_a_program_with_code_missing_is_refused(monkeypatch, name, unread, why):
    right, missing = discover.descend, []

    def wrong(*arguments):
        columns, blocks = right(*arguments)
        fewer = tuple(unread(columns, blocks))
        missing.append(sum(map(len, (each.instrs for each in blocks))) - sum(map(len, (e.instrs for e in fewer))))
        return columns, fewer

    monkeypatch.setattr(discover, "descend", wrong)
    with pytest.raises(CheckFailed, match=why):
        instrument(sample(name).path.read_bytes(), load_tool("instr_count"), name)
    assert any(missing)
