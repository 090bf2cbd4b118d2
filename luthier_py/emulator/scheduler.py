"""The scheduler, in native code: runs the waves of work-groups until Python is needed.

In: records of layout. Out: LLVM IR of ``i64 luthier_run(ptr worker, ptr launch, ptr group, i64 turns)``,
which returns an Outcome. Waves of a group take turns; a turn ends at a barrier, after ``slice``
backward branches, or at s_sleep, so a wave that waits for another does not stop it. After ``turns``
rounds Python gets a chance to let another work-group run. Invariant: a group's records say all there
is to know, so it can be left and taken up again by its worker at any time.
"""

from __future__ import annotations

from luthier_py.emulator.layout import GROUP, LAUNCH, WAVE, WORKER, Fault, Outcome, Status, row_offset, wave_stride


def _get(name: str, record: str, field: str, fields: dict[str, int]) -> str:
    return (f"  %p.{name} = getelementptr i8, ptr %{record}, i64 {fields[field]}\n"
            f"  %{name} = load i64, ptr %p.{name}\n")


def _put(tag: str, record: str, field: str, value: str, fields: dict[str, int]) -> str:
    return (f"  %q.{tag} = getelementptr i8, ptr %{record}, i64 {fields[field]}\n"
            f"  store i64 {value}, ptr %q.{tag}\n")


def scheduler(wave_size: int) -> str:
    """The module."""
    stride = wave_stride(wave_size)
    return f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal void @start(ptr %worker, ptr %launch, ptr %group, i64 %index) {{
entry:
{_get("count.x", "launch", "count_x", LAUNCH)}{_get("count.y", "launch", "count_y", LAUNCH)}
  %x = urem i64 %index, %count.x
  %row = udiv i64 %index, %count.x
  %y = urem i64 %row, %count.y
  %z = udiv i64 %row, %count.y
  %x32 = trunc i64 %x to i32
  %y32 = trunc i64 %y to i32
  %z32 = trunc i64 %z to i32
{_get("sgpr.x", "launch", "sgpr_x", LAUNCH)}{_get("sgpr.y", "launch", "sgpr_y", LAUNCH)}{_get("sgpr.z", "launch", "sgpr_z", LAUNCH)}
{_get("waves", "launch", "waves", LAUNCH)}{_get("image.bytes", "launch", "image_bytes", LAUNCH)}
{_get("vector.bytes", "launch", "vector_bytes", LAUNCH)}{_get("agpr.bytes", "launch", "agpr_bytes", LAUNCH)}
{_get("first", "group", "waves", GROUP)}{_get("images", "group", "images", GROUP)}
{_get("lds.bytes", "launch", "lds_bytes", LAUNCH)}{_get("lds", "group", "lds", GROUP)}
  %lds.pointer = inttoptr i64 %lds to ptr
  call void @llvm.memset.p0.i64(ptr %lds.pointer, i8 0, i64 %lds.bytes, i1 false)
{_put("left", "group", "left", "%waves", GROUP)}{_put("waiting", "group", "waiting", "0", GROUP)}
{_put("active", "group", "active", "1", GROUP)}{_put("index", "group", "index", "%index", GROUP)}
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %offset = mul i64 %i, {stride}
  %image.at = add i64 %images, %offset
  %image = inttoptr i64 %image.at to ptr
  %wave.at = add i64 %first, %offset
  %wave = inttoptr i64 %wave.at to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %wave, ptr %image, i64 %image.bytes, i1 false)
  %vectors = getelementptr i8, ptr %wave, i64 %image.bytes
  call void @llvm.memset.p0.i64(ptr %vectors, i8 0, i64 %vector.bytes, i1 false)
  %accumulators = getelementptr i8, ptr %wave, i64 {row_offset(256, wave_size)}
  call void @llvm.memset.p0.i64(ptr %accumulators, i8 0, i64 %agpr.bytes, i1 false)
  %place.x = getelementptr i8, ptr %wave, i64 %sgpr.x
  store i32 %x32, ptr %place.x
  %place.y = getelementptr i8, ptr %wave, i64 %sgpr.y
  store i32 %y32, ptr %place.y
  %place.z = getelementptr i8, ptr %wave, i64 %sgpr.z
  store i32 %z32, ptr %place.z
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %waves
  br i1 %more, label %next, label %done
done:
  ret void
}}

define internal void @release(ptr %group, i64 %waves) {{
entry:
{_get("first", "group", "waves", GROUP)}{_put("waiting", "group", "waiting", "0", GROUP)}
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %skip ]
  %offset = mul i64 %i, {stride}
  %wave.at = add i64 %first, %offset
  %wave = inttoptr i64 %wave.at to ptr
{_get("status", "wave", "status", WAVE)}
  %waits = icmp eq i64 %status, {Status.BARRIER}
  br i1 %waits, label %free, label %skip
free:
{_put("status", "wave", "status", str(int(Status.JUMP)), WAVE)}
  br label %skip
skip:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %waves
  br i1 %more, label %next, label %done
done:
  ret void
}}

define i64 @luthier_run(ptr %worker, ptr %launch, ptr %group, i64 %turns) {{
entry:
{_get("waves", "launch", "waves", LAUNCH)}{_get("slice", "launch", "slice", LAUNCH)}
{_get("total", "launch", "total", LAUNCH)}{_get("table.at", "worker", "table", WORKER)}
  %table = inttoptr i64 %table.at to ptr
{_get("entries", "worker", "table_entries", WORKER)}{_get("code.start", "worker", "code_start", WORKER)}
{_get("first", "group", "waves", GROUP)}{_get("active", "group", "active", GROUP)}
  %p.left = getelementptr i8, ptr %group, i64 {GROUP['left']}
  %p.waiting = getelementptr i8, ptr %group, i64 {GROUP['waiting']}
  %p.wave = getelementptr i8, ptr %group, i64 {GROUP['wave']}
  %busy = icmp ne i64 %active, 0
  br i1 %busy, label %round, label %begin

begin:
  %turns.begin = phi i64 [ %turns, %entry ], [ %turns.round, %finished ]
  %p.next = getelementptr i8, ptr %launch, i64 {LAUNCH['next']}
  %index = atomicrmw add ptr %p.next, i64 1 monotonic
  %some = icmp ult i64 %index, %total
  br i1 %some, label %start, label %nothing
nothing:
  ret i64 {Outcome.FINISHED}
start:
  call void @start(ptr %worker, ptr %launch, ptr %group, i64 %index)
  br label %round

round:
  %turns.start = phi i64 [ %turns, %entry ], [ %turns.begin, %start ], [ %turns.round, %again ]
  %tired = icmp sle i64 %turns.start, 0
  br i1 %tired, label %stop, label %wave
stop:
  ret i64 {Outcome.TIRED}
wave:
  %i = phi i64 [ 0, %round ], [ %i.next, %after ]
  %offset = mul i64 %i, {stride}
  %wave.at = add i64 %first, %offset
  %this = inttoptr i64 %wave.at to ptr
  %p.status = getelementptr i8, ptr %this, i64 {WAVE['status']}
  %status = load i64, ptr %p.status
  %idle = icmp ult i64 %status, {Status.JUMP}
  br i1 %idle, label %after, label %turn
turn:
  %p.budget = getelementptr i8, ptr %this, i64 {WAVE['budget']}
  store i64 %slice, ptr %p.budget
  br label %jump
jump:
  %jumps = phi i64 [ 0, %turn ], [ %jumps.next, %go.on ]
  %p.pc = getelementptr i8, ptr %this, i64 {WAVE['pc']}
  %pc = load i64, ptr %p.pc
  %distance = sub i64 %pc, %code.start
  %entry.number = lshr i64 %distance, 2
  %inside = icmp ult i64 %entry.number, %entries
  br i1 %inside, label %look, label %nowhere
nowhere:
{_put("kind", "this", "fault_kind", str(int(Fault.JUMP)), WAVE)}
  br label %fault
look:
  %slot = getelementptr ptr, ptr %table, i64 %entry.number
  %function = load ptr, ptr %slot
  %unknown = icmp eq ptr %function, null
  br i1 %unknown, label %needs.code, label %call
needs.code:
  store i64 %i, ptr %p.wave
  ret i64 {Outcome.NEEDS_CODE}
call:
  %result = call i32 %function(ptr %this)
  %result64 = zext i32 %result to i64
  store i64 %result64, ptr %p.status
  switch i64 %result64, label %fault [ i64 {Status.DONE}, label %ended i64 {Status.BARRIER}, label %arrived i64 {Status.JUMP}, label %go.on i64 {Status.YIELD}, label %after ]
go.on:
  %jumps.next = add i64 %jumps, 1
  %enough = icmp ugt i64 %jumps.next, %slice
  br i1 %enough, label %after, label %jump
ended:
  %left = load i64, ptr %p.left
  %left.less = add i64 %left, -1
  store i64 %left.less, ptr %p.left
  br label %after
arrived:
  %waiting = load i64, ptr %p.waiting
  %waiting.more = add i64 %waiting, 1
  store i64 %waiting.more, ptr %p.waiting
  br label %after
fault:
  store i64 %i, ptr %p.wave
  ret i64 {Outcome.FAULT}
after:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %waves
  br i1 %more, label %wave, label %tally
tally:
  %turns.round = add i64 %turns.start, -1
  %left.now = load i64, ptr %p.left
  %all.done = icmp eq i64 %left.now, 0
  br i1 %all.done, label %finished, label %barrier
finished:
{_put("active", "group", "active", "0", GROUP)}
  br label %begin
barrier:
  %waiting.now = load i64, ptr %p.waiting
  %all.here = icmp eq i64 %waiting.now, %left.now
  br i1 %all.here, label %release, label %again
release:
  call void @release(ptr %group, i64 %waves)
  br label %again
again:
  br label %round
}}
"""
