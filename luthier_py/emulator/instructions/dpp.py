"""Data parallel primitives: a source that comes from another lane.

In: the DPP fields of an instruction. Out: the source operand as each lane sees it, and which lanes
are written. Sources: AMD Instinct MI200 ISA, 6.6; RDNA 3 ISA, 7.7 (DPP16 and DPP8). A row is 16 lanes, which is a
strip: most controls stay inside it. For the others the whole row is moved, before the region, to a temporary one.
"""

from __future__ import annotations

from collections.abc import Sequence

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import dataclass
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.records.layout import STRIP, TEMPORARY_ROW
from luthier_py.emulator.vector_regions.lane_strip import FULL, LaneStrip
from luthier_py.isa.encoding.instruction import Inst, OpFlag
from luthier_py.isa.semantics.algebra import BOOL, U32, Prim, Value, select

_ALL = 0xF
_MOVED_ROW = TEMPORARY_ROW + 4  # a pair
_CROSSING = range(0x130, 0x140)
_BROADCAST_15, _BROADCAST_31 = 0x142, 0x143
_EIGHTS = 1 << 24  # above the 24 bits of DPP8, which has no control of its own
_EIGHTS_FETCH_INACTIVE = 0xEA  # the code in src0 that says so


def row_sources(control: int) -> tuple[int | None, ...]:
    """For each lane of a row the lane it reads, None where that is outside the row."""
    lanes = range(STRIP)
    if control <= 0xFF:  # quad_perm
        return tuple((lane & ~3) | (control >> 2 * (lane & 3) & 3) for lane in lanes)
    amount = control & 0xF
    if 0x101 <= control <= 0x10F:  # row_shl: lane i reads lane i + amount
        return tuple(lane + amount if lane + amount < STRIP else None for lane in lanes)
    if 0x111 <= control <= 0x11F:  # row_shr
        return tuple(lane - amount if lane >= amount else None for lane in lanes)
    if 0x121 <= control <= 0x12F:  # row_ror
        return tuple((lane - amount) % STRIP for lane in lanes)
    if control == 0x140:  # row_mirror
        return tuple(STRIP - 1 - lane for lane in lanes)
    if control == 0x141:  # row_half_mirror
        return tuple(lane ^ 7 for lane in lanes)
    if 0x150 <= control <= 0x15F:  # row_newbcast, row_share
        return (amount,) * STRIP
    if 0x160 <= control <= 0x16F:  # row_xmask
        return tuple(lane ^ amount for lane in lanes)
    if control >= _EIGHTS:  # of each eight lanes: three bits of the control for each
        return tuple(lane & ~7 | control >> 3 * (lane & 7) & 7 for lane in lanes)
    raise Unsupported(f"dpp_ctrl 0x{control:x}")


def wave_sources(control: int, lanes: int) -> tuple[int | None, ...]:
    """The same for controls that cross rows, for all lanes of a wave."""
    if control == _BROADCAST_15:  # the last lane of a row, to the next row
        return tuple(lane // STRIP * STRIP - 1 if lane >= STRIP else None for lane in range(lanes))
    if control == _BROADCAST_31:  # lane 31, to the upper half
        return tuple(31 if lane >= 32 else None for lane in range(lanes))
    step, wraps = {0x130: (1, False), 0x134: (1, True), 0x138: (-1, False), 0x13C: (-1, True)}.get(control, (0, False))
    if not step:
        raise Unsupported(f"dpp_ctrl 0x{control:x}")
    return tuple((lane + step) % lanes if wraps or 0 <= lane + step < lanes else None for lane in range(lanes))


@dataclass(frozen=True, slots=True)
class Dpp:
    """The DPP controls of one instruction. ``control``: dpp_ctrl, or the eight selectors of DPP8 with a bit above them.
    ``row_mask``: a bit for each row of 16 lanes that may be written, ``bank_mask``: for each four lanes of a row.
    ``bound_control``: a lane without a valid source reads 0; otherwise it is not written."""

    control: int
    row_mask: int
    bank_mask: int
    bound_control: bool
    fetch_inactive: bool = False   # RDNA: what lanes have that are not in EXEC counts, too
    moved_from: int | None = None  # first row of the source, if it was moved to _MOVED_ROW
    valid: str = ""                # then: the scalar mask of lanes that have a source in EXEC

    @staticmethod
    def of(w: WaveCode, inst: Inst, source_row: int | None, rows: int) -> Dpp | None:
        """The instruction's DPP controls; its source's rows are moved now if they cross rows of lanes."""
        if OpFlag.DPP not in inst.op.flags:
            return None
        eights = inst.find("dpp8")
        if eights is not None:
            return Dpp(_EIGHTS | eights.value, _ALL, _ALL, True, inst["fi"].value == _EIGHTS_FETCH_INACTIVE)
        names = "dpp_ctrl", "row_mask", "bank_mask", "bound_ctrl"
        control, row_mask, banks, bound = (inst[name].value for name in names)
        fetched = inst.find("fi")
        if control in _CROSSING or control in (_BROADCAST_15, _BROADCAST_31):
            assert source_row is not None
            valid = _move(w, source_row, rows, wave_sources(control, w.wave_size))
            return Dpp(control, row_mask, banks, bool(bound), moved_from=source_row, valid=valid)
        row_sources(control)  # refuses what is not supported
        return Dpp(control, row_mask, banks, bool(bound), fetched is not None and bool(fetched.value))

    def read(self, strip: LaneStrip, row: int) -> Value:
        """The row's values moved between lanes; 0 where the source is out of range or not in EXEC."""
        if self.moved_from is not None:
            return strip.row(_MOVED_ROW + row - self.moved_from)
        moved = _shuffle(strip, strip.whole_row(row), self.control)
        valid = self._valid(strip)
        return moved if valid is None else select(valid, moved, 0)

    def compute_enabled_lanes(self, strip: LaneStrip) -> Value | None:
        """Lanes that may be written, beside EXEC; None for all."""
        enabled = None if self.bound_control else self._valid(strip)
        if self.row_mask != _ALL or self.bank_mask != _ALL:
            masked = self._compute_row_bank_mask(strip)
            enabled = masked if enabled is None else enabled & masked
        return enabled

    def _valid(self, strip: LaneStrip) -> Value | None:
        """Lanes whose source is in range and in EXEC."""
        if self.moved_from is not None:
            return strip.lanes_of(self.valid)
        sources = row_sources(self.control)
        valid = None
        if None in sources:
            flags = ", ".join("i1 false" if source is None else "i1 true" for source in sources)
            valid = strip.ops.value(BOOL, f"<{flags}>")
        if strip.mask == FULL or self.fetch_inactive:
            return valid
        active = _shuffle(strip, strip.lanes_of(strip.mask), self.control)
        return active if valid is None else valid & active

    def _compute_row_bank_mask(self, strip: LaneStrip) -> Value:
        """Row and bank masks: a row is a strip, a bank four lanes of it."""
        lane = strip.ops.apply(Prim.LANE, U32)
        row = strip.ops.constant(U32, self.row_mask) >> (lane >> 4)
        bank = strip.ops.constant(U32, self.bank_mask) >> ((lane >> 2) & 3)
        return (row & bank & 1).ne(0)


def _shuffle(strip: LaneStrip, value: Value, control: int) -> Value:
    """Lanes without a source read poison: every user replaces it by a select that does not look at it."""
    name = strip.ops.name(value.type)
    picked = ", ".join("i32 poison" if source is None else f"i32 {source}" for source in row_sources(control))
    moved = f"shufflevector {name} {strip.ops.text(value)}, {name} poison, <{STRIP} x i32> <{picked}>"
    return strip.ops.let(value.type, moved)


def _move(w: WaveCode, row: int, rows: int, sources: tuple[int | None, ...]) -> str:
    """Move whole rows to _MOVED_ROW, zeros for lanes without an active source; the mask of those with one."""
    vector, flags = f"<{w.wave_size} x i32>", f"<{w.wave_size} x i1>"
    mask = ""
    for i in range(rows):
        moved, mask = shuffle_row(w, row + i, sources)
        kept = w.emitter.let(f"select {flags} {mask}, {vector} {moved}, {vector} zeroinitializer")
        w.emitter.emit(f"store {vector} {kept}, ptr {w.row(_MOVED_ROW + i)}, align 64")
    return w.emitter.let(f"bitcast {flags} {mask} to i{w.wave_size}")


def shuffle_row(w: WaveCode, row: int, sources: Sequence[int | None]) -> tuple[str, str]:
    """A row of the whole wave with lanes moved, and which of them came from a lane of EXEC."""
    lanes = w.wave_size
    mask = w.exec()
    w.settle()
    vector, flags = f"<{lanes} x i32>", f"<{lanes} x i1>"
    picked = ", ".join(f"i32 {lanes if source is None else source}" for source in sources)
    whole = w.emitter.let(f"load {vector}, ptr {w.row(row)}, align 64")
    active = w.emitter.let(f"bitcast i{lanes} {mask.ref} to {flags}")
    moved = w.emitter.let(f"shufflevector {vector} {whole}, {vector} zeroinitializer, {vector} <{picked}>")
    return moved, w.emitter.let(f"shufflevector {flags} {active}, {flags} zeroinitializer, {vector} <{picked}>")
