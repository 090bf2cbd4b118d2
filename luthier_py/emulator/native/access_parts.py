"""LLVM IR that native puts together: the parts of loads and stores that do not depend on the element.

In: nothing. Out: text for template.expand. $n: lanes; $v: a row, as a vector; $flags: a mask, as a
vector; $row: bytes of a row; $bytes: of an element; $distance: of a pair's second element.
"""

from __future__ import annotations

from luthier_py.emulator.records.layout import STRIP

_STRIP = f"<{STRIP} x i32>"
_LANE_BITS = [1 << lane for lane in range(STRIP)]

HEADER = """
declare ptr @luthier_resolve(ptr, i64, i64, ptr, i64, i64)
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare $v @llvm.usub.sat.v${n}i32($v, $v)
declare i32 @llvm.vector.reduce.or.v${n}i32($v)
declare i32 @llvm.vector.reduce.or.v16i32(<16 x i32>)
declare <16 x i32> @llvm.usub.sat.v16i32(<16 x i32>, <16 x i32>)

define i1 @$name(ptr %wave, i64 %exec, i64 %base, ptr %addresses, ptr %data, ptr %site, i64 %distance, ptr %data2) {
entry:
  %exec.bits = bitcast i64 %exec to <64 x i1>
  %mask = shufflevector <64 x i1> %exec.bits, <64 x i1> poison, <$n x i32> <$numbers>
"""

LDS_WINDOW = """
  %begin = get wave.lds of %wave
  %lds.bytes = get wave.lds_bytes of %wave
  %finish = add i64 %begin, %lds.bytes
  %start = add i64 %begin, %base
"""

SITE_WINDOW = """
  %begin = get site.base of %site
  %finish = get site.end of %site
"""

# The high half of the first active lane's address; the others must agree.
FAR_START = """
  %first = call i64 @llvm.cttz.i64(i64 %exec, i1 false)
  %first.lane = and i64 %first, $lane_bits
  %p.highs = getelementptr i8, ptr %addresses, i64 $row
  %p.high = getelementptr i32, ptr %p.highs, i64 %first.lane
  %high = load i32, ptr %p.high, align 4
  %high.wide = zext i32 %high to i64
  %high.bits = shl i64 %high.wide, 32
  %start = add i64 %base, %high.bits
"""

# %least and %most: the offsets that lie inside the window, if it is %possible that one does. Overflow makes %most
# negative, except in a window too small for anything.
BOUNDS = """
  %least.signed = sub i64 %begin, %start
  %least = call i64 @llvm.smax.i64(i64 %least.signed, i64 0)
  %last = add i64 %start, $bytes
  %very.last = add i64 %last, $distance
  %most.signed = sub i64 %finish, %very.last
  %most = call i64 @llvm.smin.i64(i64 %most.signed, i64 4294967295)
  %ordered = icmp sle i64 %least, %most
  %window = sub i64 %finish, %begin
  %needed = add i64 $bytes, $distance
  %holds.one = icmp uge i64 %window, %needed
  %possible = and i1 %ordered, %holds.one
  %least32 = trunc i64 %least to i32
  %span = sub i64 %most, %least
  %span32 = trunc i64 %span to i32
"""

ALL_POSSIBLE = """
  br i1 %possible, label %check, label %slow
"""

# How far the lanes are %over: 0 inside.
CHECK = """
check:
  %offsets = load $v, ptr %addresses, align 4
  %least.one = insertelement $v poison, i32 %least32, i64 0
  %least.all = shufflevector $v %least.one, $v poison, $v zeroinitializer
  %span.one = insertelement $v poison, i32 %span32, i64 0
  %span.all = shufflevector $v %span.one, $v poison, $v zeroinitializer
  %inner = sub $v %offsets, %least.all
  %over = call $v @llvm.usub.sat.v${n}i32($v %inner, $v %span.all)
"""

HIGH_HALVES = """
  %highs = load $v, ptr %p.highs, align 4
  %high.one = insertelement $v poison, i32 %high, i64 0
  %high.all = shufflevector $v %high.one, $v poison, $v zeroinitializer
  %different = xor $v %highs, %high.all
  %wrong = or $v %over, %different
"""

ALL = """
all:
  %bad.all = call i32 @llvm.vector.reduce.or.v${n}i32($v %wrong)
  %ok.all = icmp eq i32 %bad.all, 0
  br i1 %ok.all, label %pattern, label %slow
"""

# Branches to %slow unless every active lane lies inside the window; to %pattern if EXEC is full, else to %loop.
DECIDE = """
  %full = icmp eq i64 %exec, $all
  br i1 %full, label %all, label %some
""" + ALL + """
some:
"""

# The same, where EXEC is never full.
SOME = """
  %active = select $flags %mask, $v %wrong, $v zeroinitializer
  %bad.some = call i32 @llvm.vector.reduce.or.v${n}i32($v %active)
  %ok.some = icmp eq i32 %bad.some, 0
  br i1 %ok.some, label %loop, label %slow
"""

PATTERN = """
pattern:
  %firsts = shufflevector $v %offsets, $v poison, $v <FIRSTS>
  %deltas = sub $v %offsets, %firsts
  %unlike = xor $v %deltas, <STEPS>
  %wrapped = icmp ult $v %offsets, %firsts
  %wrapped.wide = sext $flags %wrapped to $v
  %uneven = or $v %unlike, %wrapped.wide
  %any.uneven = call i32 @llvm.vector.reduce.or.v${n}i32($v %uneven)
  %even = icmp eq i32 %any.uneven, 0
"""

ONLY_CONSECUTIVE = """
  br i1 %even, label %consecutive, label %loop
"""

ALSO_UNIFORM = """
  br i1 %even, label %consecutive, label %perhaps.uniform
perhaps.uniform:
  %any.delta = call i32 @llvm.vector.reduce.or.v${n}i32($v %deltas)
  %same = icmp eq i32 %any.delta, 0
  br i1 %same, label %uniform, label %loop
"""

# Some lanes in LDS are checked when it is their strip's turn.
_BY_STRIP = """
  br i1 %possible, label %decide, label %slow
decide:
  %every.least.one = insertelement STRIPS poison, i32 %least32, i64 0
  %every.least = shufflevector STRIPS %every.least.one, STRIPS poison, STRIPS zeroinitializer
  %every.span.one = insertelement STRIPS poison, i32 %span32, i64 0
  %every.span = shufflevector STRIPS %every.span.one, STRIPS poison, STRIPS zeroinitializer
  %full = icmp eq i64 %exec, $all
  br i1 %full, label %check, label %strip0
"""

# The slow way begins with the first lane again: what was stored is stored once more, and stays what it was.
_STRIP_OF_LDS = """
stripLANE:
  %c.up = lshr i64 %exec, LANE
  %c.bits = trunc i64 %c.up to i16
  %c.none = icmp eq i16 %c.bits, 0
  br i1 %c.none, label %AFTER, label %someLANE
someLANE:
  %c.wide.bits = zext i16 %c.bits to i32
  %c.bits.one = insertelement STRIPS poison, i32 %c.wide.bits, i64 0
  %c.bits.all = shufflevector STRIPS %c.bits.one, STRIPS poison, STRIPS zeroinitializer
  %c.own.bits = and STRIPS %c.bits.all, <BITS>
  %c.mask = icmp ne STRIPS %c.own.bits, zeroinitializer
  %c.addresses = getelementptr i32, ptr %addresses, i64 LANE
  %c.offsets = load STRIPS, ptr %c.addresses, align 4
  %c.inner = sub STRIPS %c.offsets, %every.least
  %c.over = call STRIPS @llvm.usub.sat.v16i32(STRIPS %c.inner, STRIPS %every.span)
  %c.wrong = select <16 x i1> %c.mask, STRIPS %c.over, STRIPS zeroinitializer
  %c.any.wrong = call i32 @llvm.vector.reduce.or.v16i32(STRIPS %c.wrong)
  %c.right = icmp eq i32 %c.any.wrong, 0
  br i1 %c.right, label %rightLANE, label %slow
rightLANE:
  %c.first = extractelement STRIPS %c.offsets, i64 0
  %c.first.one = insertelement STRIPS poison, i32 %c.first, i64 0
  %c.first.all = shufflevector STRIPS %c.first.one, STRIPS poison, STRIPS zeroinitializer
  %c.deltas = sub STRIPS %c.offsets, %c.first.all
  %c.unlike = xor STRIPS %c.deltas, <STEPS>
  %c.wrapped = icmp ult STRIPS %c.offsets, %c.first.all
  %c.wrapped.wide = sext <16 x i1> %c.wrapped to STRIPS
  %c.uneven = or STRIPS %c.unlike, %c.wrapped.wide
  %c.bad = or STRIPS %c.uneven, %c.over
  %c.any.bad = call i32 @llvm.vector.reduce.or.v16i32(STRIPS %c.bad)
  %c.even = icmp eq i32 %c.any.bad, 0
  %c.data = getelementptr i32, ptr %data, i64 LANE
  br i1 %c.even, label %evenLANE, label %lanesLANE
evenLANE:
  %c.wide = zext i32 %c.first to i64
  %c.at = add i64 %start, %c.wide
  %c.p = inttoptr i64 %c.at to ptr
  %c.new = load STRIPS, ptr %c.data, align 4
  %c.old = load STRIPS, ptr %c.p, align 1
  %c.kept = select <16 x i1> %c.mask, STRIPS %c.new, STRIPS %c.old
  store volatile STRIPS %c.kept, ptr %c.p, align 1
  br label %AFTER
lanesLANE:
  %c.some = zext i16 %c.bits to i64
  br label %eachLANE
eachLANE:
  %c.left = phi i64 [ %c.some, %lanesLANE ], [ %c.rest, %eachLANE ]
  %c.lane = call i64 @llvm.cttz.i64(i64 %c.left, i1 true)
  %c.number = add i64 %c.lane, LANE
  %c.l.a = getelementptr i32, ptr %addresses, i64 %c.number
  %c.l.off = load i32, ptr %c.l.a, align 4
  %c.l.wide = zext i32 %c.l.off to i64
  %c.l.at = add i64 %start, %c.l.wide
  %c.l.p = inttoptr i64 %c.l.at to ptr
  %c.l.d = getelementptr i32, ptr %data, i64 %c.number
  %c.l.x = load i32, ptr %c.l.d, align 4
  store i32 %c.l.x, ptr %c.l.p, align 1
  %c.less = add i64 %c.left, -1
  %c.rest = and i64 %c.left, %c.less
  %c.over.now = icmp eq i64 %c.rest, 0
  br i1 %c.over.now, label %AFTER, label %eachLANE
"""

PRIVATE = """
  %first = call i64 @llvm.cttz.i64(i64 %exec, i1 false)
  %first.lane = and i64 %first, $lane_bits
  %p.offset = getelementptr i32, ptr %addresses, i64 %first.lane
  %offset32 = load i32, ptr %p.offset, align 4
  %offset.one = insertelement $v poison, i32 %offset32, i64 0
  %offset.all = shufflevector $v %offset.one, $v poison, $v zeroinitializer
  %offsets = load $v, ptr %addresses, align 4
  %different = xor $v %offsets, %offset.all
  %active = select $flags %mask, $v %different, $v zeroinitializer
  %any.different = call i32 @llvm.vector.reduce.or.v${n}i32($v %active)
  %same = icmp eq i32 %any.different, 0
  %offset.wide = zext i32 %offset32 to i64
  %offset.carry = add i64 %base, %offset.wide
  %offset = and i64 %offset.carry, 4294967295
  %in.word = and i64 %offset, 3
  %aligned = icmp eq i64 %in.word, 0
  %scratch.bytes = get wave.scratch_bytes of %wave
  %last = add i64 %offset, $bytes
  %starts = icmp ult i64 %offset, %scratch.bytes
  %ends = icmp ule i64 %last, %scratch.bytes
  %inside = and i1 %starts, %ends
  %even = and i1 %same, %aligned
  %easy = and i1 %even, %inside
  br i1 %easy, label %rows, label %varied
rows:
  %scratch.at = get wave.scratch of %wave
  %scratch = inttoptr i64 %scratch.at to ptr
  %cell = mul i64 %offset, $n
  %cells = getelementptr i8, ptr %scratch, i64 %cell
"""

# Branches to %slow unless each active lane's offset is that of a word inside.
PRIVATE_LANES = """
varied:
  %base32 = trunc i64 %base to i32
  %base.one = insertelement $v poison, i32 %base32, i64 0
  %base.all = shufflevector $v %base.one, $v poison, $v zeroinitializer
  %places = add $v %offsets, %base.all
  %three.one = insertelement $v poison, i32 3, i64 0
  %three.all = shufflevector $v %three.one, $v poison, $v zeroinitializer
  %bits.in.word = and $v %places, %three.all
  %latest = sub i64 %scratch.bytes, $bytes
  %latest32 = trunc i64 %latest to i32
  %latest.one = insertelement $v poison, i32 %latest32, i64 0
  %latest.all = shufflevector $v %latest.one, $v poison, $v zeroinitializer
  %too.far = call $v @llvm.usub.sat.v${n}i32($v %places, $v %latest.all)
  %bad = or $v %bits.in.word, %too.far
  %bad.active = select $flags %mask, $v %bad, $v zeroinitializer
  %any.bad = call i32 @llvm.vector.reduce.or.v${n}i32($v %bad.active)
  %none.bad = icmp eq i32 %any.bad, 0
  %has.room = icmp uge i64 %scratch.bytes, $bytes
  %words.inside = and i1 %none.bad, %has.room
  br i1 %words.inside, label %each.first, label %slow
each.first:
  %each.scratch.at = get wave.scratch of %wave
  %each.scratch = inttoptr i64 %each.scratch.at to ptr
  br label %each
"""

PRIVATE_LANE = """
  %e.a = getelementptr i32, ptr %addresses, i64 %each.lane
  %e.offset = load i32, ptr %e.a, align 4
  %e.place = add i32 %e.offset, %base32
  %e.wide = zext i32 %e.place to i64
  %e.row = mul i64 %e.wide, $n
  %e.rows = getelementptr i8, ptr %each.scratch, i64 %e.row
  %e.cell = getelementptr i32, ptr %e.rows, i64 %each.lane
  %e.data = getelementptr i32, ptr %data, i64 %each.lane
"""

SLOW_ADDRESS = """
  %s.a = getelementptr i32, ptr %addresses, i64 %scan.lane
  %s.off = load i32, ptr %s.a, align 4
  %s.wide = zext i32 %s.off to i64
  %s.near = add i64 %base, %s.wide
"""

SLOW_HIGH = """
  %s.b = getelementptr i8, ptr %s.a, i64 $row
  %s.hi = load i32, ptr %s.b, align 4
  %s.hi64 = zext i32 %s.hi to i64
  %s.up = shl i64 %s.hi64, 32
  %s.at = add i64 %s.near, %s.up
"""

SLOW_END = """
scanned:
  ret i1 true
failed:
  ret i1 false
"""

STORED = """
stored:
  %change.worker.at = get wave.worker of %wave
  %change.worker = inttoptr i64 %change.worker.at to ptr
  %changes = get worker.changes of %change.worker
  %any.lane = icmp ne i64 %exec, 0
  %one.change = zext i1 %any.lane to i64
  %changes.now = add i64 %changes, %one.change
  put worker.changes of %change.worker, %changes.now
  ret i1 true
"""


def stores_by_strip(lanes: int, all_lanes: str) -> str:
    """Lanes of EXEC in LDS, which nobody else sees meanwhile: what is stored between them stays what it was. Behind
    BOUNDS; ``all_lanes``: what is tried where EXEC is full, with a branch to %loop where that does not do."""
    text = _BY_STRIP + all_lanes.replace("label %loop", "label %strip0")
    steps, bits = (", ".join(f"i32 {each}" for each in of) for of in (range(0, 4 * STRIP, 4), _LANE_BITS))
    for lane in range(0, lanes, STRIP):
        after = f"strip{lane + STRIP}" if lane + STRIP < lanes else "done"
        strip = _STRIP_OF_LDS.replace("STEPS", steps).replace("BITS", bits).replace("AFTER", after)
        text += strip.replace("LANE", str(lane)).replace("%c.", f"%c{lane}.")
    return text.replace("STRIPS", _STRIP) + "done:\n  ret i1 true\n"


def pick() -> str:
    """``luthier_pick(place, offsets)``: the dwords at offsets from a place, of a strip."""
    text = f"define {_STRIP} @luthier_pick(ptr %place, {_STRIP} %offsets) {{\n"
    found = "poison"
    for lane in range(STRIP):
        text += f"""
  %o{lane} = extractelement {_STRIP} %offsets, i64 {lane}
  %w{lane} = zext i32 %o{lane} to i64
  %p{lane} = getelementptr i8, ptr %place, i64 %w{lane}
  %x{lane} = load i32, ptr %p{lane}, align 1
  %v{lane} = insertelement {_STRIP} {found}, i32 %x{lane}, i64 {lane}
"""
        found = f"%v{lane}"
    return f"{text}  ret {_STRIP} {found}\n}}\n"
