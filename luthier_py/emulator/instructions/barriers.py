"""Barriers with numbers: named ones, which a work-group has beside its own, queries of any; and the grid's.

In: an instruction about a barrier. Out: IR on the work-group's records of them. Sources: RDNA 4 ISA, 16.3
(S_BARRIER_SIGNAL and its like); LLVM, AMDGPUExecutionSynchronization ("s_barrier"). Invariant: a record that
no wave initialised is never waited for with success, but for what an earlier work-group left; the manuals forbid it.

A record counts the waves that have come, and how often all had: a wave that waits does so for the next time after
that which it has seen, as at a grid barrier.
"""

from __future__ import annotations

from luthier_py.emulator.instructions.crosslane import read_first
from luthier_py.emulator.instructions.operands import field
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.records.layout import (
    GRID_RESOURCE,
    GRID_RESOURCE_BYTES,
    GRID_RESOURCES,
    GROUP,
    NAMED_BARRIER,
    NAMED_BARRIER_BYTES,
    WORKER,
)
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.model.registers import M0
from luthier_py.isa.properties.barriers import TRAP
from luthier_py.isa.semantics.algebra import U32, U64, Value, select
from luthier_py.isa.semantics.control import Action

OF_SEMAPHORES = (Action.GWS_INIT, Action.GWS_SEMA_V, Action.GWS_SEMA_RELEASE_ALL)
_NUMBERS, _COUNTS = 31, 127  # bits of M0 that name a barrier, and those that count its members, from bit 16 on


def is_named(number: int | None) -> bool:
    """Whether an instruction's barrier number (see `isa.barriers`) may be a named barrier's: 0 or more, or None where
    M0 says it. Negative numbers are the work-group's own, the trap handler's and clusters'."""
    return number is None or number >= 0


class NamedBarrier:
    """Of the work-group: the one of ``number``, or that which M0 names."""

    def __init__(self, w: WaveCode, number: int | None) -> None:
        self.w = w
        self.number = w.ops.constant(U32, number) if number is not None else w.scalars.read(M0) & _NUMBERS
        base = w.ops.value(U64, w.emitter.let(f"load i64, ptr {w.field('barriers')}"))
        self.address = base + self.number.to(U64) * NAMED_BARRIER_BYTES

    def read(self, name: str) -> Value:
        """A field of the barrier's record, u64."""
        return self.w.ops.value(U64, self.w.emitter.let(f"load i64, ptr {self._place(name)}"))

    def write(self, name: str, value: Value) -> None:
        """Store a u64 in a field of the barrier's record."""
        self.w.emitter.emit(f"store i64 {value.ref}, ptr {self._place(name)}")

    def _place(self, name: str) -> str:
        return self.w.emitter.let(f"inttoptr i64 {(self.address + NAMED_BARRIER[name]).ref} to ptr")


def members_in_m0(w: WaveCode) -> Value:
    """The members that M0[22:16] says the barrier has, as u64 (RDNA 4 ISA, 16.3)."""
    return (w.scalars.read(M0) >> 16 & _COUNTS).to(U64)


def initialise(w: WaveCode, number: int | None) -> None:
    """S_BARRIER_INIT: M0[22:16] waves have to come to the barrier, and none has."""
    barrier = NamedBarrier(w, number)
    barrier.write("members", members_in_m0(w))
    barrier.write("came", w.ops.constant(U64, 0))
    w.note_change()


def join(w: WaveCode, number: int | None) -> None:
    """From here on the wave can wait for it."""
    barrier = NamedBarrier(w, number)
    w.emitter.emit(f"store i64 {barrier.address.ref}, ptr {w.field('joined')}")
    w.emitter.emit(f"store i64 {barrier.read('times').ref}, ptr {w.field('seen')}")


def signal(w: WaveCode, number: int | None, first: bool) -> None:
    """This wave has come. ``first``: SCC says whether no wave had before. The barrier of number 0 is none."""
    barrier = NamedBarrier(w, number)
    came, members = barrier.read("came"), barrier.read("members")
    if number is None:
        given = members_in_m0(w)
        members = select(given.ne(0), given, members)
        barrier.write("members", members)
    if first:
        w.scalars.write_scc(came.eq(0) & barrier.number.ne(0))
    complete = (came + 1).eq(members)
    barrier.write("came", select(complete, 0, came + 1))
    barrier.write("times", barrier.read("times") + complete.to(U64))
    w.note_change()


def await_joined(w: WaveCode) -> None:
    """What the wave waits for, whatever number it gives: the barrier that it joined last."""
    emitter, nobody = w.emitter, NamedBarrier(w, 0)
    joined = w.ops.value(U64, emitter.let(f"load i64, ptr {w.field('joined')}"))
    nobody.address = select(joined.eq(0), nobody.address, joined)
    times = nobody.read("times")
    expected = w.ops.value(U64, emitter.let(f"load i64, ptr {w.field('seen')}")) + 1
    emitter.emit(f"store i64 {(nobody.address + NAMED_BARRIER['times']).ref}, ptr {w.field('meeting')}")
    emitter.emit(f"store i64 {expected.ref}, ptr {w.field('expected')}")
    emitter.emit(f"store i64 {select(times > expected, times, expected).ref}, ptr {w.field('seen')}")


def nobody_has_come(w: WaveCode) -> Value:
    """To the work-group's own barrier. A wave that is alone has none, and keeps SCC: LLVM sets it before, "in case the
    barrier instruction gets converted to a NOP" (RDNA 4 ISA, 16.3, has 0 there)."""
    alone = w.ops.value(U64, w.emitter.let(f"load i64, ptr {w.field('members')}")).eq(1)
    return select(alone, w.scalars.scc(), _of_group(w, "waiting").eq(0))


def state(w: WaveCode, number: int | None) -> Value:
    """S_GET_BARRIER_STATE: waves that have come in [22:16], members in [10:4], 1 in [0]."""
    if number == TRAP:
        return w.ops.constant(U32, 0)
    if is_named(number):
        barrier = NamedBarrier(w, number)
        came, members = barrier.read("came"), barrier.read("members")
    else:
        came, members = _of_group(w, "waiting"), _of_group(w, "left")
    return ((came & _COUNTS) << 16 | (members & _COUNTS) << 4 | 1).to(U32)


def _of_group(w: WaveCode, name: str) -> Value:
    group = w.emitter.let(f"load i64, ptr {w.field('group')}")
    place = w.emitter.let(f"inttoptr i64 {(w.ops.value(U64, group) + GROUP[name]).ref} to ptr")
    return w.ops.value(U64, w.emitter.let(f"load i64, ptr {place}"))


class GridResource:
    """That which an instruction names: a record of layout's GRID_RESOURCE, which waves on other threads change, too."""

    def __init__(self, w: WaveCode, inst: Inst) -> None:
        self.w = w
        number = ((w.scalars.read(M0, 1) >> 16) + field(inst, "offset")) & (GRID_RESOURCES - 1)
        base = w.emitter.let(f"load i64, ptr {w.at('%worker', WORKER['meetings'])}")
        self.address = w.ops.value(U64, base) + number.to(U64) * GRID_RESOURCE_BYTES

    def place(self, name: str) -> Value:
        """Address of a field of the record, u64."""
        return self.address + GRID_RESOURCE[name]

    def read(self, name: str) -> Value:
        """A field of the record, u64, by an atomic load."""
        return self.w.ops.let(U64, f"load atomic i64, ptr {self._pointer(name)} seq_cst, align 8")

    def write(self, name: str, value: Value) -> None:
        """Store a u64 in a field of the record by an atomic store; counts as a change of memory."""
        self.w.emitter.emit(f"store atomic i64 {value.ref}, ptr {self._pointer(name)} seq_cst, align 8")
        self.w.note_change()

    def add(self, name: str, by: Value) -> Value:
        """What was there before."""
        before = self.w.ops.let(U64, f"atomicrmw add ptr {self._pointer(name)}, i64 {by.ref} seq_cst")
        self.w.note_change()
        return before

    def wait(self, name: str, least: Value) -> None:
        """The wave continues when the field ``name`` has reached ``least``."""
        self.w.emitter.emit(f"store i64 {self.place(name).ref}, ptr {self.w.field('meeting')}")
        self.w.emitter.emit(f"store i64 {least.ref}, ptr {self.w.field('expected')}")

    def _pointer(self, name: str) -> str:
        return self.w.emitter.let(f"inttoptr i64 {self.place(name).ref} to ptr")


def meet(w: WaveCode, inst: Inst) -> None:
    """Come to a grid barrier: the wave may continue when a multiple of the members have."""
    members, resource = read_first(w, inst["data0"]).to(U64) + 1, GridResource(w, inst)
    before = resource.add("came", w.ops.constant(U64, 1))
    first = before - w.ops.let(U64, f"urem i64 {before.ref}, {members.ref}")
    resource.wait("came", first + members)


def take(w: WaveCode, inst: Inst) -> None:
    """Draw a number at a semaphore: waves continue in the order of their numbers."""
    resource = GridResource(w, inst)
    resource.wait("given", resource.add("taken", w.ops.constant(U64, 1)) + 1)


def change_semaphore(w: WaveCode, inst: Inst, row: Action) -> None:
    """How many may continue: more, as many as the instruction says, or all that wait."""
    resource, data = GridResource(w, inst), inst.find("data0")
    count = w.ops.constant(U64, 1) if data is None else read_first(w, data).to(U64)
    if row is Action.GWS_SEMA_V:
        resource.add("given", count)
        return
    taken, given = resource.read("taken"), resource.read("given")
    every = row is Action.GWS_SEMA_RELEASE_ALL
    resource.write("given", taken if every else select(given < taken, given, taken) + count)
