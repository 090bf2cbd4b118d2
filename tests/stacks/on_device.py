"""What programs share that call a release's libraries: its libraries by ctypes, and arrays on the device.

In: the folder of its libraries, the program's first argument. Out: functions. Invariant: a call that fails ends
the program with its name and status.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np

TO_DEVICE, FROM_DEVICE = 1, 2
FOLDER = Path(sys.argv[1])


def library(name: str) -> ctypes.CDLL:
    """By its newest version's name, which is looked for as in any program."""
    found = sorted(FOLDER.glob(f"{name}.so.*"))
    if not found:
        sys.exit(f"there is no {name}")
    return ctypes.CDLL(found[0].name)


HIP = library("libamdhip64")


def checked(status: int, what: str) -> None:
    if status:
        sys.exit(f"{what}: {status}")


class OnDevice:
    """A copy of an array there, and the array here, to which ``back`` brings what is there."""

    def __init__(self, data: np.ndarray) -> None:
        self.data, self.place = np.array(data, order="C"), ctypes.c_void_p()
        checked(HIP.hipMalloc(ctypes.byref(self.place), ctypes.c_size_t(max(self.data.nbytes, 4))), "hipMalloc")
        self._copy(TO_DEVICE)

    def back(self) -> np.ndarray:
        checked(HIP.hipDeviceSynchronize(), "hipDeviceSynchronize")
        self._copy(FROM_DEVICE)
        return self.data

    def _copy(self, way: int) -> None:
        here, size = ctypes.c_void_p(self.data.ctypes.data), ctypes.c_size_t(self.data.nbytes)
        ends = (self.place, here) if way == TO_DEVICE else (here, self.place)
        checked(HIP.hipMemcpy(*ends, size, way), "hipMemcpy")


def compare(what: str, found: np.ndarray, expected: np.ndarray, most: float) -> None:
    """Relative to the greatest element."""
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    print(f"{what}: {error:.1e}", flush=True)
    if not error < most:
        sys.exit(f"{what} is wrong")
