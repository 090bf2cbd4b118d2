"""The checker refuses patches that could change the application: real patches, damaged on purpose."""

from __future__ import annotations

import random

import pytest

from luthier_py.errors import CheckFailed
from luthier_py.inject.check import Linked, check
from luthier_py.isa import EXEC, OpFlag, RegSet, sgpr
from luthier_py.loader import load
from luthier_py.pipeline import _checked, instrument
from luthier_py.samples import sample
from luthier_py.tool import load_tool


class Patch:
    """An instrumented sample whose linked code can be changed (mutable)."""

    def __init__(self, name, tool, **options):
        self.made = instrument(sample(name).path.read_bytes(), load_tool(tool, options), name)
        self.isa = self.made.program.isa
        linked = load(self.made.data)
        self.code = {}
        for source in self.made.patched.maps:
            symbol = linked.symbol(source.chunk)
            self.code[source.chunk] = (symbol.address, bytearray(linked.read(symbol.address, symbol.size)))

    def sites(self, source):
        """Offsets and instructions of a clone, with whether each is the application's."""
        code, own, at = self.code[source.chunk][1], set(source.instructions.values()), 0
        while at < len(code):
            inst = self.isa.decode(code, at)
            yield at, inst, at in own
            at += inst.size_bytes

    def put(self, source, offset, inst):
        self.code[source.chunk][1][offset : offset + inst.size_bytes] = inst.raw

    def check(self):
        made = self.made
        clones = {m.function.address: self.code[m.chunk][0] for m in made.patched.maps}
        code = {name: (address, bytes(data)) for name, (address, data) in self.code.items()}
        check(made.program, made.facts, made.patched.declared, made.patched.maps, Linked(clones, code))


def test_what_inject_makes_passes():
    for name in ("reduce", "device_call", "function_pointers"):
        Patch(name, "opcode_histogram", COUNT_WARP_LEVEL=0, EXCLUDE_PRED_OFF=1).check()


def test_a_clobbered_live_register_is_found():
    patch = Patch("nbody", "instr_count")
    source = patch.made.patched.maps[0]
    facts = patch.made.facts
    hit = 0
    for instr, offset in source.instructions.items():
        run = [(at, inst) for at, inst, own in patch.sites(source) if not own and at < offset]
        if not run or run[-1][0] + run[-1][1].size_bytes != offset or run[-1][1].op.mnemonic != "s_addc_u32":
            continue
        live = [r for r in RegSet(sgpr=facts.live_before(instr).sgpr) if r.index < 102]
        if live:
            saved = bytes(patch.code[source.chunk][1])
            patch.put(source, run[-1][0], patch.isa.make("s_addc_u32", live[0], live[0], 0))
            with pytest.raises(CheckFailed, match=f"{live[0]} is live and not restored"):
                patch.check()
            patch.code[source.chunk][1][:] = saved
            hit += 1
    assert hit


def test_exec_must_come_back():
    patch = Patch("matmul", "opcode_histogram", EXCLUDE_PRED_OFF=1)
    source = patch.made.patched.maps[0]
    restore = next(
        at
        for at, inst, own in patch.sites(source)
        if not own and inst.op.base == "S_MOV_B64" and inst["sdst"].reg == sgpr(EXEC, 2) and inst["src0"].reg
    )
    patch.put(source, restore, patch.isa.make("s_mov_b64", sgpr(EXEC, 2), -1))
    with pytest.raises(CheckFailed, match="EXEC is not restored"):
        patch.check()


def test_a_vector_register_of_an_inactive_lane_counts():
    """What only switched-off lanes still need: a hook that sets EXEC may not overwrite it."""
    patch = Patch("mandelbrot", "opcode_histogram", EXCLUDE_PRED_OFF=1)
    source, facts = patch.made.patched.maps[0], patch.made.facts
    own = sorted((offset, instr) for instr, offset in source.instructions.items())
    for at, inst, mine in patch.sites(source):
        following = next((instr for offset, instr in own if offset > at), None)
        if mine or inst.op.base != "V_MOV_B32" or following is None:
            continue
        hidden = (facts.live_before_all_lanes(following) - facts.live_before(following)).vgpr
        if hidden:
            lane = hidden.bit_length() - 1
            patch.put(
                source, at, patch.isa.with_registers(inst, lambda o, r=lane: r if o.name == "vdst" else o.reg.index)
            )
            with pytest.raises(CheckFailed, match=f"v{lane} is still needed and overwritten"):
                patch.check()
            return
    pytest.fail("the sample has no such place any more")


def test_a_branch_to_another_block_is_found():
    patch = Patch("bitonic_sort", "instr_count")
    source = patch.made.patched.maps[0]
    at, inst = next((at, i) for at, i, own in patch.sites(source) if own and i.op.flags & OpFlag.BRANCH)
    name = next(o.name for o in inst.operands if o.kind.name == "TARGET")
    patch.put(source, at, patch.isa.with_field(inst, name, inst[name].value + 1))
    with pytest.raises(CheckFailed, match="elsewhere"):
        patch.check()


def test_an_indirect_call_that_goes_astray_is_found():
    patch = Patch("function_pointers", "instr_count")
    source = next(m for m in patch.made.patched.maps if m.function.kernel)
    at, inst = next((at, i) for at, i, own in patch.sites(source) if not own and i.op.base == "S_ADD_U32" and i.literal)
    patch.put(source, at, patch.isa.with_field(inst, "literal", inst.literal + 4))
    with pytest.raises(CheckFailed, match="goes astray"):
        patch.check()


def test_a_changed_getpc_chain_is_found():
    patch = Patch("device_call", "instr_count")
    source = next(m for m in patch.made.patched.maps if m.function.pc_builders)
    offset = source.instructions[source.function.pc_builders[0].lo]
    inst = patch.isa.decode(patch.code[source.chunk][1], offset)
    patch.put(source, offset, patch.isa.with_field(inst, "literal", inst.literal + 4))
    with pytest.raises(CheckFailed):
        patch.check()


def test_random_damage_is_found_when_it_matters():
    """Give an inserted scalar instruction another destination: the checker objects exactly when that one is live."""
    rng = random.Random(7)
    found = passed = 0
    for name in ("mandelbrot", "device_call", "scratch") * 30:
        patch = Patch(name, "instr_count", COUNT_WARP_LEVEL=0, EXCLUDE_PRED_OFF=1)
        source = rng.choice(patch.made.patched.maps)
        own = sorted((offset, instr) for instr, offset in source.instructions.items())
        sums = [
            (at, i) for at, i, mine in patch.sites(source) if not mine and i.op.base == "S_ADDC_U32" and at < own[-1][0]
        ]
        at, inst = rng.choice(sums)
        following = next(instr for offset, instr in own if offset > at)
        if not any(offset == at + inst.size_bytes for offset, _ in own):
            continue
        new = sgpr(rng.randrange(0, 40))
        patch.put(source, at, patch.isa.make("s_addc_u32", new, new, 0))
        if (
            new in patch.made.facts.live_before(following)
            or new in patch.made.facts.pending_before(following).registers
        ):
            with pytest.raises(CheckFailed):
                patch.check()
            found += 1
        else:
            patch.check()
            passed += 1
    assert found > 4 and passed > 4


def test_declared_writes_are_allowed_and_others_are_not(tmp_path):
    path = tmp_path / "fault.py"
    path.write_text(
        "from luthier_py import Mutator, Tool, hook, u32\n"
        "class Fault(Tool):\n"
        "    @hook\n"
        "    def flip(x: u32) -> u32:\n"
        "        return x ^ u32(1)\n"
        "    def instrument(self, m: Mutator) -> None:\n"
        "        function = m.functions()[0]\n"
        "        for instr in function.instrs:\n"
        "            operand = instr.inst.find('sdst')\n"
        "            if operand and operand.reg and operand.reg.dwords == 1 and operand.reg.index < 100:\n"
        "                m.after(instr, self.flip, operand.reg, into=operand.reg)\n"
        "                return\n"
    )
    code = sample("vector_add").path.read_bytes()
    made = instrument(code, load_tool(str(path)))
    assert made.patched.declared.after
    made.patched.declared.after.clear()
    with pytest.raises(CheckFailed, match="still needed|not restored"):
        _checked(made.program, made.facts, made.patched, made.data)
