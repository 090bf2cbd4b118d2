"""Support functions that generated code calls: checked loads, stores and atomics of a whole wave.

In: the name of a function, such as ``luthier_far_load_b64``. Out: its LLVM IR; see engine for how it
gets compiled. Names are ``luthier_<addresses>_<operation>_<element>``:

    near     addresses are base + a row of u32
    far      addresses are base + two rows, low and high halves; flat: the same, and apertures are seen
    lds      addresses are base + a row of u32, in the work-group's LDS
    private  addresses are base + a row of u32, in the lane's scratch memory

Every load and store takes (wave, exec, base, address row, data row, site, distance, second data row)
and returns false after it has noted a fault in the wave. Elements ``pb32`` and ``pb64`` are pairs: the
second element lies ``distance`` bytes (>= 0) after the first, and has rows of its own; other elements
ignore the last two. A lane's addresses are read before its data is written.

Invariant: no byte is touched that was not checked to lie in an allocation, LDS, or scratch. Of memory that other
workers see, a lane's two dwords move at once, and what is loaded is read once (volatile): LLVM would read memory again
for another half of a vector, and find there what was stored meanwhile. A site remembers the allocation of its last
access (``base``, ``end``), so one comparison of all lanes is the rule and the search the exception; lanes at
consecutive or equal addresses, within a strip, move as vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from luthier_py.emulator.native.access_parts import (
    ALL,
    ALL_POSSIBLE,
    ALSO_UNIFORM,
    BOUNDS,
    CHECK,
    DECIDE,
    FAR_START,
    HEADER,
    HIGH_HALVES,
    LDS_WINDOW,
    ONLY_CONSECUTIVE,
    PATTERN,
    PRIVATE,
    PRIVATE_LANE,
    PRIVATE_LANES,
    SITE_WINDOW,
    SOME,
    STORED,
    pick,
    stores_by_strip,
)
from luthier_py.emulator.native.atomics import atomic
from luthier_py.emulator.native.lane_moves import LaneMoves, each_lane, load_two_words, next_lane, rows_of
from luthier_py.emulator.records.layout import STRIP
from luthier_py.emulator.records.template import expand

_STRIP = f"<{STRIP} x i32>"
_SAME = "zeroinitializer"


@cache
def memory_function(name: str, wave_size: int) -> str:
    """LLVM IR that defines the function ``name`` and declares what it calls."""
    if name == "luthier_pick":
        return pick()
    _, addresses, operation, *element = name.split("_")
    if operation in ("load", "store", "gather"):
        return _Move(name, addresses, operation, element[0], wave_size).text()
    return atomic(name, addresses, "_".join(element), wave_size)


class _Move(LaneMoves):
    """Writes one load or store function."""

    def text(self) -> str:
        if self.addresses == "private":
            fast = self._private()
        elif self.gather:
            fast = self._window() + self._check() + SOME + self._loop()
        elif self.addresses == "lds" and self.store and self.bytes == 4 and len(self.parts) == 1:
            all_lanes = self._in_window() + "  br label %all\n" + ALL + self._vectors()
            fast = self._window() + BOUNDS + stores_by_strip(self.lanes, all_lanes)
        else:
            fast = self._window() + self._check() + DECIDE + SOME + self._vectors() + self._loop()
        numbers: dict[str, int | str] = {
            "n": self.lanes, "v": f"<{self.lanes} x i32>", "flags": f"<{self.lanes} x i1>", "row": self.row,
            "bytes": self.bytes, "distance": "%distance" if len(self.parts) > 1 else "0", "all": (1 << self.lanes) - 1,
            "lane_bits": self.lanes - 1, "name": self.name, "numbers": ", ".join(f"i32 {i}" for i in range(self.lanes)),
        }  # fmt: skip
        text = fast + self._lane_by_lane()
        if self.store and self.addresses != "private" and self.addresses != "lds":
            text = text.replace("  ret i1 true\n", "  br label %stored\n") + STORED
        return expand(HEADER + text + "}\n", **numbers)

    # Fast ways

    def _window(self) -> str:
        """%start: what offsets count from; %begin, %finish: where they may lie."""
        if self.addresses == "lds":
            return LDS_WINDOW
        return SITE_WINDOW + (FAR_START if self.far else "  %start = add i64 %base, 0\n")

    def _check(self) -> str:
        return BOUNDS + ALL_POSSIBLE + self._in_window()

    def _in_window(self) -> str:
        return CHECK + (HIGH_HALVES if self.far else "  %wrong = or $v %over, zeroinitializer\n")

    def _vectors(self) -> str:
        """Strips whose lanes are consecutive, or (loads) all the same."""
        firsts = ", ".join(f"i32 {lane - lane % STRIP}" for lane in range(self.lanes))
        steps = ", ".join(f"i32 {lane % STRIP * self.bytes}" for lane in range(self.lanes))
        text = PATTERN.replace("FIRSTS", firsts).replace("STEPS", steps)
        if self.store:
            return text + ONLY_CONSECUTIVE + self._strips("consecutive", self._store_strip)
        text += ALSO_UNIFORM + self._strips("consecutive", self._load_strip)
        return text + self._strips("uniform", self._load_same)

    def _strips(self, label: str, move: Callable[[str, int, int], str]) -> str:
        text = f"{label}:\n"
        for lane in range(0, self.lanes, STRIP):
            for part in self.parts:
                c = f"{label[0]}{lane}.{part}"
                text += f"""
  %{c}.first = extractelement $v %offsets, i64 {lane}
  %{c}.wide = zext i32 %{c}.first to i64
  %{c}.near = add i64 %start, %{c}.wide
  %{c}.at = add i64 %{c}.near, {"%distance" if part else 0}
  %{c}.p = inttoptr i64 %{c}.at to ptr
"""
                text += move(f"%{c}", lane, part)
        return text + "  ret i1 true\n"

    def _data(self, name: str, word: int, lane: int, part: int) -> str:
        return f"  {name} = getelementptr i8, ptr {rows_of(part)}, i64 {word * self.row + 4 * lane}\n"

    def _load_strip(self, c: str, lane: int, part: int) -> str:
        if self.narrow:
            return f"""
  {c}.narrow = load volatile <{STRIP} x {self.narrow}>, ptr {c}.p, align 1
  {c}.v = {self.extend} <{STRIP} x {self.narrow}> {c}.narrow to {_STRIP}
{self._data(f"{c}.d", 0, lane, part)}  store {_STRIP} {c}.v, ptr {c}.d, align 4
"""
        whole = f"<{STRIP * self.words} x i32>"
        text = f"  {c}.all = load volatile {whole}, ptr {c}.p, align 1\n"
        for word in range(self.words):
            picked = ", ".join(f"i32 {i * self.words + word}" for i in range(STRIP))
            text += f"""
  {c}.v{word} = shufflevector {whole} {c}.all, {whole} poison, {_STRIP} <{picked}>
{self._data(f"{c}.d{word}", word, lane, part)}  store {_STRIP} {c}.v{word}, ptr {c}.d{word}, align 4
"""
        return text

    def _load_same(self, c: str, lane: int, part: int) -> str:
        text = ""
        for word in range(0, self.words, 2):
            u = f"{c}.y{word}"
            text += f"  {u}.p = getelementptr i8, ptr {c}.p, i64 {4 * word}\n"
            text += self._load_word(f"{u}.0", f"{u}.p") if word + 1 == self.words else load_two_words(u, f"{u}.p")
        for word in range(self.words):
            u = f"{c}.{word}"
            text += f"""
  {u}.one = insertelement {_STRIP} poison, i32 {c}.y{word & ~1}.{word & 1}, i64 0
  {u}.v = shufflevector {_STRIP} {u}.one, {_STRIP} poison, {_STRIP} {_SAME}
{self._data(f"{u}.d", word, lane, part)}  store {_STRIP} {u}.v, ptr {u}.d, align 4
"""
        return text

    def _store_strip(self, c: str, lane: int, part: int) -> str:
        text = ""
        for word in range(self.words):
            text += self._data(f"{c}.d{word}", word, lane, part)
            text += f"  {c}.v{word} = load {_STRIP}, ptr {c}.d{word}, align 4\n"
        if self.narrow:
            return text + f"""
  {c}.narrow = trunc {_STRIP} {c}.v0 to <{STRIP} x {self.narrow}>
  store <{STRIP} x {self.narrow}> {c}.narrow, ptr {c}.p, align 1
"""
        joined, width = f"{c}.v0", STRIP
        for word in range(1, self.words):  # concatenate, then interleave
            short, long = f"<{width} x i32>", f"<{width + STRIP} x i32>"
            padding = ", ".join(f"i32 {i}" if i < STRIP else "i32 poison" for i in range(width))
            order = ", ".join(f"i32 {i}" for i in range(width + STRIP))
            text += f"""
  {c}.pad{word} = shufflevector {_STRIP} {c}.v{word}, {_STRIP} poison, {short} <{padding}>
  {c}.cat{word} = shufflevector {short} {joined}, {short} {c}.pad{word}, {long} <{order}>
"""
            joined, width = f"{c}.cat{word}", width + STRIP
        whole = f"<{width} x i32>"
        order = ", ".join(f"i32 {word * STRIP + i}" for i in range(STRIP) for word in range(self.words))
        return text + f"""
  {c}.all = shufflevector {whole} {joined}, {whole} poison, {whole} <{order}>
  store {whole} {c}.all, ptr {c}.p, align 1
"""

    def _loop(self) -> str:
        """The lanes of EXEC, lowest first, all known to be inside the window."""
        text = each_lane("loop", "done") + """
  %l.a = getelementptr i32, ptr %addresses, i64 %loop.lane
  %l.off = load i32, ptr %l.a, align 4
  %l.wide = zext i32 %l.off to i64
  %l.at = add i64 %start, %l.wide
  %l.p = inttoptr i64 %l.at to ptr
"""
        for part in self.parts:
            text += f"  %l{part}.p = getelementptr i8, ptr %l.p, i64 {'%distance' if part else 0}\n"
            for word in range(self.words):
                text += f"  %l{part}.p{word} = getelementptr i8, ptr %l{part}.p, i64 {4 * word}\n"
        return text + self._lane_data("l", "loop") + next_lane("loop") + "done:\n  ret i1 true\n"

    def _private(self) -> str:
        """Where all lanes of EXEC have one offset, a word of scratch is a row like any other."""
        if self.narrow or len(self.parts) > 1:
            return "  br label %slow\n"
        text = PRIVATE
        for word in range(self.words):
            source, target = f"%scratch{word}", f"%row{word}"
            if self.store:
                source, target = target, source
            text += f"""
  %scratch{word} = getelementptr i8, ptr %cells, i64 {word * self.row}
  %row{word} = getelementptr i8, ptr %data, i64 {word * self.row}
  %new{word} = load $v, ptr {source}, align 4
  %old{word} = load $v, ptr {target}, align 4
  %kept{word} = select $flags %mask, $v %new{word}, $v %old{word}
  store volatile $v %kept{word}, ptr {target}, align 4
"""
        return text + "  ret i1 true\n" + self._private_lanes()

    def _private_lanes(self) -> str:
        """Lanes with offsets of their own, all of whole words inside: word by word."""
        text = PRIVATE_LANES + each_lane("each", "moved") + PRIVATE_LANE
        for word in range(self.words):
            source, target = f"%e.cell{word}", f"%e.data{word}"
            if self.store:
                source, target = target, source
            text += f"""
  %e.cell{word} = getelementptr i8, ptr %e.cell, i64 {word * self.row}
  %e.data{word} = getelementptr i8, ptr %e.data, i64 {word * self.row}
  %e.word{word} = load i32, ptr {source}, align 4
  store i32 %e.word{word}, ptr {target}, align 4
"""
        return text + next_lane("each") + "moved:\n  ret i1 true\n"
