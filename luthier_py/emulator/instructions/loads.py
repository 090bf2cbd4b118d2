"""Loads and stores inside regions: a strip of lanes at a time, between memory and the values of the loop.

In: addresses and rows of a load or store of whole dwords. Out: code in the region's loop. Where that is for even lanes
(open_strip), the strip is a vector load or store, or a broadcast. Elsewhere stores are no part of loops, and a load is
the same if the lanes' addresses are consecutive or equal, and inside what was last accessed (or LDS). Other lanes
of LDS are picked one by one; everything else calls a support function for these lanes.

Invariant: a load that was put off sees what it would have seen at its place.
"""

from __future__ import annotations

from luthier_py.base.records import dataclass
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.records.layout import LOADED_ROW, SITE, STRIP
from luthier_py.emulator.vector_regions.emitter import Emitter
from luthier_py.emulator.vector_regions.lane_strip import FULL, LaneAccess, LaneStrip, StripPlace
from luthier_py.isa.semantics.algebra import U32, Value

_WORDS = f"<{STRIP} x i32>"
_ZEROS = f"{_WORDS} zeroinitializer"
_ADDRESS_ROW = LOADED_ROW + 8  # a pair, for lanes that go one by one


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where: see native for the kinds."""

    kind: str
    base: Value
    row: int
    mask: Value

    def access(self, site: str, size: int, distance: int, stores: bool) -> LaneAccess:
        """By each lane, at ``site``."""
        return LaneAccess(self.kind, str(self.base.ref), self.row, site, size, distance, stores)


@dataclass(frozen=True, slots=True)
class _StripMove:
    """One instruction: ``rows`` are those of its first element, and of its second if it is a pair. ``narrow``: the bits
    of elements that are no whole dwords, whose sign loads extend if it ``is_signed``; else 0."""

    w: WaveCode
    where: Addresses
    site: str              # pointer to the site, made before the loop
    words: int
    rows: tuple[int, ...]
    distance: int
    narrow: int
    is_signed: bool

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.narrow // 8 or 4 * self.words


class StripLoad(_StripMove):
    """A load."""

    __slots__ = ()

    def write(self, strip: LaneStrip) -> None:
        """See Region.add."""
        place = strip.place_of(self.where.access(self.site, self.size, self.distance, stores=False))
        if place is not None:
            self._write_from(strip, place)
        elif self.where.kind != "private" and not self.narrow:
            self._write_anywhere(strip)

    def finish(self) -> None:
        """After all strips."""

    def _write_from(self, strip: LaneStrip, place: StripPlace) -> None:
        rows = [target + word for target in self.rows for word in range(self.words)]
        if place.row_bytes:
            pointers = _in_rows(self.w.emitter, place, self.words)
            values = [self.w.emitter.let(f"load {_WORDS}, ptr {pointer}, align 64") for pointer in pointers]
        elif place.overlaps:
            values = self._either(strip, place)
        elif self.narrow:
            values = [self._extend(place)]
        else:
            read = self._vectors if place.follows else self._broadcasts
            values = [value for pointer in self._pointers(place.pointer) for value in read(pointer)]
        for row, value in zip(rows, values, strict=True):
            strip.write_row(row, Value(strip.ops, U32, value))

    def _extend(self, place: StripPlace) -> str:
        """Bytes or halves, as dwords."""
        e, kind, word = self.w.emitter, f"i{self.narrow}", "sext" if self.is_signed else "zext"
        if not place.follows:
            one = e.let(f"load{self._once} {kind}, ptr {place.pointer}, align 1")
            return _splat(e, e.let(f"{word} {kind} {one} to i32"))
        every = e.let(f"load{self._once} <{STRIP} x {kind}>, ptr {place.pointer}, align 1")
        return e.let(f"{word} <{STRIP} x {kind}> {every} to {_WORDS}")

    def _either(self, strip: LaneStrip, place: StripPlace) -> list[str]:
        """Of elements that overlap, or follow each other."""
        e = self.w.emitter
        near, far, read = (e.label(hint) for hint in ("overlapping", "following", "read"))
        e.branch(place.overlaps, near, far)
        strip.place(near)
        parts = [self._joined_bytes(place.pointer)] if self.narrow else self._every_dword(place.pointer)
        e.emit(f"br label %{read}")
        strip.place(far)
        vectors = [self._extend(place)] if self.narrow else self._vectors(place.pointer)
        e.emit(f"br label %{read}")
        strip.place(read)
        return [e.let(f"phi {_WORDS} [ {one}, %{near} ], [ {other}, %{far} ]")
                for one, other in zip(parts, vectors, strict=True)]

    def _every_dword(self, pointer: str) -> list[str]:
        """Of elements at a stride of a dword."""
        e = self.w.emitter
        places = [e.let(f"getelementptr i8, ptr {pointer}, i64 {4 * word}") for word in range(self.words)]
        return [e.let(f"load{self._once} {_WORDS}, ptr {each}, align 1") for each in places]

    def _joined_bytes(self, pointer: str) -> str:
        """Of halves at a stride of a byte."""
        e, kind = self.w.emitter, f"<{STRIP} x i8>"
        second = e.let(f"getelementptr i8, ptr {pointer}, i64 1")
        low, high = (e.let(f"load{self._once} {kind}, ptr {each}, align 1") for each in (pointer, second))
        upper = e.let(f"{'sext' if self.is_signed else 'zext'} {kind} {high} to {_WORDS}")
        upper = e.let(f"shl {_WORDS} {upper}, splat (i32 8)")
        return e.let(f"or {_WORDS} {upper}, {e.let(f'zext {kind} {low} to {_WORDS}')}")

    def _write_anywhere(self, strip: LaneStrip) -> None:
        e = self.w.emitter
        offsets = str(strip.row(self.where.row).ref)
        highs = str(strip.row(self.where.row + 1).ref) if self._far else ""
        lanes = _Lanes(e, strip, offsets, highs)
        in_lds = self.where.kind == "lds"
        active = strip.ops.text(strip.lanes_of(strip.mask)) if in_lds and strip.mask != FULL else ""
        at, into, room = self._place(strip, lanes)
        even, same = lanes.are_even(self.words), lanes.are_same()
        labels = {hint: e.label(hint) for hint in ("consecutive", "varied", "equal", "single", "got", "loaded")}
        size = 4 * self.words
        e.branch(self._inside(into, room, even, STRIP * size), labels["consecutive"], labels["varied"])
        strip.place(labels["consecutive"])
        consecutive = [value for place in self._places(at) for value in self._vectors(place)]
        e.emit(f"br label %{labels['loaded']}")
        strip.place(labels["varied"])
        e.branch(self._inside(into, room, same, size), labels["equal"], labels["single"])
        strip.place(labels["equal"])
        equal = [value for place in self._places(at) for value in self._broadcasts(place)]
        e.emit(f"br label %{labels['loaded']}")
        strip.place(labels["single"])
        ways = [(consecutive, labels["consecutive"]), (equal, labels["equal"])]
        if in_lds:
            picking = e.label("picking")
            ways.append((self._gather_from_lds(strip, offsets, active, picking), picking))
            e.emit(f"br label %{labels['loaded']}")
            strip.place(f"{picking}.not")
        self._call(strip, offsets, highs, labels["got"])
        single = [e.let(f"load {_WORDS}, ptr {self._locate_loaded_row(strip, i)}, align 64") for i in range(len(equal))]
        ways.append((single, labels["got"]))
        e.emit(f"br label %{labels['loaded']}")
        strip.place(labels["loaded"])
        rows = [target + word for target in self.rows for word in range(self.words)]
        for number, row in enumerate(rows):
            found = ", ".join(f"[ {values[number]}, %{label} ]" for values, label in ways)
            strip.write_row(row, Value(strip.ops, U32, e.let(f"phi {_WORDS} {found}")))

    def _gather_from_lds(self, strip: LaneStrip, offsets: str, active: str, label: str) -> list[str]:
        """Of LDS, where all ``active`` lanes are inside; else at ``label``.not. Other lanes read anything."""
        e, (begin, size) = self.w.emitter, strip.lds_bounds()
        last = strip.before(f"add i64 {self.where.base.ref}, {4 * self.words + self.distance}")
        most = strip.before(f"sub i64 {size}, {last}")
        room = strip.before(f"icmp sge i64 {most}, 0")
        limit = strip.splat(Value(self.w.ops, U32, strip.before(f"trunc i64 {most} to i32")))
        if active:
            offsets = e.let(f"select <{STRIP} x i1> {active}, {_WORDS} {offsets}, {_ZEROS}")
        beyond = e.call(_WORDS, f"llvm.usub.sat.v{STRIP}i32", [(_WORDS, offsets), (_WORDS, str(limit.ref))])
        e.branch(e.let(f"and i1 {room}, {e.all_zero(STRIP, beyond)}"), label, f"{label}.not")
        strip.place(label)
        found = []
        for part in range(len(self.rows)):
            for word in range(self.words):
                start = f"add i64 {begin}, {self.where.base.ref}"
                at = strip.before(f"add i64 {strip.before(start)}, {part * self.distance + 4 * word}")
                place = strip.before(f"inttoptr i64 {at} to ptr")
                found.append(e.support(_WORDS, "pick", [("ptr", place), (_WORDS, offsets)]))
        return found

    @property
    def _far(self) -> bool:
        return self.where.kind in ("far", "flat")

    def _place(self, strip: LaneStrip, lanes: _Lanes) -> tuple[str, str, str]:
        """Of the first lane: its address, the distance from the start of what may be accessed, and how much that is."""
        e, offset = self.w.emitter, lanes.first_offset()
        if self.where.kind == "lds":
            begin, room = strip.lds_bounds()
            into = e.let(f"add i64 {offset}, {self.where.base.ref}")
            return e.let(f"add i64 {into}, {begin}"), into, room
        at = e.let(f"add i64 {offset}, {self.where.base.ref}")
        begin = e.let(f"load i64, ptr {self.site}")
        end_of_site = strip.before(f"getelementptr i8, ptr {self.site}, i64 {SITE['end']}")
        end = e.let(f"load i64, ptr {end_of_site}")
        return at, e.let(f"sub i64 {at}, {begin}"), e.let(f"sub i64 {end}, {begin}")

    def _inside(self, into: str, room: str, fits: str, size: int) -> str:
        """Whether the lanes fit the pattern, and ``size`` bytes from the first address are there."""
        e = self.w.emitter
        last = size + self.distance - 1
        places = e.call("i64", "llvm.usub.sat.i64", [("i64", room), ("i64", str(last))])  # where so much may begin
        return e.let(f"and i1 {e.let(f'icmp ult i64 {into}, {places}')}, {fits}")

    def _places(self, at: str) -> list[str]:
        """Pointers to the elements of a pair."""
        e = self.w.emitter
        return self._pointers(e.let(f"inttoptr i64 {at} to ptr"))

    def _pointers(self, first: str) -> list[str]:
        if len(self.rows) == 1:
            return [first]
        return [first, self.w.emitter.let(f"getelementptr i8, ptr {first}, i64 {self.distance}")]

    @property
    def _once(self) -> str:
        """What keeps LLVM from reading memory again for another half or use, when another worker may have stored."""
        return "" if self.where.kind == "lds" else " volatile"

    def _vectors(self, pointer: str) -> list[str]:
        e, count = self.w.emitter, STRIP * self.words
        whole = f"<{count} x i32>"
        data = e.let(f"load{self._once} {whole}, ptr {pointer}, align 1")
        if self.words == 1:
            return [data]
        picked = [", ".join(f"i32 {i * self.words + word}" for i in range(STRIP)) for word in range(self.words)]
        return [e.let(f"shufflevector {whole} {data}, {whole} poison, {_WORDS} <{lanes}>") for lanes in picked]

    def _broadcasts(self, pointer: str) -> list[str]:
        e = self.w.emitter
        found = []
        for word in range(0, self.words, 2):
            place = e.let(f"getelementptr i8, ptr {pointer}, i64 {4 * word}") if word else pointer
            if word + 1 == self.words:
                found.append(e.let(f"load{self._once} i32, ptr {place}, align 1"))
                continue
            both = e.let(f"load{self._once} i64, ptr {place}, align 1")
            found += [e.let(f"trunc i64 {half} to i32") for half in (both, e.let(f"lshr i64 {both}, 32"))]
        return [_splat(e, word) for word in found]

    def _locate_loaded_row(self, strip: LaneStrip, number: int) -> str:
        """Pointer to this strip of a row where a support function leaves what it loaded."""
        return strip.address(LOADED_ROW + number)

    def _call(self, strip: LaneStrip, offsets: str, highs: str, after: str) -> None:
        """Load the strip's lanes of EXEC one by one."""
        e = self.w.emitter
        for row, values in ((_ADDRESS_ROW, offsets), (_ADDRESS_ROW + 1, highs)):
            if values:
                e.emit(f"store {_WORDS} {values}, ptr {strip.address(row)}, align 64")
        rows = [strip.rows_of_wave(row) for row in (_ADDRESS_ROW, LOADED_ROW, LOADED_ROW + self.words)]
        element = f"{'p' if len(self.rows) > 1 else ''}b{32 * self.words}"
        done = e.support("i1", f"{self.where.kind}_gather_{element}", [
            ("ptr", "%wave"), ("i64", strip.mask_of_lanes()), ("i64", str(self.where.base.ref)), ("ptr", rows[0]),
            ("ptr", rows[1]), ("ptr", self.site), ("i64", str(self.distance)), ("ptr", rows[2])])
        e.branch(done, after, "fault")
        strip.place(after)


class StripStore(_StripMove):
    """A store."""

    __slots__ = ()

    def write(self, strip: LaneStrip) -> None:
        """See WaveCode.put_off_call; nothing where the strip does not know its place."""
        e = self.w.emitter
        place = strip.place_of(self.where.access(self.site, self.size, self.distance, stores=True))
        if place is None:
            return
        if place.row_bytes:
            for word, pointer in enumerate(_in_rows(e, place, self.words)):
                e.emit(f"store {_WORDS} {strip.row(self.rows[0] + word).ref}, ptr {pointer}, align 64")
            return
        if self.narrow:
            kind = f"<{STRIP} x i{self.narrow}>"
            part = e.let(f"trunc {_WORDS} {strip.row(self.rows[0]).ref} to {kind}")
            e.emit(f"store {kind} {part}, ptr {place.pointer}, align 1")
            return
        for number, source in enumerate(self.rows):
            pointer = place.pointer
            if number:
                pointer = e.let(f"getelementptr i8, ptr {pointer}, i64 {self.distance}")
            data = _interleave_words(e, [str(strip.row(source + word).ref) for word in range(self.words)])
            e.emit(f"store <{STRIP * self.words} x i32> {data}, ptr {pointer}, align 1")

    def finish(self) -> None:
        """After all strips."""
        if self.where.kind not in ("lds", "private"):
            self.w.note_change()


def _in_rows(e: Emitter, place: StripPlace, words: int) -> list[str]:
    """Pointers to each dword of private memory."""
    return [e.let(f"getelementptr i8, ptr {place.pointer}, i64 {place.row_bytes * word}") for word in range(words)]


def _interleave_words(e: Emitter, words: list[str]) -> str:
    """Dwords of elements one after the other, from a vector of each dword."""
    joined, width = words[0], STRIP
    for word in words[1:]:
        padding = ", ".join(f"i32 {i}" if i < STRIP else "i32 poison" for i in range(width))
        padded = e.let(f"shufflevector {_WORDS} {word}, {_WORDS} poison, <{width} x i32> <{padding}>")
        order = ", ".join(f"i32 {i}" for i in range(width + STRIP))
        pair = f"<{width} x i32> {joined}, <{width} x i32> {padded}"
        joined, width = e.let(f"shufflevector {pair}, <{width + STRIP} x i32> <{order}>"), width + STRIP
    if width == STRIP:
        return joined
    order = ", ".join(f"i32 {word * STRIP + lane}" for lane in range(STRIP) for word in range(len(words)))
    whole = f"<{width} x i32>"
    return e.let(f"shufflevector {whole} {joined}, {whole} poison, {whole} <{order}>")


@dataclass(frozen=True, slots=True)
class _Lanes:
    """What is worked out about a strip's addresses, once for all loads that have them from the same registers."""

    e: Emitter
    strip: LaneStrip
    offsets: str
    highs: str  # upper halves, if addresses have 64 bits

    def first_offset(self) -> str:
        """Of the first lane, i64."""
        return self.strip.emit_once(self._first_offset, "offset", self.offsets, self.highs)

    def are_even(self, words: int) -> str:
        """Whether the lanes' addresses follow each other, at a stride of ``words`` dwords."""
        key = "even", self.offsets, self.highs, words
        return self.strip.emit_once(lambda: self._are_even(words), *key)

    def are_same(self) -> str:
        """Whether the lanes have one address."""
        return self.strip.emit_once(self._are_same, "same", self.offsets, self.highs)

    def _first(self) -> str:
        """Of the first lane, i32."""
        write = self.e.let
        return self.strip.emit_once(lambda: write(f"extractelement {_WORDS} {self.offsets}, i64 0"), "first",
                                    self.offsets)

    def _first_offset(self) -> str:
        e = self.e
        offset = e.let(f"zext i32 {self._first()} to i64")
        if not self.highs:
            return offset
        wide = e.let(f"zext i32 {e.let(f'extractelement {_WORDS} {self.highs}, i64 0')} to i64")
        return e.let(f"add i64 {offset}, {e.let(f'shl i64 {wide}, 32')}")

    def _deltas(self) -> str:
        """Of each lane's lower half to the first one's."""
        e = self.e
        return self.strip.emit_once(lambda: e.let(f"sub {_WORDS} {self.offsets}, {_splat(e, self._first())}"),
                                 "deltas", self.offsets)

    def _others(self) -> str:
        """Bits in which upper halves differ from the first one."""
        e = self.e

        def write() -> str:
            high = e.let(f"extractelement {_WORDS} {self.highs}, i64 0")
            return e.let(f"xor {_WORDS} {self.highs}, {_splat(e, high)}")

        return self.strip.emit_once(write, "others", self.highs)

    def _are_even(self, words: int) -> str:
        e = self.e
        steps = ", ".join(f"i32 {4 * words * lane}" for lane in range(STRIP))
        uneven = e.let(f"xor {_WORDS} {self._deltas()}, <{steps}>")
        no_wrap = e.let(f"icmp ule i32 {self._first()}, {2**32 - 4 * words * STRIP}")
        return e.let(f"and i1 {self._all_zero(uneven)}, {no_wrap}")

    def _are_same(self) -> str:
        return self._all_zero(self._deltas())

    def _all_zero(self, words: str) -> str:
        """Whether ``words`` are, and no upper half differs: of lanes that are not active, too, which may read."""
        e = self.e
        if self.highs:
            words = e.let(f"or {_WORDS} {words}, {self._others()}")
        return e.all_zero(STRIP, words)


def _splat(e: Emitter, value: str) -> str:
    first = e.let(f"insertelement {_WORDS} poison, i32 {value}, i64 0")
    return e.let(f"shufflevector {_WORDS} {first}, {_WORDS} poison, {_ZEROS}")
