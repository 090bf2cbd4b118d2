"""The turn passes to the next wave of the work-group inside a host function, from one that ends or waits at a barrier.

In: a wave that is through, in a function that others of its work-group run, too. Out: LLVM IR that does for it what the
scheduler would do, and continues with the next wave; what such a function returns is a Status, and how many waves
behind the one that it was called with has that, times MOVED. Invariant: that is done only where the next wave is ready,
so the last one of a round comes back to the scheduler, which sees to everything else.
"""

from __future__ import annotations

from collections.abc import Mapping

from luthier_py.emulator.records.layout import GROUP, WAVE, Status, wave_stride
from luthier_py.emulator.vector_regions.emitter import Emitter

MOVED = 16
assert max(Status) < MOVED
FIRST_WAVE = "%first.wave"
"""What such a function is called with; ``%wave`` is the one that has the turn."""
THROUGH = {Status.BARRIER: "arrived", Status.DONE: "ended"}
"""The block that a wave enters to hand on the turn, by its status; its pc is in memory already."""


def enter(e: Emitter, hands_on: bool, entrances: Mapping[int, str]) -> None:
    """Branch to where the wave continues: the label of a block by its address, or %nowhere. What comes before this is
    the same for all waves of a work-group."""
    if hands_on:
        ways = [(label, f"%{label}.next", f"%{label}.moved") for label in THROUGH.values()]
        e.begin("again")
        waves = [(FIRST_WAVE, "entry"), *((wave, f"{label}.hands") for label, wave, _ in ways)]
        moved = [("0", "entry"), *((count, f"{label}.hands") for label, _, count in ways)]
        for name, kind, values in (("wave", "ptr", waves), ("moved", "i32", moved)):
            e.emit(f"%{name} = phi {kind} " + ", ".join(f"[ {value}, %{label} ]" for value, label in values))
    relative = ("i64", e.let(f"sub i64 {_read(e, '%wave', WAVE['pc'])}, %code_base"))
    # In dwords, which lie close enough together for a table; an odd byte is nowhere.
    number = e.call("i64", "llvm.fshl.i64", [relative, relative, ("i64", "62")])
    cases = " ".join(f"i64 {start // 4}, label %{label}" for start, label in entrances.items())
    e.emit(f"switch i64 {number}, label %elsewhere [ {cases} ]")
    e.place("elsewhere")
    if hands_on:  # of the wave that it was called with, that is wrong
        e.branch(e.let("icmp eq i32 %moved, 0"), "nowhere", "not.here")
        e.place("not.here")
        leave(e, Status.JUMP, True)
    else:
        e.emit("br label %nowhere")


def leave(e: Emitter, status: Status, hands_on: bool) -> None:
    """Return: the wave that has the turn came to this."""
    e.emit(f"ret i32 {e.let(f'add i32 %moved, {int(status)}') if hands_on else int(status)}")


def hand_on(e: Emitter) -> None:
    """The code at THROUGH."""
    for status, label in THROUGH.items():
        _hand_on(e, status, label)


def _hand_on(e: Emitter, status: Status, label: str) -> None:
    e.place(label)
    number = e.let(f"add i64 {_read(e, '%wave', WAVE['number'])}, 1")
    looks, leaves = e.label("looks"), e.label("leaves")
    e.branch(e.let(f"icmp ult i64 {number}, {_read(e, '%wave', WAVE['members'])}"), looks, leaves)
    e.place(looks)
    e.emit(f"%{label}.next = getelementptr i8, ptr %wave, i64 {wave_stride(e.wave_size)}")
    ready = e.let(f"icmp eq i64 {_read(e, f'%{label}.next', WAVE['status'])}, {int(Status.JUMP)}")
    e.branch(ready, f"{label}.hands", leaves)
    e.place(leaves)
    leave(e, status, True)
    e.place(f"{label}.hands")
    group = e.let(f"load ptr, ptr {_field(e, '%wave', WAVE['group'])}")
    e.emit(f"store i64 {int(status)}, ptr {_field(e, '%wave', WAVE['status'])}")
    _account(e, status, group)
    e.emit(f"store i64 {_read(e, group, GROUP['slice'])}, ptr {_field(e, f'%{label}.next', WAVE['budget'])}")
    e.emit(f"%{label}.moved = add i32 %moved, {MOVED}")
    e.emit("br label %again")


def _account(e: Emitter, status: Status, group: str) -> None:
    """What the scheduler does for a wave that ends, perhaps between the two halves of a barrier, or that waits."""
    if status is Status.DONE:
        _add(e, group, GROUP["left"], "-1")
        came = _read(e, "%wave", WAVE["signalled"])
        e.emit(f"store i64 0, ptr {_field(e, '%wave', WAVE['signalled'])}")
        _add(e, group, GROUP["waiting"], e.let(f"sub i64 0, {came}"))
    else:
        _add(e, group, GROUP["waiting"], "1")


def _field(e: Emitter, pointer: str, offset: int) -> str:
    return e.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")


def _read(e: Emitter, pointer: str, offset: int) -> str:
    return e.let(f"load i64, ptr {_field(e, pointer, offset)}")


def _add(e: Emitter, pointer: str, offset: int, amount: str) -> None:
    place = _field(e, pointer, offset)
    old = e.let(f"load i64, ptr {place}")
    e.emit(f"store i64 {e.let(f'add i64 {old}, {amount}')}, ptr {place}")
