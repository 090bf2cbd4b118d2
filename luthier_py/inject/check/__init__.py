"""Proof that a patch is harmless, from the linked bytes alone.

In: the original program with its facts, and the linked object with the source map that `inject` claims.
Out: nothing, or CheckFailed. It shares no code with the passes that made the patch.

What is proved, for every clone:

* distances: between inserted and other instructions stand the waits that the hardware wants (`distances`);
* structure: without inserted instructions it is the original, in order; branches go to the clone of their
  block, getpc chains build the address that they built (or that of the callee's clone), and the compare
  chain before an indirect call maps each original to its clone and nothing else;
* state: through each run of inserted instructions a register holds the application's value, a saved flag,
  a subset of the application's EXEC, or something unknown (`state`).
  At the end of the run every scalar that the application may read holds the application's value again,
  EXEC and MODE are the application's, and no vector register that it may read was written, nor was anything
  while a load still owed it, unless the insertion declared it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from luthier_py.analysis import Facts, Pending
from luthier_py.errors import CheckFailed, Location
from luthier_py.inject.check.concrete import Concrete
from luthier_py.inject.check.distances import Code, check_distances
from luthier_py.inject.check.state import APP, State, step
from luthier_py.inject.model import Declared, SourceMap
from luthier_py.ir import Function, Instr, Program
from luthier_py.isa import EXEC, MODE, Inst, InstructionSet, OpFlag, RegSet

LEAVES = OpFlag.END | OpFlag.CALL | OpFlag.INDIRECT | OpFlag.BARRIER


@dataclass(frozen=True, slots=True)
class Linked:
    """The clones in the linked object."""

    clones: Mapping[int, int]                 # original function -> address of its clone
    code: Mapping[str, tuple[int, bytes]]     # chunk name -> address, bytes


def check(
    program: Program, facts: Facts, declared: Declared, maps: Sequence[SourceMap], linked: Linked
) -> None:
    """Raises CheckFailed."""
    codes: dict[Function, Code] = {}
    for source in maps:
        checker = _Checker(program, facts, declared, source, linked)
        checker.run()
        codes[source.function] = Code(source.function.name, checker.code, checker.own)
    for group in _groups(program, codes.keys()):
        check_distances(program.isa, [codes[function] for function in codes if function in group])


def _groups(program: Program, functions: Iterable[Function]) -> list[set[Function]]:
    """``functions`` by what can meet in one kernel, directly or over others."""
    groups: list[set[Function]] = []
    for kernel in program.kernels:
        group = {function for function in program.reachable(kernel.function)} & set(functions)
        shared = [other for other in groups if other & group]
        groups = [other for other in groups if not other & group] + ([group.union(*shared)] if group else [])
    return groups


class _Checker:
    """Checks one clone. ``pcs`` are the addresses of its instructions, ascending."""

    def __init__(
        self, program: Program, facts: Facts, declared: Declared, source: SourceMap, linked: Linked
    ) -> None:
        self.isa: InstructionSet = program.isa
        self.program, self.facts, self.declared, self.linked = program, facts, declared, linked
        self.function = source.function
        base, code = linked.code[source.chunk]
        self.code: dict[int, Inst] = {}
        at = 0
        while at < len(code):
            self.code[base + at] = inst = self.isa.decode(code, at)
            at += inst.size_bytes
        self.place = {instr: base + offset for instr, offset in source.instructions.items()}
        self.labels = {block: base + offset for block, offset in source.labels.items()}
        self.pcs = [*sorted(self.code), base + at]
        self.base = base
        self.calls = {c.instr: c for c in program.calls(source.function)}
        self.builders = {instr: b for b in source.function.pc_builders for instr in (b.lo, b.hi)}
        self.joins = {target for pc, inst in self.code.items() if (target := inst.branch_target(pc)) is not None}
        self.own = set(self.place.values())
        others = self.code.keys() - self.own - set(self.labels.values())
        self.islands = {pc for pc in others if self.code[pc].op.base == "S_BRANCH"}

    def fail(self, what: str, pc: int) -> CheckFailed:
        text = self.isa.text(self.code[pc]) if pc in self.code else None
        return CheckFailed(f"the patch could change the application: {what}", Location(self.function.name, pc, text))

    def run(self) -> None:
        order = [self.place[i] for block in self.function.blocks for i in block.instrs]
        if order != sorted(order) or len(order) != len(self.place) or not self.code.keys() >= set(order):
            raise self.fail("the clone does not hold the original instructions in order", self.pcs[0])
        self.prologue()
        labels = [self.labels[b.address] for b in self.function.blocks]
        for block, label, following in zip(self.function.blocks, labels, [*labels[1:], self.pcs[-1]], strict=True):
            start, previous = label, RegSet()
            for instr in block.instrs:
                self.inserted(start, self.place[instr], self.before(instr, previous))
                self.application(instr, start)
                start = self.place[instr] + self.code[self.place[instr]].size_bytes
                previous = self.declared.after.get(instr, RegSet())
            if not block.instrs[-1].inst.op.flags & OpFlag.TERMINATOR:
                self.inserted(start, following, self.after(block.instrs[-1]))

    def prologue(self) -> None:
        """From where control comes in to the first block, or for kernels with two entries to either."""
        for entry in self.function.entries:
            start = self.base + entry - self.function.address
            self.inserted(start, self.labels[entry], self.before(self.function.block(entry).instrs[0], RegSet()))

    # -- state -----------------------------------------------------------------------------------

    def before(self, instr: Instr, previous: RegSet) -> _Duty:
        facts = self.facts
        return _Duty(
            facts.live_before(instr), facts.live_before_all_lanes(instr), facts.pending_before(instr),
            previous | self.declared.before.get(instr, RegSet()), not instr.inst.op.flags & OpFlag.END,
        )

    def after(self, instr: Instr) -> _Duty:
        facts = self.facts
        return _Duty(
            facts.live_after(instr), facts.live_after_all_lanes(instr), facts.pending_after(instr),
            self.declared.after.get(instr, RegSet()), True,
        )

    def inserted(self, start: int, end: int, duty: _Duty) -> None:
        """Every path from ``start`` reaches ``end`` with the application's state intact."""
        if start == end:
            return
        met: dict[int, State] = {}  # at the end, and wherever else paths meet
        work = [(start, State(duty.pending))]
        while work:
            pc, state = work.pop()
            if pc == end or pc in self.joins:
                known = met.get(pc)
                state = state if known is None else known.meet(state)
                if state == known or pc == end:
                    met[pc] = state
                    continue
                met[pc], state = state, state.copy()
            work += self.after_one(pc, state, start, end)
        if end not in met:
            raise self.fail("inserted code does not come back", start)
        self.settle(met[end], duty, start)

    def after_one(self, pc: int, state: State, start: int, end: int) -> list[tuple[int, State]]:
        """Where control goes from one inserted instruction, and the state there (``state`` is used up)."""
        inst = self.code.get(pc)
        target = None if inst is None else inst.branch_target(pc)
        if inst is None or inst.op.flags & LEAVES or (target is not None and not start <= target <= end):
            raise self.fail("an inserted instruction leaves the inserted code", pc)
        step(self.isa, inst, state)
        if target is None:
            return [(pc + inst.size_bytes, state)]
        falls = [(pc + inst.size_bytes, state.copy())] if inst.op.flags & OpFlag.CONDITIONAL else []
        return [*falls, (target, state)]

    def settle(self, state: State, duty: _Duty, pc: int) -> None:
        if duty.exec_matters and any(state.get(EXEC + half) != (APP, EXEC + half) for half in (0, 1)):
            raise self.fail("EXEC is not restored", pc)
        if state.get(MODE) != (APP, MODE):
            raise self.fail("MODE is not restored", pc)
        owed = duty.live - duty.declared
        for reg in RegSet(sgpr=owed.sgpr):
            if reg.index not in (EXEC, EXEC + 1, MODE) and state.get(reg.index) != (APP, reg.index):
                raise self.fail(f"{reg} is live and not restored", pc)
        lost = (state.narrow_writes & owed) | (state.wide_writes & (duty.live_all - duty.declared))
        lost |= state.raced | (state.pending.registers - duty.pending.registers)
        if lost:
            raise self.fail(f"{lost} is still needed and overwritten", pc)

    # -- structure -------------------------------------------------------------------------------

    def application(self, instr: Instr, start: int) -> None:
        """The clone's instruction does what ``instr`` does."""
        pc = self.place[instr]
        inst, old = self.code[pc], instr.inst
        if old.op.base == "S_CLAUSE":
            self.group(instr, inst, pc)
            return
        if inst.op.base != old.op.base:
            raise self.fail(f"it should be `{self.isa.text(old)}`", pc)
        if old.op.flags & OpFlag.BRANCH:
            if self.follow(inst.branch_target(pc)) != self.labels.get(old.branch_target(instr.pc) or -1):
                raise self.fail("it goes elsewhere than the original", pc)
        elif instr in self.calls and self.calls[instr].indirect:
            self.check_dispatch(instr, start, pc)
        elif inst.raw != old.raw and not self.rebuilt(instr):
            raise self.fail(f"it should be `{self.isa.text(old)}`", pc)

    def group(self, instr: Instr, inst: Inst, pc: int) -> None:
        """A group of memory instructions is whole, or no group any more."""
        if inst.raw == instr.inst.raw:
            size = (inst["simm16"].value & 0x3F) + 1
            start = bisect_right(self.pcs, pc)
            if not self.own.issuperset(self.pcs[start:start + size]):
                raise self.fail("something stands in a group of memory instructions", pc)
        elif inst.op.base != "S_NOP":
            raise self.fail(f"it should be `{self.isa.text(instr.inst)}`, or nothing", pc)

    def follow(self, target: int | None) -> int | None:
        """Where a branch ends after islands."""
        while target in self.islands:
            target = self.code[target].branch_target(target)
        return target

    def rebuilt(self, instr: Instr) -> bool:
        """Whether the getpc chain that ``instr`` ends (or starts to add) builds the right address."""
        builder = self.builders.get(instr)
        if builder is None:
            return False
        getpc = self.place[builder.getpc]
        parts = [self.code[self.place[i]].literal for i in (builder.lo, builder.hi)]
        if None in parts:
            return False
        distance = parts[0] or 0
        if builder.lo != builder.hi:
            distance |= (parts[1] or 0) << 32
        value = (getpc + self.code[getpc].size_bytes + distance) % (1 << 64)
        allowed = {builder.value}
        if builder.call is not None:
            allowed = {self.linked.clones.get(builder.value, builder.value)}
        if builder.branch is not None:
            allowed = {self.labels.get(builder.value, builder.value)}
        return value in allowed

    def check_dispatch(self, instr: Instr, start: int, pc: int) -> None:
        """Run the compare chain on real addresses: originals become clones, others stay."""
        pointer = instr.inst["src0"].reg
        called = self.code[pc]["src0"].reg
        assert pointer is not None and called is not None
        taken = self.program.address_taken
        wanted = {a: self.linked.clones.get(a, a) for a in taken}
        wanted |= {a + far: a + far for a in taken for far in (4, 1 << 32, 1 << 40)}
        for address, expected in wanted.items():
            registers = {pointer.index: address & 0xFFFFFFFF, pointer.index + 1: address >> 32}
            got = Concrete(self.code, registers).run(start, pc)
            if got.get(called.index, 0) | got.get(called.index + 1, 0) << 32 != expected:
                raise self.fail(f"a call of 0x{address:x} goes astray", pc)


@dataclass(frozen=True, slots=True)
class _Duty:
    """What a run of inserted instructions owes to the application."""

    live: RegSet
    live_all: RegSet
    pending: Pending
    declared: RegSet
    exec_matters: bool
