"""Defects put into kernels: barriers and waits that are missing or too weak, stores that are left out.

In: a code object and a kernel of it. Out: copies with one defect each, made by writing over one instruction. Invariant:
nothing else of the object changes, so addresses are the original's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from luthier_py.binary.loader import CodeObject, load
from luthier_py.emulator.reading.discover import discover
from luthier_py.isa import Counter, Inst, InstructionSet, OpFlag, instruction_set
from luthier_py.isa.encoding.waitcnt import waits_for

SHARED = (Counter.VM, Counter.LGKM, Counter.KM)


@dataclass(frozen=True, slots=True)
class Defect:
    """``what``: in words; ``data``: the object that has it; ``counter``: the only one for which a wait is too weak."""

    what: str
    pc: int
    data: bytes
    counter: Counter | None = None


def instructions(obj: CodeObject, kernel: str) -> list[tuple[int, Inst]]:
    """Of the kernel's own function."""
    record = obj.kernel(kernel)
    isa = instruction_set(obj.target, record.descriptor.wave_size)
    blocks = discover(lambda pc: isa.decode(obj.read(pc, 24)), record.entry)
    return [each for block in blocks for each in block.insts]


def _written(obj: CodeObject, pc: int, data: bytes) -> bytes:
    """The object with other bytes at an address."""
    segment = next(s for s in obj.segments if s.address <= pc < s.address + s.file_size)
    at = segment.offset + pc - segment.address
    return obj.data[:at] + data + obj.data[at + len(data) :]


def _nothing(isa: InstructionSet, size: int) -> bytes:
    return isa.make("s_nop", 0).raw * (size // 4)


def without(data: bytes, kernel: str, flag: OpFlag, what: str) -> Iterator[Defect]:
    """Each instruction that has ``flag`` left out, one at a time."""
    obj = load(data)
    isa = instruction_set(obj.target, obj.kernel(kernel).descriptor.wave_size)
    for pc, inst in instructions(obj, kernel):
        if flag & inst.op.flags == flag:
            yield Defect(f"{what} left out", pc, _written(obj, pc, _nothing(isa, inst.size_bytes)))


def weaker_waits(data: bytes, kernel: str) -> Iterator[Defect]:
    """Each wait left out, and each with one of its counts raised by one."""
    obj = load(data)
    isa = instruction_set(obj.target, obj.kernel(kernel).descriptor.wave_size)
    for pc, inst in instructions(obj, kernel):
        counts = waits_for(isa.target, inst)
        if not counts or not any(counter in SHARED for counter in counts):
            continue
        yield Defect("wait left out", pc, _written(obj, pc, _nothing(isa, inst.size_bytes)))
        for counter in counts:
            new = _together(isa, {**counts, counter: counts[counter] + 1})
            if counter in SHARED and len(new) == inst.size_bytes:
                yield Defect(f"wait for {counter.name} raised by one", pc, _written(obj, pc, new), counter)


def _together(isa: InstructionSet, counts: dict[Counter, int]) -> bytes:
    waits: Sequence[Inst] = isa.waits(counts)
    return b"".join(wait.raw for wait in waits)


def first_store_left_out(data: bytes, kernel: str) -> Iterator[Defect]:
    """The first plain store to LDS left out: what it would have written is what all others begin with."""
    obj = load(data)
    isa = instruction_set(obj.target, obj.kernel(kernel).descriptor.wave_size)
    for pc, inst in instructions(obj, kernel):
        flags = inst.op.flags
        if OpFlag.LDS in flags and OpFlag.MAY_STORE in flags and not flags & (OpFlag.ATOMIC | OpFlag.MAY_LOAD):
            yield Defect("first store to LDS left out", pc, _written(obj, pc, _nothing(isa, inst.size_bytes)))
            return


def comes_to_a_barrier(data: bytes, kernel: str, defect: Defect) -> bool:
    """Whether the defect is at a barrier, or in the waits directly before one."""
    obj = load(data)
    rest = [inst for pc, inst in instructions(obj, kernel) if pc >= defect.pc]
    after = next(inst for inst in rest if OpFlag.WAIT not in inst.op.flags)
    return after.op.base.startswith("S_BARRIER")  # in two halves from gfx12 on, of which the first only signals
