"""AMDKFD_IOC_SVM: what a program says and asks of shared virtual memory.

In: arguments, behind which attributes are. Out: the same as they are afterwards. Source: linux/kfd_ioctl.h;
drivers/gpu/drm/amd/amdkfd (kfd_ioctl_svm, svm_range_check_attr). Invariant: the program's side has made the pages of a
range the device's before it asks.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable

from luthier_py.host.kfd.buffers import PAGE, Buffers
from luthier_py.host.kfd.layout import StructLayout
from luthier_py.host.kfd.svm_ranges import (
    ACCESS,
    ACCESS_IN_PLACE,
    GRANULARITY,
    NO_ACCESS,
    PREFERRED_LOC,
    PREFETCH_LOC,
    SYSTEM_MEMORY,
    UNDEFINED,
    SvmPair,
)

NUMBER = 0x20
_HEAD = StructLayout("start:Q bytes:Q operation:I count:I")
_PAIR = struct.Struct("<2I")
_SET, _GET = range(2)
_LAST = (1 << 47) - 1


def svm(args: bytes, buffers: Buffers, gpus: frozenset[int]) -> bytes:
    """``gpus``: by their names. Raises OSError."""
    asked = _HEAD.read(args)
    room = args[_HEAD.size :]
    if (asked.start | asked.bytes) % PAGE or not asked.start or not asked.bytes or asked.start + asked.bytes > _LAST:
        raise OSError(errno.EINVAL, "range")
    if asked.operation not in (_SET, _GET) or asked.count * _PAIR.size > len(room):
        raise OSError(errno.EINVAL, "operation or count")
    pairs = [(kind, value) for kind, value in _PAIR.iter_unpack(room[: asked.count * _PAIR.size])]
    end = asked.start + asked.bytes
    _check(pairs, gpus, asked.operation == _SET)
    if asked.operation == _SET:
        buffers.change_svm(asked.start, end, pairs)
        return args
    answers = b"".join(_PAIR.pack(*pair) for pair in buffers.svm.answer(asked.start, end, pairs, gpus))
    return args[: _HEAD.size] + answers + room[len(answers) :]


def _check(pairs: Iterable[SvmPair], gpus: frozenset[int], changed: bool) -> None:
    for kind, value in pairs:
        of_gpu = kind in (ACCESS, ACCESS_IN_PLACE, NO_ACCESS)
        place = changed and (kind == PREFETCH_LOC or kind == PREFERRED_LOC)
        anywhere = value == SYSTEM_MEMORY or (kind == PREFERRED_LOC and value == UNDEFINED)
        if kind > GRANULARITY or (value not in gpus and (of_gpu or (place and not anywhere))):
            raise OSError(errno.EINVAL, "attribute")
