"""Kernels to instrument: samples, samples compiled for other targets, kernels of libraries, crowded random ones.

In: a folder to put files into, how many kernels of libraries, a seed. Out: Subjects, the same ones for the same seed
and libraries. Invariant: a subject is a file and the name of a kernel in it, so that any process can take it up.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from shutil import which

from crowded_kernels import FREE, GROUPS, arguments, crowded
from emulated import LANES

from luthier_py.base.errors import LuthierError
from luthier_py.binary.loader import load, unbundle
from luthier_py.binary.loader.elf import is_code_object
from luthier_py.isa import target as row_of
from luthier_py.samples import FOLDER, SAMPLES

CLANG = "clang-22"
OPTIONS = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none".split()
EMULATED = ("gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950")
COMPILED = (  # with the size of waves
    ("gfx803", 64), ("gfx900", 64), ("gfx906", 64), ("gfx908", 64), ("gfx942", 64), ("gfx950", 64), ("gfx1010", 32),
    ("gfx1030", 32), ("gfx1030", 64), ("gfx1100", 32), ("gfx1100", 64), ("gfx1151", 32), ("gfx1201", 32),
    ("gfx1201", 64), ("gfx1250", 32),
)
OF_SAMPLES = 3  # each so manieth is compiled for other targets
HAND_WRITTEN = "hand-written"
LIBRARIES = {"aiter": HAND_WRITTEN, "cyllama": "libraries"}
HAND_WRITTEN_SHARE = 0.5
ROCM = "LUTHIER_ROCM_LIBRARIES"
Dim = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Subject:
    """One kernel. ``arguments``: of its launch, where it is run."""

    corpus: str
    target: str
    name: str
    path: Path
    kernel: str
    grid: Dim = (1, 1, 1)
    block: Dim = (1, 1, 1)
    arguments: tuple[str, ...] = ()


def subjects(folder: Path, libraries: Path, kernels: int, seed: int) -> Iterator[Subject]:
    """``kernels``: how many of libraries."""
    for sample in SAMPLES:
        yield Subject("samples", "gfx90a", sample.name, sample.path, sample.kernel, sample.grid, sample.block,
                      sample.args)
    yield from of_libraries(folder, libraries, kernels, seed)
    yield from generated(folder, seed)
    if which(CLANG):
        yield from compiled(folder)
    else:
        print(f"{CLANG} is not installed: no samples for other targets")


def compiled(folder: Path) -> Iterator[Subject]:
    """The samples for other targets; those that the emulator knows are run."""
    for number, ((target, wave_size), sample) in enumerate(product(COMPILED, SAMPLES)):
        if number % OF_SAMPLES:
            continue
        path = folder / f"{sample.name}-{target}-{wave_size}.co"
        if not path.exists():
            size = ["-mwavefrontsize64"] * (wave_size == 64 and target.startswith("gfx1"))
            done = subprocess.run([CLANG, *OPTIONS, f"--offload-arch={target}", *size, sample.source, "-o", path],
                                  cwd=FOLDER, capture_output=True)
            if done.returncode:  # lds_widths is assembly, of gfx9 to gfx11
                continue
        run = sample.args if target in EMULATED else ()
        yield Subject("samples, compiled for", target, f"{sample.name}, wave{wave_size}", path, sample.kernel,
                      sample.grid, sample.block, run)


def generated(folder: Path, seed: int) -> Iterator[Subject]:
    """Random kernels in which all registers are in use but a few; in every second one AGPRs, too."""
    for number, (target, free) in enumerate(product(EMULATED, FREE)):
        accumulators = row_of(target).has_agprs and number % 2 == 1
        left = ", ".join(f"{count} {file.name}s" for file, count in free.items())
        path = folder / f"generated-{seed}-{number}.co"
        path.write_bytes(crowded(target, seed * 1000 + number, free, accumulators))
        yield Subject("crowded", target, f"{number}: {left} free" + ", AGPRs in use" * accumulators, path, "k",
                      (GROUPS, 1, 1), (LANES, 1, 1), arguments())


def of_libraries(folder: Path, libraries: Path, most: int, seed: int) -> Iterator[Subject]:
    """Half of them hand-written; those of any file and of any target are as likely as others."""
    found: dict[str, list[tuple[Path, bytes, str, str]]] = {}
    for path, corpus in _library_files(libraries):
        rng = random.Random(f"{seed} {path.name}")
        for target, data, kernel in _chosen(path, rng):
            found.setdefault(corpus, []).append((path, data, target, kernel))
    for corpus, all_kernels in sorted(found.items()):
        share = HAND_WRITTEN_SHARE if corpus == HAND_WRITTEN else 1 - HAND_WRITTEN_SHARE
        number = min(len(all_kernels), round(most * share))
        for at, (path, data, target, kernel) in enumerate(random.Random(seed).sample(all_kernels, number)):
            file = folder / f"{corpus}-{seed}-{at}.co"
            file.write_bytes(data)
            yield Subject(corpus, target, f"{path.name}: {kernel}", file, kernel)


def _library_files(libraries: Path) -> Iterator[tuple[Path, str]]:
    for library, corpus in LIBRARIES.items():
        if not (libraries / library).exists():
            print(f"{libraries / library} is not there: `make libraries` fetches it")
        for path in sorted((libraries / library).rglob("*")):
            if path.suffix in (".so", ".co") and path.is_file():
                yield path, corpus
    for name in filter(None, os.environ.get(ROCM, "").split(":")):
        yield Path(name), "libraries"
    spec = find_spec("bitsandbytes")
    if spec is not None and spec.origin is not None:
        yield max(Path(spec.origin).parent.glob("libbitsandbytes_rocm*.so")), "libraries"


OF_A_TARGET = 20  # kernels of one library, from which some are taken


def _chosen(path: Path, rng: random.Random) -> Iterator[tuple[str, bytes, str]]:
    """Some kernels of a library for each target: target, code object, name."""
    data = path.read_bytes()
    try:
        parts = [data] if is_code_object(data) else [bytes(member.data) for member in unbundle(data, path.name)]
    except LuthierError:  # host code without kernels
        return
    rng.shuffle(parts)
    counts: dict[str, int] = {}
    for part in parts:
        obj = load(part)
        target, names = obj.target.name, [kernel.name for kernel in obj.kernels]
        left = OF_A_TARGET - counts.get(target, 0)
        for kernel in rng.sample(names, min(len(names), 2, left)):
            counts[target] = counts.get(target, 0) + 1
            yield target, part, kernel
