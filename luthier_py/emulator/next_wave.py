"""The turn goes to the next wave of the work-group inside a host function, from a wave that ends or waits at a barrier.

In: a wave that is through, in a function that others of its work-group run, too. Out: LLVM IR that does for it what the
scheduler would do, and goes on with the next wave; what such a function returns is a Status, and how many waves behind
the one that it was called with has that, times MOVED. Invariant: that is done only where the next wave is ready, so the
last one of a round comes back to the scheduler, which sees to everything else.
"""

from __future__ import annotations

from luthier_py.emulator.emitter import Emitter
from luthier_py.emulator.layout import GROUP, WAVE, Status, wave_stride

MOVED = 16
assert max(Status) < MOVED
FIRST_WAVE = "%first.wave"
"""What such a function is called with; ``%wave`` is the one that has the turn."""
THROUGH = {Status.BARRIER: "arrived", Status.DONE: "ended"}
"""Where a wave goes that could hand on the turn, whose pc is in memory already."""


def begin(e: Emitter) -> None:
    """Behind what is the same for all waves."""
    ways = [(label, f"%{label}.next", f"%{label}.moved") for label in THROUGH.values()]
    e.begin("again")
    waves = [(FIRST_WAVE, "entry"), *((wave, f"{label}.hands") for label, wave, _ in ways)]
    moved = [("0", "entry"), *((count, f"{label}.hands") for label, _, count in ways)]
    for name, kind, values in (("wave", "ptr", waves), ("moved", "i32", moved)):
        e.emit(f"%{name} = phi {kind} " + ", ".join(f"[ {value}, %{label} ]" for value, label in values))


def leave(e: Emitter, status: Status) -> None:
    """Return: the wave that has the turn came to this."""
    e.emit(f"ret i32 {e.let(f'add i32 %moved, {int(status)}')}")


def elsewhere(e: Emitter, nowhere: str) -> None:
    """The wave's next instruction is in no block of this function: of one that it was called with, that is wrong."""
    e.branch(e.let("icmp eq i32 %moved, 0"), nowhere, "not.here")
    e.place("not.here")
    leave(e, Status.JUMP)


def hand_on(e: Emitter, status: Status) -> None:
    """The code at THROUGH."""
    label = THROUGH[status]

    def field(pointer: str, offset: int) -> str:
        return e.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def read(pointer: str, offset: int) -> str:
        return e.let(f"load i64, ptr {field(pointer, offset)}")

    def add(pointer: str, offset: int, amount: str) -> None:
        place = field(pointer, offset)
        old = e.let(f"load i64, ptr {place}")
        e.emit(f"store i64 {e.let(f'add i64 {old}, {amount}')}, ptr {place}")

    e.place(label)
    number = e.let(f"add i64 {read('%wave', WAVE['number'])}, 1")
    looks, leaves = e.label("looks"), e.label("leaves")
    e.branch(e.let(f"icmp ult i64 {number}, {read('%wave', WAVE['members'])}"), looks, leaves)
    e.place(looks)
    e.emit(f"%{label}.next = getelementptr i8, ptr %wave, i64 {wave_stride(e.wave_size)}")
    ready = e.let(f"icmp eq i64 {read(f'%{label}.next', WAVE['status'])}, {int(Status.JUMP)}")
    e.branch(ready, f"{label}.hands", leaves)
    e.place(leaves)
    leave(e, status)
    e.place(f"{label}.hands")
    e.emit(f"store i64 {int(status)}, ptr {field('%wave', WAVE['status'])}")
    group = e.let(f"load ptr, ptr {field('%wave', WAVE['group'])}")
    if status is Status.DONE:
        add(group, GROUP["left"], "-1")
        came = read("%wave", WAVE["signalled"])
        e.emit(f"store i64 0, ptr {field('%wave', WAVE['signalled'])}")
        add(group, GROUP["waiting"], e.let(f"sub i64 0, {came}"))
    else:
        add(group, GROUP["waiting"], "1")
    slice_ = read(group, GROUP["slice"])
    e.emit(f"store i64 {slice_}, ptr {field(f'%{label}.next', WAVE['budget'])}")
    e.emit(f"%{label}.moved = add i32 %moved, {MOVED}")
    e.emit("br label %again")
