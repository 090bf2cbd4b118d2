"""What a wave can ask of its surroundings: clocks, and messages that are answered.

In: an instruction. Out: IR of the value. Invariant: who looks at a clock is not where it was, whatever it keeps of it.
"""

from __future__ import annotations

from luthier_py.emulator.clocks import NANOSECONDS_OF_WALL_CYCLE
from luthier_py.emulator.wave_code import WaveCode
from luthier_py.errors import Unsupported
from luthier_py.isa.instruction import Inst
from luthier_py.isa.semantics.algebra import U32, U64, Value
from luthier_py.isa.semantics.control import Question

_ANSWERED = {question.value for question in Question}


def wall_clock(w: WaveCode) -> Value:
    """That of constant rate."""
    found = w.emitter.support("i64", "nanoseconds", [])
    w.note_change()
    return w.ops.value(U64, w.emitter.let(f"udiv i64 {found}, {NANOSECONDS_OF_WALL_CYCLE}"))


def answer(w: WaveCode, inst: Inst) -> Value:
    """Of the hardware to a message: no trap handler is there, and queues and dispatches have no numbers."""
    message, target = inst["src0"].value & 0xFF, inst["sdst"].reg
    if message not in _ANSWERED:
        raise Unsupported(f"message 0x{message:x}, which nobody answers here; of those that LLVM names GET_REALTIME, "
                          "GET_DOORBELL, GET_DDID, GET_TMA and GET_TBA are")
    width = U64 if target is not None and target.dwords == 2 else U32
    if message != Question.GET_REALTIME.value:
        return w.ops.constant(width, 0)
    return wall_clock(w).to(width)
