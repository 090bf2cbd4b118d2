"""Support functions that move formatted elements: lane by lane, with the conversions of isa.semantics.elements.

In: a name ``luthier_element_<load or store>_<components><layout>``; the layout says where components are in registers:

    w    one in each
    u    16 bits in each, and zeros above
    p    16 bits, two in each
    l h  one of 16 bits in the low, or high, half; a load leaves the other half alone

Out: LLVM IR of a function (wave, exec, inside, addresses, data, site, format, selects) that returns false after noting
a fault. ``format`` is ElementFormat.word, or REFUSED; ``selects`` is the destination select of a resource. Lanes of
``exec`` that are not ``inside`` load zeros, and store nothing. ``luthier_element_format_<generation>`` has the words of
resources' formats. Invariant: no byte is touched outside of allocations; what no manual says is a fault, no result.
"""

from __future__ import annotations

from luthier_py.emulator.native.resolve import WRITES
from luthier_py.emulator.records.layout import SurfaceRefusal
from luthier_py.emulator.records.template import expand
from luthier_py.emulator.vector_regions.emitter import Emitter, LlvmOps
from luthier_py.isa.model.element_formats import NUMBERS_BIT, NumberFormat, resource_formats
from luthier_py.isa.semantics.algebra import BOOL, U32, U128, Value, select
from luthier_py.isa.semantics.elements import LARGEST_INTEGER, decode_field, encode_field, fits, one

REFUSED = (1 << 32) - 1
"""A format for which there is no meaning."""
_CHANNELS = 4
_FIRST_SELECT = 4  # of the channels; 0 and 1 select these numbers, 2 and 3 are reserved
_REPLICATES = "r"  # behind the layout of a store: what is not given is the first component


def element_function(name: str, wave_size: int) -> str:
    """The definition."""
    _, _, operation, shape = name.split("_")
    if operation == "format":
        return _format_table(name, int(shape))
    writer = _Mover(int(shape[0]), shape[1], shape[2:] == _REPLICATES, wave_size)
    text = writer.load() if operation == "load" else writer.store()
    reasons = {reason.name: int(reason) for reason in SurfaceRefusal}
    return expand(text, name=name, row=4 * wave_size, writes=WRITES, refused=REFUSED, **reasons)


def _format_table(name: str, generation: int) -> str:
    """``i32 luthier_element_format_<generation>(code)``: ElementFormat.word of a resource's format."""
    words = [REFUSED if each is None else each.word for each in resource_formats(generation)]
    values = ", ".join(f"i32 {word}" for word in words)
    return f"""
@formats = private constant [{len(words)} x i32] [{values}]

define i32 @{name}(i32 %code) {{
  %place = getelementptr [{len(words)} x i32], ptr @formats, i32 0, i32 %code
  %word = load i32, ptr %place
  ret i32 %word
}}
"""


class _Mover:
    def __init__(self, components: int, layout: str, replicates: bool, wave_size: int) -> None:
        self.components, self.layout, self.replicates = components, layout, replicates
        self.narrow = layout != "w"
        self.row = 4 * wave_size
        self.emitter = Emitter(wave_size)
        self.ops = LlvmOps(self.emitter)
        word = self.ops.value(U32, "%format")
        self.numbers = (word >> NUMBERS_BIT) & 7
        self.widths = [(word >> 6 * channel) & 63 for channel in range(_CHANNELS)]
        self.places = [self.ops.constant(U32, 0)]
        for width in self.widths[:-1]:
            self.places.append(self.places[-1] + width)
        self.size = (self.places[-1] + self.widths[-1]) >> 3
        selects = self.ops.value(U32, "%selects")
        self.selects = [(selects >> 3 * number) & 7 for number in range(_CHANNELS)]

    def load(self) -> str:
        start = self._take_lines()
        wanted = self.selects[: self.components]
        checks = self._checks(_any([(number >> 1).eq(1) for number in wanted]))
        element = self.ops.value(U128, "%element")
        fields = [(element >> place.to(U128)).to(U32) & _below(width)
                  for place, width in zip(self.places, self.widths, strict=True)]
        channels = [decode_field(field, width, self.numbers, self.narrow)
                    for field, width in zip(fields, self.widths, strict=True)]
        unit = one(self.numbers, self.narrow)
        self._write([_select_channel(number, unit, channels) for number in wanted])
        text = _HEAD + start + checks + _LOAD + self._take_lines() + "  br label %next\n" + _NEXT
        return text.replace("REASONS", "[ %strange, %begin ]").replace("CHANGES", "0")

    def store(self) -> str:
        start, checks = self._take_lines(), self._checks(self.ops.constant(BOOL, 0))
        given = self._read()
        missing = given[0] if self.replicates else self.ops.constant(U32, 0)
        given += [missing] * (_CHANNELS - len(given))
        reading, whole = self._take_lines(), self.ops.constant(U128, 0)
        twice, fitting = self.ops.constant(BOOL, 0), self.ops.constant(BOOL, 1)
        for channel, (place, width) in enumerate(zip(self.places, self.widths, strict=True)):
            component, known = self.ops.constant(U32, 0), self.ops.constant(BOOL, 0)
            for number, value in zip(self.selects, given, strict=True):
                mine = number.eq(_FIRST_SELECT + channel)
                twice = twice | mine & known & width.ne(0)
                component, known = select(mine, value, component), known | mine
            fitting = fitting & fits(component, width, self.numbers, self.narrow)
            field = select(width.eq(0), 0, encode_field(component, width, self.numbers, self.narrow))
            whole = whole | field.to(U128) << place.to(U128)
        names = f"  %twice = or i1 {twice.ref}, false\n  %fitting = or i1 {fitting.ref}, false\n"
        converted = self._take_lines() + names + f"  %element = or i128 {whole.ref}, 0\n"
        reasons = "[ %strange, %begin ], [ $SELECTED_TWICE, %judge ], [ $DOES_NOT_FIT, %unique ]"
        text = _HEAD + start + checks + reading + converted + _STORE + _NEXT
        return text.replace("REASONS", reasons).replace("CHANGES", "1")

    def _checks(self, reserved: Value) -> str:
        """%strange: selected numbers that are reserved; integers that are too large for 16 bits."""
        large = _any([width > LARGEST_INTEGER for width in self.widths]) & (
            self.numbers.eq(NumberFormat.UINT) | self.numbers.eq(NumberFormat.SINT))
        large = large if self.narrow else self.ops.constant(BOOL, 0)
        text = f"  %large = or i1 {large.ref}, false\n  %reserved = or i1 {reserved.ref}, false\n"
        return self._take_lines() + text + f"  %bytes = zext i32 {self.size.ref} to i64\n" + _BODY

    def _take_lines(self) -> str:
        lines, self.emitter.lines = self.emitter.lines, []
        return "\n".join(lines) + "\n"

    def _write(self, found: list[Value]) -> None:
        emit = self.emitter.emit
        words = found
        if self.layout == "p":
            words = [found[k] | found[k + 1] << 16 if k + 1 < len(found) else found[k] for k in range(0, len(found), 2)]
        elif self.layout in "lh":
            old = self.ops.let(U32, "load i32, ptr %place")
            words = [old & 0xFFFF | found[0] << 16 if self.layout == "h" else old & 0xFFFF0000 | found[0]]
        for number, word in enumerate(words):
            at = self.emitter.let(f"getelementptr i8, ptr %place, i64 {number * self.row}")
            emit(f"store i32 {word.ref}, ptr {at}")

    def _read(self) -> list[Value]:
        count = (self.components + 1) // 2 if self.layout == "p" else self.components
        places = [self.emitter.let(f"getelementptr i8, ptr %place, i64 {k * self.row}") for k in range(count)]
        words = [self.ops.let(U32, f"load i32, ptr {place}") for place in places]
        if self.layout == "p":
            words = [words[k // 2] >> 16 * (k % 2) for k in range(self.components)]
        if self.layout == "h":
            words = [words[0] >> 16]
        return [word & 0xFFFF for word in words] if self.narrow else words


def _select_channel(number: Value, unit: Value, channels: list[Value]) -> Value:
    found = select(number.eq(1), unit, 0)
    for channel, value in enumerate(channels):
        found = select(number.eq(_FIRST_SELECT + channel), value, found)
    return found


def _below(width: Value) -> Value:
    return select(width.eq(0), 0, width.lift(0xFFFFFFFF) >> ((32 - width) & 31))


def _any(flags: list[Value]) -> Value:
    found = flags[0]
    for flag in flags[1:]:
        found = found | flag
    return found


_HEAD = """
declare ptr @luthier_resolve(ptr, i64, i64, ptr, i64, i64)
declare void @luthier_refuse(ptr, ptr, i64, i64)
declare i64 @llvm.cttz.i64(i64, i1)
declare <16 x i8> @llvm.masked.load.v16i8.p0(ptr, <16 x i1>, <16 x i8>)
declare void @llvm.masked.store.v16i8.p0(<16 x i8>, ptr, <16 x i1>)

define i1 @$name(ptr %wave, i64 %exec, i64 %inside, ptr %addresses, ptr %data, ptr %site, i32 %format, i32 %selects) {
entry:
"""

_BODY = """
  %size.all = insertelement <16 x i64> poison, i64 %bytes, i64 0
  %size.each = shufflevector <16 x i64> %size.all, <16 x i64> poison, <16 x i32> zeroinitializer
  %part = icmp ult <16 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11,
                               i64 12, i64 13, i64 14, i64 15>, %size.each
  %no.format = icmp eq i32 %format, $refused
  %strange.0 = select i1 %reserved, i64 $RESERVED_SELECT, i64 0
  %strange.1 = select i1 %large, i64 $NARROW_INTEGER, i64 %strange.0
  %strange = select i1 %no.format, i64 $FORMAT, i64 %strange.1
  %is.strange = icmp ne i64 %strange, 0
  br label %test
test:
  %left = phi i64 [ %exec, %entry ], [ %rest, %next ]
  %over = icmp eq i64 %left, 0
  br i1 %over, label %done, label %begin
begin:
  %lane = call i64 @llvm.cttz.i64(i64 %left, i1 false)
  %place = getelementptr i32, ptr %data, i64 %lane
  %p.low = getelementptr i32, ptr %addresses, i64 %lane
  %p.high = getelementptr i8, ptr %p.low, i64 $row
  %low32 = load i32, ptr %p.low
  %high32 = load i32, ptr %p.high
  %low = zext i32 %low32 to i64
  %high = zext i32 %high32 to i64
  %above = shl i64 %high, 32
  %address = or i64 %low, %above
  %moved = lshr i64 %inside, %lane
  %is.inside = trunc i64 %moved to i1
  br i1 %is.strange, label %refuse, label %body
body:
"""

_LOAD = """
  br i1 %is.inside, label %fetch, label %convert
fetch:
  %pointer = call ptr @luthier_resolve(ptr %wave, i64 %address, i64 %bytes, ptr %site, i64 %lane, i64 0)
  %lost = icmp eq ptr %pointer, null
  br i1 %lost, label %failed, label %found
found:
  %loaded = call <16 x i8> @llvm.masked.load.v16i8.p0(ptr align 1 %pointer, <16 x i1> %part, <16 x i8> zeroinitializer)
  %whole = bitcast <16 x i8> %loaded to i128
  br label %convert
convert:
  %element = phi i128 [ 0, %body ], [ %whole, %found ]
"""

_STORE = """
  br i1 %is.inside, label %judge, label %next
judge:
  br i1 %twice, label %refuse, label %unique
unique:
  br i1 %fitting, label %fetch, label %refuse
fetch:
  %pointer = call ptr @luthier_resolve(ptr %wave, i64 %address, i64 %bytes, ptr %site, i64 %lane, i64 $writes)
  %lost = icmp eq ptr %pointer, null
  br i1 %lost, label %failed, label %found
found:
  %out = bitcast i128 %element to <16 x i8>
  call void @llvm.masked.store.v16i8.p0(<16 x i8> %out, ptr align 1 %pointer, <16 x i1> %part)
  br label %next
"""

_NEXT = """
next:
  %fewer = add i64 %left, -1
  %rest = and i64 %left, %fewer
  br label %test
done:
  %worker.at = get wave.worker of %wave
  %worker = inttoptr i64 %worker.at to ptr
  %changes = get worker.changes of %worker
  %changes.now = add i64 %changes, CHANGES
  put worker.changes of %worker, %changes.now
  ret i1 true
refuse:
  %reason = phi i64 REASONS
  call void @luthier_refuse(ptr %wave, ptr %site, i64 %lane, i64 %reason)
  br label %failed
failed:
  ret i1 false
}
"""
