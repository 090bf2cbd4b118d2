"""The beginning of a launch, in native code: arguments to their places, records as new, and the first turns.

In: a record READY of layout. Out: LLVM IR of ``i64 luthier_begin(ptr ready, ptr arguments, i64 bytes)``, which returns
an Outcome. Where rounds are used up, the work-group before has ended and time is left, it goes on by itself. Invariant:
nothing that another launch left in the records reaches this one, but for a wish to stop it.
"""

from __future__ import annotations

from luthier_py.emulator.native.clocks import nanoseconds
from luthier_py.emulator.records.layout import MEETINGS_BYTES, Outcome
from luthier_py.emulator.records.template import expand


def emit_beginning() -> str:
    """The module; it calls what ``clocks.host_functions`` gives."""
    return expand(_ARGUMENTS + nanoseconds("now") + _BEGIN, TIRED=Outcome.TIRED,
                  meetings_bytes=MEETINGS_BYTES)


_ARGUMENTS = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; The kernarg segment: what is given, and what is the same each time.
define internal void @arguments(ptr %ready, ptr %arguments, i64 %bytes) {
entry:
  %kernarg.at = get ready.kernarg of %ready
  %kernarg = inttoptr i64 %kernarg.at to ptr
  %words = get ready.kernarg_words of %ready
  %given.at = get ready.given of %ready
  %given = inttoptr i64 %given.at to ptr
  %fixed.at = get ready.fixed of %ready
  %fixed = inttoptr i64 %fixed.at to ptr
  %any = icmp ne i64 %words, 0
  br i1 %any, label %given.first, label %done
given.first:
  call void @llvm.memcpy.p0.p0.i64(ptr %kernarg, ptr %arguments, i64 %bytes, i1 false)
  br label %next
next:
  %i = phi i64 [ 0, %given.first ], [ %i.next, %next ]
  %place = getelementptr i64, ptr %kernarg, i64 %i
  %given.place = getelementptr i64, ptr %given, i64 %i
  %fixed.place = getelementptr i64, ptr %fixed, i64 %i
  %now = load i64, ptr %place
  %bits = load i64, ptr %given.place
  %always = load i64, ptr %fixed.place
  %own = and i64 %now, %bits
  %both = or i64 %own, %always
  store i64 %both, ptr %place
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %words
  br i1 %more, label %next, label %done
done:
  ret void
}

; Arguments that come in registers, in each image of a wave.
define internal void @preload(ptr %ready, ptr %launch) {
entry:
  %bytes = get ready.preload_bytes of %ready
  %from.at = get ready.preload of %ready
  %from = inttoptr i64 %from.at to ptr
  %first = get ready.preload_to of %ready
  %images = get ready.images of %ready
  %stride = get launch.image_stride of %launch
  %any = icmp ne i64 %bytes, 0
  br i1 %any, label %next, label %done
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %offset = mul i64 %i, %stride
  %to.at = add i64 %first, %offset
  %to = inttoptr i64 %to.at to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %images
  br i1 %more, label %next, label %done
done:
  ret void
}
"""

_BEGIN = """
define i64 @luthier_begin(ptr %ready, ptr %arguments, i64 %bytes) {
entry:
  %worker.at = get ready.worker of %ready
  %worker = inttoptr i64 %worker.at to ptr
  %launch.at = get ready.launch of %ready
  %launch = inttoptr i64 %launch.at to ptr
  %group.at = get ready.group of %ready
  %group = inttoptr i64 %group.at to ptr
  %run.at = get ready.run of %ready
  %run = inttoptr i64 %run.at to ptr
  %rounds = get ready.rounds of %ready
  %slice = get ready.slice of %ready
  %again = get ready.again of %ready
  %ever = icmp eq i64 %again, -1
  call void @arguments(ptr %ready, ptr %arguments, i64 %bytes)
  call void @preload(ptr %ready, ptr %launch)
  %meetings.at = get ready.meetings of %ready
  %meetings = inttoptr i64 %meetings.at to ptr
  call void @llvm.memset.p0.i64(ptr %meetings, i8 0, i64 $meetings_bytes, i1 false)
  %sites.at = get ready.sites of %ready
  %sites = inttoptr i64 %sites.at to ptr
  %site.bytes.at = get ready.site_bytes of %ready
  %site.bytes.place = inttoptr i64 %site.bytes.at to ptr
  %site.bytes = load i64, ptr %site.bytes.place
  call void @llvm.memset.p0.i64(ptr %sites, i8 0, i64 %site.bytes, i1 false)
  put launch.next of %launch, 0
  put worker.changes of %worker, 0
  put group.active of %group, 0
  put group.resume of %group, 0
  put group.rounds of %group, 0
  put group.slice of %group, %slice
  br i1 %ever, label %turns, label %clock
clock:
  %start = call i64 @now()
  br label %turns
turns:
  %since = phi i64 [ 0, %entry ], [ %start, %clock ], [ %since, %looks ], [ %since, %time ]
  %outcome = call i64 %run(ptr %worker, ptr %launch, ptr %group, i64 %rounds)
  %tired = icmp eq i64 %outcome, $TIRED
  br i1 %tired, label %looks, label %done
looks:  ; is there another work-group in it than before, and nobody who wants it to stop?
  %spans = get group.spans of %group
  %moved = icmp ule i64 %spans, 1
  %stop = get launch.stop of %launch
  %free = icmp eq i64 %stop, 0
  %both = and i1 %moved, %free
  %at.once = and i1 %both, %ever
  br i1 %at.once, label %turns, label %hurries
hurries:
  br i1 %both, label %time, label %done
time:
  %now = call i64 @now()
  %passed = sub i64 %now, %since
  %some.left = icmp ult i64 %passed, %again
  br i1 %some.left, label %turns, label %done
done:
  ret i64 %outcome
}
"""
