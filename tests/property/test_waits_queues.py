"""Pending loads against a machine that finishes them as late, and in as odd an order, as hardware may.

Random programs of loads, stores, waits and branches run along random paths. At every step each register that an
outstanding load will still write must be pending; and the wait that the analysis proposes for a register must do.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import Row, build

from luthier_py.isa import Counter, Inst, OpFlag, Reg, RegSet, instruction_set, sgpr, target, vgpr
from luthier_py.isa.encoding.waitcnt import decode_waitcnt, encode_waitcnt
from luthier_py.program.analysis import analyse
from luthier_py.program.ir import Block, lift

GPU = target("gfx90a")
REGISTERS = [vgpr(i) for i in range(4, 8)] + [sgpr(i) for i in range(4, 8)]
STEPS = 80


@dataclass
class Operation:
    """An outstanding memory operation: what it writes, and the queues that it holds a place in."""

    writes: RegSet
    counters: Counter
    queue: str  # operations of one queue finish in order; "" for any order


@dataclass
class Memory:
    """Outstanding operations, oldest first."""

    rng: random.Random
    outstanding: list[Operation] = field(default_factory=list)

    def wait(self, counter: Counter, count: int) -> None:
        """Finish operations, in some order that hardware may take, until the counter is low enough."""
        while sum(counter in each.counters for each in self.outstanding) > count:
            self.outstanding.remove(self.rng.choice(self.finishable()))

    def finishable(self) -> list[Operation]:
        first: dict[str, Operation] = {}
        for each in self.outstanding:
            first.setdefault(each.queue or str(id(each)), each)
        return list(first.values())


def issue(inst: Inst) -> Operation | None:
    """What an instruction starts, told from its mnemonic."""
    name, writes = inst.op.mnemonic, inst.writes
    if name.startswith("global"):
        return Operation(writes, Counter.VM, "vm")
    if name.startswith("flat"):
        return Operation(writes, Counter.VM | Counter.LGKM, "")
    if name.startswith("ds"):
        return Operation(writes, Counter.LGKM, "lds")
    return Operation(writes, Counter.LGKM, "") if name.startswith("s_load") else None


def body(rng: random.Random, size: int) -> list[Row]:
    v, s = lambda: vgpr(rng.randrange(4, 8)), lambda: sgpr(rng.randrange(4, 8))
    makes = (
        lambda: ("global_load_dword", v(), vgpr(0, 2), "off"), lambda: ("global_load_dword", v(), vgpr(0, 2), "off"),
        lambda: ("global_store_dword", vgpr(0, 2), vgpr(2), "off"), lambda: ("ds_read_b32", v(), vgpr(0)),
        lambda: ("ds_write_b32", vgpr(0), vgpr(1)), lambda: ("flat_load_dword", v(), vgpr(0, 2)),
        lambda: ("s_load_dword", s(), sgpr(0, 2), 0), lambda: ("v_mov_b32", v(), vgpr(3)),
        lambda: ("s_waitcnt", encode_waitcnt(GPU, wait(rng))), lambda: ("s_waitcnt", encode_waitcnt(GPU, wait(rng))),
    )
    weights = (3, 3, 1, 3, 1, 1 if rng.random() < 0.3 else 0, 1, 1, 3, 3)
    return [rng.choices(makes, weights)[0]() for _ in range(size)]


def wait(rng: random.Random) -> dict[Counter, int]:
    counts = {}
    if rng.random() < 0.7:
        counts[Counter.VM] = rng.choice((0, 1, 1, 2, 3))
    if rng.random() < 0.7:
        counts[Counter.LGKM] = rng.choice((0, 1, 1, 2))
    return counts


def program(rng: random.Random) -> list[Row]:
    rows: list[Row] = []
    labels = [f"l{i}" for i in range(4)]
    for label in labels:
        rows += [f"{label}:", *body(rng, rng.randint(1, 6))]
        if rng.random() < 0.8:
            rows.append((rng.choice(("s_cbranch_scc0", "s_cbranch_scc1", "s_branch")), rng.choice(labels)))
    return [*rows, ("s_endpgm",)]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 32))
def test_outstanding_loads_are_pending(seed: int) -> None:
    rng = random.Random(seed)
    lifted = lift(build({"k": program(rng)}, gpu="gfx90a"))
    facts = analyse(lifted)
    function = lifted.kernel("k").function
    for _ in range(6):
        memory, block, steps = Memory(rng), function.blocks[0], 0
        while steps < STEPS:
            for instr in block.instrs:
                steps += 1
                outstanding = union([each.writes for each in memory.outstanding])
                pending = facts.pending_before(instr)
                assert not outstanding - pending.registers, (hex(instr.pc), str(outstanding), str(pending.registers))
                check_proposal(memory, rng.choice(REGISTERS), pending.counts_for)
                execute(memory, instr.inst)
            if not block.successors:
                break
            block = successor(function.blocks, rng.choice(block.successors))


def execute(memory: Memory, inst: Inst) -> None:
    if OpFlag.WAIT in inst.op.flags:
        for counter, count in decode_waitcnt(GPU, inst["simm16"].value & 0xFFFF).items():
            memory.wait(counter, count)
    started = issue(inst)
    if started is not None:
        memory.outstanding.append(started)


def check_proposal(memory: Memory, reg: Reg, counts_for: object) -> None:
    """Whatever order a copy of the memory chooses, the proposed wait makes ``reg`` ready."""
    copy = Memory(memory.rng, list(memory.outstanding))
    assert callable(counts_for)
    for counter, count in counts_for(RegSet.of(reg)).items():
        copy.wait(counter, count)
    assert not any(each.writes.overlaps(RegSet.of(reg)) for each in copy.outstanding)


def successor(blocks: Sequence[Block], address: int) -> Block:
    return next(block for block in blocks if block.address == address)


def union(sets: Sequence[RegSet]) -> RegSet:
    total = RegSet()
    for each in sets:
        total |= each
    return total


def test_waits_are_not_for_nothing() -> None:
    """The analysis is not only sound, but useful: what it proposes lets younger loads go on."""
    rows: list[Row] = [
        ("global_load_dword", vgpr(4), vgpr(0, 2), "off"), ("global_load_dword", vgpr(5), vgpr(0, 2), "off"),
        ("ds_read_b32", vgpr(6), vgpr(0)), ("ds_read_b32", vgpr(7), vgpr(0)), ("s_endpgm",),
    ]
    lifted = lift(build({"k": rows}))
    facts, end = analyse(lifted), list(lifted.kernel("k").function.instrs)[-1]
    assert facts.pending_before(end).counts_for(RegSet.of(vgpr(4), vgpr(6))) == {Counter.VM: 1, Counter.LGKM: 1}
    assert facts.wait_for(end, RegSet.of(vgpr(4))) == encode_waitcnt(GPU, {Counter.VM: 1})
    assert facts.wait_for(end, RegSet.of(vgpr(3))) is None
    assert instruction_set(GPU).text(instruction_set(GPU).make("s_waitcnt", facts.wait_for(end, RegSet.of(vgpr(4))))) \
        == "s_waitcnt vmcnt(1)"
