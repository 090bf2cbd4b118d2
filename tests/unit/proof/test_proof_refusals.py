"""The proof refuses copies that could change the application: real ones, damaged on purpose."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from luthier_py.base.errors import CheckFailed, LuthierError
from luthier_py.binary.loader import SectionType, load
from luthier_py.isa import EXEC, OpFlag, sgpr
from luthier_py.proof import prove
from luthier_py.rewrite.inject import resources
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample


class Patch:
    """An instrumented sample whose linked code can be changed (mutable). ``sources`` are the clones."""

    def __init__(self, name, tool, **options):
        self.made = instrument(sample(name).path.read_bytes(), load_tool(tool, options), name)
        self.isa, self.data = self.made.program.isa, bytearray(self.made.data)
        self.linked = load(self.made.data)
        self.sources = self.made.patched.maps

    def place(self, source):
        """Where a clone is in the file, and its size."""
        symbol = self.linked.symbol(source.chunk)
        segment = self.linked.elf.load_at(symbol.address)
        return segment.offset + symbol.address - segment.address, symbol.size

    def sites(self, source):
        """Offsets and instructions of a clone, with whether each is the application's."""
        (start, size), own, at = self.place(source), set(source.instructions.values()), 0
        while at < size:
            inst = self.isa.decode(self.data, start + at)
            yield at, inst, at in own
            at += inst.size_bytes

    def put(self, source, offset, inst):
        at = self.place(source)[0] + offset
        self.data[at : at + inst.size_bytes] = inst.raw

    def check(self):
        prove(self.made.obj.data, bytes(self.data), self.made.patched.claim)


def test_what_inject_makes_passes():
    for name in ("reduce", "device_call", "function_pointers"):
        Patch(name, "opcode_histogram", COUNT_WARP_LEVEL=0, EXCLUDE_PRED_OFF=1).check()


@pytest.mark.parametrize("kind", [SectionType.DYNSYM, SectionType.HASH, SectionType.GNU_HASH, SectionType.SYMTAB])
def test_a_table_that_names_no_other_is_refused(kind):
    """Not with an IndexError."""
    patch = Patch("reduce", "instr_count")
    elf = patch.linked.elf
    at = elf.section_header_offset + 64 * elf.find(kind) + 40  # sh_link
    patch.data[at : at + 4] = (0x4000).to_bytes(4, "little")
    with pytest.raises(LuthierError):
        patch.check()


@pytest.mark.parametrize("other", [None, 1, 3])
def test_hooks_run_in_the_lanes_that_the_claim_says(other):
    made = Patch("reduce", "instr_count").made
    claim = made.patched.claim
    assert {payload.exec for payload in claim.payloads} - {other}
    payloads = tuple(replace(payload, exec=other) for payload in claim.payloads)
    with pytest.raises(CheckFailed, match="other lanes than the claim says"):
        prove(made.obj.data, made.data, replace(claim, payloads=payloads))


def test_hooks_run_where_the_claim_says():
    made = Patch("reduce", "instr_count", COUNT_WARP_LEVEL=0).made
    claim = made.patched.claim
    (function,) = claim.functions
    points = sorted({call.point for call in function.calls})
    moved = [replace(call, point=points[-1] if call.point == points[0] else call.point) for call in function.calls]
    assert len(points) > 1
    with pytest.raises(CheckFailed, match="not those that the claim says"):
        prove(made.obj.data, made.data, replace(claim, functions=(replace(function, calls=tuple(moved)),)))


@pytest.mark.parametrize(("first", "why"), [(2, "which the application writes"), (4, "may still read")])
def test_what_the_tool_keeps_for_itself_is_not_the_applications(monkeypatch, first, why):
    """Registers that inject gives to wave variables: `reduce` loads its arguments through s[4:5], into s[0:3]."""
    monkeypatch.setattr(resources, "wave_locations", lambda program, facts, component, variables, named, slots, order: {
        variable: sgpr(first, variable.type.dwords) for variable in variables})
    with pytest.raises(CheckFailed, match=why):
        Patch("reduce", "instr_count")


def test_what_the_tool_keeps_stays_there_through_calls():
    made = Patch("device_call", "instr_count").made
    claim = made.patched.claim
    assert len(claim.functions) > 2
    for number, function in enumerate(claim.functions):
        moved = replace(function,
                        locations={k: sgpr(40 + 2 * k, location.dwords) for k, location in function.locations.items()})
        functions = (*claim.functions[:number], moved, *claim.functions[number + 1 :])
        with pytest.raises(CheckFailed, match="elsewhere than in the functions that it calls"):
            prove(made.obj.data, made.data, replace(claim, functions=functions))


def test_a_clobbered_live_register_is_found():
    patch = Patch("nbody", "instr_count")
    source = patch.sources[0]
    facts = patch.made.facts
    hit = 0
    for instr, offset in source.instructions.items():
        run = [(at, inst) for at, inst, own in patch.sites(source) if not own and at < offset]
        if not run or run[-1][0] + run[-1][1].size_bytes != offset or run[-1][1].op.mnemonic != "s_addc_u32":
            continue
        live = [r for r in facts.live_before(instr).scalars if r.index < 102]
        if live:
            saved = bytes(patch.data)
            patch.put(source, run[-1][0], patch.isa.make("s_addc_u32", live[0], live[0], 0))
            with pytest.raises(CheckFailed, match="argument|live and not restored|should be"):
                patch.check()
            patch.data[:] = saved
            hit += 1
    assert hit


def test_exec_must_come_back():
    patch = Patch("matmul", "opcode_histogram", EXCLUDE_PRED_OFF=1)
    source = patch.sources[0]
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
    source, facts = patch.sources[0], patch.made.facts
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
            with pytest.raises(CheckFailed, match="not as it was compiled|still needed"):
                patch.check()
            return
    pytest.fail("the sample has no such place any more")


def test_a_branch_to_another_block_is_found():
    patch = Patch("bitonic_sort", "instr_count")
    source = patch.sources[0]
    at, inst = next((at, i) for at, i, own in patch.sites(source) if own and i.op.flags & OpFlag.BRANCH)
    name = next(o.name for o in inst.operands if o.kind.name == "TARGET")
    patch.put(source, at, patch.isa.with_field(inst, name, inst[name].value + 1))
    with pytest.raises(CheckFailed, match="elsewhere|several places|where the application"):
        patch.check()


def test_an_indirect_call_that_goes_astray_is_found():
    patch = Patch("function_pointers", "instr_count")
    source = next(m for m in patch.sources if m.function.kernel)
    at, inst = next((at, i) for at, i, own in patch.sites(source) if not own and i.op.base == "S_ADD_U32" and i.literal)
    patch.put(source, at, patch.isa.with_field(inst, "literal", inst.literal + 4))
    with pytest.raises(CheckFailed, match="goes astray"):
        patch.check()


def test_a_changed_getpc_chain_is_found():
    patch = Patch("device_call", "instr_count")
    source = next(m for m in patch.sources if m.function.pc_builders)
    offset = source.instructions[source.function.pc_builders[0].lo]
    inst = patch.isa.decode(patch.data, patch.place(source)[0] + offset)
    patch.put(source, offset, patch.isa.with_field(inst, "literal", inst.literal + 4))
    with pytest.raises(CheckFailed):
        patch.check()


def test_random_damage_is_found_when_it_matters():
    """Give an inserted scalar instruction another destination, one that is live."""
    rng = random.Random(7)
    found = 0
    for name in ("mandelbrot", "device_call", "scratch") * 30:
        patch = Patch(name, "instr_count", COUNT_WARP_LEVEL=0, EXCLUDE_PRED_OFF=1)
        source = rng.choice(patch.sources)
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
    assert found > 4


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
    claim = made.patched.claim
    prove(made.obj.data, made.data, claim)
    functions = tuple(
        replace(f, calls=tuple(replace(call, into=(sgpr(90),)) for call in f.calls)) for f in claim.functions)
    with pytest.raises(CheckFailed, match="not restored"):
        prove(made.obj.data, made.data, replace(claim, functions=functions))


@pytest.mark.parametrize("buckets", [0, 1 << 30])
def test_a_broken_hash_table_is_refused(buckets):
    made = instrument(sample("vector_add").path.read_bytes(), load_tool("instr_count"))
    elf = load(made.data).elf
    at = elf.sections[elf.find(SectionType.HASH)].offset
    data = made.data[:at] + buckets.to_bytes(4, "little") + made.data[at + 4 :]
    with pytest.raises(CheckFailed, match="hash"):
        prove(made.obj.data, data, made.patched.claim)
