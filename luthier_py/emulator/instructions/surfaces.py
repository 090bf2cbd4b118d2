"""Formatted elements between registers and memory: what buffers and images share.

In: an instruction's row, the format of its elements, and where lanes find theirs. Out: calls of the support functions
of `elements`. Invariant: components are counted from the first data register on, packed as the target packs them.
"""

from __future__ import annotations

from luthier_py.base.records import dataclass
from luthier_py.emulator.instructions.access import AccessCode, Move
from luthier_py.emulator.instructions.loads import Addresses
from luthier_py.emulator.instructions.operands import field, register, row_of
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.native.elements import REFUSED
from luthier_py.emulator.records.layout import PROPAGATION_ROW
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.model.element_formats import decode_typed_format
from luthier_py.isa.model.registers import M0
from luthier_py.isa.semantics.algebra import U32, U64, Value
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore

_IDENTITY = 4 | 5 << 3 | 6 << 6 | 7 << 9


@dataclass(frozen=True, slots=True)
class SurfaceElement:
    """Scalar values (u32): ElementFormat.word, and destination selects of three bits each."""

    format: Value
    selects: Value

    @property
    def size(self) -> Value:
        """In bytes."""
        bits = self.format & 63
        for place in range(1, 4):
            bits = bits + ((self.format >> 6 * place) & 63)
        return bits >> 3


def make_typed_element(w: WaveCode, number: int) -> SurfaceElement:
    """Of an instruction that says the format itself, and selects nothing."""
    format = decode_typed_format(w.settings.target.generation, number)
    word = REFUSED if format is None else format.word
    return SurfaceElement(w.ops.constant(U32, word), w.ops.constant(U32, _IDENTITY))


def format_word(w: WaveCode, code: Value) -> Value:
    """Of a resource's format."""
    generation = max(w.settings.target.generation, 9)
    return w.ops.value(U32, w.emitter.support("i32", f"element_format_{generation}", [("i32", str(code.ref))]))


def convert(access: AccessCode, inst: Inst, row: FormatLoad | FormatStore, element: SurfaceElement, inside: Value,
            addresses: int) -> None:
    """For the lanes of EXEC; only those of ``inside`` have memory, at the addresses in a pair of rows."""
    w, to_lds = access.w, isinstance(row, FormatLoad) and row.to_lds
    exec_mask = access.mask()
    data = PROPAGATION_ROW if to_lds else row_of(register(inst["vdata"]))
    operation = "load" if isinstance(row, FormatLoad) else "store"
    w.settle()
    lanes = access.emit_element_checks(isinstance(row, FormatStore), inside, element.size, addresses)
    arguments = [
        ("ptr", "%wave"), ("i64", str(exec_mask.ref)), ("i64", lanes), ("ptr", w.row(addresses)),
        ("ptr", w.row(data)), ("ptr", access.site()), ("i32", str(element.format.ref)),
        ("i32", str(element.selects.ref)),
    ]
    access.check(w.emitter.support("i1", f"element_{operation}_{row.components}{_layout(w, inst, row)}", arguments))
    if to_lds:
        pass_to_lds(access, inst, 1)
    if isinstance(row, FormatLoad) and _layout(w, inst, row) in ("l", "h") and w.settings.d16_clears:
        loaded = 0xFFFF0000 if row.high else 0xFFFF
        w.put_off(lambda strip: strip.write_row(data, strip.row(data) & loaded))


def pass_to_lds(access: AccessCode, inst: Inst, dwords: int) -> None:
    """Rows from PASSING_ROW on to LDS, at M0 and the instruction's offset, side by side for the lanes."""
    access.call(Move(f"store_b{32 * dwords}", PROPAGATION_ROW), beside_lanes(access, inst, dwords))


def beside_lanes(access: AccessCode, inst: Inst, dwords: int) -> Addresses:
    """Places in LDS of what passes between memory and LDS."""
    w, lanes = access.w, access.w.wave_size
    w.settle()
    places = ", ".join(f"i32 {4 * dwords * lane}" for lane in range(lanes))
    addresses = PROPAGATION_ROW + dwords
    w.emitter.emit(f"store <{lanes} x i32> <{places}>, ptr {w.row(addresses)}, align 64")
    base = (w.scalars.read(M0) & 0x3FFFF).to(U64) + field(inst, "offset")
    return Addresses("lds", base, addresses, access.mask())


def _layout(w: WaveCode, inst: Inst, row: FormatLoad | FormatStore) -> str:
    """See `elements`."""
    target = w.settings.target
    replicates = "r" if isinstance(row, FormatStore) and target.generation >= 12 else ""
    if not row.narrow:
        return "w" + replicates
    if row.high:
        return "h" + replicates
    if register(inst["vdata"]).dwords - row.status == row.components > 1 or target.generation == 8:
        return ("p" if register(inst["vdata"]).dwords - row.status < row.components else "u") + replicates
    keeps = row.components == 1 and not (isinstance(row, FormatLoad) and row.whole)
    return ("l" if keeps else "p") + replicates
