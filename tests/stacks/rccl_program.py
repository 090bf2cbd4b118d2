"""All-reduce, all-gather and broadcast of RCCL over all devices of one process, against NumPy.

In: the folder of its libraries. Out: a line for each; PASSED. Names and numbers are those of rccl.h. Sizes are odd, and
go from one line of its protocols to many; values are whole, so that the order of a sum does not matter.
"""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
from on_device import HIP, OnDevice, checked, library

RCCL = library("librccl")
KINDS = {"f32": (7, np.float32), "f64": (8, np.float64), "i32": (2, np.int32)}
SUM, MAXIMUM = 0, 2
SIZES = 1, 1001, 70_001
ROUNDS = 3


class Devices:
    """One communicator and one stream on each."""

    def __init__(self) -> None:
        found = ctypes.c_int()
        checked(HIP.hipGetDeviceCount(ctypes.byref(found)), "hipGetDeviceCount")
        self.count = found.value
        self.communicators = (ctypes.c_void_p * self.count)()
        checked(RCCL.ncclCommInitAll(self.communicators, self.count, None), "ncclCommInitAll")
        self.streams = [ctypes.c_void_p() for _ in range(self.count)]
        for number, stream in enumerate(self.streams):
            self.choose(number)
            checked(HIP.hipStreamCreate(ctypes.byref(stream)), "hipStreamCreate")

    def choose(self, number: int) -> None:
        checked(HIP.hipSetDevice(number), "hipSetDevice")

    def copies(self, arrays: list[np.ndarray]) -> list[OnDevice]:
        made = []
        for number, array in enumerate(arrays):
            self.choose(number)
            made.append(OnDevice(array))
        return made

    def together(self, name: str, given: list[OnDevice], taken: list[OnDevice], *words: int) -> list[np.ndarray]:
        """What is in ``taken`` after one call for each device."""
        checked(RCCL.ncclGroupStart(), "ncclGroupStart")
        for number in range(self.count):
            ends = given[number].place, taken[number].place, ctypes.c_size_t(words[0])
            checked(getattr(RCCL, name)(*ends, *words[1:], ctypes.c_void_p(self.communicators[number]),
                                        self.streams[number]), name)
        checked(RCCL.ncclGroupEnd(), "ncclGroupEnd")
        found = []
        for number, each in enumerate(taken):
            self.choose(number)
            found.append(each.back())
        return found


def main() -> None:
    devices, rng = Devices(), np.random.default_rng(1)
    for (name, (kind, type_)), size in itertools.product(KINDS.items(), SIZES):
        arrays = [rng.integers(-1000, 1000, size).astype(type_) for _ in range(devices.count)]
        given = devices.copies(arrays)
        everyone = devices.copies([np.zeros(size * devices.count, type_)] * devices.count)
        expect(f"all-gather {name} x{size}", devices.together("ncclAllGather", given, everyone, size, kind),
               np.concatenate(arrays))
        expect(f"maximum {name} x{size}", devices.together("ncclAllReduce", given, everyone, size, kind, MAXIMUM),
               np.max(arrays, axis=0))
        for round_ in range(ROUNDS):  # in place, so that each has what the one before made
            arrays = [np.sum(arrays, axis=0, dtype=type_)] * devices.count
            found = devices.together("ncclAllReduce", given, given, size, kind, SUM)
            expect(f"sum {name} x{size}, {round_ + 1}", found, arrays[0])
        root = devices.count - 1
        fresh = devices.copies([np.full(size, number, type_) for number in range(devices.count)])
        expect(f"broadcast {name} x{size}", devices.together("ncclBroadcast", fresh, fresh, size, kind, root),
               np.full(size, root, type_))
    print("PASSED")


def expect(what: str, found: list[np.ndarray], wanted: np.ndarray) -> None:
    wrong = [number for number, each in enumerate(found) if not np.array_equal(each[: wanted.size], wanted)]
    print(f"{what}: {'right' if not wrong else f'wrong on {wrong}'}", flush=True)
    if wrong:
        raise SystemExit(f"{what} is wrong")


if __name__ == "__main__":
    main()
