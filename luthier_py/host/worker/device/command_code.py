"""The loop over commands, in native code: see commands.

In: nothing. Out: LLVM IR of ``i64 luthier_tickets(ptr commands, i64 done)``, and the records that it shares with
Python. Invariant: whoever sleeps, program or worker, has said so before it looked for the last time, and is woken after
that for which it sleeps: what one side writes and then reads is in one order for both (seq_cst)."""

from __future__ import annotations

from enum import IntEnum

from luthier_py.emulator.native.clocks import nanoseconds
from luthier_py.emulator.records.layout import READY, Outcome
from luthier_py.emulator.records.template import expand
from luthier_py.host.native.protocol import Control, Message
from luthier_py.host.worker.futex import EVERYBODY, SYS_FUTEX, WAIT, WAKE


class Pause(IntEnum):
    """Why native code came back."""

    NEW = 0        # the record in hand is like none before
    STOPPED = 1    # the launch in hand was begun, and somebody has to go on with it
    ELSEWHERE = 2  # the next command is not in the ring
    EMPTY = 3      # nothing came for a while
    CROWDED = 4    # many tables of allocations are kept for whoever reads them


_NAMES = ("control", "next", "size", "record", "launches", "begin", "ready", "outcome", "tables", "timed")
COMMANDS = {name: 8 * number for number, name in enumerate(_NAMES)}
"""``control``: where the arena begins; ``next``: the command to be done; ``size``, ``record``: of the one in hand,
bytes of the ring and address; ``launches``: a table of ENTRIES; ``begin``: a function; ``ready``, ``outcome``: of the
launch that stopped; ``tables``: address of a word, how many are kept; ``timed``: not 0 where none is carried out
here."""
HEAD_WORDS = 8
"""What a launch begins with, up to its arguments: the kernel and the launch's shape."""
ENTRY_WORDS, ENTRIES = 16, 1024
"""A head, and the address of what is ready for it, 0 in one that is free. They are looked for from ``home`` on."""
RECORD_HEAD_BYTES = 16
_MIX = 0x9E3779B97F4A7C15
_MOST_TABLES = 16
_LOOKS = 2000                # at an empty ring before it sleeps
_NAP_NANOSECONDS = 1_000_000  # with what is read still held


def home(words: list[int]) -> int:
    """Where a head is looked for first."""
    mixed = 0
    for word in words:
        mixed = (mixed ^ word) * _MIX & (1 << 64) - 1
        mixed ^= mixed >> 32
    return mixed % ENTRIES


def native_commands() -> str:
    """The module. It calls ``clock_gettime`` and ``syscall`` of the C library."""
    return _module(_WORDS + nanoseconds("now") + _MEMORY + _HOME + _COMMANDS)


def native_sleep() -> str:
    """That of ``void luthier_sleep(ptr control, i32 posted, i64 nanoseconds)``, until something is in the ring or the
    word POSTED is another one."""
    return _module(_WORDS + _SLEEP)


def _module(text: str) -> str:
    numbers: dict[str, int | str] = {f"T_{name}": place for name, place in COMMANDS.items()}
    numbers |= {f"C_{place.name}": int(place) for place in Control}
    numbers |= {pause.name: int(pause) for pause in Pause}
    return expand(
        text, **numbers, LAUNCH=Message.LAUNCH, STAMP=Message.STAMP,
        COPY=Message.COPY, FILL=Message.FILL, HEAD_BYTES=8 * HEAD_WORDS,
        RING_MASK=Control.BYTES - Control.RING - 1, RECORD_HEAD=RECORD_HEAD_BYTES, ENTRY_BYTES=8 * ENTRY_WORDS,
        MASK=ENTRIES - 1, HEAD_WORDS=HEAD_WORDS, MIX=_MIX - (1 << 64), FUTEX=SYS_FUTEX, WAIT=WAIT, WAKE=WAKE,
        EVERYBODY=EVERYBODY, FINISHED=Outcome.FINISHED, MOST_TABLES=_MOST_TABLES, LOOKS=_LOOKS, NAP=_NAP_NANOSECONDS,
        VALID=READY["valid"], WORDS=READY["kernarg_words"])


_WORDS = """
declare i64 @syscall(i64, ...)

define internal ptr @place(ptr %base, i64 %offset) alwaysinline {
  %at = getelementptr i8, ptr %base, i64 %offset
  ret ptr %at
}

define internal i64 @word(ptr %base, i64 %offset) alwaysinline {
  %at = getelementptr i8, ptr %base, i64 %offset
  %value = load i64, ptr %at
  ret i64 %value
}

define internal void @set(ptr %base, i64 %offset, i64 %value) alwaysinline {
  %at = getelementptr i8, ptr %base, i64 %offset
  store i64 %value, ptr %at
  ret void
}

; Whether the ring has nothing.
define internal i1 @empty(ptr %control) {
  %written.at = getelementptr i8, ptr %control, i64 $C_WRITTEN
  %written = load atomic i64, ptr %written.at seq_cst, align 8
  %taken = call i64 @word(ptr %control, i64 $C_TAKEN)
  %none = icmp eq i64 %written, %taken
  ret i1 %none
}

; Tell the program that a command is done; wake who waits for it.
define internal void @tell(ptr %control, i64 %command) {
  %completed.old = atomicrmw xchg ptr %control, i64 %command seq_cst
  %wake.at = getelementptr i8, ptr %control, i64 $C_WAKE_AT
  %first = load atomic i64, ptr %wake.at seq_cst, align 8
  %due = icmp uge i64 %command, %first
  br i1 %due, label %wakes, label %done
wakes:
  %first.old = atomicrmw xchg ptr %wake.at, i64 -1 seq_cst
  %bell = getelementptr i8, ptr %control, i64 $C_BELL
  %bell.old = atomicrmw add ptr %bell, i32 1 seq_cst
  %woken = call i64 (i64, ...) @syscall(i64 $FUTEX, ptr %bell, i64 $WAKE, i64 $EVERYBODY, i64 0, i64 0, i64 0)
  br label %done
done:
  ret void
}

; Sleep until something is in the ring, unless %posted has changed; for a while.
define internal void @nap(ptr %control, i32 %posted, i64 %nanoseconds) {
  %time = alloca [2 x i64]
  %asleep = getelementptr i8, ptr %control, i64 $C_ASLEEP
  %awake = atomicrmw xchg ptr %asleep, i32 1 seq_cst
  %none = call i1 @empty(ptr %control)
  br i1 %none, label %sleeps, label %done
sleeps:
  store i64 0, ptr %time
  call void @set(ptr %time, i64 8, i64 %nanoseconds)
  %expected = zext i32 %posted to i64
  %posted.at = getelementptr i8, ptr %control, i64 $C_POSTED
  %slept = call i64 (i64, ...) @syscall(i64 $FUTEX, ptr %posted.at, i64 $WAIT, i64 %expected, ptr %time, i64 0, i64 0)
  br label %done
done:
  %was = atomicrmw xchg ptr %asleep, i32 0 seq_cst
  ret void
}
"""

_SLEEP = """
define void @luthier_sleep(ptr %control, i32 %posted, i64 %nanoseconds) {
  call void @nap(ptr %control, i32 %posted, i64 %nanoseconds)
  ret void
}
"""

_MEMORY = """
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; Where to, where from, bytes.
define internal void @copy(ptr %content) {
  %to.at = call i64 @word(ptr %content, i64 0)
  %from.at = call i64 @word(ptr %content, i64 8)
  %bytes = call i64 @word(ptr %content, i64 16)
  %to = inttoptr i64 %to.at to ptr
  %from = inttoptr i64 %from.at to ptr
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  ret void
}

; Where to, how many elements, their value, their bytes: 1, 2 or 4.
define internal void @fill(ptr %content) {
entry:
  %to.at = call i64 @word(ptr %content, i64 0)
  %count = call i64 @word(ptr %content, i64 8)
  %value = call i64 @word(ptr %content, i64 16)
  %element = call i64 @word(ptr %content, i64 24)
  %to = inttoptr i64 %to.at to ptr
  %value.8 = trunc i64 %value to i8
  %value.16 = trunc i64 %value to i16
  %value.32 = trunc i64 %value to i32
  %any = icmp ne i64 %count, 0
  br i1 %any, label %which, label %done
which:
  switch i64 %element, label %words [ i64 1, label %bytes  i64 2, label %halves ]
bytes:
  call void @llvm.memset.p0.i64(ptr %to, i8 %value.8, i64 %count, i1 false)
  br label %done
halves:
  %i = phi i64 [ 0, %which ], [ %i.next, %halves ]
  %half = getelementptr i16, ptr %to, i64 %i
  store i16 %value.16, ptr %half, align 1
  %i.next = add i64 %i, 1
  %more.halves = icmp ult i64 %i.next, %count
  br i1 %more.halves, label %halves, label %done
words:
  %k = phi i64 [ 0, %which ], [ %k.next, %words ]
  %whole = getelementptr i32, ptr %to, i64 %k
  store i32 %value.32, ptr %whole, align 1
  %k.next = add i64 %k, 1
  %more.words = icmp ult i64 %k.next, %count
  br i1 %more.words, label %words, label %done
done:
  ret void
}
"""

_HOME = """
; What is ready for a launch with this head; null if nothing is.
define internal ptr @known(ptr %launches, ptr %head) {
entry:
  br label %mix
mix:
  %i = phi i64 [ 0, %entry ], [ %i.next, %mix ]
  %before = phi i64 [ 0, %entry ], [ %mixed, %mix ]
  %word.at = getelementptr i64, ptr %head, i64 %i
  %word = load i64, ptr %word.at
  %both = xor i64 %before, %word
  %product = mul i64 %both, $MIX
  %high = lshr i64 %product, 32
  %mixed = xor i64 %product, %high
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, $HEAD_WORDS
  br i1 %more, label %mix, label %probe
probe:
  %number = phi i64 [ %mixed, %mix ], [ %number.next, %differs ]
  %place = and i64 %number, $MASK
  %offset = mul i64 %place, $ENTRY_BYTES
  %entry.at = getelementptr i8, ptr %launches, i64 %offset
  %ready.at = call i64 @word(ptr %entry.at, i64 $HEAD_BYTES)
  %free = icmp eq i64 %ready.at, 0
  br i1 %free, label %nothing, label %compare
nothing:
  ret ptr null
compare:
  %k = phi i64 [ 0, %probe ], [ %k.next, %same ]
  %theirs.at = getelementptr i64, ptr %head, i64 %k
  %ours.at = getelementptr i64, ptr %entry.at, i64 %k
  %theirs = load i64, ptr %theirs.at
  %ours = load i64, ptr %ours.at
  %equal = icmp eq i64 %theirs, %ours
  br i1 %equal, label %same, label %differs
same:
  %k.next = add i64 %k, 1
  %left = icmp ult i64 %k.next, $HEAD_WORDS
  br i1 %left, label %compare, label %found
differs:
  %number.next = add i64 %place, 1
  br label %probe
found:
  %ready = inttoptr i64 %ready.at to ptr
  ret ptr %ready
}
"""

_COMMANDS = """
define i64 @luthier_tickets(ptr %commands, i64 %done) {
entry:
  %control.at = call i64 @word(ptr %commands, i64 $T_control)
  %control = inttoptr i64 %control.at to ptr
  %launches.at = call i64 @word(ptr %commands, i64 $T_launches)
  %launches = inttoptr i64 %launches.at to ptr
  %begin.at = call i64 @word(ptr %commands, i64 $T_begin)
  %begin = inttoptr i64 %begin.at to ptr
  %tables.at = call i64 @word(ptr %commands, i64 $T_tables)
  %tables.place = inttoptr i64 %tables.at to ptr
  %taken.at = getelementptr i8, ptr %control, i64 $C_TAKEN
  %ring = getelementptr i8, ptr %control, i64 $C_RING
  %failure.at = getelementptr i8, ptr %control, i64 $C_FAILURE
  %finish.first = icmp ne i64 %done, 0
  br i1 %finish.first, label %finish, label %look

look:
  %tables = load atomic i64, ptr %tables.place monotonic, align 8
  %many = icmp ugt i64 %tables, $MOST_TABLES
  br i1 %many, label %crowded, label %read
crowded:
  ret i64 $CROWDED
read:
  %looks = phi i64 [ 0, %look ], [ %looks.next, %idle ]
  %nothing = call i1 @empty(ptr %control)
  br i1 %nothing, label %idle, label %record
idle:
  %looks.next = add i64 %looks, 1
  %patient = icmp ult i64 %looks.next, $LOOKS
  br i1 %patient, label %read, label %sleepy
sleepy:
  %posted.at = getelementptr i8, ptr %control, i64 $C_POSTED
  %posted = load atomic i32, ptr %posted.at seq_cst, align 4
  call void @nap(ptr %control, i32 %posted, i64 $NAP)
  %still.nothing = call i1 @empty(ptr %control)
  br i1 %still.nothing, label %gives.up, label %look
gives.up:
  ret i64 $EMPTY

record:
  %taken = load i64, ptr %taken.at
  %at = and i64 %taken, $RING_MASK
  %head = getelementptr i8, ptr %ring, i64 %at
  %head.at = ptrtoint ptr %head to i64
  %code.at = getelementptr i8, ptr %head, i64 8
  %code = load i32, ptr %code.at
  %bytes.at = getelementptr i8, ptr %head, i64 12
  %bytes.32 = load i32, ptr %bytes.at
  %bytes = zext i32 %bytes.32 to i64
  %is.rest = icmp eq i32 %code, 0
  br i1 %is.rest, label %rest, label %command
rest:  ; of the ring, in which the next record had no room
  %from.start = add i64 %taken, %bytes
  store atomic i64 %from.start, ptr %taken.at seq_cst, align 8
  br label %look
command:
  call void @set(ptr %commands, i64 $T_record, i64 %head.at)
  %with.head = add i64 %bytes, 31
  %size = and i64 %with.head, -16
  call void @set(ptr %commands, i64 $T_size, i64 %size)
  %number = load i64, ptr %head
  %wanted = call i64 @word(ptr %commands, i64 $T_next)
  %is.next = icmp eq i64 %number, %wanted
  br i1 %is.next, label %lives, label %elsewhere
elsewhere:
  ret i64 $ELSEWHERE
lives:
  %failure = load atomic i32, ptr %failure.at monotonic, align 4
  %failed = icmp ne i32 %failure, 0
  %content = getelementptr i8, ptr %head, i64 $RECORD_HEAD
  br i1 %failed, label %finish, label %what
what:
  %timed = call i64 @word(ptr %commands, i64 $T_timed)
  %by.python = icmp ne i64 %timed, 0
  br i1 %by.python, label %new, label %which
which:
  switch i32 %code, label %new [ i32 $LAUNCH, label %launch  i32 $STAMP, label %stamp
                                 i32 $COPY, label %copy  i32 $FILL, label %fill ]
new:
  ret i64 $NEW
stamp:
  %stamp.at = load i64, ptr %content
  %stamp.place = inttoptr i64 %stamp.at to ptr
  %time = call i64 @now()
  store atomic i64 %time, ptr %stamp.place seq_cst, align 8
  br label %finish
copy:
  call void @copy(ptr %content)
  br label %finish
fill:
  call void @fill(ptr %content)
  br label %finish
launch:
  %ready = call ptr @known(ptr %launches, ptr %content)
  %unknown = icmp eq ptr %ready, null
  br i1 %unknown, label %new, label %is.valid
is.valid:
  %valid = call i64 @word(ptr %ready, i64 $VALID)
  %words = call i64 @word(ptr %ready, i64 $WORDS)
  %argument.bytes = sub i64 %bytes, $HEAD_BYTES
  %room = shl i64 %words, 3
  %fits = icmp ule i64 %argument.bytes, %room
  %is.good = icmp ne i64 %valid, 0
  %both.good = and i1 %fits, %is.good
  br i1 %both.good, label %begins, label %new
begins:
  %arguments = getelementptr i8, ptr %content, i64 $HEAD_BYTES
  %outcome = call i64 %begin(ptr %ready, ptr %arguments, i64 %argument.bytes)
  %ended = icmp eq i64 %outcome, $FINISHED
  br i1 %ended, label %finish, label %stopped
stopped:
  %ready.at = ptrtoint ptr %ready to i64
  call void @set(ptr %commands, i64 $T_ready, i64 %ready.at)
  call void @set(ptr %commands, i64 $T_outcome, i64 %outcome)
  ret i64 $STOPPED

finish:  ; the record in hand is done
  %used = call i64 @word(ptr %commands, i64 $T_size)
  %taken.before = load i64, ptr %taken.at
  %taken.now = add i64 %taken.before, %used
  store atomic i64 %taken.now, ptr %taken.at seq_cst, align 8
  %this = call i64 @word(ptr %commands, i64 $T_next)
  %following = add i64 %this, 1
  call void @set(ptr %commands, i64 $T_next, i64 %following)
  call void @tell(ptr %control, i64 %this)
  br label %look
}
"""
