"""How fast the emulator runs kernels: wave instructions per second, time to first launch, and the host beside it.

In: nothing, or names of samples. Out: a table. Runs are on one thread and warm: the best of five launches counts.
"first" is the time from loading the object to the end of a first launch of one work-group, with the cache of host
code off. "host" is the same work by ``tests/data/host.c``, compiled by clang -O3, where clang is there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from ctypes import CDLL, c_float, c_void_p
from pathlib import Path
from shutil import which
from typing import Any

os.environ["LUTHIER_CACHE_DIR"] = "off"

import numpy as np
from rich.console import Console
from rich.table import Table

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.interface import pack_arguments
from luthier_py.features.run.specs import BufferSpec, parse_argument
from luthier_py.samples import FOLDER, SAMPLES, Sample, large

LAUNCHES = 5
HOST_FLAGS = ("-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")


def host_library(folder: Path) -> CDLL | None:
    """host.c for this computer; None without clang."""
    clang = which("clang-22") or which("clang")
    if clang is None:
        return None
    library = folder / "libhost.so"
    subprocess.run([clang, *HOST_FLAGS, str(FOLDER / "host.c"), "-o", str(library), "-lm"], check=True)
    return CDLL(str(library))


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def host_seconds(library: CDLL | None, sample: Sample) -> float | None:
    """The host's time for the sample's work."""
    function: Any = None if library is None else getattr(library, sample.name, None)
    if function is None:
        return None
    values = [parse_argument(text).data for text in sample.args]
    arguments = [c_void_p(v.ctypes.data) if isinstance(v, np.ndarray) else c_float(v) if v.dtype.kind == "f" else int(v)
                 for v in values]
    return min(seconds(lambda: function(*arguments)) for _ in range(2))


def measure(sample: Sample) -> tuple[float, float, int]:
    """(seconds to the first launch, seconds of a warm one, wave instructions of it)."""
    data = sample.path.read_bytes()
    device = EmulatorDevice(load(data).target)
    buffers, packed = [], []
    for value in map(parse_argument, sample.args):
        if isinstance(value, BufferSpec):
            buffers.append(device.alloc(value.data.nbytes))
            device.write(buffers[-1].address, value.data.tobytes())
            packed.append(buffers[-1])
        else:
            packed.append(value.data)
    started = time.perf_counter()
    kernel = device.load(data, sample.name).kernel(sample.kernel)
    kernarg = pack_arguments(kernel.record, packed, sample.grid, sample.block)
    device.launch(kernel, (1, 1, 1), sample.block, kernarg)
    first = time.perf_counter() - started
    best = float("inf")
    for _ in range(LAUNCHES):
        device.launch(kernel, sample.grid, sample.block, kernarg)
        assert device.profile is not None
        best = min(best, device.profile.seconds)
    return first, best, device.profile.total


def main(names: list[str]) -> None:
    titles = "wave instructions", "million/s", "ns each", "first, ms", "host, ms", "emulated / host"
    table = Table("kernel")
    for title in titles:
        table.add_column(title, justify="right")
    chosen = {**{one.name: one for one in SAMPLES}, **{one.name: one for one in large()}}
    with tempfile.TemporaryDirectory() as folder:
        library = host_library(Path(folder))
        for name in names or [one.name for one in large()]:
            first, best, total = measure(chosen[name])
            host = host_seconds(library, chosen[name])
            speed = f"{total / best / 1e6:.1f}", f"{best / total * 1e9:.1f}"
            table.add_row(name, f"{total:,}", *speed, f"{first * 1e3:.0f}",
                          "-" if host is None else f"{host * 1e3:.1f}", "-" if host is None else f"{best / host:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
