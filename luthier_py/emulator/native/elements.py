"""Support functions that move formatted elements: what differs between them, beside elements.c.

In: a name ``luthier_element_<load or store>_<components><layout>``; the layout says where components are in registers:

    w    one in each
    u    16 bits in each, and zeros above
    p    16 bits, two in each
    l h  one of 16 bits in the low, or high, half; a load leaves the other half alone

Out: LLVM IR of a function (wave, exec, inside, addresses, data, site, format, selects), which calls elements.c, and of
what that calls: the conversions of isa.semantics.elements. ``format`` is ElementFormat.word, or REFUSED; ``selects`` is
the destination select of a resource. ``luthier_element_format_<generation>`` has the words of resources' formats.
"""

from __future__ import annotations

from luthier_py.emulator.records.layout import SurfaceRefusal
from luthier_py.emulator.vector_regions.emitter import Emitter, LlvmOps
from luthier_py.isa.model.element_formats import NUMBERS_BIT, NumberFormat, resource_formats
from luthier_py.isa.semantics.algebra import BOOL, U32, U64, U128, Value, select
from luthier_py.isa.semantics.elements import LARGEST_INTEGER, decode_field, encode_field, fits, one

REFUSED = (1 << 32) - 1
"""A format for which there is no meaning."""
_CHANNELS = 4
_FIRST_SELECT = 4  # of the channels; 0 and 1 select these numbers, 2 and 3 are reserved
_REPLICATES = "r"  # behind the layout of a store: what is not given is the first component


_CALL = [*((type, f"%{name}") for type, name in (
    ("ptr", "wave"), ("i64", "exec"), ("i64", "inside"), ("ptr", "addresses"), ("ptr", "data"), ("ptr", "site"),
    ("i32", "format"), ("i32", "selects")))]


def element_function(name: str, wave_size: int) -> str:
    """The definitions of a function that moves elements."""
    _, _, operation, shape = name.split("_")
    mover = _Mover(int(shape[0]), shape[1], shape[2:] == _REPLICATES, wave_size)
    mover.call(name, operation)
    mover.measure()
    if operation == "load":
        mover.refuse(mover.components)
        mover.load()
    else:
        mover.refuse(0)
        mover.store()
    return mover.emitter.module()


def format_table(name: str) -> str:
    """``i32 luthier_element_format_<generation>(code)``: ElementFormat.word of a resource's format."""
    emitter = Emitter()
    generation = int(name.rpartition("_")[2])
    words = emitter.numbers(REFUSED if each is None else each.word for each in resource_formats(generation))
    place = emitter.let(f"getelementptr i32, ptr {words}, i32 %code")
    emitter.emit(f"ret i32 {emitter.let(f'load i32, ptr {place}')}")
    emitter.define(f"i32 @{name}(i32 %code)")
    return emitter.module()


class _Mover:
    """Writes one function after the other: what elements.c calls."""

    def __init__(self, components: int, layout: str, replicates: bool, wave_size: int) -> None:
        self.components, self.layout, self.replicates = components, layout, replicates
        self.narrow = layout != "w"
        self.row = 4 * wave_size
        self.emitter = Emitter(wave_size)
        self.ops = LlvmOps(self.emitter)

    def call(self, name: str, operation: str) -> None:
        """The function itself."""
        self.emitter.emit(f"ret i1 {self.emitter.call('i1', f'{operation}_elements', _CALL)}")
        self.emitter.define(f"i1 @{name}({', '.join(f'{type} {value}' for type, value in _CALL)})")

    def measure(self) -> None:
        """The bytes of an element."""
        self._read_format()
        self._give(((self.places[-1] + self.widths[-1]) >> 3).to(U64), "i64 @size_of(")

    def refuse(self, selected: int) -> None:
        """Formats without a meaning, integers that are too large for 16 bits, reserved numbers that are selected."""
        self._read_format()
        reserved = self.ops.constant(BOOL, 0)
        for number in self.selects[:selected]:
            reserved = reserved | (number >> 1).eq(1)
        large, is_integer = self.ops.constant(BOOL, 0), self.numbers.eq(NumberFormat.UINT)
        for width in self.widths if self.narrow else ():
            large = large | (width > LARGEST_INTEGER)
        large = large & (is_integer | self.numbers.eq(NumberFormat.SINT))
        found = self.ops.constant(U64, 0)
        for flag, reason in ((reserved, SurfaceRefusal.RESERVED_SELECT), (large, SurfaceRefusal.NARROW_INTEGER),
                             (self.ops.value(U32, "%format").eq(REFUSED), SurfaceRefusal.FORMAT)):
            found = select(flag, int(reason), found)
        self._give(found, "i64 @refusal_of(")

    def load(self) -> None:
        """An element to the registers of a lane."""
        self._read_format()
        element = self.ops.value(U128, "%element")
        fields = [(element >> place.to(U128)).to(U32) & _below(width)
                  for place, width in zip(self.places, self.widths, strict=True)]
        channels = [decode_field(field, width, self.numbers, self.narrow)
                    for field, width in zip(fields, self.widths, strict=True)]
        unit = one(self.numbers, self.narrow)
        self._write([_select_channel(number, unit, channels) for number in self.selects[: self.components]])
        self._give(None, "void @load_element(i128 %element, ptr %data, ")

    def store(self) -> None:
        """The element of a lane's registers, and why it cannot be stored."""
        self._read_format()
        given = self._read()
        missing = given[0] if self.replicates else self.ops.constant(U32, 0)
        given += [missing] * (_CHANNELS - len(given))
        whole = self.ops.constant(U128, 0)
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
        self.emitter.emit(f"store i128 {whole.ref}, ptr %element")
        unfit = select(fitting, self.ops.constant(U64, 0), int(SurfaceRefusal.DOES_NOT_FIT))
        unfit = select(twice, int(SurfaceRefusal.SELECTED_TWICE), unfit)
        self._give(unfit, "i64 @store_element(ptr %element, ptr %data, ")

    def _read_format(self) -> None:
        word = self.ops.value(U32, "%format")
        self.numbers = (word >> NUMBERS_BIT) & 7
        self.widths = [(word >> 6 * channel) & 63 for channel in range(_CHANNELS)]
        self.places = [self.ops.constant(U32, 0)]
        for width in self.widths[:-1]:
            self.places.append(self.places[-1] + width)
        selects = self.ops.value(U32, "%selects")
        self.selects = [(selects >> 3 * number) & 7 for number in range(_CHANNELS)]

    def _give(self, result: Value | None, header: str) -> None:
        """End a function."""
        self.emitter.emit("ret void" if result is None else f"ret {self.ops.name(result.type)} {result.ref}")
        self.emitter.define(f"{header}i32 %format, i32 %selects) alwaysinline")

    def _write(self, found: list[Value]) -> None:
        words = found
        if self.layout == "p":
            words = [found[k] | found[k + 1] << 16 if k + 1 < len(found) else found[k] for k in range(0, len(found), 2)]
        elif self.layout in "lh":
            old = self.ops.let(U32, "load i32, ptr %data")
            words = [old & 0xFFFF | found[0] << 16 if self.layout == "h" else old & 0xFFFF0000 | found[0]]
        for number, word in enumerate(words):
            self.emitter.emit(f"store i32 {word.ref}, ptr {self._word(number)}")

    def _read(self) -> list[Value]:
        count = (self.components + 1) // 2 if self.layout == "p" else self.components
        words = [self.ops.let(U32, f"load i32, ptr {self._word(number)}") for number in range(count)]
        if self.layout == "p":
            words = [words[k // 2] >> 16 * (k % 2) for k in range(self.components)]
        if self.layout == "h":
            words = [words[0] >> 16]
        return [word & 0xFFFF for word in words] if self.narrow else words

    def _word(self, number: int) -> str:
        """Where the lane's dword of a row is."""
        return self.emitter.let(f"getelementptr i8, ptr %data, i64 {number * self.row}")


def _select_channel(number: Value, unit: Value, channels: list[Value]) -> Value:
    found = select(number.eq(1), unit, 0)
    for channel, value in enumerate(channels):
        found = select(number.eq(_FIRST_SELECT + channel), value, found)
    return found


def _below(width: Value) -> Value:
    return select(width.eq(0), 0, width.lift(0xFFFFFFFF) >> ((32 - width) & 31))
