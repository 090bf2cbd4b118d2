"""The schedulers, in native code: they run the waves of work-groups until Python is needed.

In: records of layout. Out: LLVM IR of ``i64 luthier_run(ptr worker, ptr launch, ptr group, i64 rounds)``, which returns
an Outcome. Waves of a group take turns; a turn ends at a barrier, at s_sleep, or when its budget is used up
(records/budgets), so a wave that waits for another does not stop it. After ``rounds`` rounds, or when the launch is to
stop, Python gets a chance to let another work-group run. Invariant: a group's records say all there is to know, so its
worker can leave it and take it up at any time; a turn, a round and a span of rounds that were broken off go on where
they were, so what had to be compiled decides nothing.

At random (``luthier_run_at_random``) each turn is some wave's, and of some length, both drawn from pseudo-random
numbers whose state is in the group's record; it ends after ``turns`` turns. Whether code had to be compiled changes
nothing.
"""

from __future__ import annotations

from enum import IntEnum
from string import Template

from luthier_py.emulator.native.next_wave import MOVED
from luthier_py.emulator.native.turns import AT_RANDOM, BREAK_OFF, IN_ORDER
from luthier_py.emulator.records.budgets import OWN_STEP, SLICES, budget
from luthier_py.emulator.records.layout import (
    AGPR_ROW,
    COPIED_BYTES,
    LAUNCH,
    NAMED_SCALARS,
    WAVE_HEADER_BYTES,
    Fault,
    Outcome,
    Status,
    row_offset,
    sgpr_offset,
    wave_stride,
)
from luthier_py.emulator.records.template import expand


class GroupEvent(IntEnum):
    """What a watcher is told of a work-group: the address of its record, and this."""

    BEGINS = 0    # in this record, from now on
    RELEASES = 1  # all its waves have come to the barrier, and are about to go on
    ENDS = 2


def scheduler(wave_size: int, watched: bool = False, at_random: bool = False) -> str:
    """The module. ``watched``: the launch has a watcher, who is told what becomes of work-groups."""
    numbers = {each.name: int(each) for each in (*Outcome, *Status) if each.name not in ("FAULT", "MESSAGE")}
    tells = {f"ON_{event.name}": f"call void @watch(ptr %launch, ptr %group, i64 {event})" if watched else ""
             for event in GroupEvent}
    turns = AT_RANDOM if at_random else IN_ORDER
    run = turns["resume"] + Template(_RUN).safe_substitute(turns)
    return expand(_START + _RELEASE + BREAK_OFF + _WATCH * watched + run, **numbers, **tells,
                  FAULT_OUTCOME=Outcome.FAULT, MESSAGE_STATUS=Status.MESSAGE, MESSAGE_OUTCOME=Outcome.MESSAGE,
                  edge_waves=LAUNCH["waves_0"], BAD_JUMP=Fault.JUMP, stride=wave_stride(wave_size),
                  agprs=row_offset(AGPR_ROW, wave_size), at_once=COPIED_BYTES, header=WAVE_HEADER_BYTES,
                  always=sgpr_offset(NAMED_SCALARS), always_bytes=WAVE_HEADER_BYTES - sgpr_offset(NAMED_SCALARS),
                  stop_place=LAUNCH["stop"], moved=MOVED, status_bits=MOVED - 1, first_slice=budget(SLICES[0]),
                  own_step=OWN_STEP)


_START = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; memset of no bytes takes 150 ns on AMD's hosts: glibc does it by a masked store.
define internal void @clear(ptr %memory, i64 %bytes) {
  %some = icmp ne i64 %bytes, 0
  br i1 %some, label %fill, label %done
fill:
  call void @llvm.memset.p0.i64(ptr %memory, i8 0, i64 %bytes, i1 false)
  br label %done
done:
  ret void
}

; What is so short is copied before memcpy knows how; volatile, or LLVM makes a call of it. At least $at_once bytes.
define internal void @copy(ptr %to, ptr %from, i64 %bytes) alwaysinline {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %from.place = getelementptr i8, ptr %from, i64 %i
  %to.place = getelementptr i8, ptr %to, i64 %i
  %part = load <8 x i32>, ptr %from.place, align $at_once
  store volatile <8 x i32> %part, ptr %to.place, align $at_once
  %i.next = add i64 %i, $at_once
  %more = icmp ult i64 %i.next, %bytes
  br i1 %more, label %next, label %done
done:
  ret void
}

; %bit if a work-group is the last one in a dimension.
define internal i64 @edge(i64 %place, i64 %count, i64 %bit) {
  %next = add i64 %place, 1
  %is.last = icmp eq i64 %next, %count
  %edge = select i1 %is.last, i64 %bit, i64 0
  ret i64 %edge
}

; Work-group number %index begins in %group. Waves that it does not have come as ended.
define internal void @start(ptr %worker, ptr %launch, ptr %group, i64 %index) {
entry:
  %count.x = get launch.count_x of %launch
  %count.y = get launch.count_y of %launch
  %x = urem i64 %index, %count.x
  %line = udiv i64 %index, %count.x
  %y = urem i64 %line, %count.y
  %z = udiv i64 %line, %count.y
  %x32 = trunc i64 %x to i32
  %y32 = trunc i64 %y to i32
  %z32 = trunc i64 %z to i32
  %share = get launch.ids_share of %launch
  %share32 = trunc i64 %share to i32
  %z.if.shared = mul i32 %z32, %share32
  %z.above = shl i32 %z.if.shared, 16
  %yz = or i32 %y32, %z.above
  %sgpr.x = get launch.sgpr_x of %launch
  %sgpr.y = get launch.sgpr_y of %launch
  %sgpr.z = get launch.sgpr_z of %launch
  %edges = get launch.edges of %launch
  %last.x = call i64 @edge(i64 %x, i64 %count.x, i64 1)
  %last.y = call i64 @edge(i64 %y, i64 %count.y, i64 2)
  %plane = mul i64 %count.x, %count.y
  %total = get launch.total of %launch
  %count.z = udiv i64 %total, %plane
  %last.z = call i64 @edge(i64 %z, i64 %count.z, i64 4)
  %last.xy = or i64 %last.x, %last.y
  %last = or i64 %last.xy, %last.z
  %edge = and i64 %last, %edges
  %edge.waves = getelementptr i8, ptr %launch, i64 $edge_waves
  %edge.place = getelementptr i64, ptr %edge.waves, i64 %edge
  %existing = load i64, ptr %edge.place, align 8
  %edge.stride = get launch.edge_stride of %launch
  %edge.offset = mul i64 %edge, %edge.stride
  %waves = get launch.waves of %launch
  %image.stride = get launch.image_stride of %launch
  %scalar.bytes = get launch.scalar_bytes of %launch
  %id.bytes = get launch.id_bytes of %launch
  %initial = add i64 %id.bytes, $header
  %vector.bytes = get launch.vector_bytes of %launch
  %agpr.bytes = get launch.agpr_bytes of %launch
  %first = get group.waves of %group
  %all.images = get group.images of %group
  %images = add i64 %all.images, %edge.offset
  %lds.bytes = get launch.lds_bytes of %launch
  %lds = get group.lds of %group
  %lds.pointer = inttoptr i64 %lds to ptr
  call void @clear(ptr %lds.pointer, i64 %lds.bytes)
  put group.left of %group, %existing
  put group.waiting of %group, 0
  put group.active of %group, 1
  put group.index of %group, %index
  put group.slice of %group, $first_slice
  put group.spans of %group, 0
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %offset = mul i64 %i, $stride
  %image.offset = mul i64 %i, %image.stride
  %image.at = add i64 %images, %image.offset
  %image = inttoptr i64 %image.at to ptr
  %wave.at = add i64 %first, %offset
  %wave = inttoptr i64 %wave.at to ptr
  call void @copy(ptr %wave, ptr %image, i64 %scalar.bytes)
  %always = getelementptr i8, ptr %wave, i64 $always
  %always.image = getelementptr i8, ptr %image, i64 $always
  call void @copy(ptr %always, ptr %always.image, i64 $always_bytes)
  %ids = getelementptr i8, ptr %wave, i64 $header
  %ids.image = getelementptr i8, ptr %image, i64 $header
  call void @copy(ptr %ids, ptr %ids.image, i64 %id.bytes)
  %vectors = getelementptr i8, ptr %wave, i64 %initial
  call void @clear(ptr %vectors, i64 %vector.bytes)
  %accumulators = getelementptr i8, ptr %wave, i64 $agprs
  call void @clear(ptr %accumulators, i64 %agpr.bytes)
  %place.x = getelementptr i8, ptr %wave, i64 %sgpr.x
  store i32 %x32, ptr %place.x
  %place.z = getelementptr i8, ptr %wave, i64 %sgpr.z
  store i32 %z32, ptr %place.z
  %place.y = getelementptr i8, ptr %wave, i64 %sgpr.y
  store i32 %yz, ptr %place.y
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %waves
  br i1 %more, label %next, label %done
done:
  ret void
}
"""

_RELEASE = """
; All waves are at the barrier: let them go on.
define internal void @release(ptr %group, i64 %waves) {
entry:
  %first = get group.waves of %group
  put group.waiting of %group, 0
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %skip ]
  %offset = mul i64 %i, $stride
  %wave.at = add i64 %first, %offset
  %wave = inttoptr i64 %wave.at to ptr
  %status = get wave.status of %wave
  put wave.signalled of %wave, 0
  %waits = icmp eq i64 %status, $BARRIER
  br i1 %waits, label %free, label %skip
free:
  put wave.status of %wave, $JUMP
  br label %skip
skip:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %waves
  br i1 %more, label %next, label %done
done:
  ret void
}
"""

_WATCH = """
define internal void @watch(ptr %launch, ptr %group, i64 %event) {
  %watcher.at = get launch.watcher of %launch
  %watcher = inttoptr i64 %watcher.at to ptr
  %group.at = ptrtoint ptr %group to i64
  call void %watcher(i64 %group.at, i64 %event)
  ret void
}
"""

_RUN = """
define i64 @$name(ptr %worker, ptr %launch, ptr %group, i64 %rounds) {
entry:
  %waves = get launch.waves of %launch
  %total = get launch.total of %launch
  %rounds.rest = get group.rounds of %group
  put group.rounds of %group, 0
  %broken.off = icmp ne i64 %rounds.rest, 0
  %rounds.now = select i1 %broken.off, i64 %rounds.rest, i64 %rounds
  %table.at = get worker.table of %worker
  %table = inttoptr i64 %table.at to ptr
  %entries = get worker.table_entries of %worker
  %code.start = get worker.code_start of %worker
  %first = get group.waves of %group
  %active = get group.active of %group
  %busy = icmp ne i64 %active, 0
  br i1 %busy, label %round, label %begin

begin:  ; the next work-group
  %rounds.begin = phi i64 [ %rounds.now, %entry ], [ %rounds.less, %finished ]
  %index = atomicrmw add ptr %launch, i64 1 monotonic  ; launch.next is the first field
  %some = icmp ult i64 %index, %total
  br i1 %some, label %start, label %nothing
nothing:
  ret i64 $FINISHED
start:
  call void @start(ptr %worker, ptr %launch, ptr %group, i64 %index)
  $ON_BEGINS
  br label %round

round:  ; a turn for each wave
  %rounds.left = phi i64 [ %rounds.now, %entry ], [ %rounds.begin, %start ], [ %rounds.less, %again ]
  %tired = icmp sle i64 %rounds.left, 0
  br i1 %tired, label %stop, label %resume
stop:
  %spans = get group.spans of %group
  %spans.more = add i64 %spans, 1
  put group.spans of %group, %spans.more
  ret i64 $TIRED

$choice
  %offset = mul i64 %i, $stride
  %wave.at = add i64 %first, %offset
  %this = inttoptr i64 %wave.at to ptr
  %status = get wave.status of %this
  %idle = icmp ult i64 %status, $JUMP  ; ended, or at the barrier
  br i1 %idle, label %after, label %ready
ready:
  %meets = icmp eq i64 %status, $MEETING
  br i1 %meets, label %meeting, label %turn
meeting:  ; at a grid barrier: are all here?
  %counter.at = get wave.meeting of %this
  %counter = inttoptr i64 %counter.at to ptr
  %came = load atomic i64, ptr %counter acquire, align 8
  %expected = get wave.expected of %this
  %alone = icmp ult i64 %came, %expected
  br i1 %alone, label %after, label %turn
turn:
  %stop.place = getelementptr i8, ptr %launch, i64 $stop_place
  %stopped = load atomic i64, ptr %stop.place monotonic, align 8
  %goes.on = icmp eq i64 %stopped, 0
  br i1 %goes.on, label %runs, label %stop
runs:
$budget
  br label %jump
jump:
  %i.now = phi i64 [ %i, %runs ], [ %i.then, %go.on ]
  %now = phi ptr [ %this, %runs ], [ %then, %go.on ]
  %pc = get wave.pc of %now
  %distance = sub i64 %pc, %code.start
  %number = lshr i64 %distance, 2
  %in.code = icmp ult i64 %number, %entries
  %odd = and i64 %distance, 3
  %even = icmp eq i64 %odd, 0
  %inside = and i1 %in.code, %even
  br i1 %inside, label %look, label %nowhere
nowhere:
  put wave.fault_kind of %now, $BAD_JUMP
  br label %fault
look:
  %slot = getelementptr ptr, ptr %table, i64 %number
  %function = load ptr, ptr %slot
  %unknown = icmp eq ptr %function, null
  br i1 %unknown, label %needs.code, label %call
needs.code:
  %same.now = call i64 @same_again(i64 %i.now)
  call void @break_off(ptr %group, i64 %i.now, i64 %same.now, i64 %rounds.left)
  ret i64 $NEEDS_CODE
call:
  %result = call i32 %function(ptr %now)
  %result64 = zext i32 %result to i64
  %status.then = and i64 %result64, $status_bits
  %moved = udiv i64 %result64, $moved
  %i.then = add i64 %i.now, %moved
  %moved.bytes = mul i64 %moved, $stride
  %then = getelementptr i8, ptr %now, i64 %moved.bytes
  put wave.status of %then, %status.then
  switch i64 %status.then, label %faulty [ i64 $DONE, label %ended  i64 $BARRIER, label %arrived
                                       i64 $JUMP, label %go.on  i64 $YIELD, label %over
                                       i64 $MEETING, label %over  i64 $MESSAGE_STATUS, label %message
                                       i64 $SIGNAL, label %signals  i64 $WAIT, label %waits ]
signals:  ; the first half of a barrier
  put wave.signalled of %then, 1
  %here = get group.waiting of %group
  %here.more = add i64 %here, 1
  put group.waiting of %group, %here.more
  br label %go.on
waits:  ; the second half
  %pending = get wave.signalled of %then
  %all.came = icmp eq i64 %pending, 0
  br i1 %all.came, label %go.on, label %blocked
blocked:
  put wave.status of %then, $BARRIER
  br label %over
message:
  put wave.status of %then, $JUMP
  %resume.then = call i64 @another_then(i64 %i.then)
  call void @break_off(ptr %group, i64 %i.then, i64 %resume.then, i64 %rounds.left)
  ret i64 $MESSAGE_OUTCOME
go.on:
$enough
  br i1 %enough, label %over, label %jump
ended:  ; perhaps between the two halves of a barrier
  %left = get group.left of %group
  %left.less = add i64 %left, -1
  put group.left of %group, %left.less
  %came.first = get wave.signalled of %then
  put wave.signalled of %then, 0
  %waiting.then = get group.waiting of %group
  %waiting.less = sub i64 %waiting.then, %came.first
  put group.waiting of %group, %waiting.less
  br label %over
arrived:
  %waiting = get group.waiting of %group
  %waiting.more = add i64 %waiting, 1
  put group.waiting of %group, %waiting.more
  br label %over
faulty:
  br label %fault
fault:
  %i.wrong = phi i64 [ %i.now, %nowhere ], [ %i.then, %faulty ]
  %same.again = call i64 @same_again(i64 %i.wrong)
  call void @break_off(ptr %group, i64 %i.wrong, i64 %same.again, i64 %rounds.left)
  ret i64 $FAULT_OUTCOME
over:
  br label %after
$after

tally:
  %rounds.less = add i64 %rounds.left, -1
  %left.now = get group.left of %group
  %waiting.now = get group.waiting of %group
  %all.done = icmp eq i64 %left.now, 0
  br i1 %all.done, label %finished, label %barrier
finished:
  put group.active of %group, 0
  $ON_ENDS
  br label %begin
barrier:
  %all.here = icmp eq i64 %waiting.now, %left.now
  br i1 %all.here, label %release, label %again
release:
  $ON_RELEASES
  call void @release(ptr %group, i64 %waves)
  br label %again
again:
  br label %round
}
"""
