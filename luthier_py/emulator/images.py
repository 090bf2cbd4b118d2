"""Images in memory row after row: which element a lane's coordinates name, and what is done with it.

In: an image instruction without a sampler, and its row. Out: addresses for the support functions. Sources: RDNA 3 ISA,
10.5 (resources) and 10.2 (coordinates), and ROCr's headers of them, which are those of RDNA 2 as well. Invariant: what
is not linear, has several levels or samples, or is compressed is refused when it is met; so are rows whose length the
resource does not say, unless all of them is used. What lies outside reads 0, and is not written.
"""

from __future__ import annotations

from dataclasses import dataclass

from luthier_py.emulator.access import AccessCode, Move
from luthier_py.emulator.layout import TEMPORARY_MASKS, TEMPORARY_ROW, ZERO_ROW, SurfaceRefusal
from luthier_py.emulator.loads import Addresses
from luthier_py.emulator.operands import field, register, row_of
from luthier_py.emulator.scalar_memory import atomic_name
from luthier_py.emulator.strip import LaneChunk
from luthier_py.emulator.surfaces import SurfaceElement, convert, format_word
from luthier_py.emulator.wave_code import WaveCode
from luthier_py.errors import Unsupported
from luthier_py.isa.images import DIMENSIONS
from luthier_py.isa.instruction import Inst, OperandKind
from luthier_py.isa.semantics.algebra import U32, U64, Kind, Type, Value, select
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore
from luthier_py.isa.semantics.images import ImageAtomic, ImageMove
from luthier_py.isa.semantics.memory import Modify

_ADDRESS_ROW = TEMPORARY_ROW + 2
_GLC = 1
_ROW_BYTES = 256  # that rows are made a multiple of where the resource does not say how long they are
_ONE_D, _TWO_D, _LAST_TYPE = 8, 9, 13  # of resources; the next two have samples
_TYPES = ("1D", "2D", "3D", "CUBE", "1D_ARRAY", "2D_ARRAY")


@dataclass(frozen=True, slots=True)
class ImageResource:
    """Scalar values: sizes in elements (u32), ``first`` and ``slices`` of an array's view, or a volume's depth."""

    base: Value      # u64
    code: Value      # of the format, as in a buffer's resource; a large one for what buffers do not have
    width: Value
    height: Value
    first: Value
    slices: Value
    pitch: Value     # 0: of a plain image the width, unless rows are longer
    selects: Value
    refused: Value   # BOOL: tiled, with levels, compressed


def image(access: AccessCode, inst: Inst, row: ImageMove | ImageAtomic) -> None:
    w = access.w
    if field(inst, "r128") or not field(inst, "dmask"):
        raise Unsupported(f"{inst.op.mnemonic} with a resource of 128 bits, or without components")
    resource = _resource(w, inst)
    word = format_word(w, select(resource.code < 128, resource.code, 127))
    access.refuse_where(access.mask().ne(0) & resource.refused, SurfaceRefusal.IMAGE)
    size = select(word.eq(0xFFFFFFFF), 4, SurfaceElement(word, word).size)
    inside = _places(access, inst, row, resource, size)
    if isinstance(row, ImageAtomic):
        _atomic(access, inst, row, inside, size)
        return
    order = [place for place in range(4) if field(inst, "dmask") >> place & 1]
    order += [place for place in range(4) if place not in order]
    selects = w.ops.constant(U32, 0)
    for number, place in enumerate(order):
        selects = selects | ((resource.selects >> 3 * place) & 7) << 3 * number
    bound = word.ne(0)
    count, narrow, status = field(inst, "dmask").bit_count(), bool(field(inst, "d16")), bool(field(inst, "tfe"))
    moved = FormatStore(count, narrow, status=status) if row.stores else \
        FormatLoad(count, narrow, status=status, whole=True)
    seen = SurfaceElement(word, select(bound, selects, 0))
    convert(access, inst, moved, seen, select(bound, inside, 0), _ADDRESS_ROW)


def _resource(w: WaveCode, inst: Inst) -> ImageResource:
    reg = register(inst["srsrc"])
    words = [w.scalars.read(reg.index + i) for i in range(8)]
    base = (words[0].to(U64) | (words[1] & 0xFF).to(U64) << 32) << 8
    type, levels = words[3] >> 28, (words[3] >> 12) & 0xFF
    refused = levels.ne(0) | ((words[3] >> 20) & 31).ne(0) | (type < _ONE_D) | (type > _LAST_TYPE)
    refused = refused | ((words[6] >> 21) & 1).ne(0)
    height = ((words[2] >> 14) & 0x3FFF) + 1
    width = ((words[1] >> 30) | (words[2] & 0xFFF) << 2) + 1
    plain = type.eq(_ONE_D) | type.eq(_TWO_D)
    given = select(plain, words[4] & 0x3FFF, 0)
    pitch = select(given.eq(0), 0, given + 1)
    code = (words[1] >> 20) & (0x1FF if w.settings.target.generation == 10 else 0xFF)
    first = (words[4] >> 16) & 0x1FFF
    return ImageResource(base, code, width, height, first, (words[4] & 0x1FFF) + 1, pitch, words[3] & 0xFFF, refused)


def _coordinates(chunk: LaneChunk, inst: Inst, count: int) -> list[Value]:
    """The first ``count``, of 16 bits if the instruction says so, packed then."""
    rows = [row_of(operand.reg) + i for operand in inst.operands if operand.name.startswith("vaddr")
            and operand.reg is not None and operand.kind is not OperandKind.ABSENT for i in range(operand.reg.dwords)]
    if field(inst, "a16"):
        return [(chunk.row(rows[k // 2]) >> 16 * (k % 2)) & 0xFFFF for k in range(count)]
    return [chunk.row(row) for row in rows[:count]]


def _places(access: AccessCode, inst: Inst, row: ImageMove | ImageAtomic, r: ImageResource, size: Value) -> Value:
    """Addresses in _ADDRESS_ROW; the lanes that are inside."""
    w, level = access.w, isinstance(row, ImageMove) and row.level
    shape = DIMENSIONS[inst["dim"].value]
    if shape.name not in _TYPES:
        raise Unsupported(f"{inst.op.mnemonic} of images with samples")
    flat, deep, lines = shape.name.startswith("1D"), shape.name == "3D", shape.name == "1D_ARRAY"
    height = w.ops.constant(U32, 1) if flat else r.height
    layers = r.slices if deep else r.slices - r.first if shape.coordinates == 3 or lines else w.ops.constant(U32, 1)
    row_bytes = r.width * size
    pitch = select(r.pitch.eq(0), r.width, r.pitch)
    several = height.ne(1) | layers.ne(1) | r.first.ne(0)
    unknown = r.pitch.eq(0) & (row_bytes & (_ROW_BYTES - 1)).ne(0) & several
    access.refuse_where(access.mask().ne(0) & unknown, SurfaceRefusal.IMAGE)
    slice_size = pitch.to(U64) * height.to(U64)
    skipped = w.ops.constant(U32, 0) if deep else r.first

    def write(chunk: LaneChunk) -> None:
        given, splat = _coordinates(chunk, inst, shape.coordinates + level), chunk.splat
        zero = chunk.ops.constant(U32, 0)
        mip = given.pop() if level else zero
        x, y, z = (*given, zero, zero)[:3]
        line, layer = zero if flat else y, y if lines else z
        inside = (x < splat(r.width)) & (line < splat(height)) & (layer < splat(layers)) & mip.eq(0)
        chunk.write_mask(TEMPORARY_MASKS[0], inside)
        slice_at = (layer + splat(skipped)).to(U64) * splat(slice_size)
        element = slice_at + line.to(U64) * splat(pitch).to(U64) + x.to(U64)
        chunk.write_pair(_ADDRESS_ROW, splat(r.base) + element * splat(size).to(U64))

    w.put_off_ahead(write, TEMPORARY_MASKS[0])
    return w.scalars.read(TEMPORARY_MASKS[0], w.wave_size // 32).to(U64)


def _atomic(access: AccessCode, inst: Inst, row: ImageAtomic, inside: Value, size: Value) -> None:
    """What is outside gives 0."""
    w, compares = access.w, row.modify is Modify.COMPARE_SWAP
    bits = 32 * (field(inst, "dmask").bit_count() // (1 + compares))
    access.refuse_where(access.mask().ne(0) & size.ne(bits // 8), SurfaceRefusal.IMAGE)
    data = row_of(register(inst["vdata"]))
    returns = bool(field(inst, "cpol") & _GLC)
    result = data if returns else TEMPORARY_ROW
    second = data + bits // 32 if compares else ZERO_ROW
    exec_mask = access.mask()
    access.support(Move(atomic_name(access, row.of(bits)), data, second, result),
                   Addresses("far", w.ops.constant(U64, 0), _ADDRESS_ROW, inside))
    if not returns:
        return
    outside = str((exec_mask & ~inside).to(Type(Kind.UINT, w.wave_size)).ref)

    def clear(chunk: LaneChunk) -> None:
        for word in range(bits // 32):
            chunk.write_row(result + word, select(chunk.lanes_of(outside), 0, chunk.row(result + word)))

    w.put_off(clear)
