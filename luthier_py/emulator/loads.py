"""Loads inside strips: a chunk of lanes at a time, from memory straight into the values of the loop.

In: addresses and rows of a load of whole dwords. Out: code in the strip's loop. If all lanes of a
chunk are active, their addresses consecutive or equal, and inside what was last accessed (or LDS),
the chunk is a vector load or a broadcast; everything else calls a support function for these lanes.

Invariant: memory is only written by code that settles the strip first, so a load that was put off
sees what it would have seen at its place.
"""

from __future__ import annotations

from dataclasses import dataclass

from luthier_py.emulator.emitter import Emitter
from luthier_py.emulator.layout import CHUNK, LOADED_ROW, SITE
from luthier_py.emulator.strip import FULL, LaneChunk
from luthier_py.emulator.wave_code import WaveCode
from luthier_py.isa.semantics.algebra import U32, Value

_WORDS = f"<{CHUNK} x i32>"
_ZEROS = f"{_WORDS} zeroinitializer"
_LANES = (1 << CHUNK) - 1
_ADDRESS_ROW = LOADED_ROW + 8  # a pair, for lanes that go one by one


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where: see native for the kinds."""

    kind: str
    base: Value
    row: int
    mask: Value


@dataclass(frozen=True, slots=True)
class ChunkLoad:
    """One load instruction: ``targets`` are the rows of its first element, and of its second if it is a pair."""

    w: WaveCode
    where: Addresses
    site: str              # pointer to the site, made before the loop
    words: int
    targets: tuple[int, ...]
    distance: int

    def write(self, chunk: LaneChunk) -> None:
        """See Strip.add."""
        e = self.w.emitter
        offsets = str(chunk.row(self.where.row).ref)
        highs = str(chunk.row(self.where.row + 1).ref) if self._far else ""
        known = _Known.of(self, chunk, offsets, highs)
        labels = {hint: e.label(hint) for hint in ("consecutive", "varied", "equal", "single", "got", "loaded")}
        size = 4 * self.words
        e.branch(self._inside(known, known.even, CHUNK * size), labels["consecutive"], labels["varied"])
        chunk.place(labels["consecutive"])
        consecutive = [value for at in self._places(known.at) for value in self._vectors(at)]
        e.emit(f"br label %{labels['loaded']}")
        chunk.place(labels["varied"])
        e.branch(self._inside(known, known.same, size), labels["equal"], labels["single"])
        chunk.place(labels["equal"])
        equal = [value for at in self._places(known.at) for value in self._broadcasts(at)]
        e.emit(f"br label %{labels['loaded']}")
        chunk.place(labels["single"])
        self._call(chunk, offsets, highs, labels["got"])
        single = [e.let(f"load {_WORDS}, ptr {self._loaded(chunk, i)}, align 64") for i in range(len(equal))]
        e.emit(f"br label %{labels['loaded']}")
        chunk.place(labels["loaded"])
        rows = [target + word for target in self.targets for word in range(self.words)]
        for row, a, b, c in zip(rows, consecutive, equal, single, strict=True):
            ways = ((a, "consecutive"), (b, "equal"), (c, "got"))
            joined = e.let(f"phi {_WORDS} " + ", ".join(f"[ {value}, %{labels[hint]} ]" for value, hint in ways))
            chunk.write_row(row, Value(chunk.ops, U32, joined))

    @property
    def _far(self) -> bool:
        return self.where.kind in ("far", "flat")

    def _places(self, at: str) -> list[str]:
        """Addresses of the elements of a pair."""
        e = self.w.emitter
        return [at] if len(self.targets) == 1 else [at, e.let(f"add i64 {at}, {self.distance}")]

    def _inside(self, known: _Known, fits: str, size: int) -> str:
        """Whether the lanes fit the pattern, and ``size`` bytes from the first address are there."""
        e = self.w.emitter
        return e.let(f"and i1 {e.inside(known.at, str(size + self.distance), known.begin, known.finish)}, {fits}")

    def _vectors(self, at: str) -> list[str]:
        e, count = self.w.emitter, CHUNK * self.words
        whole = f"<{count} x i32>"
        data = e.let(f"load {whole}, ptr {e.let(f'inttoptr i64 {at} to ptr')}, align 1")
        if self.words == 1:
            return [data]
        picked = [", ".join(f"i32 {i * self.words + word}" for i in range(CHUNK)) for word in range(self.words)]
        return [e.let(f"shufflevector {whole} {data}, {whole} poison, {_WORDS} <{lanes}>") for lanes in picked]

    def _broadcasts(self, at: str) -> list[str]:
        e = self.w.emitter
        pointer = e.let(f"inttoptr i64 {at} to ptr")
        found = []
        for word in range(self.words):
            place = e.let(f"getelementptr i8, ptr {pointer}, i64 {4 * word}")
            found.append(_splat(e, e.let(f"load i32, ptr {place}, align 1")))
        return found

    def _loaded(self, chunk: LaneChunk, number: int) -> str:
        """Pointer to this chunk of a row where a support function leaves what it loaded."""
        return chunk.address(LOADED_ROW + number)

    def _call(self, chunk: LaneChunk, offsets: str, highs: str, after: str) -> None:
        """Load the chunk's lanes of EXEC one by one."""
        e = self.w.emitter
        for row, values in ((_ADDRESS_ROW, offsets), (_ADDRESS_ROW + 1, highs)):
            if values:
                e.emit(f"store {_WORDS} {values}, ptr {chunk.address(row)}, align 64")
        rows = [self.w.row(row) for row in (_ADDRESS_ROW, LOADED_ROW, LOADED_ROW + self.words)]
        element = f"{'p' if len(self.targets) > 1 else ''}b{32 * self.words}"
        done = e.support("i1", f"{self.where.kind}_gather_{element}", [
            ("ptr", "%wave"), ("i64", chunk.mask_of_lanes()), ("i64", str(self.where.base.ref)), ("ptr", rows[0]),
            ("ptr", rows[1]), ("ptr", self.site), ("i64", str(self.distance)), ("ptr", rows[2])])
        e.branch(done, after, "fault")
        chunk.place(after)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is worked out about a chunk's addresses: names of values."""

    at: str       # address of the first lane, i64
    begin: str    # bounds of what may be accessed
    finish: str
    even: str     # all lanes active, and consecutive
    same: str     # all lanes active, and at one address

    @staticmethod
    def of(load: ChunkLoad, chunk: LaneChunk, offsets: str, highs: str) -> _Known:
        e, where = load.w.emitter, load.where
        first = e.let(f"extractelement {_WORDS} {offsets}, i64 0")
        deltas = e.let(f"sub {_WORDS} {offsets}, {_splat(e, first)}")
        steps = ", ".join(f"i32 {4 * load.words * lane}" for lane in range(CHUNK))
        uneven = e.let(f"xor {_WORDS} {deltas}, <{steps}>")
        start = e.let(f"add i64 {e.let(f'zext i32 {first} to i64')}, {where.base.ref}")
        if highs:
            high = e.let(f"extractelement {_WORDS} {highs}, i64 0")
            other = e.let(f"xor {_WORDS} {highs}, {_splat(e, high)}")
            deltas, uneven = (e.let(f"or {_WORDS} {x}, {other}") for x in (deltas, uneven))
            wide = e.let(f"zext i32 {high} to i64")
            start = e.let(f"add i64 {start}, {e.let(f'shl i64 {wide}, 32')}")
        if where.kind == "lds":
            begin, finish = chunk.lds_bounds()
            start = e.let(f"add i64 {start}, {begin}")
        else:
            begin = e.let(f"load i64, ptr {load.site}")
            end = e.let(f"getelementptr i8, ptr {load.site}, i64 {SITE['end']}")
            finish = e.let(f"load i64, ptr {end}")
        even, same = (_all_zero(e, x) for x in (uneven, deltas))
        no_wrap = e.let(f"icmp ule i32 {first}, {2**32 - 4 * load.words * CHUNK}")
        even = e.let(f"and i1 {even}, {no_wrap}")
        if chunk.mask != FULL:
            full = e.let(f"icmp eq i32 {chunk.mask_bits()}, {_LANES}")
            even, same = (e.let(f"and i1 {x}, {full}") for x in (even, same))
        return _Known(start, begin, finish, even, same)


def _splat(e: Emitter, value: str) -> str:
    first = e.let(f"insertelement {_WORDS} poison, i32 {value}, i64 0")
    return e.let(f"shufflevector {_WORDS} {first}, {_WORDS} poison, {_ZEROS}")


def _all_zero(e: Emitter, words: str) -> str:
    any_bit = e.call("i32", f"llvm.vector.reduce.or.v{CHUNK}i32", [(_WORDS, words)])
    return e.let(f"icmp eq i32 {any_bit}, 0")
