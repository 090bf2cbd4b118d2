"""A tool of random hooks at random places, of all kinds: for random kernels and for damage.

In: a seed. Out: edits of one function. Invariant: the application's own registers, which some hooks change, are
changed back, and the tool's lists say at which instructions each counting hook was inserted.
"""

from __future__ import annotations

import random
from contextlib import suppress

from random_kernels import PROBES

from luthier_py import Lane, Mutator, Tool, Variable, WaveVariable, hook, ptr, sgpr, u32, u64
from luthier_py.base.errors import HookError
from luthier_py.intrinsics import active_mask, atomic_add, lane_id, popcount, read_first_lane
from luthier_py.isa import EXEC, M0, SCC, VCC, OperandKind, OpFlag, RegFile, RegSet

EQUAL = {"V_MOV_B32": "same", "S_MOV_B32": "same_scalar", "V_ADD_U32": "add"}  # operations, and hooks that do the same
LONG = 60  # instructions of a block
FIXED = RegSet.of(sgpr(SCC), sgpr(VCC, 2), sgpr(M0))


class RandomTool(Tool):
    """Hooks of all kinds at random places; lists collect at which instructions each was inserted."""

    seen = WaveVariable(u64)
    lanes = WaveVariable(u64)
    noise = WaveVariable(u32)
    totals = Variable(u64, 4)
    rows = Variable(u64, 64)
    probes = Variable(u32, PROBES)

    @hook
    def tick(seen: u64) -> u64:
        return seen + u64(1)

    @hook
    def tick_lanes(lanes: u64, seen: u64) -> tuple[u64, u64]:
        return lanes + u64(popcount(active_mask())), seen + u64(1)

    @hook(lanes="one")
    def bump(total: ptr[u64], n: u64) -> None:
        atomic_add(total, n)

    @hook(lanes="one")
    def bump_exec(total: ptr[u64], other: ptr[u64], mask: u64) -> None:
        atomic_add(total, u64(1))
        atomic_add(other, u64(popcount(mask)))

    @hook(lanes="all")
    def bump_all(rows: ptr[u64]) -> None:
        atomic_add(rows + lane_id(), u64(1))

    @hook
    def work(noise: u32, vcc: u64, m0: u32) -> u32:
        n = lane_id() & u32(3)
        s = u32(vcc) + m0
        while n > u32(0):
            s += n * u32(vcc >> u64(32))
            n -= u32(1)
        return noise ^ read_first_lane(s)

    @hook
    def flip(x: Lane[u32]) -> Lane[u32]:
        return x ^ u32(0x5A5A5A5A)

    @hook
    def flip_scalar(x: u32) -> u32:
        return x ^ u32(0xA5A5A5A5)

    @hook
    def swap(a: u32, b: u32) -> tuple[u32, u32]:
        return b, a

    @hook
    def probe_lane(slot: ptr[u32], x: Lane[u32]) -> None:
        atomic_add(slot, x)

    @hook
    def probe(slot: ptr[u32], x: u32) -> None:
        atomic_add(slot, x)

    @hook
    def same(x: Lane[u32]) -> Lane[u32]:
        return x

    @hook
    def same_scalar(x: u32) -> u32:
        return x

    @hook
    def never() -> u32:
        return u32(0)

    @hook
    def add(x: Lane[u32], y: Lane[u32]) -> Lane[u32]:
        return x + y

    def __init__(self, seed: int, shown=()) -> None:
        super().__init__()
        self.rng, self.shown = random.Random(seed), shown
        self.ticks, self.ticks_lanes, self.bumps, self.bumps_all = [], [], [], []

    def instrument(self, m: Mutator) -> None:
        (function,) = m.functions()
        density = self.rng.choice((0.1, 0.3, 0.8))
        markers = (i for i in function.instrs if i.inst.op.base == "S_NOP" and i.inst["simm16"].value == 7)
        for number, (instr, reg) in enumerate(zip(markers, self.shown, strict=True)):
            m.before(instr, self.probe_lane if reg.file is RegFile.VGPR else self.probe, self.probes[number], reg)
        coming = [(block, [edge for edge in m.edges(function) if edge.target is block]) for block in function.blocks]
        for block, edges in coming:
            if edges and block.address not in function.entries and self.rng.random() < density:
                self.at_edges(m, block, edges)
        for block in function.blocks:
            self.at_block(m, block)
            for instr in self.some(list(block.instrs)):
                if self.rng.random() < density:
                    self.at_instr(m, instr)
                if self.rng.random() < density:
                    self.instead(m, instr)
        for slot, variable in enumerate((self.seen, self.lanes)):
            for each in m.kernels:
                m.at_exit(each, self.bump, self.totals[slot], variable)
        if self.rng.random() < 0.5:  # behind others, which have lanes of their own
            for each in m.kernels:
                m.at_exit(each, self.bump_exec, self.totals[2], self.totals[3], sgpr(EXEC, 2))
            self.bumps += [instr for instr in function.instrs if OpFlag.END in instr.inst.op.flags]

    def some(self, instrs):
        """Of a long block not all: they would be alike."""
        if len(instrs) <= LONG:
            return instrs
        return sorted(self.rng.sample(instrs, LONG), key=lambda instr: instr.pc)

    def at_block(self, m, block) -> None:
        kind = self.rng.randrange(4)
        anywhere = self.rng.random() < 0.5
        if kind == 0:
            m.at_block(block, self.tick, self.seen, into=self.seen, anywhere=anywhere)
            self.ticks.append(block.instrs[0])
        elif kind == 1:
            m.at_block(block, self.bump_exec, self.totals[2], self.totals[3], sgpr(EXEC, 2), anywhere=anywhere)
            self.bumps.append(block.instrs[0])
        elif kind == 2:
            m.at_block(block, self.tick_lanes, self.lanes, self.seen, into=(self.lanes, self.seen), anywhere=anywhere)
            self.ticks.append(block.instrs[0])
            self.ticks_lanes.append(block.instrs[0])

    def at_edges(self, m, block, edges) -> None:
        """All ways to a block together run as often as the block."""
        for edge in edges:
            m.at_edge(edge, self.tick, self.seen, into=self.seen, priority=self.rng.randrange(3))
        self.ticks.append(block.instrs[0])

    def instead(self, m, instr) -> None:
        """What does the same stands for an instruction."""
        base, form = instr.inst.op.base, instr.inst.op.format
        special = any(o.kind is OperandKind.SPECIAL or o.reg is not None and o.reg.file is RegFile.SGPR
                      and o.reg.index >= 100 for o in instr.inst.operands)
        fixed = (instr.inst.reads | instr.inst.writes).overlaps(FIXED)
        if form in ("VOP1", "VOP2", "VOP3") and not (special or fixed) and self.rng.random() < 0.3:
            with suppress(HookError):  # reads what text cannot take
                m.skip_if(instr, self.never)
        elif base in EQUAL and form in ("VOP1", "VOP2", "SOP1") and not special:
            m.replace(instr, getattr(self, EQUAL[base]))
        elif base == "S_NOP" and instr.inst["simm16"].value != 7:
            m.remove(instr)
        elif form in ("VOP1", "VOP2", "VOPC") and (text := m.program.isa.text(instr.inst)).count("_e32") == 1:
            with suppress(HookError):  # has no other encoding
                m.change(instr, text.replace("_e32", "_e64"))

    def insert_and_back(self, m, instr) -> None:
        """Assembly that changes a register, and changes it back."""
        regs = [o.reg for o in instr.inst.operands if o.reg is not None and o.reg.dwords == 1]
        vectors = [r for r in regs if r.file is RegFile.VGPR]
        if vectors:
            reg = self.rng.choice(vectors)
            m.insert(f"v_not_b32 {reg}, {reg}\n v_not_b32 {reg}, {reg}", before=instr, writes=reg)

    def at_instr(self, m, instr) -> None:
        kind = self.rng.randrange(7)
        at = m.after if self.rng.random() < 0.5 and not instr.inst.op.flags & OpFlag.TERMINATOR else m.before
        if kind == 0:
            at(instr, self.tick, self.seen, into=self.seen)
            self.ticks.append(instr)
        elif kind == 1:
            at(instr, self.work, self.noise, sgpr(VCC, 2), sgpr(M0), into=self.noise)
        elif kind == 2:
            at(instr, self.bump_all, self.rows)
            self.bumps_all.append(instr)
        elif kind == 3:
            m.before(instr, self.tick_lanes, self.lanes, self.seen, into=(self.lanes, self.seen))
            self.ticks.append(instr)
            self.ticks_lanes.append(instr)
        elif kind == 4:
            self.and_back(at, instr)
        elif kind == 5:
            self.insert_and_back(m, instr)
        else:
            at(instr, self.bump, self.totals[0], 1)
            self.ticks.append(instr)

    def and_back(self, at, instr) -> None:
        """Change registers of the application and change them back."""
        regs = [o.reg for o in instr.inst.operands if o.reg is not None and o.reg.dwords == 1]
        vectors = [r for r in regs if r.file is RegFile.VGPR]
        scalars = [r for r in regs if r.file is RegFile.SGPR and r.index < 100]
        if vectors:
            reg = self.rng.choice(vectors)
            at(instr, self.flip, reg, into=reg)
            at(instr, self.flip, reg, into=reg)
        elif len(set(scalars)) > 1:
            a, b = self.rng.sample(sorted(set(scalars), key=lambda r: r.index), 2)
            for args in self.rng.choice((((b, a),), ((a, b), (a, b)))):
                at(instr, self.swap, *args, into=(a, b))
        elif scalars:
            at(instr, self.flip_scalar, scalars[0], into=scalars[0])
            at(instr, self.flip_scalar, scalars[0], into=scalars[0])
