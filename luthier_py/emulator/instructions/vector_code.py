"""Vector instructions that work lane by lane, put off into the open region.

In: an instruction and its Lanes row. Out: an item of the region that reads the operands, computes,
and writes the results, once for each strip of lanes. Invariant: everything scalar is taken now.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import dataclass
from luthier_py.emulator.instructions.dpp import Dpp
from luthier_py.emulator.instructions.indexing import (
    index_of,
    mark_written_operands,
    replace_relative_operands,
    write_back,
)
from luthier_py.emulator.instructions.operands import (
    ResultWriter,
    SourceReader,
    destinations,
    field,
    is_high_half,
    row_of,
    value_operands,
)
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.vector_regions.forms import ItemForm, form_of
from luthier_py.emulator.vector_regions.lane_strip import LaneStrip
from luthier_py.emulator.vector_regions.rounding import Arithmetic
from luthier_py.isa.encoding.dual import halves
from luthier_py.isa.encoding.instruction import SRC_NULL, Inst, Operand, OperandKind, OpFlag
from luthier_py.isa.model.registers import EXEC, M0, VCC
from luthier_py.isa.semantics.algebra import BOOL, Value
from luthier_py.isa.semantics.crossings import RelativeMove
from luthier_py.isa.semantics.meaning import Compute, Dual, Lanes, Scalar, SignaturePart, Situation, Variants

# Mask operands are the index of a scalar register; without one (null) lanes read 0, and nothing is written.
SourceReaders = list[SourceReader | int | None]
ResultWriters = list[ResultWriter | int | None]
Taken = Value | tuple[Value, ...]


def lanes(w: WaveCode, inst: Inst, row: Lanes) -> None:
    """Put off one instruction."""
    if OpFlag.IGNORES_EXEC in inst.op.flags:
        raise Unsupported(f"{inst.op.mnemonic} ignores EXEC")
    written, index = inst, w.index
    if index is not None:
        inst = replace_relative_operands(w, written, index)
    item = _item(w, inst, row) if index is not None else _reuse_item(w, inst, row)
    masks = [result for result in item.results if isinstance(result, int)]
    form = _form(w, inst, item) if index is None else None
    w.put_off(lambda strip: item.write(strip, item.compute_all(strip)), *masks, form=form)
    if index is not None:
        write_back(w, written, index)


def relative_move(w: WaveCode, inst: Inst, row: RelativeMove) -> None:
    """Registers are copied in before and out after, as in a region of indexed registers."""
    if w.index is not None:
        raise Unsupported(f"{inst.op.mnemonic} in a region of indexed registers")
    written = mark_written_operands(inst)
    moved, indices = written, []
    for role, bits in (("src0", row.source), ("vdst", row.target)):
        if bits is not None:
            first, count = bits
            offset = (w.scalars.read(M0) >> first) & ((1 << count) - 1)
            indices.append(index_of(role, offset))
            moved = replace_relative_operands(w, moved, indices[-1])
    item = _item(w, moved, row.row)
    w.put_off(lambda strip: item.write(strip, item.compute_all(strip)))
    for index in indices:
        write_back(w, written, index)


def alone(w: WaveCode, inst: Inst, row: Lanes | Variants) -> Lanes:
    """The row, of which the instruction, the target and MODE may say more."""
    found = in_situation(w, inst, row) if isinstance(row, Variants) else row
    assert isinstance(found, Lanes)
    return found


def in_situation(w: WaveCode, inst: Inst, row: Variants) -> Lanes | Scalar:
    """The variant of the row that holds for the instruction's modifiers, the target and MODE as it is known here;
    Unsupported where clamp chooses the format UE5M3."""
    chooses = w.settings.target.clamp_chooses_fp8 and not row.of_nan
    if chooses and field(inst, "clamp") and OpFlag.DOT not in inst.op.flags:
        raise Unsupported("numbers of UE5M3 (clamp)")
    target, mode = w.settings.target, w.context.mode
    return row.of(Situation(partial(field, inst), target.fnuz_floats, mode.keeps_finite, mode.ieee,
                            target.numbers_win, target.first_nan, target.half_products_flush,
                            target.dots_keep_denormals))


def dual(w: WaveCode, inst: Inst, row: Dual) -> None:
    """Put off two at once: both have read before one writes."""
    items = [_item(w, half, alone(w, half, each)) for half, each in zip(halves(inst), row.rows, strict=True)]

    def write(strip: LaneStrip) -> None:
        outputs = [item.compute_all(strip) for item in items]
        for item, output in zip(items, outputs, strict=True):
            item.write(strip, output)

    w.put_off(write, form=_form(w, inst, *items))


def _form(w: WaveCode, inst: Inst, *items: _Item) -> ItemForm:
    form, rows = form_of(inst)
    return ItemForm((form, w.mode), rows, lambda given: [text for item in items for text in item.scalars(given)])


def _item(w: WaveCode, inst: Inst, row: Lanes) -> _Item:
    dpp = _dpp(w, inst)
    sources, results = _sources(w, inst, row, dpp), _results(w, inst, row, dpp)
    for source in sources:
        if isinstance(source, int) and source not in w.region.masks:
            w.scalars.read(source, w.wave_size // 32)
    w.exec()  # these reads may settle the region, so that masks in it become known
    known = {source: str(w.scalars.read(source, w.wave_size // 32).ref)
             for source in sources if isinstance(source, int) and source not in w.region.masks}
    saturates = any(isinstance(result, ResultWriter) and result.clamp for result in results)
    compute = row.saturating if saturates and row.saturating is not None else row.compute
    return _Item(sources, results, compute, row.packed, row.whole, known, w.context.mode.arithmetic(inst, row))


def _reuse_item(w: WaveCode, inst: Inst, row: Lanes) -> _Item:
    """The same, made once where it is of vector registers and constants alone."""
    item: _Item | None = w.items.get((inst, w.mode))
    if item is None:
        item = _item(w, inst, row)
        if OpFlag.DPP not in inst.op.flags and not item.reads_scalars:
            w.items[inst, w.mode] = item
    return item


def _dpp(w: WaveCode, inst: Inst) -> Dpp | None:
    source = inst.find("src0")
    reg = source.reg if source is not None else None
    return Dpp.of(w, inst, None if reg is None else row_of(reg), 1 if reg is None else reg.dwords)


def _sources(w: WaveCode, inst: Inst, row: Lanes, dpp: Dpp | None) -> SourceReaders:
    operands = iter(value_operands(inst))
    old = next((operand for operand in destinations(inst) if operand.name == "vdst"), None)
    high = old is not None and is_high_half(inst, old)
    sources: SourceReaders = []
    for slot in row.signature.sources:
        operand = None if slot.special else next(operands, None)
        if slot.type is BOOL:
            sources.append(_mask(operand, VCC if inst.op.implicit_reads.sgpr >> VCC & 1 else None))
            continue
        reg = operand.reg if operand is not None else old.reg if old is not None else None
        typed = slot if slot.type.bits else SignaturePart(slot.name, row.signature.results[0].type)
        sources.append(SourceReader(typed, operand, reg, inst, w.context, dpp, row.flushes, high))
    return sources


def _mask(operand: Operand | None, implied: int | None) -> int | None:
    """The register of a mask operand; ``implied`` (by the row, if at all) where the encoding has none."""
    if operand is None:
        return implied
    if operand.reg is None and operand.kind is not OperandKind.ABSENT and operand.value not in SRC_NULL:
        raise Unsupported(f"a lane mask that is not a register ({operand.name})")
    return None if operand.reg is None else operand.reg.index


def _results(w: WaveCode, inst: Inst, row: Lanes, dpp: Dpp | None) -> ResultWriters:
    targets = iter(destinations(inst))
    results: ResultWriters = []
    for slot in row.signature.results:
        operand = None if slot.name == "exec" else next(targets, None)
        if slot.name == "exec":
            results.append(EXEC)
        elif slot.type is BOOL:
            results.append(_mask(operand, VCC if inst.op.implicit_writes.sgpr >> VCC & 1 else None))
        else:
            assert operand is not None
            results.append(ResultWriter(slot, operand, inst, w.context, dpp, row))
    return results


@dataclass(frozen=True, slots=True)
class _Item:
    """An instruction of a region. ``known``: scalar masks, as text, that the region does not compute itself."""

    sources: SourceReaders
    results: ResultWriters
    compute: Compute
    packed: bool
    whole: bool
    known: dict[int, str]
    arithmetic: Arithmetic

    @property
    def reads_scalars(self) -> bool:
        return any(isinstance(source, int) or source is not None and source.raw.scalar is not None
                   for source in self.sources)

    def scalars(self, given: Mapping[int, str]) -> list[str]:
        """Texts of what it reads beside rows; ``given``: of masks that the region has computed."""
        texts: list[str] = []
        for source in self.sources:
            if isinstance(source, int):
                texts.append(self.known[source] if source in self.known else given[source])
            elif source is not None:
                texts += source.raw.texts()
        return texts

    def compute_all(self, strip: LaneStrip) -> tuple[Taken, ...]:
        """A value for each result; two of packed ones."""
        with strip.ops.use_arithmetic(self.arithmetic):
            if self.packed:
                return ((self.compute(*self._take(strip, 0)), self.compute(*self._take(strip, 1))),)
            output = self.compute(*self._take(strip, None))
            return output if isinstance(output, tuple) and not self.whole else (output,)

    def write(self, strip: LaneStrip, outputs: tuple[Taken, ...]) -> None:
        with strip.ops.use_arithmetic(self.arithmetic):
            for result, value in zip(self.results, outputs, strict=True):
                if isinstance(result, int):
                    strip.write_mask(result, cast(Value, value))
                elif result is not None:
                    result.write(strip, value if isinstance(value, tuple) else (value,))

    def _take(self, strip: LaneStrip, element: int | None) -> list[Taken]:
        """Operands; of packed ones the element, or both where the result is not packed."""
        taken: list[Taken] = []
        for source in self.sources:
            if isinstance(source, int):
                taken.append(strip.lanes_of(self.known[source]) if source in self.known else strip.result(source))
            elif source is None:
                taken.append(strip.ops.constant(BOOL, 0))
            elif source.count > 1 and element is None:
                taken.append(tuple(source.read(strip, number) for number in range(source.count)))
            else:
                taken.append(source.read(strip, element or 0))
        return taken
