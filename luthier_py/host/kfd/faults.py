"""How a program's runtime learns that a queue went wrong.

In: a queue and the error that stopped it. Out: an exception code where the queue has a place for it (the header of
its save area, which drivers with a debugger's interface write), otherwise an error code in its inactive signal, as
the trap handler and the packet processor write it; data of events for threads that wait for memory faults or hangs.
Source: linux/kfd_ioctl.h (enum kfd_dbg_trap_exception_code),
kfd_context_save_area_header; ROCr, AqlQueue::DynamicScratchHandler. Invariant: a queue that went wrong carries out
nothing more.
"""

from __future__ import annotations

import struct
from types import SimpleNamespace

from luthier_py.base.errors import DeviceError, FaultKind, Invalid
from luthier_py.base.records import dataclass
from luthier_py.emulator.memory.device_memory import read_bytes
from luthier_py.host.kfd import ioctls, words
from luthier_py.host.kfd.events import Events
from luthier_py.host.kfd.queues import AqlQueue, BadPacket, Driver, complete

_SAVE_AREA = struct.Struct("<24xQI")  # err_payload_addr, err_event_id


@dataclass(frozen=True, slots=True)
class Reason:
    """``exception``: number of KFD's exception code; ``code``: of the inactive signal."""

    exception: int
    code: int


_TRAP, _ILLEGAL, _APERTURE = Reason(2, 0x80000000), Reason(4, 0x40000000), Reason(6, 0x20000000)
_DIMENSIONS, _CODE_OBJECT, _PACKET = Reason(16, 2), Reason(18, 8), Reason(20, 32)
_FAULTS = {
    FaultKind.TRAP: _TRAP, FaultKind.ILLEGAL_INSTRUCTION: _ILLEGAL, FaultKind.BAD_JUMP: _ILLEGAL,
    FaultKind.LDS: _APERTURE, FaultKind.SCRATCH: _APERTURE, FaultKind.MISALIGNED: _APERTURE,
}  # fmt: skip


def reason_for(error: Exception) -> Reason:
    """The codes for an error: by the kind of a fault, or those of a trap where that has none. Invalid means dimensions
    that cannot be launched, and any other error a code object that cannot run."""
    if isinstance(error, BadPacket):
        return _PACKET
    if isinstance(error, DeviceError):
        return _FAULTS.get(error.fault.kind, _TRAP) if error.fault is not None else _TRAP
    return _DIMENSIONS if isinstance(error, Invalid) else _CODE_OBJECT


def tell(queue: AqlQueue, error: Exception, driver: Driver) -> None:
    """Write the error's code to where the runtime looks for it, and wake the runtime. DeviceError where these addresses
    are no memory of the program."""
    reason = reason_for(error)
    if queue.place.save_area:
        driver.check(queue.place.save_area, _SAVE_AREA.size)
        payload, event = _SAVE_AREA.unpack(read_bytes(queue.place.save_area, _SAVE_AREA.size))
        if payload:
            driver.check(payload, 8)
            words.store(payload, 1 << (reason.exception - 1))
            driver.interrupt(event)
            return
    driver.check(queue.address, 256)
    complete(queue.inactive_signal, driver, 0, lambda value: words.store(value, reason.code))


def raise_hang(events: Events, gpu: int) -> bool:
    """Whether the program listens: ROCr before 5.3 does not. ``gpu``: its name."""
    row = SimpleNamespace(reset=0, cause=ioctls.HANG, lost=1, gpu=gpu)  # lost: as kfd_signal_reset_event
    return _raise(events, ioctls.EVENT_HW_EXCEPTION, ioctls.HW_EXCEPTION.write(row))


def raise_memory_fault(events: Events, gpu: int, address: int, read_only: bool) -> None:
    """``gpu``: its name; ``read_only``: the page is there, and was written to."""
    row = SimpleNamespace(not_present=int(not read_only), read_only=int(read_only), no_execute=0, imprecise=0,
                          address=address & -4096, gpu=gpu, kind=0)  # fmt: skip
    _raise(events, ioctls.EVENT_MEMORY, ioctls.MEMORY_EXCEPTION.write(row))


def _raise(events: Events, kind: int, data: bytes) -> bool:
    numbers = events.of_type(kind)
    for number in numbers:
        events.set(number, data)
    return bool(numbers)
