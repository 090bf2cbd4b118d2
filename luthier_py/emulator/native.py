"""Support functions that generated code calls: checked loads, stores and atomics of a whole wave.

In: the name of a function, such as ``luthier_far_load_b64``. Out: its LLVM IR; see engine for how it
gets compiled. Names are ``luthier_<addresses>_<operation>_<element>``:

    near     addresses are base + a row of u32
    far      addresses are base + two rows, low and high halves; flat: the same, and apertures are seen
    lds      addresses are base + a row of u32, in the work-group's LDS
    private  addresses are base + a row of u32, in the lane's scratch memory

Every function takes (wave, exec, base, address row, data row, site, distance, second data row) and
returns false after it has noted a fault in the wave. Elements ``pb32`` and ``pb64`` are pairs: the second
element lies ``distance`` bytes (>= 0) after the first, and has rows of its own; other elements ignore
the last two. Rows are read before they are written, lane by lane.

Invariant: no byte is touched that was not checked to lie in an allocation, LDS, or scratch. A site
remembers the allocation of its last access (``base``, ``end``), so one comparison of all lanes is
the rule and the search the exception; lanes at consecutive or equal addresses, within a chunk,
move as vectors.
"""

from __future__ import annotations

from functools import cache

from luthier_py.emulator.atomics import atomic
from luthier_py.emulator.layout import CHUNK, SITE, WAVE
from luthier_py.emulator.resolve import FLAT, IN_LDS, IN_SCRATCH, WRITES, resolve

ELEMENTS = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "b8": 1, "b16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}

def _field(pointer: str, name: str, fields: dict[str, int]) -> str:
    return f"getelementptr i8, ptr {pointer}, i64 {fields[name]}"


@cache
def definition(name: str, wave_size: int) -> str:
    """LLVM IR that defines the function ``name`` (and declares what it needs)."""
    if name == "luthier_resolve":
        return resolve(wave_size)
    _, addresses, operation, *element = name.split("_")
    if operation in ("load", "store"):
        return _Move(name, addresses, operation == "store", element[0], wave_size).text()
    return atomic(name, addresses, "_".join(element), wave_size)


HEADER = ("define i1 @{name}(ptr %wave, i64 %exec, i64 %base, ptr %addresses, ptr %data, ptr %site, i64 %distance, "
          "ptr %data2)")
RESOLVE = "declare ptr @luthier_resolve(ptr, i64, i64, ptr, i64, i64)\n"


class _Move:
    """Writes one load or store function."""

    def __init__(self, name: str, addresses: str, store: bool, element: str, wave_size: int) -> None:
        self.name = name
        self.addresses = addresses
        self.store = store
        self.pair = element.startswith("p")
        element = element.removeprefix("p")
        self.bytes = ELEMENTS[element]
        self.words = max(self.bytes // 4, 1)
        self.parts = (0, 1) if self.pair else (0,)
        self.narrow = f"i{8 * self.bytes}" if self.bytes < 4 else ""
        self.extend = "sext" if element[0] == "i" else "zext"
        self.lanes = wave_size
        self.row = 4 * wave_size
        self.far = addresses in ("far", "flat")

    def text(self) -> str:
        body = [HEADER.format(name=self.name) + " {", "entry:"]
        if self.addresses == "private":
            body += self._lane_by_lane("entry")
        else:
            body += [*self._window(), *self._check(), *self._vectors(), *self._loop(), *self._lane_by_lane("slow")]
        body += ["}"]
        declarations = RESOLVE + "\n".join(
            f"declare {kind} @llvm.{name}" for kind, name in (
                (f"<{self.lanes} x i32>", f"usub.sat.v{self.lanes}i32(<{self.lanes} x i32>, <{self.lanes} x i32>)"),
                ("i32", f"vector.reduce.or.v{self.lanes}i32(<{self.lanes} x i32>)"),
                ("i64", "cttz.i64(i64, i1)"), ("i64", "smax.i64(i64, i64)"), ("i64", "smin.i64(i64, i64)"))) + "\n"
        return declarations + "\n".join(body) + "\n"

    def _window(self) -> list[str]:
        """%pointer0: what offsets count from; %least, %most: smallest and largest offset allowed."""
        if self.addresses == "lds":
            return [
                f"  %p.lds = {_field('%wave', 'lds', WAVE)}", "  %lds = load i64, ptr %p.lds",
                f"  %p.bytes = {_field('%wave', 'lds_bytes', WAVE)}", "  %bytes = load i64, ptr %p.bytes",
                "  %start = add i64 %lds, %base", "  %begin = add i64 0, %lds", "  %finish = add i64 %lds, %bytes",
            ]
        lines = [
            f"  %p.begin = {_field('%site', 'base', SITE)}", "  %begin = load i64, ptr %p.begin",
            f"  %p.finish = {_field('%site', 'end', SITE)}", "  %finish = load i64, ptr %p.finish",
        ]
        if not self.far:
            return [*lines, "  %start = add i64 0, %base"]
        return [
            *lines, "  %first = call i64 @llvm.cttz.i64(i64 %exec, i1 false)",
            f"  %inside = and i64 %first, {self.lanes - 1}",
            f"  %p.highs = getelementptr i8, ptr %addresses, i64 {self.row}",
            "  %p.high = getelementptr i32, ptr %p.highs, i64 %inside",
            "  %high32 = load i32, ptr %p.high", "  %high = zext i32 %high32 to i64", "  %high64 = shl i64 %high, 32",
            "  %start = add i64 %base, %high64",
        ]

    def _check(self) -> list[str]:
        """Branch to %slow unless all active lanes are inside the window; else %bad is known to be empty."""
        n, v = self.lanes, f"<{self.lanes} x i32>"
        lines = [
            "  %least64 = sub i64 %begin, %start", "  %least = call i64 @llvm.smax.i64(i64 %least64, i64 0)",
            f"  %room1 = add i64 %start, {self.bytes}", f"  %room = add i64 %room1, {'%distance' if self.pair else 0}",
            "  %most64 = sub i64 %finish, %room",
            "  %most = call i64 @llvm.smin.i64(i64 %most64, i64 4294967295)",
            "  %possible = icmp sle i64 %least, %most",
            "  br i1 %possible, label %check, label %slow", "check:",
            f"  %offsets = load {v}, ptr %addresses, align 4",
            "  %least32 = trunc i64 %least to i32", "  %span64 = sub i64 %most, %least", "  %span32 = trunc i64 %span64 to i32",
            *_splat("least", n), *_splat("span", n),
            f"  %inner = sub {v} %offsets, %least.v",
            f"  %over = call {v} @llvm.usub.sat.v{n}i32({v} %inner, {v} %span.v)",
        ]
        wrong = "%over"
        if self.far:
            lines += [
                f"  %highs = load {v}, ptr %p.highs, align 4", *_splat("high", n), f"  %other = xor {v} %highs, %high.v",
                f"  %wrong = or {v} %over, %other",
            ]
            wrong = "%wrong"
        mask = "bitcast i64 %exec" if n == 64 else "bitcast i32 %exec32"
        lines += ["  %exec32 = trunc i64 %exec to i32"] if n == 32 else []
        return [
            *lines, f"  %full = icmp eq i64 %exec, {-1 if n == 64 else (1 << 32) - 1}",
            "  br i1 %full, label %all, label %some", "all:",
            f"  %bad.all = call i32 @llvm.vector.reduce.or.v{n}i32({v} {wrong})",
            "  %ok.all = icmp eq i32 %bad.all, 0", "  br i1 %ok.all, label %pattern, label %slow", "some:",
            f"  %mask = {mask} to <{n} x i1>", f"  %masked = select <{n} x i1> %mask, {v} {wrong}, {v} zeroinitializer",
            f"  %bad.some = call i32 @llvm.vector.reduce.or.v{n}i32({v} %masked)",
            "  %ok.some = icmp eq i32 %bad.some, 0", "  br i1 %ok.some, label %loop, label %slow",
        ]

    def _vectors(self) -> list[str]:
        """Chunks whose lanes are consecutive, or (loads) all the same."""
        n, v = self.lanes, f"<{self.lanes} x i32>"
        firsts = ", ".join(f"i32 {lane - lane % CHUNK}" for lane in range(n))
        steps = ", ".join(f"i32 {lane % CHUNK * self.bytes}" for lane in range(n))
        lines = [
            "pattern:", f"  %firsts = shufflevector {v} %offsets, {v} poison, {v} <{firsts}>",
            f"  %deltas = sub {v} %offsets, %firsts", f"  %steps = xor {v} %deltas, <{steps}>",
            f"  %uneven = call i32 @llvm.vector.reduce.or.v{n}i32({v} %steps)",
            "  %even = icmp eq i32 %uneven, 0",
        ]
        if self.store:
            lines += ["  br i1 %even, label %consecutive, label %loop"]
        else:
            lines += [
                "  br i1 %even, label %consecutive, label %uneven.lanes", "uneven.lanes:",
                f"  %varied = call i32 @llvm.vector.reduce.or.v{n}i32({v} %deltas)",
                "  %same = icmp eq i32 %varied, 0", "  br i1 %same, label %uniform, label %loop",
            ]
        for label, move in ("consecutive", self._store_chunk if self.store else self._load_chunk), ("uniform", self._load_same):
            if label == "uniform" and self.store:
                break
            lines += [f"{label}:"]
            for chunk in range(0, n, CHUNK):
                for part in self.parts:
                    tag = f"{label[0]}{chunk}.{part}"
                    lines += [*self._start(chunk, tag, part), *move(tag, chunk, part)]
            lines += ["  ret i1 true"]
        return lines

    def _start(self, chunk: int, tag: str, part: int) -> list[str]:
        return [
            f"  %{tag}.first = extractelement <{self.lanes} x i32> %offsets, i64 {chunk}",
            f"  %{tag}.wide = zext i32 %{tag}.first to i64", f"  %{tag}.near = add i64 %start, %{tag}.wide",
            f"  %{tag}.at = add i64 %{tag}.near, {'%distance' if part else 0}",
            f"  %{tag}.p = inttoptr i64 %{tag}.at to ptr",
        ]

    def _place(self, name: str, word: int, chunk: int, part: int) -> str:
        return f"  {name} = getelementptr i8, ptr %data{2 if part else ''}, i64 {word * self.row + 4 * chunk}"

    def _load_chunk(self, tag: str, chunk: int, part: int) -> list[str]:
        c, count = f"%{tag}", CHUNK * self.words
        if self.narrow:
            return [
                f"  {c}.narrow = load <{CHUNK} x {self.narrow}>, ptr {c}.p, align 1",
                f"  {c}.v = {self.extend} <{CHUNK} x {self.narrow}> {c}.narrow to <{CHUNK} x i32>",
                self._place(f"{c}.d", 0, chunk, part), f"  store <{CHUNK} x i32> {c}.v, ptr {c}.d, align 4",
            ]
        lines = [f"  {c}.all = load <{count} x i32>, ptr {c}.p, align 1"]
        for word in range(self.words):
            picked = ", ".join(f"i32 {lane * self.words + word}" for lane in range(CHUNK))
            lines += [
                f"  {c}.v{word} = shufflevector <{count} x i32> {c}.all, <{count} x i32> poison, <{CHUNK} x i32> <{picked}>",
                self._place(f"{c}.d{word}", word, chunk, part),
                f"  store <{CHUNK} x i32> {c}.v{word}, ptr {c}.d{word}, align 4",
            ]
        return lines

    def _load_same(self, tag: str, chunk: int, part: int) -> list[str]:
        lines = []
        for word in range(self.words):
            u = f"%{tag}.{word}"
            lines += [
                f"  {u}.p = getelementptr i8, ptr %{tag}.p, i64 {4 * word}", *self._load_word(f"{u}.x", f"{u}.p"),
                f"  {u}.one = insertelement <{CHUNK} x i32> poison, i32 {u}.x, i64 0",
                f"  {u}.v = shufflevector <{CHUNK} x i32> {u}.one, <{CHUNK} x i32> poison, <{CHUNK} x i32> zeroinitializer",
                self._place(f"{u}.d", word, chunk, part), f"  store <{CHUNK} x i32> {u}.v, ptr {u}.d, align 4",
            ]
        return lines

    def _store_chunk(self, tag: str, chunk: int, part: int) -> list[str]:
        c = f"%{tag}"
        lines = []
        for word in range(self.words):
            lines += [self._place(f"{c}.d{word}", word, chunk, part), f"  {c}.v{word} = load <{CHUNK} x i32>, ptr {c}.d{word}, align 4"]
        if self.narrow:
            return [*lines, f"  {c}.narrow = trunc <{CHUNK} x i32> {c}.v0 to <{CHUNK} x {self.narrow}>",
                    f"  store <{CHUNK} x {self.narrow}> {c}.narrow, ptr {c}.p, align 1"]
        if self.words == 1:
            return [*lines, f"  store <{CHUNK} x i32> {c}.v0, ptr {c}.p, align 1"]
        joined, width = f"{c}.v0", CHUNK
        for word in range(1, self.words):  # concatenate, then interleave
            wide = CHUNK * (word + 1)
            padded = ", ".join(f"i32 {i}" if i < CHUNK else "i32 poison" for i in range(width))
            both = ", ".join(f"i32 {i}" for i in range(wide))
            lines += [
                f"  {c}.pad{word} = shufflevector <{CHUNK} x i32> {c}.v{word}, <{CHUNK} x i32> poison, <{width} x i32> <{padded}>",
                f"  {c}.cat{word} = shufflevector <{width} x i32> {joined}, <{width} x i32> {c}.pad{word}, <{wide} x i32> <{both}>",
            ]
            joined, width = f"{c}.cat{word}", wide
        order = ", ".join(f"i32 {word * CHUNK + lane}" for lane in range(CHUNK) for word in range(self.words))
        return [*lines, f"  {c}.all = shufflevector <{width} x i32> {joined}, <{width} x i32> poison, <{width} x i32> <{order}>",
                f"  store <{width} x i32> {c}.all, ptr {c}.p, align 1"]

    def _load_word(self, name: str, pointer: str) -> list[str]:
        if not self.narrow:
            return [f"  {name} = load i32, ptr {pointer}, align 1"]
        return [f"  {name}.n = load {self.narrow}, ptr {pointer}, align 1", f"  {name} = {self.extend} {self.narrow} {name}.n to i32"]

    def _move_word(self, name: str, pointer: str, data: str) -> list[str]:
        if not self.store:
            return [*self._load_word(name, pointer), f"  store i32 {name}, ptr {data}, align 4"]
        lines = [f"  {name} = load i32, ptr {data}, align 4"]
        if not self.narrow:
            return [*lines, f"  store i32 {name}, ptr {pointer}, align 1"]
        return [*lines, f"  {name}.n = trunc i32 {name} to {self.narrow}", f"  store {self.narrow} {name}.n, ptr {pointer}, align 1"]

    def _loop(self) -> list[str]:
        """The lanes of EXEC, lowest first, all known to be inside the window."""
        lines = [
            *_each_lane("loop", ("%all", "%some", "%pattern", "%uneven.lanes"), "done"),
            "  %l.a = getelementptr i32, ptr %addresses, i64 %loop.lane", "  %l.off = load i32, ptr %l.a, align 4",
            "  %l.wide = zext i32 %l.off to i64", "  %l.at = add i64 %start, %l.wide", "  %l.p = inttoptr i64 %l.at to ptr",
        ]
        for part in self.parts:
            lines += [f"  %l{part}.p = getelementptr i8, ptr %l.p, i64 {'%distance' if part else 0}"]
            for word in range(self.words):
                lines += [f"  %l{part}.p{word} = getelementptr i8, ptr %l{part}.p, i64 {4 * word}"]
            lines += self._data_places(f"l{part}", "loop", part)
        lines += self._moves("l")
        return [*lines, "  br label %loop.next", *_next_lane("loop", "done"), "done:", "  ret i1 true"]

    def _data_places(self, tag: str, loop: str, part: int) -> list[str]:
        lines = [f"  %{tag}.d = getelementptr i32, ptr %data{2 if part else ''}, i64 %{loop}.lane"]
        return lines + [f"  %{tag}.d{word} = getelementptr i8, ptr %{tag}.d, i64 {word * self.row}" for word in range(self.words)]

    def _moves(self, tag: str) -> list[str]:
        """All words of one lane, in order; the lane's address has been read."""
        lines: list[str] = []
        for part in self.parts:
            for word in range(self.words):
                t = f"%{tag}{part}"
                lines += self._move_word(f"{t}.x{word}", f"{t}.p{word}", f"{t}.d{word}")
        return lines

    def _lane_by_lane(self, label: str) -> list[str]:
        """Resolve every address of its own: another allocation than last time, an aperture, or a fault."""
        flags = (WRITES if self.store else 0) | (FLAT if self.addresses == "flat" else 0)
        target = {"lds": IN_LDS, "private": IN_SCRATCH}.get(self.addresses, flags)
        size = min(self.bytes, 4)
        lines = [] if label == "entry" else [f"{label}:"]
        if label == "entry":
            lines += ["  br label %slow", "slow:"]
        lines += [
            "  br label %scan", *_each_lane("scan", ("%slow",), "scanned"),
            "  %s.a = getelementptr i32, ptr %addresses, i64 %scan.lane", "  %s.off = load i32, ptr %s.a, align 4",
            "  %s.wide = zext i32 %s.off to i64",
        ]
        lines += self._slow_address("s")
        for part in self.parts:
            s = f"s{part}"
            lines += [f"  %{s}.at = add i64 %s.at, {'%distance' if part else 0}"]
            for word in range(self.words):
                lines += [
                    f"  %{s}.at{word} = add i64 %{s}.at, {4 * word}",
                    f"  %{s}.p{word} = call ptr @luthier_resolve(ptr %wave, i64 %{s}.at{word}, i64 {size}, ptr %site, "
                    f"i64 %scan.lane, i64 {target})",
                    f"  %{s}.null{word} = icmp eq ptr %{s}.p{word}, null",
                    f"  br i1 %{s}.null{word}, label %failed, label %{s}.good{word}", f"{s}.good{word}:",
                ]
            lines += self._data_places(s, "scan", part)
        lines += self._moves("s")
        return [*lines, "  br label %scan.next", *_next_lane("scan", "scanned"), "scanned:", "  ret i1 true",
                "failed:", "  ret i1 false"]

    def _slow_address(self, tag: str) -> list[str]:
        if not self.far:
            return [f"  %{tag}.at = add i64 %base, %{tag}.wide"]
        return [
            f"  %{tag}.b = getelementptr i8, ptr %{tag}.a, i64 {self.row}", f"  %{tag}.hi = load i32, ptr %{tag}.b, align 4",
            f"  %{tag}.hi64 = zext i32 %{tag}.hi to i64", f"  %{tag}.up = shl i64 %{tag}.hi64, 32",
            f"  %{tag}.low = add i64 %base, %{tag}.wide", f"  %{tag}.at = add i64 %{tag}.low, %{tag}.up",
        ]


def _splat(name: str, lanes: int) -> list[str]:
    """%name.v from %name32."""
    v = f"<{lanes} x i32>"
    return [f"  %{name}.one = insertelement {v} poison, i32 %{name}32, i64 0",
            f"  %{name}.v = shufflevector {v} %{name}.one, {v} poison, {v} zeroinitializer"]


def _each_lane(name: str, sources: tuple[str, ...], done: str) -> list[str]:
    """Open a loop over the set bits of %exec; its body ends in a branch to ``name``.next."""
    return [
        f"{name}:", "  br label %" + f"{name}.test", f"{name}.test:",
        f"  %{name}.left = phi i64 [ %exec, %{name} ], [ %{name}.rest, %{name}.next ]",
        f"  %{name}.over = icmp eq i64 %{name}.left, 0", f"  br i1 %{name}.over, label %{done}, label %{name}.body",
        f"{name}.body:", f"  %{name}.lane = call i64 @llvm.cttz.i64(i64 %{name}.left, i1 false)",
    ]


def _next_lane(name: str, done: str) -> list[str]:
    return [
        f"{name}.next:", f"  %{name}.less = add i64 %{name}.left, -1", f"  %{name}.rest = and i64 %{name}.left, %{name}.less",
        f"  br label %{name}.test",
    ]
