"""How far is the emulator from the host itself? Kernels, many of them samples, beside their twins in C, on one thread.

In: nothing, or names of rows; `--before FOLDER`, a checkout to measure in turn with this one; `--write` makes
twins.md. Out: a table of processor time for one warm launch (the least of several), and the geometric mean of the
ratios. Each pair's results are compared before it counts. It needs clang (clang-22 or clang).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from ctypes import CDLL, c_float, c_void_p
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("LUTHIER_CACHE_DIR", "off")

import numpy as np

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.interface import pack_arguments
from luthier_py.features.run.specs import BufferSpec, parse_argument
from luthier_py.samples import FOLDER, Sample, sample
from luthier_py.samples.build import OPTIONS

HERE = Path(__file__).resolve().parent
PAGE = HERE / "twins.md"
FLAGS = ("-O3", "-march=native", "-fPIC")
LAUNCHES, SECONDS = 7, 0.3
TEXT = """# The emulator beside the host

`python benchmarks/twins.py --write` wrote this page: {machine}. Milliseconds of processor time for one warm launch,
one thread, the least of {launches} or more; *before* is another checkout, measured in the same run. The twin is the
same work in C ([twins.c](twins.c)), by `clang -O3 -march=native`{fast}. Kernels are samples, and those in
[twins.hip](twins.hip).
Compiling is not in these figures.

{table}

Geometric mean of the ratios: {mean}.
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the table: a launch, and what its twin is told of the size that a kernel has from its grid."""

    sample: Sample
    told: tuple[int, ...] = ()
    title: str = ""

    @property
    def name(self) -> str:
        return self.title or self.sample.name


def sized(name: str, grid: tuple[int, int, int], *args: str) -> Sample:
    return replace(sample(name), grid=grid, args=args)


def own(name: str, grid: tuple[int, int, int], *args: str, block: tuple[int, int, int] = (256, 1, 1)) -> Sample:
    """A launch of a kernel in twins.hip."""
    return Sample(name, grid, block, args, lambda inputs: [])


def gathers(table: int) -> Sample:
    return own("gather", (N // 256, 1, 1), f"in:u32[{N}]=random:1:0:{table}", f"in:f32[{table}]=random:2",
               f"out:f32[{N}]")


def counts(shift: int) -> Sample:
    return own("count", (N // 256, 1, 1), f"u32={shift}", f"in:u32[{N}]=random:1:0:1024", "inout:u32[1024]=arange")


N = 1 << 20
CASES = (
    Case(sized("vector_add", (N // 256, 1, 1), f"in:f32[{N}]=random:1", f"in:f32[{N}]=random:2",
               f"out:f32[{N}]"), (N,)),
    Case(sized("saxpy", (N // 256, 1, 1), f"u32={N - 9}", "f32=0.7", f"in:f32[{N - 9}]=random:1",
           f"inout:f32[{N - 9}]=random:2")),
    Case(sized("reduce", (N // 256, 1, 1), f"in:f32[{N}]=random:1", f"out:f32[{N // 256}]"), (N,)),
    Case(sized("matmul", (16, 16, 1), "u32=256", "in:f32[256,256]=random:1", "in:f32[256,256]=random:2",
           "out:f32[256,256]")),
    Case(sized("mandelbrot", (40, 40, 1), "u32=640", "u32=640", "f32=-2.0", "f32=-1.2", "f32=0.00375", "u32=256",
           "out:u32[640,640]")),
    Case(sized("histogram", (64, 1, 1), f"u32={N}", f"in:u32[{N}]=random:1", "inout:u32[64]=arange")),
    Case(sized("nbody", (8, 1, 1), "u32=2048", "f32=0.01", "in:f32[2048,4]=random:1", "out:f32[2048,4]")),
    Case(sized("bitonic_sort", (512, 1, 1), "inout:u32[262144]=random:1"), (262144,)),
    Case(sized("scratch", (64, 1, 1), "u32=16384", "in:u32[16384]=random:1", "out:u32[16384]")),
    Case(sized("transpose", (16, 16, 1), "u32=512", "in:u32[512,512]=random:1", "out:u32[512,512]")),
    Case(gathers(1 << 14), (N,)),
    Case(gathers(1 << 23), (N,), "gather, 32 MB"),
    Case(own("scatter", (N // 256, 1, 1), f"u32={N}", f"in:f32[{N}]=random:1", f"out:f32[{N}]")),
    Case(own("spmv", (256, 1, 1), "u32=65536", f"in:u32[{N}]=random:1:0:65536", f"in:f32[{N}]=random:2",
             "in:f32[65536]=random:3", "out:f32[65536]")),
    Case(own("spmv_rows", (256, 1, 1), "in:u32[65537]=arange", f"in:u32[{N}]=random:1:0:65536",
             f"in:f32[{N}]=random:2", "in:f32[65536]=random:3", "out:f32[65536]"), (65536,)),
    Case(own("stencil", (16, 256, 1), "u32=1024", f"in:f32[{N}]=random:1", f"out:f32[{N}]", block=(64, 4, 1))),
    Case(own("stencil_tiled", (64, 64, 1), "u32=1024", f"in:f32[{N}]=random:1", f"out:f32[{N}]", block=(16, 16, 1))),
    Case(own("tree", (N // 4096, 1, 1), f"in:u32[{N}]=random:1", f"out:u32[{N // 4096}]"), (N,)),
    Case(counts(0), (N,)),
    Case(counts(10), (N,), "count, one address"),
)


def clang() -> str:
    found = shutil.which("clang-22") or shutil.which("clang")
    if found is None:
        raise SystemExit("twins.py needs clang")
    return found


def compile_kernels(folder: Path) -> bytes:
    """Those of twins.hip."""
    command = [clang(), *OPTIONS, f"-I{FOLDER}", str(HERE / "twins.hip"), "-o", str(folder / "twins.co")]
    subprocess.run(command, check=True)
    return (folder / "twins.co").read_bytes()


def host_library(folder: Path) -> CDLL:
    """The twins, for this computer; host.c may reassociate, as the file says."""
    objects = []
    for source, more in ((HERE / "twins.c", ()), (FOLDER / "host.c", ("-ffast-math",))):
        objects.append(str(folder / f"{source.stem}.o"))
        subprocess.run([clang(), *FLAGS, *more, "-c", str(source), "-o", objects[-1]], check=True)
    subprocess.run([clang(), "-shared", *objects, "-o", str(folder / "libtwins.so"), "-lm"], check=True)
    return CDLL(str(folder / "libtwins.so"))


def least_seconds(work: Callable[[], object], again: Callable[[], object]) -> float:
    """Of the processor, for ``work``; ``again`` makes its inputs what they were."""
    best, spent, launches = math.inf, 0.0, 0
    while launches < LAUNCHES or spent < SECONDS:
        again()
        started = time.process_time()
        work()
        seconds = time.process_time() - started
        best, spent, launches = min(best, seconds), spent + seconds, launches + 1
    return best


class Pair:
    """Mutable: a sample on a device, and its twin."""

    def __init__(self, case: Case, library: CDLL, own_kernels: bytes) -> None:
        self.sample = case.sample
        data = self.sample.path.read_bytes() if self.sample.path.exists() else own_kernels
        self.device = EmulatorDevice(load(data).target)
        self.values = [parse_argument(text) for text in self.sample.args]
        self.buffers = {place: self.device.alloc(value.data.nbytes) for place, value in enumerate(self.values)
                        if isinstance(value, BufferSpec)}
        self.arrays = {place: self.values[place].data.copy() for place in self.buffers}
        packed = [self.buffers.get(place, value.data) for place, value in enumerate(self.values)]
        self.kernel = self.device.load(data, self.sample.name).kernel(self.sample.kernel)
        self.kernarg = pack_arguments(self.kernel.record, packed, self.sample.grid, self.sample.block)
        self._function = getattr(library, self.sample.name)
        self._arguments: list[Any] = list(case.told)
        for place, value in enumerate(self.values):
            if place in self.arrays:
                self._arguments.append(c_void_p(self.arrays[place].ctypes.data))
            else:
                self._arguments.append(c_float(value.data) if value.data.dtype.kind == "f" else int(value.data))

    def fill_device(self) -> None:
        for place, buffer in self.buffers.items():
            self.device.write(buffer.address, self.values[place].data.tobytes())

    def fill_arrays(self) -> None:
        for place, array in self.arrays.items():
            array[...] = self.values[place].data

    def launch(self) -> None:
        self.device.launch(self.kernel, self.sample.grid, self.sample.block, self.kernarg)

    def run_twin(self) -> None:
        self._function(*self._arguments)

    def check(self) -> None:
        """Both have run once: the same results, as far as the sample says how near they must be."""
        for place, buffer in self.buffers.items():
            expected = self.arrays[place]
            found = np.frombuffer(self.device.read(buffer.address, buffer.size), expected.dtype)
            near = replace(self.sample, rtol=1e-6) if self.sample.name == "reduce" else self.sample
            if not near.agrees(found, expected):
                raise SystemExit(f"{self.sample.name}: the twin has other results")


def measure(names: list[str]) -> dict[str, tuple[float, float]]:
    """Seconds of the emulator and of the twin, by sample."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        library, own_kernels = host_library(Path(folder)), compile_kernels(Path(folder))
        for case in CASES:
            if names and case.name not in names:
                continue
            pair = Pair(case, library, own_kernels)
            pair.fill_device()
            pair.fill_arrays()
            pair.launch()
            pair.run_twin()
            pair.check()
            emulated = least_seconds(pair.launch, pair.fill_device)
            found[case.name] = emulated, least_seconds(pair.run_twin, pair.fill_arrays)
    return found


def measured_in(folder: Path, names: list[str]) -> dict[str, tuple[float, float]]:
    """The same by a process whose package is that of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, str(HERE / "twins.py"), "--json", *names]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(runs: list[tuple[str, dict[str, tuple[float, float]]]]) -> tuple[str, str]:
    """As Markdown; and the mean ratio of each run, in words."""
    lines = ["| sample | twin, ms | " + " | ".join(f"{title}, ms | ratio" for title, _ in runs) + " |"]
    lines.append("|---|" + "---:|" * (1 + 2 * len(runs)))
    twin = {name: min(found[name][1] for _, found in runs) for name in runs[0][1]}
    for name, host in twin.items():
        cells = [f"{found[name][0] * 1e3:.2f} | {found[name][0] / host:.1f}" for _, found in runs]
        lines.append(f"| {name} | {host * 1e3:.2f} | " + " | ".join(cells) + " |")
    means = ", ".join(f"{title} {mean([found[name][0] / host for name, host in twin.items()]):.2f}"
                      for title, found in runs)
    return "\n".join(lines), means


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(measure(options.names)))
        return
    runs = [("emulator", measured_in(HERE.parent, options.names))]
    if options.before is not None:
        runs.insert(0, ("before", measured_in(options.before, options.names)))
    text, means = table(runs)
    print(f"{text}\n\ngeometric mean: {means}")
    if options.write:
        machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
        PAGE.write_text(TEXT.format(machine=machine, launches=LAUNCHES, table=text, mean=means,
                                    fast=", and `-ffast-math` for nbody and matmul"))


if __name__ == "__main__":
    main()
