"""Support functions for atomics: one lane after the other, lowest first.

In: a name ``luthier_<addresses>_atomic_<modify>_<type>`` (addresses as in native; type u, i, f, n, p or b
and the bits; s and r behind them: denormals of sources, and of results, are flushed).
Out: LLVM IR of a function (wave, exec, base, addresses, data, second, result, site)
that returns false after noting a fault. ``second`` is the row of the compare value or second operand;
the old values go to the row ``result``. Invariant: in memory that other work-groups may share every
lane's step is one atomic operation of the host; LDS belongs to one worker and needs none.
"""

from __future__ import annotations

import re

from luthier_py.emulator.native.resolve import ALIGNED, FLAT, FLOAT_ATOMIC, IN_LDS, WRITES
from luthier_py.emulator.records.template import expand
from luthier_py.emulator.vector_regions.emitter import Emitter, LlvmOps
from luthier_py.isa.semantics.algebra import Kind, Type
from luthier_py.isa.semantics.memory import Modify, add_packed, apply_modify_flushing, extreme_number

_HOST = {
    (Modify.ADD, "u"): "add", (Modify.SUB, "u"): "sub", (Modify.INC, "u"): "uinc_wrap", (Modify.DEC, "u"): "udec_wrap",
    (Modify.MIN, "u"): "umin", (Modify.MAX, "u"): "umax", (Modify.MIN, "i"): "min", (Modify.MAX, "i"): "max",
    (Modify.AND, "u"): "and", (Modify.OR, "u"): "or", (Modify.XOR, "u"): "xor", (Modify.SWAP, "u"): "xchg",
    (Modify.ADD, "p"): "fadd",
}  # fmt: skip
FLOAT_LETTERS = "fnpb"
"""Kinds of operations, by their first letter, that are on floats."""
_KINDS = {"u": Kind.UINT, "i": Kind.SINT, "f": Kind.FLOAT, "n": Kind.FLOAT}


def atomic(name: str, addresses: str, operation: str, wave_size: int) -> str:
    """The definition; ``operation`` is ``add_u32``, ``compare_swap_u64``, ..."""
    word, _, kind = operation.rpartition("_")
    modify, letter, bits = Modify[word.upper()], kind[0], int(kind[1:3])
    in_lds = addresses == "lds"
    flags = WRITES | ALIGNED | {"flat": FLAT, "lds": IN_LDS}.get(addresses, 0)
    flags |= FLOAT_ATOMIC if letter in FLOAT_LETTERS else 0
    text = _HEAD + (_HIGH if addresses in ("far", "flat") else "  %at = add i64 %near, 0\n")
    text += (_LDS_WINDOW if in_lds else _SITE_WINDOW) + _POINTER
    text += _read("data", bits) + _read("second", bits)
    flushes = "s" in kind[3:], "r" in kind[3:]
    text += (_plain_step if in_lds else _atomic_step)(modify, letter, bits, flushes)
    text += "  %change = add i64 0, 0\n" if in_lds else _change(bits)
    text += (_WRITE_WORD if bits == 32 else _WRITE_PAIR) + _TAIL
    if in_lds and bits == 32:
        step = _read("data", bits) + _read("second", bits) + _plain_step(modify, letter, bits, flushes) + _WRITE_WORD
        quick = _LANE_INSIDE + step + _NEXT_INSIDE
        text = text.replace(_ENTRY, _ALL_INSIDE + _own_names(quick) + "gone:\n  ret i1 true\nall:\n  br label %test\n")
        text = text.replace("[ %exec, %entry ]", "[ %exec, %all ]").replace("[ 0, %entry ]", "[ 0, %all ]")
    return expand(text, name=name, row=4 * wave_size, size=bits // 8, less=bits // 8 - 1, flags=flags, n=wave_size,
                  v=f"<{wave_size} x i32>",
                  all_lanes="add i64 %wrong.bits, 0" if wave_size == 64 else "zext i32 %wrong.bits to i64")


def _own_names(text: str) -> str:
    """Beside the other way in the same function; labels stay."""
    return _OWN_NAME.sub(lambda match: match[0] if match[1] in ("each", "some", "gone") else f"%q.{match[1]}", text)


def _read(name: str, bits: int) -> str:
    """%name.v: the lane's value of a row, or of a pair of rows."""
    text = f"""
  %{name}.p = getelementptr i32, ptr %{name}, i64 %lane
  %{name}.low = load i32, ptr %{name}.p
"""
    if bits == 32:
        return text + f"  %{name}.v = or i32 %{name}.low, 0\n"
    return text + f"""
  %{name}.q = getelementptr i8, ptr %{name}.p, i64 $row
  %{name}.high = load i32, ptr %{name}.q
  %{name}.l = zext i32 %{name}.low to i64
  %{name}.h = zext i32 %{name}.high to i64
  %{name}.s = shl i64 %{name}.h, 32
  %{name}.v = or i64 %{name}.l, %{name}.s
"""


def _atomic_step(modify: Modify, letter: str, bits: int, flushes: tuple[bool, bool]) -> str:
    """%old, and the new value in memory, in one step of the host."""
    integer, align = f"i{bits}", f"align {bits // 8}"
    if modify is Modify.COMPARE_SWAP and letter == "u":
        return f"""
  %pair = cmpxchg ptr %pointer, {integer} %second.v, {integer} %data.v monotonic monotonic, {align}
  %old = extractvalue {{ {integer}, i1 }} %pair, 0
"""
    if (modify, letter) not in _HOST:
        return _emit_cmpxchg_loop(modify, letter, bits, flushes)
    kind = "<2 x half>" if letter == "p" else integer
    return f"""
  %operand = bitcast {integer} %data.v to {kind}
  %before = atomicrmw {_HOST[modify, letter]} ptr %pointer, {kind} %operand monotonic, {align}
  %old = bitcast {kind} %before to {integer}
"""


def _emit_cmpxchg_loop(modify: Modify, letter: str, bits: int, flushes: tuple[bool, bool]) -> str:
    """As the semantics say it, until nobody came between."""
    integer, align = f"i{bits}", f"align {bits // 8}"
    lines, new = _emit_new_value(modify, letter, bits, flushes)
    return f"""
  %first = load atomic {integer}, ptr %pointer monotonic, {align}
  br label %again
again:
  %old = phi {integer} [ %first, %go ], [ %seen, %again ]
{lines}
  %pair = cmpxchg ptr %pointer, {integer} %old, {integer} {new} monotonic monotonic, {align}
  %seen = extractvalue {{ {integer}, i1 }} %pair, 0
  %done.alone = extractvalue {{ {integer}, i1 }} %pair, 1
  br i1 %done.alone, label %written, label %again
written:
"""


def _change(bits: int) -> str:
    """%change: 1 if memory is not what it was; if another has changed it meanwhile, that counts as well."""
    return f"""
  %now = load atomic i{bits}, ptr %pointer monotonic, align {bits // 8}
  %differs = icmp ne i{bits} %now, %old
  %change = zext i1 %differs to i64
"""


def _plain_step(modify: Modify, letter: str, bits: int, flushes: tuple[bool, bool]) -> str:
    """As the semantics say it, in memory that nobody else sees."""
    lines, new = _emit_new_value(modify, letter, bits, flushes)
    return f"  %old = load i{bits}, ptr %pointer\n{lines}\n  store i{bits} {new}, ptr %pointer\n"


def _emit_new_value(modify: Modify, letter: str, bits: int, flushes: tuple[bool, bool]) -> tuple[str, str]:
    """Lines that work out the new value of %old, %data.v and %second.v, and its name."""
    emitter = Emitter()
    ops = LlvmOps(emitter)
    bare, typed = Type(Kind.UINT, bits), Type(_KINDS.get(letter, Kind.UINT), bits)
    old, data, second = (ops.value(bare, f"%{name}").as_(typed) for name in ("old", "data.v", "second.v"))
    if letter == "n":
        new = extreme_number(modify, old, data).as_(bare)
    else:
        new = add_packed(letter, old, data) if letter in "pb" else apply_modify_flushing(
            modify, old, data, second, flushes).as_(bare)
    return "\n".join(emitter.lines), str(new.ref)


_ENTRY = """
entry:
  br label %test
"""
# What the quick way of a lane names itself: all but arguments and %origin.
_OWN_NAME = re.compile(r"%(?!(?:exec|base|addresses|data|second|result|origin)(?![\w.]))([\w.]+)")

# LDS: are all active lanes' dwords inside, and aligned?
_ALL_INSIDE = """
entry:
  %lds = get wave.lds of %wave
  %lds.bytes = get wave.lds_bytes of %wave
  %origin = add i64 %lds, %base
  %behind = add i64 %base, $size
  %most = sub i64 %lds.bytes, %behind
  %has.room = icmp sge i64 %most, 0
  %most32 = trunc i64 %most to i32
  %base32 = trunc i64 %base to i32
  %most.one = insertelement $v poison, i32 %most32, i64 0
  %most.all = shufflevector $v %most.one, $v poison, $v zeroinitializer
  %base.one = insertelement $v poison, i32 %base32, i64 0
  %base.all = shufflevector $v %base.one, $v poison, $v zeroinitializer
  %less.one = insertelement $v poison, i32 $less, i64 0
  %less.all = shufflevector $v %less.one, $v poison, $v zeroinitializer
  %every = load $v, ptr %addresses, align 4
  %beyond = icmp ugt $v %every, %most.all
  %places = add $v %every, %base.all
  %low.bits = and $v %places, %less.all
  %odd = icmp ne $v %low.bits, zeroinitializer
  %wrong = or <$n x i1> %beyond, %odd
  %wrong.bits = bitcast <$n x i1> %wrong to i$n
  %wrong.lanes = $all_lanes
  %wrong.active = and i64 %wrong.lanes, %exec
  %none.wrong = icmp eq i64 %wrong.active, 0
  %inside = and i1 %none.wrong, %has.room
  br i1 %inside, label %some, label %all
some:
  %nobody = icmp eq i64 %exec, 0
  br i1 %nobody, label %gone, label %each
"""

_LANE_INSIDE = """
each:
  %left = phi i64 [ %exec, %some ], [ %rest, %each ]
  %lane = call i64 @llvm.cttz.i64(i64 %left, i1 true)
  %p.low = getelementptr i32, ptr %addresses, i64 %lane
  %low32 = load i32, ptr %p.low
  %low = zext i32 %low32 to i64
  %at = add i64 %origin, %low
  %pointer = inttoptr i64 %at to ptr
"""

_NEXT_INSIDE = """
  %fewer = add i64 %left, -1
  %rest = and i64 %left, %fewer
  %over = icmp eq i64 %rest, 0
  br i1 %over, label %gone, label %each
"""

_HEAD = """
declare ptr @luthier_resolve(ptr, i64, i64, ptr, i64, i64)
declare i64 @llvm.cttz.i64(i64, i1)

define i1 @$name(ptr %wave, i64 %exec, i64 %base, ptr %addresses, ptr %data, ptr %second, ptr %result, ptr %site) {
""" + _ENTRY + """
test:
  %left = phi i64 [ %exec, %entry ], [ %rest, %next ]
  %changed = phi i64 [ 0, %entry ], [ %changed.now, %next ]
  %over = icmp eq i64 %left, 0
  br i1 %over, label %done, label %body
body:
  %lane = call i64 @llvm.cttz.i64(i64 %left, i1 false)
  %p.low = getelementptr i32, ptr %addresses, i64 %lane
  %low32 = load i32, ptr %p.low
  %low = zext i32 %low32 to i64
  %near = add i64 %base, %low
"""

_HIGH = """
  %p.high = getelementptr i8, ptr %p.low, i64 $row
  %high32 = load i32, ptr %p.high
  %high = zext i32 %high32 to i64
  %high64 = shl i64 %high, 32
  %at = add i64 %near, %high64
"""

_SITE_WINDOW = """
  %begin = get site.base of %site
  %finish = get site.end of %site
  %place = add i64 %at, 0
"""

_LDS_WINDOW = """
  %begin = get wave.lds of %wave
  %bytes = get wave.lds_bytes of %wave
  %finish = add i64 %begin, %bytes
  %place = add i64 %begin, %at
"""

_POINTER = """
  %into = sub i64 %place, %begin
  %length = sub i64 %finish, %begin
  %begins = icmp ult i64 %into, %length
  %room = sub i64 %length, %into
  %fits = icmp ule i64 $size, %room
  %crooked = and i64 %at, $less
  %straight = icmp eq i64 %crooked, 0
  %within = and i1 %begins, %fits
  %easy = and i1 %within, %straight
  %direct = inttoptr i64 %place to ptr
  br i1 %easy, label %go, label %look
look:
  %found = call ptr @luthier_resolve(ptr %wave, i64 %at, i64 $size, ptr %site, i64 %lane, i64 $flags)
  %lost = icmp eq ptr %found, null
  br i1 %lost, label %failed, label %go
go:
  %pointer = phi ptr [ %direct, %body ], [ %found, %look ]
"""

_WRITE_WORD = """
  %p.result = getelementptr i32, ptr %result, i64 %lane
  store i32 %old, ptr %p.result
"""

_WRITE_PAIR = """
  %p.result = getelementptr i32, ptr %result, i64 %lane
  %q.result = getelementptr i8, ptr %p.result, i64 $row
  %old.low = trunc i64 %old to i32
  %old.up = lshr i64 %old, 32
  %old.high = trunc i64 %old.up to i32
  store i32 %old.low, ptr %p.result
  store i32 %old.high, ptr %q.result
"""

_TAIL = """
  br label %next
next:
  %changed.now = or i64 %changed, %change
  %fewer = add i64 %left, -1
  %rest = and i64 %left, %fewer
  br label %test
done:
  %change.worker.at = get wave.worker of %wave
  %change.worker = inttoptr i64 %change.worker.at to ptr
  %changes = get worker.changes of %change.worker
  %changes.now = add i64 %changes, %changed
  put worker.changes of %change.worker, %changes.now
  ret i1 true
failed:
  ret i1 false
}
"""
