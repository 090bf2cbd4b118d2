"""What the cycle model works out at run time: banks and lines from real addresses, waits from counters.

In: the name of a support function, ``luthier_time_...``. Out: its LLVM IR.

    banks    (wave, mask, base, addresses, parities, bits of groups, banks, dwords, atomic, number of a pattern)
             -> cycles (isa/timing/lds_banks): one at least of each group; addresses that are all as far apart as before
             take as long
    lines    (wave, mask, base, addresses, far, bytes, line bytes, bytes in a cycle, least) -> cycles
    issue    (wave, offset, own, shared, latency, field free, field busy, first, counters): an access begins
    wait     (wave, counter, count) -> the cycle in which at most ``count`` accesses are not yet there; 0 where none was

Invariant: accesses that a counter counts come back in order.
"""

from __future__ import annotations

from luthier_py.emulator.records.layout import TIME, TIME_COUNTERS_AT, TIME_PATTERN_BYTES, TIME_PATTERNS_AT, TIME_RING
from luthier_py.emulator.records.template import expand


def time_function(name: str, wave_size: int) -> str:
    """The definition of the support function."""
    text = _TEXTS[name.split("_")[2]]
    return expand(text, name=name, lanes=wave_size, now=TIME["now"], counters=TIME_COUNTERS_AT, last=TIME_RING - 1,
                  stride=8 * (TIME_RING + 1), row=4 * wave_size, patterns=TIME_PATTERNS_AT,
                  pattern_bytes=TIME_PATTERN_BYTES, numbers=", ".join(f"i32 {lane}" for lane in range(wave_size)))


_BANKS = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.cttz.i64(i64, i1)
declare i32 @llvm.vector.reduce.or.v${lanes}i32(<$lanes x i32>)

define i64 @$name(ptr %wave, i64 %mask, i64 %base, ptr %addresses, i64 %parities, i64 %bits, i64 %banks,
                  i64 %dwords, i64 %atomic, i64 %number) {
entry:
  %any = icmp ne i64 %mask, 0
  br i1 %any, label %known, label %none
none:
  ret i64 0
known:  ; is it the pattern that was here before?
  %time.at = get wave.time of %wave
  %time = inttoptr i64 %time.at to ptr
  %patterns = getelementptr i8, ptr %time, i64 $patterns
  %pattern.at = mul i64 %number, $pattern_bytes
  %pattern = getelementptr i8, ptr %patterns, i64 %pattern.at
  %p.mask = getelementptr i8, ptr %pattern, i64 8
  %p.cycles = getelementptr i8, ptr %pattern, i64 16
  %p.distances = getelementptr i8, ptr %pattern, i64 24
  %lead = call i64 @llvm.cttz.i64(i64 %mask, i1 true)
  %p.lead = getelementptr i32, ptr %addresses, i64 %lead
  %lead32 = load i32, ptr %p.lead, align 4
  %lead.one = insertelement <$lanes x i32> poison, i32 %lead32, i64 0
  %lead.all = shufflevector <$lanes x i32> %lead.one, <$lanes x i32> poison, <$lanes x i32> zeroinitializer
  %all = load <$lanes x i32>, ptr %addresses, align 4
  %apart = sub <$lanes x i32> %all, %lead.all
  %mask.flags = bitcast i64 %mask to <64 x i1>
  %flags = shufflevector <64 x i1> %mask.flags, <64 x i1> poison, <$lanes x i32> <$numbers>
  %distances = select <$lanes x i1> %flags, <$lanes x i32> %apart, <$lanes x i32> zeroinitializer
  %lead64 = zext i32 %lead32 to i64
  %lead.byte = add i64 %lead64, %base
  %in.word = and i64 %lead.byte, 3
  %key.bits = shl i64 %bits, 24
  %key.banks = shl i64 %banks, 28
  %key.dwords = shl i64 %dwords, 40
  %key.atomic = shl i64 %atomic, 44
  %key.in.word = shl i64 %in.word, 48
  %key.1 = or i64 %parities, %key.bits
  %key.2 = or i64 %key.1, %key.banks
  %key.3 = or i64 %key.2, %key.dwords
  %key.4 = or i64 %key.3, %key.atomic
  %key = or i64 %key.4, %key.in.word
  %old.key = load i64, ptr %pattern
  %old.mask = load i64, ptr %p.mask
  %old.distances = load <$lanes x i32>, ptr %p.distances, align 8
  %different = xor <$lanes x i32> %distances, %old.distances
  %any.different = call i32 @llvm.vector.reduce.or.v${lanes}i32(<$lanes x i32> %different)
  %as.far = icmp eq i32 %any.different, 0
  %same.key = icmp eq i64 %key, %old.key
  %same.mask = icmp eq i64 %mask, %old.mask
  %same.both = and i1 %same.key, %same.mask
  %same.all = and i1 %same.both, %as.far
  br i1 %same.all, label %again, label %count.all
again:
  %old.cycles = load i64, ptr %p.cycles
  ret i64 %old.cycles
count.all:  ; for each bank of each group: how many words it has to give, and which; and the most of the group's banks
  %counts = alloca [512 x i64], align 8
  %words = alloca [16384 x i64], align 8
  %most = alloca [8 x i64], align 8
  %groups = shl i64 1, %bits
  %used = mul i64 %groups, 512
  call void @llvm.memset.p0.i64(ptr %counts, i8 0, i64 %used, i1 false)
  call void @llvm.memset.p0.i64(ptr %most, i8 0, i64 64, i1 false)
  %alone = icmp ne i64 %atomic, 0
  %last.bank = sub i64 %banks, 1
  br label %lane
lane:
  %i = phi i64 [ 0, %count.all ], [ %i.next, %lane.done ]
  %shifted = lshr i64 %mask, %i
  %bit = and i64 %shifted, 1
  %on = icmp ne i64 %bit, 0
  br i1 %on, label %parity, label %lane.done
parity:
  %k = phi i64 [ 0, %lane ], [ %k.next, %parity.next ]
  %group = phi i64 [ 0, %lane ], [ %group.next, %parity.next ]
  %more.bits = icmp ult i64 %k, %bits
  br i1 %more.bits, label %parity.next, label %grouped
parity.next:
  %k8 = mul i64 %k, 8
  %parity.shifted = lshr i64 %parities, %k8
  %parity.mask = and i64 %parity.shifted, 255
  %met = and i64 %i, %parity.mask
  %ones = call i64 @llvm.ctpop.i64(i64 %met)
  %odd = and i64 %ones, 1
  %placed = shl i64 %odd, %k
  %group.next = or i64 %group, %placed
  %k.next = add i64 %k, 1
  br label %parity
grouped:
  %p.address = getelementptr i32, ptr %addresses, i64 %i
  %address32 = load i32, ptr %p.address, align 4
  %address = zext i32 %address32 to i64
  %byte = add i64 %address, %base
  %first = lshr i64 %byte, 2
  %end = add i64 %first, %dwords
  %p.most = getelementptr i64, ptr %most, i64 %group
  %group.banks = mul i64 %group, 64
  br label %word
word:
  %w = phi i64 [ %first, %grouped ], [ %w.next, %word.done ]
  %bank = and i64 %w, %last.bank
  %cell = add i64 %group.banks, %bank
  %p.count = getelementptr i64, ptr %counts, i64 %cell
  %count = load i64, ptr %p.count
  %list.at = mul i64 %cell, 32
  %list = getelementptr i64, ptr %words, i64 %list.at
  br i1 %alone, label %fresh, label %search
search:  ; does a lane before want it, too?
  %n = phi i64 [ 0, %word ], [ %n.next, %search.next ]
  %over = icmp uge i64 %n, %count
  br i1 %over, label %keep, label %search.next
search.next:
  %p.other = getelementptr i64, ptr %list, i64 %n
  %other = load i64, ptr %p.other
  %same = icmp eq i64 %other, %w
  %n.next = add i64 %n, 1
  br i1 %same, label %word.done, label %search
keep:
  %place = and i64 %count, 31
  %p.place = getelementptr i64, ptr %list, i64 %place
  store i64 %w, ptr %p.place
  br label %fresh
fresh:
  %count.now = add i64 %count, 1
  store i64 %count.now, ptr %p.count
  %most.before = load i64, ptr %p.most
  %most.now = call i64 @llvm.umax.i64(i64 %most.before, i64 %count.now)
  store i64 %most.now, ptr %p.most
  br label %word.done
word.done:
  %w.next = add i64 %w, 1
  %more.words = icmp ult i64 %w.next, %end
  br i1 %more.words, label %word, label %lane.done
lane.done:
  %i.next = add i64 %i, 1
  %more.lanes = icmp ult i64 %i.next, $lanes
  br i1 %more.lanes, label %lane, label %sum
sum:
  %g = phi i64 [ 0, %lane.done ], [ %g.next, %sum ]
  %total = phi i64 [ 0, %lane.done ], [ %total.next, %sum ]
  %p.g = getelementptr i64, ptr %most, i64 %g
  %of.g = load i64, ptr %p.g
  %cycles.g = call i64 @llvm.umax.i64(i64 %of.g, i64 1)  ; also where no lane of it is active
  %total.next = add i64 %total, %cycles.g
  %g.next = add i64 %g, 1
  %more.groups = icmp ult i64 %g.next, %groups
  br i1 %more.groups, label %sum, label %done
done:
  store i64 %key, ptr %pattern
  store i64 %mask, ptr %p.mask
  store i64 %total.next, ptr %p.cycles
  store <$lanes x i32> %distances, ptr %p.distances, align 8
  ret i64 %total.next
}
"""

_LINES = """
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.umax.i64(i64, i64)

define i64 @$name(ptr %wave, i64 %mask, i64 %base, ptr %addresses, i64 %far, i64 %bytes, i64 %line.bytes,
                  i64 %rate, i64 %least) {
entry:
  %lines = alloca [256 x i64], align 8
  %lasts = sub i64 %bytes, 1
  %is.far = icmp ne i64 %far, 0
  br label %lane
lane:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %found = phi i64 [ 0, %entry ], [ %found.next, %next ]
  %shifted = lshr i64 %mask, %i
  %bit = and i64 %shifted, 1
  %on = icmp ne i64 %bit, 0
  br i1 %on, label %reads, label %next
reads:
  %p.low = getelementptr i32, ptr %addresses, i64 %i
  %low32 = load i32, ptr %p.low, align 4
  %low = zext i32 %low32 to i64
  br i1 %is.far, label %reads.high, label %known
reads.high:
  %p.high = getelementptr i8, ptr %p.low, i64 $row
  %high32 = load i32, ptr %p.high, align 4
  %high.wide = zext i32 %high32 to i64
  %high = shl i64 %high.wide, 32
  br label %known
known:
  %upper = phi i64 [ 0, %reads ], [ %high, %reads.high ]
  %offset = or i64 %upper, %low
  %at = add i64 %offset, %base
  %end = add i64 %at, %lasts
  %first = udiv i64 %at, %line.bytes
  %last = udiv i64 %end, %line.bytes
  br label %each
each:  ; of the lines that the lane touches
  %line = phi i64 [ %first, %known ], [ %line.next, %each.done ]
  %now = phi i64 [ %found, %known ], [ %now.next, %each.done ]
  %over = icmp ugt i64 %line, %last
  br i1 %over, label %touched, label %search
search:
  %k = phi i64 [ %now, %each ], [ %k.before, %search.next ]
  %none = icmp eq i64 %k, 0
  br i1 %none, label %new, label %search.next
search.next:
  %k.before = sub i64 %k, 1
  %p.line = getelementptr i64, ptr %lines, i64 %k.before
  %other = load i64, ptr %p.line
  %same = icmp eq i64 %other, %line
  br i1 %same, label %old, label %search
new:
  %full = icmp uge i64 %now, 256
  br i1 %full, label %old, label %keep
keep:
  %p.new = getelementptr i64, ptr %lines, i64 %now
  store i64 %line, ptr %p.new
  %now.more = add i64 %now, 1
  br label %each.done
old:
  br label %each.done
each.done:
  %now.next = phi i64 [ %now.more, %keep ], [ %now, %old ]
  %line.next = add i64 %line, 1
  br label %each
touched:
  br label %next
next:
  %found.next = phi i64 [ %found, %lane ], [ %now, %touched ]
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, $lanes
  br i1 %more, label %lane, label %done
done:
  %active = call i64 @llvm.ctpop.i64(i64 %mask)
  %moved = mul i64 %active, %bytes
  %round = sub i64 %rate, 1
  %up = add i64 %moved, %round
  %cycles = udiv i64 %up, %rate
  %most = call i64 @llvm.umax.i64(i64 %cycles, i64 %found.next)
  %held = call i64 @llvm.umax.i64(i64 %most, i64 %least)
  ret i64 %held
}
"""

_ISSUE = """
declare i64 @llvm.umax.i64(i64, i64)

define void @$name(ptr %wave, i64 %offset, i64 %own, i64 %shared, i64 %latency, i64 %free.at,
                   i64 %busy.at, i64 %first, i64 %counters) {
entry:
  %time.at = get wave.time of %wave
  %time = inttoptr i64 %time.at to ptr
  %p.now = getelementptr i8, ptr %time, i64 $now
  %before = load i64, ptr %p.now
  %now = add i64 %before, %offset
  %p.free = getelementptr i8, ptr %time, i64 %free.at
  %free = load i64, ptr %p.free
  %begin = call i64 @llvm.umax.i64(i64 %now, i64 %free)
  %done = add i64 %begin, %own
  store i64 %done, ptr %p.free
  %p.busy = getelementptr i8, ptr %time, i64 %busy.at
  %busy = load i64, ptr %p.busy
  %busy.now = add i64 %busy, %shared
  store i64 %busy.now, ptr %p.busy
  %there = add i64 %done, %latency
  %all = getelementptr i8, ptr %time, i64 $counters
  br label %next
next:  ; counter by counter
  %left = phi i64 [ %counters, %entry ], [ %left.next, %after ]
  %place = phi i64 [ 0, %entry ], [ %place.next, %after ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %end, label %look
look:
  %bit = and i64 %left, 1
  %on = icmp ne i64 %bit, 0
  br i1 %on, label %count, label %after
count:
  %counter = getelementptr i8, ptr %all, i64 %place
  %issued = load i64, ptr %counter
  %ring = getelementptr i8, ptr %counter, i64 8
  %last = sub i64 %issued, 1
  %last.place = and i64 %last, $last
  %p.last = getelementptr i64, ptr %ring, i64 %last.place
  %last.there = load i64, ptr %p.last
  %in.order = call i64 @llvm.umax.i64(i64 %there, i64 %last.there)
  %is.first = icmp ne i64 %first, 0
  %number = select i1 %is.first, i64 %issued, i64 %last
  %number.place = and i64 %number, $last
  %p.number = getelementptr i64, ptr %ring, i64 %number.place
  store i64 %in.order, ptr %p.number
  %issued.now = add i64 %issued, %first
  store i64 %issued.now, ptr %counter
  br label %after
after:
  %left.next = lshr i64 %left, 1
  %place.next = add i64 %place, $stride
  br label %next
end:
  ret void
}
"""

_WAIT = """
define i64 @$name(ptr %wave, i64 %counter, i64 %count) {
entry:
  %time.at = get wave.time of %wave
  %time = inttoptr i64 %time.at to ptr
  %all = getelementptr i8, ptr %time, i64 $counters
  %place = mul i64 %counter, $stride
  %p.counter = getelementptr i8, ptr %all, i64 %place
  %issued = load i64, ptr %p.counter
  %ring = getelementptr i8, ptr %p.counter, i64 8
  %some = icmp ugt i64 %issued, %count
  br i1 %some, label %look, label %none
look:
  %rest = sub i64 %issued, %count
  %number = sub i64 %rest, 1
  %number.place = and i64 %number, $last
  %p.number = getelementptr i64, ptr %ring, i64 %number.place
  %there = load i64, ptr %p.number
  ret i64 %there
none:
  ret i64 0
}
"""

_TEXTS = {"banks": _BANKS, "lines": _LINES, "issue": _ISSUE, "wait": _WAIT}
