"""The cycle model in generated code: when each instruction of a wave issues, and when what it loads is there.

In: the instructions of blocks, one by one, and the addresses of accesses while their code is written. Out: IR that
keeps the wave's TIME record. Instructions issue in order, as soon as what they read is ready. That is worked out when a
block is translated, except for what addresses and waits decide, which native functions (cycles.c) work out at
run time. Invariant: nothing here changes what a kernel computes; at a block's end TIME is up to date, and all results
of the ALUs are waited for, so that each block begins alike.
"""

from __future__ import annotations

import re

from luthier_py.emulator.records.layout import TIME, TIME_COUNTERS, TIME_PATTERNS, WAVE
from luthier_py.emulator.vector_regions.emitter import Emitter
from luthier_py.isa.encoding.instruction import Counter, Inst
from luthier_py.isa.encoding.waitcnt import waits_for
from luthier_py.isa.model.target import Target
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action
from luthier_py.isa.timing.costs import cost_of
from luthier_py.isa.timing.cycles import Pipe, Work, cycle_model
from luthier_py.isa.timing.issue import IssueOrder
from luthier_py.isa.timing.lds_banks import Way, bank_model, lds_access

_BITS = re.compile(r"(\d+)[a-z]*$")  # of an element, at the end of an operation's name
_ARRIVES = (Action.BARRIER, Action.BARRIER_SIGNAL)


class CycleCode:
    """Mutable: writes the model's part of one host function."""

    def __init__(self, emitter: Emitter, target: Target, wave_size: int) -> None:
        self._emitter, self._target, self._wave_size = emitter, target, wave_size
        self._model = cycle_model(target)
        self._patterns = 0
        self.begin()

    def begin(self) -> None:
        """A block does: offsets are cycles since TIME.now."""
        self._order, self._start = IssueOrder(), 0
        self._busy = dict.fromkeys(Pipe, 0)
        self._inst: Inst | None = None
        self._work = Work.OTHER
        self._weight = 1
        self._counted = False

    def before(self, inst: Inst, leaves: bool, weight: int = 1) -> None:
        """``inst`` issues; ``leaves``: its code ends the block. ``weight``: that its times are multiplied by."""
        cost = cost_of(self._target, inst, self._wave_size).times(weight)
        self._weight = weight
        self._inst, self._work, self._counted = inst, cost.work, False
        self._start = self._order.issue(inst, cost)
        if cost.pipe is not None:
            self._busy[cost.pipe] += cost.held
        if waits := waits_for(self._target, inst):
            self._wait(waits)
        if leaves:
            self.end()
            self._meet(inst)

    def after(self) -> None:
        """The instruction's code is written. A memory access that it did not report counts as the smallest."""
        if self._inst is not None and self._inst.op.counters and not self._counted:
            lds, memory = self._work is Work.LDS, self._work is Work.VECTOR_MEMORY
            least = str(self._least if memory else 1)
            if lds or memory:
                self._issue(Pipe.LDS if lds else Pipe.MEMORY, least, least)
            else:
                self._issue(None, "1", "0")

    def end(self) -> None:
        """Bring TIME up to date."""
        self._add("now", self._order.settled)
        for pipe, cycles in self._busy.items():
            if cycles:
                self._add(pipe.name.lower(), cycles)
        self.begin()

    def now(self) -> str:
        """The cycle in which the current instruction issues."""
        return self._later(self._start)

    def _wait(self, waits: dict[Counter, int]) -> None:
        """Advance to when the counted accesses are complete; what ALUs still do then is not modelled so closely."""
        at = self._later(self._order.at)
        for counter, count in waits.items():
            there = self._emitter.support("i64", "time_wait", [
                ("ptr", "%wave"), ("i64", str(TIME_COUNTERS[counter])), ("i64", str(count))])
            at = self._emitter.call("i64", "llvm.umax.i64", [("i64", at), ("i64", there)])
        self._emitter.emit(f"store i64 {at}, ptr {self._field('now')}")
        self._order.begin_here()

    def _meet(self, inst: Inst) -> None:
        """At a barrier, after TIME was brought up to date: the scheduler's watcher sets when its waves continue."""
        row, now = find_meaning(inst.op), ""
        if row in _ARRIVES or row is Action.BARRIER_WAIT:
            now = self._emitter.let(f"load i64, ptr {self._field('now')}")
        if row in _ARRIVES:
            self._emitter.emit(f"store i64 {now}, ptr {self._field('arrived')}")
        elif row is Action.BARRIER_WAIT:  # all others may have come before
            released = self._emitter.let(f"load i64, ptr {self._field('released')}")
            on = self._emitter.call("i64", "llvm.umax.i64", [("i64", now), ("i64", released)])
            self._emitter.emit(f"store i64 {on}, ptr {self._field('now')}")

    # Accesses

    def access(self, operation: str, kind: str, mask: str, base: str, row: str) -> None:
        """One of the current instruction: of elements that ``operation`` ends with, at addresses as native has them;
        ``row`` points to what is up to date."""
        bits = _BITS.search(operation)
        size = int(bits[1]) // 8 if bits is not None else 4
        if kind == "lds":
            self._lds(size, mask, base, row)
            return
        whole = self._wave_size * size
        if kind == "private":  # lanes are next to each other, dword by dword
            lines = -(-max(whole, 4 * self._wave_size) // self._model.line_bytes)
            held = str(max(self._least, lines, -(-whole // self._model.memory_bytes)))
        else:
            numbers = int(kind != "near"), size, self._model.line_bytes, self._model.memory_bytes, self._least
            held = self._emitter.support("i64", "time_lines", [
                ("ptr", "%wave"), ("i64", mask), ("i64", base), ("ptr", row), *(("i64", str(n)) for n in numbers)])
        self._issue(Pipe.MEMORY, held, held)

    @property
    def _least(self) -> int:
        """Cycles that an access of vector memory takes at least: its addresses are looked at."""
        return -(-self._wave_size // self._model.address_lanes)

    def _lds(self, size: int, mask: str, base: str, row: str) -> None:
        access = lds_access(self._inst) if self._inst is not None else None
        dwords, total = -(-size // 4), "0"
        if access is None:  # not at an address for each lane: no conflicts
            total = str(-(-self._wave_size * dwords // 32))
            offsets = 1
        else:
            offsets, dwords = len(access.offsets_bytes), access.dwords
            service = bank_model(self._target).service(access.way, dwords)
            masks = service.parities_in(self._wave_size)
            parities = sum(mask << 8 * number for number, mask in enumerate(masks))
            atomic = int(access.way is Way.ATOMIC)
            self._patterns += 1
            numbers = (parities, len(masks), service.banks, dwords, atomic, self._patterns % TIME_PATTERNS)
            for offset in access.offsets_bytes:
                at = base if offsets == 1 else str(offset)
                cycles = self._emitter.support("i64", "time_banks", [
                    ("ptr", "%wave"), ("i64", mask), ("i64", at), ("ptr", row), *(("i64", str(n)) for n in numbers)])
                total = self._emitter.let(f"add i64 {total}, {cycles}")
        moved = -(-offsets * dwords * 4 * self._wave_size // self._model.lds_bytes)
        own = self._emitter.call("i64", "llvm.umax.i64", [("i64", total), ("i64", str(moved))])
        self._issue(Pipe.LDS, own, total)

    def _issue(self, pipe: Pipe | None, own: str, shared: str) -> None:
        """An access holds ``pipe`` for ``own`` cycles for this wave, of which others cannot use ``shared``."""
        assert self._inst is not None
        latency = {Pipe.LDS: self._model.lds_latency, Pipe.MEMORY: self._model.memory_latency}.get(
            pipe or Pipe.SCALAR, self._model.scalar_latency)
        if self._weight != 1:
            own, shared = (self._emitter.let(f"mul i64 {cycles}, {self._weight}") for cycles in (own, shared))
        name = pipe.name.lower() if pipe is not None else "other"
        counters = sum(1 << number for counter, number in TIME_COUNTERS.items() if counter & self._inst.op.counters)
        self._emitter.support("void", "time_issue", [
            ("ptr", "%wave"), *(("i64", text) for text in (
                str(self._start), own, shared, str(self._weight * latency), str(TIME[f"{name}_free"]), str(TIME[name]),
                str(int(not self._counted)), str(counters)))])
        self._counted = True

    # TIME

    def _field(self, name: str) -> str:
        at = self._emitter.let(f"getelementptr i8, ptr %wave, i64 {WAVE['time']}")
        time = self._emitter.let(f"load ptr, ptr {at}")
        return self._emitter.let(f"getelementptr i8, ptr {time}, i64 {TIME[name]}")

    def _later(self, cycles: int) -> str:
        now = self._emitter.let(f"load i64, ptr {self._field('now')}")
        return self._emitter.let(f"add i64 {now}, {cycles}")

    def _add(self, name: str, cycles: int) -> None:
        place = self._field(name)
        old = self._emitter.let(f"load i64, ptr {place}")
        self._emitter.emit(f"store i64 {self._emitter.let(f'add i64 {old}, {cycles}')}, ptr {place}")
