"""Images in memory row after row: which element a lane's coordinates name, and what is done with it.

In: an image instruction without a sampler, and its row. Out: addresses for the support functions. Sources: Vega ISA,
8.2 (coordinates before RDNA, where the resource's type says how many there are); RDNA 3 ISA, 10.2. Invariant: what
is not linear, has several levels or samples, or is compressed is refused when it is met; so are rows whose length
neither the resource nor a source says. What lies outside reads 0, and is not written.
"""

from __future__ import annotations

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import replace
from luthier_py.emulator.instructions.access import AccessCode, Move
from luthier_py.emulator.instructions.image_resources import ImageResource, PictureType, image_resource
from luthier_py.emulator.instructions.loads import Addresses
from luthier_py.emulator.instructions.operands import field, register, row_of
from luthier_py.emulator.instructions.scalar_memory import atomic_name
from luthier_py.emulator.instructions.surfaces import SurfaceElement, convert, format_word
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.native.elements import REFUSED
from luthier_py.emulator.records.layout import AGPR_ROW, TEMPORARY_MASKS, TEMPORARY_ROW, ZERO_ROW, SurfaceRefusal
from luthier_py.emulator.vector_regions.lane_strip import LaneStrip
from luthier_py.isa.encoding.images import DIMENSIONS
from luthier_py.isa.encoding.instruction import Inst, OperandKind
from luthier_py.isa.model.element_formats import UNBOUND
from luthier_py.isa.semantics.algebra import BOOL, U32, U64, Kind, Type, Value, select
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore
from luthier_py.isa.semantics.images import ImageAtomic, ImageMove, ImageQuery
from luthier_py.isa.semantics.memory import Modify

_ADDRESS_ROW = TEMPORARY_ROW + 2
_GLC = 1
_ROW_BYTES = 256  # that rows are made a multiple of where the resource does not say how long they are
_DIMENSIONS = ("1D", "2D", "3D", "CUBE", "1D_ARRAY", "2D_ARRAY")  # as PictureType has them
_UNSIZED = 4  # coordinates there may be where the instruction does not say how many


def image(access: AccessCode, inst: Inst, row: ImageMove | ImageAtomic | ImageQuery) -> None:
    """Emit one image instruction: load, store, atomic or query. Unsupported for a resource of 128 bits, and without
    components (dmask 0); what only the resource says is refused when a wave meets it."""
    w = access.w
    if _short_resource(w, inst) or not field(inst, "dmask"):
        raise Unsupported(f"{inst.op.mnemonic} with a resource of 128 bits, or without components")
    reg = register(inst.find("srsrc") or inst["rsrc"])
    resource = image_resource(w.settings.target, [w.scalars.read(reg.index + i) for i in range(8)])
    resource = replace(resource, type=_type(w, inst, resource),
                       refused=resource.refused | _detect_undeclared_array(inst, resource))
    access.refuse_where(access.mask().ne(0) & resource.refused, SurfaceRefusal.IMAGE)
    if isinstance(row, ImageQuery):
        _query(access, inst, resource)
        return
    word = select(resource.known, format_word(w, select(resource.known, resource.code, 0)), REFUSED)
    size = select(word.eq(REFUSED), 4, SurfaceElement(word, word).size)
    inside = _places(access, inst, row, resource, size)
    if isinstance(row, ImageAtomic):
        _atomic(access, inst, row, inside, size)
        return
    order = [place for place in range(4) if field(inst, "dmask") >> place & 1]
    order += [place for place in range(4) if place not in order]
    selects = w.ops.constant(U32, 0)
    for number, place in enumerate(order):
        selects = selects | ((resource.selects >> 3 * place) & 7) << 3 * number
    bound = word.ne(UNBOUND.word)
    count, narrow, status = field(inst, "dmask").bit_count(), bool(field(inst, "d16")), bool(field(inst, "tfe"))
    moved = FormatStore(count, narrow, status=status) if row.stores else \
        FormatLoad(count, narrow, status=status, whole=True)
    seen = SurfaceElement(word, select(bound, selects, 0))
    convert(access, inst, moved, seen, select(bound, inside, 0), _ADDRESS_ROW)


def _short_resource(w: WaveCode, inst: Inst) -> bool:
    """R128; on Vega and CDNA the same bit says that coordinates have 16 bits (LLVM, FeatureR128A16)."""
    return bool(field(inst, "r128")) and w.settings.target.generation != 9


def _halves(w: WaveCode, inst: Inst) -> bool:
    return bool(field(inst, "a16") or w.settings.target.generation == 9 and field(inst, "r128"))


def _type(w: WaveCode, inst: Inst, resource: ImageResource) -> Value:
    """Of the image that the instruction takes it for; where it does not say, what the resource says."""
    if inst.find("dim") is None:
        return resource.type
    shape = DIMENSIONS[inst["dim"].value]
    if shape.name not in _DIMENSIONS:
        raise Unsupported(f"{inst.op.mnemonic} of images with samples")
    return w.ops.constant(U32, PictureType.ONE_D + _DIMENSIONS.index(shape.name))


def _detect_undeclared_array(inst: Inst, resource: ImageResource) -> Value:
    """Arrays that the instruction does not declare, or what is none and declared (Vega ISA, MIMG: DA); cubes, too,
    whose faces have no numbers for loads."""
    if inst.find("dim") is not None:
        return resource.refused.ops.constant(BOOL, 0)
    arrays = resource.type > PictureType.CUBE
    return (~arrays if field(inst, "da") else arrays) | resource.type.eq(PictureType.CUBE)


def _coordinates(strip: LaneStrip, inst: Inst, halves: bool) -> list[Value]:
    """All that there may be, of 16 bits if the instruction says so, packed then."""
    operands = [operand for operand in inst.operands if operand.name.startswith("vaddr")
                and operand.reg is not None and operand.kind is not OperandKind.ABSENT]
    if inst.find("dim") is None:
        first = register(operands[0]).index
        rows = [min(first + i, AGPR_ROW - 1) for i in range(_UNSIZED)]
    else:
        rows = [row_of(operand.reg) + i for operand in operands if operand.reg for i in range(operand.reg.dwords)]
    if halves:
        return [(strip.row(row) >> shift) & 0xFFFF for row in rows for shift in (0, 16)]
    return [strip.row(row) for row in rows]


def _extent(r: ImageResource) -> tuple[Value, Value]:
    """Rows of a slice, and slices that there are."""
    flat, deep = r.type.eq(PictureType.ONE_D) | r.type.eq(PictureType.ONE_D_ARRAY), r.type.eq(PictureType.THREE_D)
    layers = select(deep, r.slices, select(r.type >= PictureType.CUBE, r.slices - r.first, 1))
    return select(flat, 1, r.height), layers


def _row_bytes(access: AccessCode, r: ImageResource, size: Value, several: Value) -> Value:
    """From row to row (addrlib, HwlComputeSurfaceInfoLinear of RDNA 1 to 3: a multiple of 256, unless the resource
    says it); what RDNA 4 does with rows that are no such multiple no source here says."""
    length = r.width * size
    odd = (length & (_ROW_BYTES - 1)).ne(0)
    if access.w.settings.target.generation < 12:
        odd = odd & (size & (size - 1)).ne(0)
    access.refuse_where(access.mask().ne(0) & r.pitch.eq(0) & odd & several, SurfaceRefusal.IMAGE)
    return select(r.pitch.eq(0), (length + (_ROW_BYTES - 1)) & ~(_ROW_BYTES - 1) & 0xFFFFFFFF, r.pitch * size)


def _places(access: AccessCode, inst: Inst, row: ImageMove | ImageAtomic, r: ImageResource, size: Value) -> Value:
    """Addresses in _ADDRESS_ROW; the lanes that are inside."""
    w, level, halves = access.w, isinstance(row, ImageMove) and row.level, _halves(access.w, inst)
    height, layers = _extent(r)
    row_bytes = _row_bytes(access, r, size, height.ne(1) | layers.ne(1) | r.first.ne(0))
    slice_bytes = row_bytes.to(U64) * height.to(U64)
    skipped = select(r.type.eq(PictureType.THREE_D), 0, r.first)
    single, lines, deep = (r.type.eq(PictureType.ONE_D), r.type.eq(PictureType.ONE_D_ARRAY),
                           r.type >= PictureType.THREE_D)
    flat, between = single | lines, lines | r.type.eq(PictureType.TWO_D)
    counts = (single, between, ~(single | between))  # of coordinates, behind which the level comes

    def write(strip: LaneStrip) -> None:
        given, splat = _coordinates(strip, inst, halves), strip.splat
        zero = strip.ops.constant(U32, 0)
        x, y, z = (*given, zero, zero)[:3]
        line = select(splat(flat), zero, y)
        layer = select(splat(lines), y, select(splat(deep), z, zero))
        mip = zero
        for number, found in zip(range(1, len(given) if level else 0), counts, strict=False):
            mip = select(splat(found), given[number], mip)
        inside = (x < splat(r.width)) & (line < splat(height)) & (layer < splat(layers)) & mip.eq(0)
        strip.write_mask(TEMPORARY_MASKS[0], inside)
        place = (layer + splat(skipped)).to(U64) * splat(slice_bytes) + line.to(U64) * splat(row_bytes).to(U64)
        strip.write_pair(_ADDRESS_ROW, splat(r.base) + place + x.to(U64) * splat(size).to(U64))

    w.put_off_ahead(write, TEMPORARY_MASKS[0])
    return w.scalars.read(TEMPORARY_MASKS[0], w.wave_size // 32).to(U64)


def _query(access: AccessCode, inst: Inst, r: ImageResource) -> None:
    """Width, height, slices and levels as integers, by dmask; of levels that there are not the sizes are 0 (Direct3D,
    resinfo). What the type has not is 1 here; no manual says."""
    if field(inst, "d16") or field(inst, "tfe"):
        raise Unsupported(f"{inst.op.mnemonic} with d16 or tfe")
    w, halves, target = access.w, _halves(access.w, inst), row_of(register(inst["vdata"]))
    height, layers = _extent(r)
    sizes = [r.width, height, layers, w.ops.constant(U32, 1)]
    order = [place for place in range(4) if field(inst, "dmask") >> place & 1]

    def write(strip: LaneStrip) -> None:
        exists = _coordinates(strip, inst, halves)[0].eq(0)
        for number, place in enumerate(order):
            value = strip.splat(sizes[place])
            strip.write_row(target + number, value if place == 3 else select(exists, value, 0))

    w.put_off(write)


def _atomic(access: AccessCode, inst: Inst, row: ImageAtomic, inside: Value, size: Value) -> None:
    """What is outside gives 0."""
    w, compares = access.w, row.modify is Modify.COMPARE_SWAP
    bits = 32 * (field(inst, "dmask").bit_count() // (1 + compares))
    if row.modify is Modify.ADD and row.kind != "u" and bits != 32:
        raise Unsupported(f"{inst.op.mnemonic} of 64 bits")
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

    def clear(strip: LaneStrip) -> None:
        for word in range(bits // 32):
            strip.write_row(result + word, select(strip.lanes_of(outside), 0, strip.row(result + word)))

    w.put_off(clear)
