"""Support functions for atomics: one lane after the other, lowest first.

In: a name ``luthier_<addresses>_atomic_<modify>_<type>`` (addresses as in native; type u, i, f or p
and the bits). Out: LLVM IR of a function (wave, exec, base, addresses, data, second, result, site)
that returns false after noting a fault. ``second`` is the row of the compare value or second operand;
the old values go to the row ``result``. Invariant: in memory that other work-groups may share every
lane's step is one atomic operation of the host; LDS belongs to one worker and needs none.
"""

from __future__ import annotations

from luthier_py.emulator.emitter import Emitter, LlvmOps
from luthier_py.emulator.layout import SITE, WAVE
from luthier_py.emulator.resolve import ALIGNED, FLAT, IN_LDS, WRITES
from luthier_py.isa.semantics.algebra import Kind, Type
from luthier_py.isa.semantics.memory import Modify, modified

_HOST = {
    (Modify.ADD, "u"): "add", (Modify.SUB, "u"): "sub", (Modify.INC, "u"): "uinc_wrap", (Modify.DEC, "u"): "udec_wrap",
    (Modify.MIN, "u"): "umin", (Modify.MAX, "u"): "umax", (Modify.MIN, "i"): "min", (Modify.MAX, "i"): "max",
    (Modify.AND, "u"): "and", (Modify.OR, "u"): "or", (Modify.XOR, "u"): "xor", (Modify.SWAP, "u"): "xchg",
    (Modify.ADD, "f"): "fadd", (Modify.MIN, "f"): "fmin", (Modify.MAX, "f"): "fmax", (Modify.ADD, "p"): "fadd",
}  # fmt: skip
_HEADER = ("define i1 @{name}(ptr %wave, i64 %exec, i64 %base, ptr %addresses, ptr %data, ptr %second, ptr %result, "
           "ptr %site)")
_DECLARATIONS = "declare ptr @luthier_resolve(ptr, i64, i64, ptr, i64, i64)\ndeclare i64 @llvm.cttz.i64(i64, i1)\n"


def atomic(name: str, addresses: str, operation: str, wave_size: int) -> str:
    """The definition; ``operation`` is ``add_u32``, ``compare_swap_u64``, ..."""
    word, _, kind = operation.rpartition("_")
    modify, letter, bits = Modify[word.upper()], kind[0], int(kind[1:])
    row = 4 * wave_size
    lines = [
        _HEADER.format(name=name) + " {", "entry:", *_window(addresses), "  br label %test", "test:",
        "  %left = phi i64 [ %exec, %entry ], [ %rest, %next ]", "  %over = icmp eq i64 %left, 0",
        "  br i1 %over, label %done, label %body", "body:", "  %lane = call i64 @llvm.cttz.i64(i64 %left, i1 false)",
        *_address(addresses, row), *_pointer(addresses, bits // 8),
        *_read("data", bits, row), *_read("second", bits, row),
        *_step(modify, letter, bits, addresses == "lds"),
        *_write(bits, row), "  br label %next", "next:", "  %less = add i64 %left, -1", "  %rest = and i64 %left, %less",
        "  br label %test", "done:", "  ret i1 true", "failed:", "  ret i1 false", "}",
    ]
    return _DECLARATIONS + "\n".join(lines) + "\n"


def _window(addresses: str) -> list[str]:
    """%begin and %finish: what was last accessed here, or LDS."""
    if addresses == "lds":
        return [
            f"  %p.lds = getelementptr i8, ptr %wave, i64 {WAVE['lds']}", "  %begin = load i64, ptr %p.lds",
            f"  %p.bytes = getelementptr i8, ptr %wave, i64 {WAVE['lds_bytes']}", "  %bytes = load i64, ptr %p.bytes",
            "  %finish = add i64 %begin, %bytes",
        ]
    return [
        f"  %p.begin = getelementptr i8, ptr %site, i64 {SITE['base']}",
        f"  %p.finish = getelementptr i8, ptr %site, i64 {SITE['end']}",
    ]


def _address(addresses: str, row: int) -> list[str]:
    """%at: the lane's address, or its offset in LDS."""
    lines = [
        "  %p.low = getelementptr i32, ptr %addresses, i64 %lane", "  %low32 = load i32, ptr %p.low",
        "  %low = zext i32 %low32 to i64", "  %near = add i64 %base, %low",
    ]
    if addresses not in ("far", "flat"):
        return [*lines, "  %at = add i64 %near, 0"]
    return [
        *lines, f"  %p.high = getelementptr i8, ptr %p.low, i64 {row}", "  %high32 = load i32, ptr %p.high",
        "  %high = zext i32 %high32 to i64", "  %high64 = shl i64 %high, 32", "  %at = add i64 %near, %high64",
    ]


def _pointer(addresses: str, size: int) -> list[str]:
    """%pointer to memory that may be touched; to %failed if there is none."""
    flags = WRITES | ALIGNED | {"flat": FLAT, "lds": IN_LDS}.get(addresses, 0)
    window = ["  %place = add i64 %begin, %at"] if addresses == "lds" else [
        "  %place = add i64 %at, 0", "  %begin = load i64, ptr %p.begin", "  %finish = load i64, ptr %p.finish"]
    return [
        *window, f"  %last = add i64 %place, {size}", "  %above = icmp uge i64 %place, %begin",
        "  %below = icmp ule i64 %last, %finish", f"  %crooked = and i64 %at, {size - 1}",
        "  %straight = icmp eq i64 %crooked, 0", "  %within = and i1 %above, %below", "  %easy = and i1 %within, %straight",
        "  %direct = inttoptr i64 %place to ptr", "  br i1 %easy, label %go, label %look", "look:",
        f"  %found = call ptr @luthier_resolve(ptr %wave, i64 %at, i64 {size}, ptr %site, i64 %lane, i64 {flags})",
        "  %lost = icmp eq ptr %found, null", "  br i1 %lost, label %failed, label %go", "go:",
        "  %pointer = phi ptr [ %direct, %body ], [ %found, %look ]",
    ]


def _read(name: str, bits: int, row: int) -> list[str]:
    """%name.v: the lane's value of a row, or of a pair of rows."""
    lines = [f"  %p.{name} = getelementptr i32, ptr %{name}, i64 %lane", f"  %{name}.low = load i32, ptr %p.{name}"]
    if bits == 32:
        return [*lines, f"  %{name}.v = add i32 %{name}.low, 0"]
    return [
        *lines, f"  %q.{name} = getelementptr i8, ptr %p.{name}, i64 {row}", f"  %{name}.high = load i32, ptr %q.{name}",
        f"  %{name}.l = zext i32 %{name}.low to i64", f"  %{name}.h = zext i32 %{name}.high to i64",
        f"  %{name}.s = shl i64 %{name}.h, 32", f"  %{name}.v = or i64 %{name}.l, %{name}.s",
    ]


def _write(bits: int, row: int) -> list[str]:
    lines = ["  %p.result = getelementptr i32, ptr %result, i64 %lane"]
    if bits == 32:
        return [*lines, "  store i32 %old, ptr %p.result"]
    return [
        *lines, "  %old.low = trunc i64 %old to i32", "  %old.up = lshr i64 %old, 32", "  %old.high = trunc i64 %old.up to i32",
        f"  %q.result = getelementptr i8, ptr %p.result, i64 {row}", "  store i32 %old.low, ptr %p.result",
        "  store i32 %old.high, ptr %q.result",
    ]


def _step(modify: Modify, letter: str, bits: int, private: bool) -> list[str]:
    """%old, and the new value in memory."""
    if private:
        return _plain_step(modify, letter, bits)
    integer = f"i{bits}"
    if modify is Modify.COMPARE_SWAP:
        return [f"  %pair = cmpxchg ptr %pointer, {integer} %second.v, {integer} %data.v monotonic monotonic, align {bits // 8}",
                f"  %old = extractvalue {{ {integer}, i1 }} %pair, 0"]
    kind = {"f": {32: "float", 64: "double"}.get(bits, ""), "p": "<2 x half>"}.get(letter, integer)
    return [
        f"  %operand = bitcast {integer} %data.v to {kind}",
        f"  %before = atomicrmw {_HOST[modify, letter]} ptr %pointer, {kind} %operand monotonic, align {bits // 8}",
        f"  %old = bitcast {kind} %before to {integer}",
    ]


def _plain_step(modify: Modify, letter: str, bits: int) -> list[str]:
    """As the semantics say it, in memory that nobody else sees."""
    emitter = Emitter()
    ops = LlvmOps(emitter)
    bare = Type(Kind.UINT, bits)
    typed = Type({"u": Kind.UINT, "i": Kind.SINT, "f": Kind.FLOAT}[letter], bits)
    old, data, second = (ops.value(bare, f"%{name}").as_(typed) for name in ("old", "data.v", "second.v"))
    new = modified(modify, old, data, second).as_(bare)
    emitter.emit(f"store i{bits} {new.ref}, ptr %pointer")
    return [f"  %old = load i{bits}, ptr %pointer", *emitter.lines]
