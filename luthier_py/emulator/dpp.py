"""Data parallel primitives: a source that comes from another lane of the row.

In: the DPP fields of an instruction. Out: the source operand as each lane sees it, and which lanes
are written. Source: AMD Instinct MI200 ISA, 6.6. A row is 16 lanes, which is a chunk, so all but the
wave-wide controls stay inside a chunk.
"""

from __future__ import annotations

from dataclasses import dataclass

from luthier_py.emulator.layout import CHUNK
from luthier_py.emulator.strip import Chunk
from luthier_py.errors import Unsupported
from luthier_py.isa.instruction import Inst, OpFlag
from luthier_py.isa.semantics.algebra import BOOL, U32, Prim, Value, select

_ALL = 0xF


def lane_sources(control: int) -> tuple[int | None, ...]:
    """For each lane of a row the lane it reads, None where that is outside the row."""
    lanes = range(CHUNK)
    if control <= 0xFF:  # quad_perm
        return tuple((lane & ~3) | (control >> 2 * (lane & 3) & 3) for lane in lanes)
    amount = control & 0xF
    if 0x101 <= control <= 0x10F:  # row_shl: lane i reads lane i + amount
        return tuple(lane + amount if lane + amount < CHUNK else None for lane in lanes)
    if 0x111 <= control <= 0x11F:  # row_shr
        return tuple(lane - amount if lane >= amount else None for lane in lanes)
    if 0x121 <= control <= 0x12F:  # row_ror
        return tuple((lane - amount) % CHUNK for lane in lanes)
    if control == 0x140:  # row_mirror
        return tuple(CHUNK - 1 - lane for lane in lanes)
    if control == 0x141:  # row_half_mirror
        return tuple(lane ^ 7 for lane in lanes)
    if 0x150 <= control <= 0x15F:  # row_newbcast
        return (amount,) * CHUNK
    raise Unsupported(f"dpp_ctrl 0x{control:x} (it crosses rows)")


@dataclass(frozen=True, slots=True)
class Dpp:
    control: int
    row_mask: int
    bank_mask: int
    bound_control: bool

    @staticmethod
    def of(inst: Inst) -> Dpp | None:
        if OpFlag.DPP not in inst.op.flags:
            return None
        control, rows, banks, bound = (inst[name].value for name in ("dpp_ctrl", "row_mask", "bank_mask", "bound_ctrl"))
        lane_sources(control)  # refuses what is not supported
        return Dpp(control, rows, banks, bool(bound))

    def read(self, chunk: Chunk, row: int) -> Value:
        """The row's values moved between lanes; 0 where the source is outside the row or not in EXEC."""
        value = chunk.whole_row(row)
        moved = _shuffle(chunk, value, self.control)
        valid = self._valid(chunk)
        return moved if valid is None else select(valid, moved, 0)

    def enabled(self, chunk: Chunk) -> Value | None:
        """Lanes that may be written, beside EXEC; None for all."""
        enabled = None if self.bound_control else self._valid(chunk)
        if self.row_mask != _ALL or self.bank_mask != _ALL:
            masked = self._masked(chunk)
            enabled = masked if enabled is None else enabled & masked
        return enabled

    def _valid(self, chunk: Chunk) -> Value | None:
        """Lanes whose source is inside the row and in EXEC."""
        sources = lane_sources(self.control)
        valid = None
        if None in sources:
            flags = ", ".join("i1 false" if source is None else "i1 true" for source in sources)
            valid = chunk.ops.value(BOOL, f"<{flags}>")
        if chunk.mask == "-1":
            return valid
        active = _shuffle(chunk, chunk.lanes_of(chunk.mask), self.control)
        return active if valid is None else valid & active

    def _masked(self, chunk: Chunk) -> Value:
        """Row and bank masks: a row is a chunk, a bank four lanes of it."""
        lane = chunk.ops.apply(Prim.LANE, U32)
        row = chunk.ops.constant(U32, self.row_mask) >> (lane >> 4)
        bank = chunk.ops.constant(U32, self.bank_mask) >> ((lane >> 2) & 3)
        return (row & bank & 1).ne(0)


def _shuffle(chunk: Chunk, value: Value, control: int) -> Value:
    name = chunk.ops.name(value.type)
    picked = ", ".join("i32 poison" if source is None else f"i32 {source}" for source in lane_sources(control))
    # A lane without a source reads poison; it is always replaced by a select that does not look at it.
    return chunk.ops.let(value.type, f"shufflevector {name} {value.ref}, {name} poison, <{CHUNK} x i32> <{picked}>")
