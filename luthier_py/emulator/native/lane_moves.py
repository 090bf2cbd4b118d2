"""Loads and stores of one lane after the other: how each of its elements moves, wherever it lies.

In: what moves. Out: parts of the functions of accesses. Invariant: an element of two dwords moves at once, so that
another worker sees none or both; but where its words lie apart, in private memory, which nobody else sees.
"""

from __future__ import annotations

from luthier_py.emulator.native.access_parts import SLOW_ADDRESS, SLOW_END, SLOW_HIGH
from luthier_py.emulator.native.resolve import FLAT, IN_LDS, IN_SCRATCH, WRITES

ELEMENTS = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "b8": 1, "b16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}


class LaneMoves:
    """Writes what moves single lanes."""

    def __init__(self, name: str, addresses: str, operation: str, element: str, wave_size: int) -> None:
        self.name = name
        self.addresses = addresses
        self.store = operation == "store"
        self.gather = operation == "gather"
        self.parts = (0, 1) if element.startswith("p") else (0,)
        element = element.removeprefix("p")
        self.bytes = ELEMENTS[element]
        self.words = max(self.bytes // 4, 1)
        self.narrow = f"i{8 * self.bytes}" if self.bytes < 4 else ""
        self.extend = "sext" if element[0] == "i" else "zext"
        self.lanes = wave_size
        self.row = 4 * wave_size
        self.far = addresses in ("far", "flat")

    def _load_word(self, name: str, pointer: str) -> str:
        if not self.narrow:
            return f"  {name} = load i32, ptr {pointer}, align 1\n"
        return (f"  {name}.n = load {self.narrow}, ptr {pointer}, align 1\n"
                f"  {name} = {self.extend} {self.narrow} {name}.n to i32\n")

    def _move_word(self, name: str, pointer: str, data: str) -> str:
        if not self.store:
            return f"{self._load_word(name, pointer)}  store i32 {name}, ptr {data}, align 4\n"
        text = f"  {name} = load i32, ptr {data}, align 4\n"
        if not self.narrow:
            return text + f"  store i32 {name}, ptr {pointer}, align 1\n"
        return text + (f"  {name}.n = trunc i32 {name} to {self.narrow}\n"
                       f"  store {self.narrow} {name}.n, ptr {pointer}, align 1\n")

    def _lane_data(self, tag: str, loop: str, apart: bool = False) -> str:
        """Move all words of one lane, whose pointers are ready; ``apart``: whose words may not follow each other."""
        text = ""
        for part in self.parts:
            t = f"{tag}{part}"
            text += f"  %{t}.d = getelementptr i32, ptr {rows_of(part)}, i64 %{loop}.lane\n"
            for word in range(self.words):
                text += f"  %{t}.d{word} = getelementptr i8, ptr %{t}.d, i64 {word * self.row}\n"
            for word in range(0, self.words, 2):
                alone = [self._move_word(f"%{t}.x{one}", f"%{t}.p{one}", f"%{t}.d{one}")
                         for one in range(word, min(word + 2, self.words))]
                if len(alone) == 1:
                    text += alone[0]
                    continue
                whole = self._move_two_words(f"%{t}", word)
                text += _where_adjacent(t, word, whole, "".join(alone)) if apart else whole
        return text

    def _move_two_words(self, t: str, word: int) -> str:
        """At once: another worker sees none or both."""
        name, first, second = f"{t}.y{word}", f"{t}.d{word}", f"{t}.d{word + 1}"
        if self.store:
            return f"""
  {name}.0 = load i32, ptr {first}, align 4
  {name}.1 = load i32, ptr {second}, align 4
  {name}.low = zext i32 {name}.0 to i64
  {name}.high = zext i32 {name}.1 to i64
  {name}.up = shl i64 {name}.high, 32
  {name}.all = or i64 {name}.low, {name}.up
  store volatile i64 {name}.all, ptr {t}.p{word}, align 1
"""
        return load_two_words(name, f"{t}.p{word}") + f"""
  store i32 {name}.0, ptr {first}, align 4
  store i32 {name}.1, ptr {second}, align 4
"""

    def _lane_by_lane(self) -> str:
        """Resolve every address of its own: another allocation than last time, an aperture, or a fault."""
        flags = {"lds": IN_LDS, "private": IN_SCRATCH, "flat": FLAT}.get(self.addresses, 0)
        flags |= WRITES if self.store else 0
        in_words = self.addresses in ("private", "flat")  # of scratch, which lie apart
        size = min(self.bytes, 4) if in_words else self.bytes
        tail = f"ptr %site, i64 %scan.lane, i64 {flags}"
        text = "slow:\n  br label %scan\n" + each_lane("scan", "scanned") + SLOW_ADDRESS
        text += SLOW_HIGH if self.far else "  %s.at = add i64 %s.near, 0\n"
        if in_words and size > 1:
            text += self._bytes_of_words(size, tail)
        for part in self.parts:
            s = f"s{part}"
            text += f"  %{s}.at = add i64 %s.at, {'%distance' if part else 0}\n"
            for word in range(self.words if size <= 4 else 1):
                text += f"  %{s}.at{word} = add i64 %{s}.at, {4 * word}\n"
                text += _resolve_address(f"{s}.p{word}", f"%{s}.at{word}", size, tail)
            for word in range(1, self.words if size > 4 else 1):
                text += f"  %{s}.p{word} = getelementptr i8, ptr %{s}.p0, i64 {4 * word}\n"
        return text + self._lane_data("s", "scan", in_words) + next_lane("scan") + SLOW_END

    def _bytes_of_words(self, size: int, tail: str) -> str:
        """A lane whose elements lie across words, byte by byte; others go on behind it."""
        text = f"""
  %s.where = or i64 %s.at, {"%distance" if len(self.parts) > 1 else 0}
  %s.in.word = and i64 %s.where, 3
  %s.end = add i64 %s.in.word, {size}
  %s.across = icmp ugt i64 %s.end, 4
  br i1 %s.across, label %across, label %straight
across:
"""
        places = [(part, word, byte) for part in self.parts for word in range(self.words) for byte in range(size)]
        for part, word, byte in places:
            b = f"b{part}.{word}.{byte}"
            text += f"  %{b}.far = add i64 %s.at, {'%distance' if part else 0}\n"
            text += f"  %{b}.at = add i64 %{b}.far, {4 * word + byte}\n"
            text += _resolve_address(f"{b}.p", f"%{b}.at", 1, tail)
        for part in self.parts:
            text += f"  %b{part}.d = getelementptr i32, ptr {rows_of(part)}, i64 %scan.lane\n"
            for word in range(self.words):
                text += f"  %b{part}.{word}.d = getelementptr i8, ptr %b{part}.d, i64 {word * self.row}\n"
                text += self._store_bytes(f"%b{part}.{word}", size) if self.store else self._load_bytes(
                    f"%b{part}.{word}", size)
        return text + "  br label %scan.next\nstraight:\n"

    def _store_bytes(self, b: str, size: int) -> str:
        text = f"  {b}.x = load i32, ptr {b}.d, align 4\n"
        for byte in range(size):
            text += f"  {b}.{byte}.up = lshr i32 {b}.x, {8 * byte}\n  {b}.{byte}.x = trunc i32 {b}.{byte}.up to i8\n"
            text += f"  store i8 {b}.{byte}.x, ptr {b}.{byte}.p, align 1\n"
        return text

    def _load_bytes(self, b: str, size: int) -> str:
        text, whole = "", "0"
        for byte in range(size):
            wider = self.extend if byte == size - 1 else "zext"
            text += f"""
  {b}.{byte}.x = load i8, ptr {b}.{byte}.p, align 1
  {b}.{byte}.wide = {wider} i8 {b}.{byte}.x to i32
  {b}.{byte}.up = shl i32 {b}.{byte}.wide, {8 * byte}
  {b}.{byte}.all = or i32 {whole}, {b}.{byte}.up
"""
            whole = f"{b}.{byte}.all"
        return text + f"  store i32 {whole}, ptr {b}.d, align 4\n"


def _resolve_address(name: str, address: str, size: int, tail: str) -> str:
    """The host's pointer for an address of this lane; away on a fault."""
    return f"""
  %{name} = call ptr @luthier_resolve(ptr %wave, i64 {address}, i64 {size}, {tail})
  %{name}.null = icmp eq ptr %{name}, null
  br i1 %{name}.null, label %failed, label %{name}.good
{name}.good:
"""


def load_two_words(name: str, pointer: str) -> str:
    """As ``name``.0 and ``name``.1, at once: another worker may store both meanwhile."""
    return f"""
  {name}.all = load volatile i64, ptr {pointer}, align 1
  {name}.0 = trunc i64 {name}.all to i32
  {name}.up = lshr i64 {name}.all, 32
  {name}.1 = trunc i64 {name}.up to i32
"""


def _where_adjacent(tag: str, word: int, whole: str, alone: str) -> str:
    """``whole`` where the next word of ``tag`` follows this one, elsewhere ``alone``."""
    label = f"{tag}.{word}"
    t = f"%{label}"
    return f"""
  {t}.first = ptrtoint ptr %{tag}.p{word} to i64
  {t}.second = ptrtoint ptr %{tag}.p{word + 1} to i64
  {t}.gap = sub i64 {t}.second, {t}.first
  {t}.adjacent = icmp eq i64 {t}.gap, 4
  br i1 {t}.adjacent, label %{label}.whole, label %{label}.alone
{label}.whole:
{whole}  br label %{label}.moved
{label}.alone:
{alone}  br label %{label}.moved
{label}.moved:
"""


def rows_of(part: int) -> str:
    """IR name of the pointer to the data rows of a first element (``part`` 0), or of the second one of a pair."""
    return "%data2" if part else "%data"


def each_lane(name: str, done: str) -> str:
    """Open a loop over the set bits of %exec; next_lane closes it."""
    return f"""
{name}:
  br label %{name}.test
{name}.test:
  %{name}.left = phi i64 [ %exec, %{name} ], [ %{name}.rest, %{name}.next ]
  %{name}.over = icmp eq i64 %{name}.left, 0
  br i1 %{name}.over, label %{done}, label %{name}.body
{name}.body:
  %{name}.lane = call i64 @llvm.cttz.i64(i64 %{name}.left, i1 false)
"""


def next_lane(name: str) -> str:
    """Close the loop that `each_lane` opened under this name: clear the lane's bit, and test what is left."""
    return f"""
  br label %{name}.next
{name}.next:
  %{name}.less = add i64 %{name}.left, -1
  %{name}.rest = and i64 %{name}.left, %{name}.less
  br label %{name}.test
"""
