"""How long does instrumentation take? Stage by stage, for kernels of all sizes, here and in another checkout.

In: `--before FOLDER`, a checkout to compare with; `--libraries FOLDER`, where `make libraries` has unpacked kernels
that others compiled. Out: tables on stdout, and in instrument.md with instrument.png. Each figure is of a process of
its own, those of both checkouts in turn; seconds are of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from large import COMPILER, KERNEL, large

from luthier_py.binary.link import Chunk, NewKernel, Patch, link
from luthier_py.binary.loader import load, unbundle
from luthier_py.binary.loader.elf import is_code_object
from luthier_py.isa import EXEC, VCC, instruction_set, sgpr, target, vgpr
from luthier_py.samples import sample

HERE = Path(__file__).resolve().parent
PAGE, PLOT = HERE / "instrument.md", HERE / "instrument.png"
STAGES = ("lift", "analyse", "visit", "jit", "inject", "link", "check")
BLOCK_INSTRUCTIONS = 10
SIZES = (2_500, 5_000, 10_000, 20_000)
SECONDS = 900  # for one process
TOOLS = ("instr_count", "lds_bank_conflicts")
MOST_OF_LDS = 4_000  # instructions of a kernel for which lds_bank_conflicts is measured, too
LIBRARIES = ("cyllama", "aiter")  # clang's kernels, and hand-written ones
TARGETS = ("gfx90a", "gfx942")
OF_A_LIBRARY = 3  # kernels
TEXT = """# How long instrumentation takes

`python benchmarks/instrument.py` wrote this page: {machine}. Figures are of the processor, one thread, each of a
process of its own; *before* is another checkout, measured in turn. Hooks are compiled anew each time (`jit`).

## Stages

Milliseconds for 1,000 instructions; *sites* are places where hooks were put, *code* is how many times as long the
kernel became, *memory* bytes for each instruction.

{stages}

## Size and sites

![Time over instructions](instrument.png)

{linear}

## First launch

Milliseconds that a program waits in the tool's worker when a kernel is launched for the first time: *cold* without a
cache, then with what that left. A worker is started with its program, and *import* is what it does meanwhile.

{first}
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel in a file."""

    name: str
    path: Path
    kernel: str


def ifs(instructions: int) -> bytes:
    """A kernel of `if`s: loads, waits, vector and scalar arithmetic, EXEC saved and put back."""
    isa = instruction_set(target("gfx90a"))
    exec_mask, vcc = sgpr(EXEC, 2), sgpr(VCC, 2)
    block = b"".join(inst.raw for inst in (
        isa.make("v_cmp_lt_u32_e32", vcc, vgpr(2), vgpr(3)), isa.make("s_and_saveexec_b64", sgpr(8, 2), vcc),
        isa.make("s_cbranch_execz", 7), isa.make("global_load_dword", vgpr(4), vgpr(2, 2), "off"),
        isa.make("s_add_u32", sgpr(10), sgpr(10), 1), isa.make("s_waitcnt", 0),
        isa.make("v_add_u32", vgpr(5), vgpr(4), vgpr(5)), isa.make("v_mul_lo_u32", vgpr(3), vgpr(5), sgpr(10)),
        isa.make("s_or_b64", exec_mask, exec_mask, sgpr(8, 2)), isa.make("v_xor_b32", vgpr(2), vgpr(3), vgpr(2)),
    ))
    base = load(sample("vector_add").path.read_bytes())
    like = base.kernels[0]
    code = block * (instructions // BLOCK_INSTRUCTIONS) + isa.make("s_endpgm").raw
    return link(base, Patch((Chunk("ifs", code),), (NewKernel("ifs", "ifs", like.descriptor, like.name),), ()))


def of_libraries(folder: Path, work: Path) -> Iterator[Subject]:
    """Of each library some kernels for TARGETS, the largest and smaller ones."""
    for library in LIBRARIES:
        sizes: dict[int, tuple[bytes, str]] = {}
        for path in sorted((folder / library).rglob("*")):
            if path.suffix in (".so", ".co") and path.is_file():
                sizes |= {size: (code, kernel) for code, kernel, size in _kernels(path)}
        for at, rank in enumerate(sorted(sizes, reverse=True)[:: -(-len(sizes) // OF_A_LIBRARY) or 1]):
            code, kernel = sizes[rank]
            file = work / f"{library}{at}.co"
            file.write_bytes(code)
            yield Subject(f"{library} {load(code).target.name}, of {len(code):,} bytes", file, kernel)


def _kernels(path: Path) -> Iterator[tuple[bytes, str, int]]:
    """Code object, name and size; where a symbol says none, the kernel is all that the object has."""
    data = path.read_bytes()
    parts = (member.data for member in unbundle(data, path.name) if member.target_name.partition(":")[0] in TARGETS)
    for part in [data] if is_code_object(data) else parts:
        obj = load(bytes(part))
        for kernel in obj.kernels if obj.target.name in TARGETS else ():
            symbol = obj.symbol(kernel.name)
            yield obj.data, kernel.name, symbol.size if symbol and symbol.size else sum(map(len, obj.text_ranges))


@dataclass(frozen=True, slots=True)
class Bench:
    """``checkouts``: this one, and perhaps the one to compare with before it."""

    checkouts: tuple[Path, ...]
    work: Path

    def measure(self, mode: str, subject: Subject, tool: str, cache: str = "off") -> list[dict[str, Any] | None]:
        """For each checkout; None where it took too long."""
        return [self._run(checkout, mode, subject, tool, cache) for checkout in self.checkouts]

    def _run(self, checkout: Path, mode: str, subject: Subject, tool: str, cache: str) -> dict[str, Any] | None:
        folder = cache if cache == "off" else str(self.work / f"{cache}{self.checkouts.index(checkout)}")
        environment = {**os.environ, "PYTHONPATH": str(checkout), "LUTHIER_CACHE_DIR": folder}
        command = [sys.executable, str(HERE / "stages.py"), mode, str(subject.path), subject.kernel, tool]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode:
            print(f"{subject.name}, {tool}: {done.stderr.strip().splitlines()[-1]}", flush=True)
            return None
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def whole(found: dict[str, Any]) -> float:
    return float(sum(found["seconds"].get(stage, 0.0) for stage in STAGES))


def stage_row(label: str, found: dict[str, Any], before: float | None) -> list[str]:
    per = 1e6 / found["instructions"]
    cells = [f"{found['seconds'].get(stage, 0.0) * per:.2f}" for stage in STAGES]
    ratio = f"{before / whole(found):.1f}" if before else ""
    return [label, f"{found['instructions']:,}", f"{found['sites']:,}", *cells, f"{whole(found) * per:.1f}", ratio,
            f"{found['growth']:.2f}", f"{found['memory_bytes'] / found['instructions']:,.0f}"]  # fmt: skip


def stage_table(bench: Bench, subjects: Sequence[Subject]) -> str:
    rows = []
    for subject in subjects:
        size = 0
        for tool in TOOLS:
            if tool == TOOLS[1] and size > MOST_OF_LDS:
                continue
            *earlier, now = bench.measure("stages", subject, tool)
            size = now["instructions"] if now is not None else size
            for found, label in zip((*earlier, now), ("before", "now")[-len(bench.checkouts):], strict=True):
                if found is not None and found["sites"]:
                    old = whole(earlier[0]) if earlier and earlier[0] is not None and found is now else None
                    rows.append(stage_row(f"{subject.name}, {tool}, {label}", found, old))
                    print(" ".join(rows[-1]), flush=True)
    return table(("kernel", "instructions", "sites", *STAGES, "all", "before / now", "code", "memory"), rows)


def linear(bench: Bench, work: Path) -> tuple[str, list[list[tuple[int, float]]]]:
    """instr_count over size; for each checkout the points of its line."""
    rows, lines = [], [list[tuple[int, float]]() for _ in bench.checkouts]
    for size in SIZES:
        path = work / f"ifs{size}.co"
        path.write_bytes(ifs(size))
        found = bench.measure("stages", Subject(f"{size}", path, "ifs"), TOOLS[0])
        for line, each in zip(lines, found, strict=True):
            if each is not None:
                line.append((each["instructions"], whole(each)))
        cells = ["" if each is None else f"{whole(each) * 1e6 / each['instructions']:.1f}" for each in found]
        rows.append([f"{size:,}", *cells])
        print("size", *rows[-1], flush=True)
    return table(("instructions of the synthetic kernel", *("before", "now")[-len(lines):]), rows), lines


def plot(lines: Sequence[Sequence[tuple[int, float]]]) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(lines), figsize=(5 * len(lines), 3.5), squeeze=False)
    for ax, line, name in zip(axes[0], lines, ("before", "now")[-len(lines):], strict=True):
        ax.plot(*zip(*line, strict=True), "o-")
        ax.set(title=f"{name}: instr_count", xlabel="instructions", ylabel="seconds", ylim=(0, None), xlim=(0, None))
    figure.tight_layout()
    figure.savefig(PLOT, dpi=100)


def first_table(bench: Bench, subjects: Sequence[Subject]) -> str:
    rows = []
    for subject in subjects:
        for cache in ("cold", "cached"):
            found = bench.measure("first", subject, TOOLS[0], f"{subject.path.stem}-cache")
            for each, label in zip(found, ("before", "now")[-len(found):], strict=True):
                if each is not None:
                    cells = [f"{each[key] * 1e3:.0f}" for key in ("import", "launch", "wall")]
                    rows.append([f"{subject.name}, {cache}, {label}", *cells, f"{each['copy_bytes']:,}"])
                    print(" ".join(rows[-1]), flush=True)
    return table(("kernel", "import", "launch", "launch, by the clock", "bytes of the copy"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout to compare with")
    parser.add_argument("--libraries", type=Path, default=HERE.parent / "build" / "libraries")
    parser.add_argument("--instructions", type=int, default=100_000, help="of the large kernel")
    options = parser.parse_args()
    if shutil.which(COMPILER) is None:
        print(f"left out: needs {COMPILER}")
        return
    checkouts = (*((options.before.resolve(),) if options.before else ()), HERE.parent)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        bench = Bench(checkouts, work)
        (work / "ifs.co").write_bytes(ifs(5_000))
        (work / "large.co").write_bytes(large(options.instructions))
        synthetic, unrolled = Subject("synthetic", work / "ifs.co", "ifs"), Subject("large", work / "large.co", KERNEL)
        libraries = list(of_libraries(options.libraries, work))
        small = Subject("vector_add", sample("vector_add").path, "vector_add")
        first = first_table(bench, (small, unrolled, *libraries[:1]))
        sizes, lines = linear(bench, work)
        stages = stage_table(bench, (synthetic, *libraries, unrolled))
    plot(lines)
    machine = f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    PAGE.write_text(TEXT.format(machine=machine, stages=stages, linear=sizes, first=first))


if __name__ == "__main__":
    main()
