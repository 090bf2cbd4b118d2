"""The slow path of every memory access: which host memory an address is.

In: an address of one lane. Out: LLVM IR of ``ptr luthier_resolve(wave, address, bytes, site, lane,
flags)``, which returns a host pointer, or null after noting a fault in the wave. Invariant: a pointer
that it returns may be accessed for ``bytes`` bytes, and written if the flags say so. Nothing is compared
with the end of an access, which wraps for the last addresses: its room is.

LDS instructions outside of a work-group's LDS read 0 and write nothing, which the worker is told (ISA manuals, "Data
Share", out of range); flat ones there are faults.
"""

from __future__ import annotations

from luthier_py.emulator.records.layout import ALLOCATION_BYTES, FINE, SITE_BYTES, WAVE, WRITABLE, Fault
from luthier_py.emulator.records.template import expand

# Flags. IN_LDS and IN_SCRATCH: the address is an offset there, of 32 bits: what is above them is carry.
WRITES, FLAT, ALIGNED, IN_LDS, IN_SCRATCH, FLOAT_ATOMIC = 1, 2, 4, 8, 16, 32


assert WRITES == WRITABLE


def resolve(wave_size: int) -> str:
    """IR of ``luthier_resolve``, for waves of ``wave_size`` lanes."""
    numbers = {fault.name: int(fault) for fault in Fault}
    return expand(_TEXT, **numbers, writes=WRITES, flat=FLAT, aligned=ALIGNED, in_lds=IN_LDS, in_scratch=IN_SCRATCH,
                  float_atomic=FLOAT_ATOMIC, fine=FINE, ignored=WAVE["ignored"],
                  row_bytes=4 * wave_size, allocation_bytes=ALLOCATION_BYTES, site_bytes=SITE_BYTES)


def refuse() -> str:
    """``void luthier_refuse(wave, site, lane, why)``: note what of a surface is refused, a SurfaceRefusal."""
    return expand(_REFUSE + _NOTE + "  ret void\n}\n", kind=int(Fault.SURFACE), site_bytes=SITE_BYTES)


_REFUSE = """
define void @luthier_refuse(ptr %wave, ptr %site, i64 %lane, i64 %address) noinline {
  %why = add i64 $kind, 0
"""

_NOTE = """
  %fault.worker.at = get wave.worker of %wave
  %fault.worker = inttoptr i64 %fault.worker.at to ptr
  %sites = get worker.sites of %fault.worker
  %site.at = ptrtoint ptr %site to i64
  %site.offset = sub i64 %site.at, %sites
  %number = udiv i64 %site.offset, $site_bytes
  put wave.fault_site of %wave, %number
  put wave.fault_lane of %wave, %lane
  put wave.fault_address of %wave, %address
  put wave.fault_kind of %wave, %why
"""

_TEXT = """
define ptr @luthier_resolve(ptr %wave, i64 %address, i64 %bytes, ptr %site, i64 %lane, i64 %flags) noinline {
entry:
  %less = add i64 %bytes, -1
  %bits = and i64 %address, %less
  %crooked = icmp ne i64 %bits, 0
  %aligned.flag = and i64 %flags, $aligned
  %strict = icmp ne i64 %aligned.flag, 0
  %misaligned = and i1 %crooked, %strict
  br i1 %misaligned, label %unaligned, label %kind
kind:
  %low.half = and i64 %address, 4294967295
  %worker.at = get wave.worker of %wave
  %worker = inttoptr i64 %worker.at to ptr
  %space = and i64 %flags, 24
  switch i64 %space, label %global [ i64 $in_lds, label %lds  i64 $in_scratch, label %private ]

global:
  %base = get site.base of %site
  %end = get site.end of %site
  %into = sub i64 %address, %base
  %length = sub i64 %end, %base
  %begins = icmp ult i64 %into, %length
  %room = sub i64 %length, %into
  %fits = icmp ule i64 %bytes, %room
  %inside = and i1 %begins, %fits
  br i1 %inside, label %found, label %elsewhere
elsewhere:
  %flat.flag = and i64 %flags, $flat
  %is.flat = icmp ne i64 %flat.flag, 0
  br i1 %is.flat, label %apertures, label %search
apertures:
  %high = lshr i64 %address, 32
  %shared = get worker.shared_base of %worker
  %shared.high = lshr i64 %shared, 32
  %in.shared = icmp eq i64 %high, %shared.high
  br i1 %in.shared, label %lds, label %private.aperture
private.aperture:
  %private.base = get worker.private_base of %worker
  %private.high = lshr i64 %private.base, 32
  %beyond.lanes = lshr i64 %private.base, 58
  %has.lane = icmp ne i64 %beyond.lanes, 0  ; bits 56:52 are the lane whose memory it is
  %high.rest = and i64 %high, -32505857
  %high.lane = lshr i64 %high, 20
  %named.lane = and i64 %high.lane, 31
  %own.high = select i1 %has.lane, i64 %high.rest, i64 %high
  %its.lane = select i1 %has.lane, i64 %named.lane, i64 %lane
  %in.private = icmp eq i64 %own.high, %private.high
  br i1 %in.private, label %private, label %search

lds:
  %lds.last = add i64 %low.half, %bytes
  %lds.bytes = get wave.lds_bytes of %wave
  %lds.ok = icmp ule i64 %lds.last, %lds.bytes
  %lds.base = get wave.lds of %wave
  %lds.at = add i64 %lds.base, %low.half
  %lds.pointer = inttoptr i64 %lds.at to ptr
  br i1 %lds.ok, label %give.lds, label %bad.lds
give.lds:
  ret ptr %lds.pointer

private:
  %column.lane = phi i64 [ %lane, %kind ], [ %its.lane, %private.aperture ]
  %offset.last = add i64 %low.half, %bytes
  %scratch.bytes = get wave.scratch_bytes of %wave
  %private.ok = icmp ule i64 %offset.last, %scratch.bytes
  br i1 %private.ok, label %swizzle, label %bad.private
swizzle:
  %in.word = and i64 %low.half, 3
  %word.last = add i64 %in.word, %bytes
  %one.word = icmp ule i64 %word.last, 4
  br i1 %one.word, label %give.private, label %unaligned
give.private:
  %word = lshr i64 %low.half, 2
  %row = mul i64 %word, $row_bytes
  %column = shl i64 %column.lane, 2
  %cell = add i64 %row, %column
  %byte = add i64 %cell, %in.word
  %scratch = get wave.scratch of %wave
  %private.at = add i64 %scratch, %byte
  %private.pointer = inttoptr i64 %private.at to ptr
  ret ptr %private.pointer

search:
  %holder.at = get worker.allocations of %worker
  %holder = inttoptr i64 %holder.at to ptr
  %table.at = load atomic i64, ptr %holder acquire, align 8
  %table.head = inttoptr i64 %table.at to ptr
  %count = load i64, ptr %table.head, align 8
  %table = getelementptr i8, ptr %table.head, i64 8
  br label %halve
halve:
  %low = phi i64 [ 0, %search ], [ %low.next, %step ]
  %size = phi i64 [ %count, %search ], [ %size.next, %step ]
  %empty = icmp eq i64 %size, 0
  br i1 %empty, label %bad.address, label %step
step:
  %half = lshr i64 %size, 1
  %middle = add i64 %low, %half
  %entry.at = mul i64 %middle, $allocation_bytes
  %record = getelementptr i8, ptr %table, i64 %entry.at
  %record.base = get allocation.base of %record
  %record.end = get allocation.end of %record
  %record.into = sub i64 %address, %record.base
  %record.length = sub i64 %record.end, %record.base
  %record.begins = icmp ult i64 %record.into, %record.length
  %record.room = sub i64 %record.length, %record.into
  %record.fits = icmp ule i64 %bytes, %record.room
  %hit = and i1 %record.begins, %record.fits
  %after = icmp uge i64 %address, %record.end
  %beyond = add i64 %middle, 1
  %low.next = select i1 %after, i64 %beyond, i64 %low
  %taken = add i64 %half, 1
  %size.up = sub i64 %size, %taken
  %size.next = select i1 %after, i64 %size.up, i64 %half
  br i1 %hit, label %permitted, label %halve
permitted:
  %access = get allocation.access of %record
  %write.flag = and i64 %flags, $writes
  %allowed = and i64 %access, %write.flag  ; the same bit
  %lacking = icmp ne i64 %allowed, %write.flag
  br i1 %lacking, label %read.only, label %reaches
reaches:
  %float.flag = and i64 %flags, $float_atomic
  %is.float = icmp ne i64 %float.flag, 0
  %fine.bit = and i64 %access, $fine
  %is.fine = icmp ne i64 %fine.bit, 0
  %dropped = and i1 %is.float, %is.fine
  br i1 %dropped, label %drop, label %remember
drop:  ; not remembered: the next one comes here, too
  br label %nothing
remember:
  put site.base of %site, %record.base
  put site.end of %site, %record.end
  br label %found
found:
  %pointer = inttoptr i64 %address to ptr
  ret ptr %pointer

bad.address:
  br label %fault
read.only:
  br label %fault
bad.lds:
  %by.lds = icmp eq i64 %space, $in_lds
  br i1 %by.lds, label %outside, label %bad.flat
outside:
  %outside.site = ptrtoint ptr %site to i64
  put worker.outside_lds of %worker, %outside.site
  br label %nothing
nothing:  ; which is read as 0
  put wave.ignored of %wave, 0
  put wave.ignored_high of %wave, 0
  %ignored = getelementptr i8, ptr %wave, i64 $ignored
  ret ptr %ignored
bad.flat:
  br label %fault
bad.private:
  br label %fault
unaligned:
  br label %fault
fault:
  %why = phi i64 [ $ADDRESS, %bad.address ], [ $READ_ONLY, %read.only ], [ $LDS, %bad.flat ],
                 [ $SCRATCH, %bad.private ], [ $MISALIGNED, %unaligned ]
""" + _NOTE + """
  ret ptr null
}
"""
