"""What a queue's runtime reads of what went wrong: exception codes of KFD, or errors of ROCr's handler."""

from __future__ import annotations

import ctypes
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from luthier_py.base.errors import DeviceError, DeviceFault, FaultKind, Invalid, Malformed
from luthier_py.host.kfd.faults import tell
from luthier_py.host.kfd.queues import BadPacket

EVENT = 77
CODES = [  # KFD's exception, and the inactive signal's value
    (DeviceError("x", fault=DeviceFault(FaultKind.TRAP, 0)), 2, 0x80000000),
    (DeviceError("x", fault=DeviceFault(FaultKind.ILLEGAL_INSTRUCTION, 0)), 4, 0x40000000),
    (DeviceError("x", fault=DeviceFault(FaultKind.BAD_JUMP, 0)), 4, 0x40000000),
    (DeviceError("x", fault=DeviceFault(FaultKind.LDS, 0)), 6, 0x20000000),
    (DeviceError("x", fault=DeviceFault(FaultKind.SCRATCH, 0)), 6, 0x20000000),
    (DeviceError("x", fault=DeviceFault(FaultKind.MISALIGNED, 0)), 6, 0x20000000),
    (DeviceError("x"), 2, 0x80000000),
    (Invalid("grid"), 16, 2),
    (Malformed("descriptor"), 18, 8),
    (BadPacket("type"), 20, 32),
]


class Driver:
    def __init__(self) -> None:
        self.told: list[int] = []

    def check(self, address: int, size: int) -> None:
        assert address and size

    def interrupt(self, event: int) -> None:
        self.told.append(event)


def queue(save_area: int, signal: int) -> Any:
    return SimpleNamespace(place=SimpleNamespace(save_area=save_area), address=0x1000, inactive_signal=signal)


@pytest.mark.parametrize("error, exception, code", CODES)
def test_exception_codes(error: Exception, exception: int, code: int) -> None:
    """A bit of the payload, where the queue has a place for it: the number of the exception, counted from 1."""
    payload, driver = ctypes.c_uint64(), Driver()
    header = ctypes.create_string_buffer(struct.pack("<24xQI", ctypes.addressof(payload), EVENT))
    tell(queue(ctypes.addressof(header), 0), error, driver)  # type: ignore[arg-type]
    assert payload.value == 1 << (exception - 1) and driver.told == [EVENT]


@pytest.mark.parametrize("error, exception, code", CODES)
@pytest.mark.parametrize("area", [False, True])
def test_error_codes(error: Exception, exception: int, code: int, area: bool) -> None:
    """In the inactive signal, of a queue without a save area, or whose area has no place for an exception."""
    driver, header = Driver(), ctypes.create_string_buffer(64)
    signal = (ctypes.c_uint64 * 8)()  # amd_signal_t: value at 8, mailbox at 16, event at 24
    mailbox = ctypes.c_uint64()
    signal[2], signal[3] = ctypes.addressof(mailbox), EVENT
    tell(queue(ctypes.addressof(header) if area else 0, ctypes.addressof(signal)),
         error, driver)  # type: ignore[arg-type]
    assert signal[1] == code and driver.told == [EVENT]
