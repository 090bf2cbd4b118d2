"""Does memory grow in a long run? One program, many module loads, many launches, with a tool under all of them.

In: how many, a folder. Out: FOLDER/soak.csv (resident memory of the program, of the emulator's worker and of the
tool's worker, and the size of the tool's output, as the run goes on), FOLDER/soak.png, a table. The exit code is 1
where a process grows by more than LIMITS allow over the last quarter of a part: before that caches fill.

Called by `make soak`. The kernel is vector_add, one wave; the tool reads its count after each launch and writes a row.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from luthier_py.host.hip import runtime_folder
from luthier_py.host.preload import tool_library

HERE = Path(__file__).resolve().parent
CODE = HERE.parents[1] / "tests" / "data" / "vector_add.co"
TARGET = "gfx90a"
ROLES = ("program", "device", "tool")
LIMITS = {"loads": 1024.0, "launches": 4.0}  # bytes for each
Sample = dict[str, float]


def resident(process: int) -> int:
    """Bytes of a process that are in memory and shared with no file: what it holds."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return sum(int(fields[name].split()[0]) for name in ("RssAnon", "RssShmem")) * 1024


def workers(mark: str) -> dict[str, int]:
    """The program's workers, by what they serve: they are no children of anybody who knows them."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")[:-1]
            if words and words[-1] in (b"device", b"tool") and mark.encode() in (folder / "environ").read_bytes():
                found[words[-1].decode()] = int(folder.name)
        except OSError:
            continue
    return found


def run(folder: Path, loads: int, launches: int, steps: int) -> list[Sample]:
    program, output = folder / "program", folder / "counts.csv"
    library = runtime_folder()
    subprocess.run(["cc", "-O2", HERE / "program.c", "-o", program, f"-L{library}", "-l:libamdhip64.so.7"], check=True)
    environment = {
        **os.environ, "LD_LIBRARY_PATH": str(library), "LD_PRELOAD": str(tool_library()), "LUTHIER_TOOL": "instr_count",
        "LUTHIER_DEVICE": f"emulator:{TARGET}", "LUTHIER_OUTPUT": str(output), "LUTHIER_SOAK": str(os.getpid()),
    }  # fmt: skip
    samples: list[Sample] = []
    started = time.monotonic()
    command = [program, CODE, str(loads), str(launches), str(steps)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, bufsize=0) as process:
        assert process.stdin is not None and process.stdout is not None
        for line in process.stdout:
            what, number = line.split()
            ids = {"program": process.pid, **workers(f"LUTHIER_SOAK={os.getpid()}")}
            sizes = {f"{role}_bytes": float(resident(ids[role])) for role in ROLES}
            kept = sum(path.stat().st_size for path in folder.glob(".counts.csv.*"))
            samples.append({"part": what.decode(), "number": int(number), "seconds": time.monotonic() - started,
                            **sizes, "output_bytes": kept})  # type: ignore[dict-item]
            write(folder / "soak.csv", samples)
            process.stdin.write(b"\n")
    with output.open() as rows:
        told = sum(1 for _ in rows) - 1
    if process.returncode or told != loads + launches:
        sys.exit(f"the program ended with {process.returncode}; {told} of {loads + launches} launches were told")
    return samples


def write(path: Path, samples: list[Sample]) -> None:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(samples[0]))
        table.writeheader()
        table.writerows(samples)


def growth(samples: list[Sample], part: str, role: str) -> float:
    """Bytes for each load or launch: the slope over the last quarter."""
    rows = [row for row in samples if row["part"] == part]
    rows = rows[3 * len(rows) // 4 :]
    return float(np.polyfit([row["number"] for row in rows], [row[f"{role}_bytes"] for row in rows], 1)[0])


def plot(samples: list[Sample], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for place, part in enumerate(LIMITS):
        axes = figure.add_subplot(1, 2, place + 1)
        rows = [row for row in samples if row["part"] == part]
        for role in ROLES:
            axes.plot([row["number"] for row in rows], [row[f"{role}_bytes"] / 2**20 for row in rows], label=role)
        axes.set(xlabel=f"module {part}" if part == "loads" else part, ylabel="resident MiB", ylim=(0, None))
        axes.legend()
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--loads", type=int, default=2_000)
    parser.add_argument("--launches", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=200)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    samples = run(given.folder, given.loads, given.launches, given.steps)
    plot(samples, given.folder / "soak.png")
    grown = {(part, role): growth(samples, part, role) for part in LIMITS for role in ROLES}
    for (part, role), slope in grown.items():
        rows = [row[f"{role}_bytes"] / 2**20 for row in samples if row["part"] == part]
        start, middle, end = (f"{rows[at]:8.1f}" for at in (0, len(rows) // 2, -1))
        print(f"{part:9} {role:8} {start} MiB, {middle} half-way, {end} at the end: {slope:+9.2f} bytes each")
    print(f"{samples[-1]['seconds']:.0f} s, {samples[-1]['output_bytes'] / 2**20:.0f} MiB of rows")
    sys.exit(int(any(slope > LIMITS[part] for (part, _), slope in grown.items())))


if __name__ == "__main__":
    main()
