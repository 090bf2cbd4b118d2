"""What a wave can read of its surroundings: clocks, its number, and answers to messages.

In: an instruction. Out: IR of the value. Invariant: reading a clock counts as a change, so a wave
that polls one does not stand still.
"""

from __future__ import annotations

from luthier_py.base.errors import Unsupported
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.native.clocks import NANOSECONDS_OF_WALL_CYCLE
from luthier_py.emulator.records.layout import GROUP, wave_stride
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.semantics.algebra import U32, U64, Value
from luthier_py.isa.semantics.control import AnsweredMessage

_ANSWERED = {message.value for message in AnsweredMessage}


def wall_clock(w: WaveCode) -> Value:
    """That of constant rate."""
    found = w.emitter.support("i64", "nanoseconds", [])
    w.note_change()
    return w.ops.value(U64, w.emitter.let(f"udiv i64 {found}, {NANOSECONDS_OF_WALL_CYCLE}"))


def wave_number(w: WaveCode) -> Value:
    """In the work-group, whose waves follow each other."""
    group = w.ops.let(U64, f"load i64, ptr {w.field('group')}")
    first = w.emitter.let(f"inttoptr i64 {(group + GROUP['waves']).ref} to ptr")
    behind = w.ops.let(U64, "ptrtoint ptr %wave to i64") - w.ops.let(U64, f"load i64, ptr {first}")
    return w.ops.let(U64, f"udiv i64 {behind.ref}, {wave_stride(w.wave_size)}").to(U32)


def answer(w: WaveCode, inst: Inst) -> Value:
    """Of the hardware to a message: no trap handler is there, and queues and dispatches have no numbers."""
    message, target = inst["src0"].value & 0xFF, inst["sdst"].reg
    if message not in _ANSWERED:
        raise Unsupported(f"message 0x{message:x}, which nobody answers here; of those that LLVM names GET_REALTIME, "
                          "GET_DOORBELL, GET_DDID, GET_TMA and GET_TBA are")
    width = U64 if target is not None and target.dwords == 2 else U32
    if message != AnsweredMessage.GET_REALTIME.value:
        return w.ops.constant(width, 0)
    return wall_clock(w).to(width)
