"""Do kernels that nobody here wrote or compiled give the same on every target, and what NumPy gives?

In: `python benchmarks/foreign.py WHAT [TARGET...]`; WHAT is a name of PARTS; results are kept in build/foreign, with
the package's version. Out: foreign.md, with a table for each part.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from luthier_py.binary.loader import load, unbundle
from luthier_py.host.hip import runtime_folder

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "unit" / "host" / "worker"))
from stand_ins import stand_in  # noqa: E402

FOLDER = ROOT / "build" / "foreign"
PAGE = Path(__file__).with_name("foreign.md")
FIRST = "gfx90a"  # what others are compared with
SECONDS = 3600
TEXT = """# Kernels of others

`python benchmarks/foreign.py {parts}` wrote this page: kernels that nobody here wrote or compiled, run on the emulator
for each target, each result compared with what NumPy gives (the programs say how near), those of bitsandbytes also with
the bits that {first} gives. Different code for different targets rounds differently: reciprocals, fused operations,
orders of sums. Seconds are those of machines that had other work, too.

{tables}"""


@dataclass
class Row:
    """One target. ``same``: results with the same bits as on FIRST; ``apart``: the largest distance of the others."""

    target: str
    results: int
    wrong: list[str]
    seconds: float
    same: int = 0
    apart: float = 0.0


def bitsandbytes() -> dict[str, list[str]]:
    """For each target of its newest library the command that runs all kernels."""
    spec = importlib.util.find_spec("bitsandbytes")
    if spec is None or spec.origin is None:
        raise SystemExit("no bitsandbytes: pip install --no-deps bitsandbytes")
    library = max(Path(spec.origin).parent.glob("libbitsandbytes_rocm7??.so"))
    (FOLDER / "stand_ins").mkdir(parents=True, exist_ok=True)
    stand_in(library, FOLDER / "stand_ins")
    program = ROOT / "tests" / "unit" / "host" / "worker" / "bitsandbytes_program.py"
    found = {load(member.data).target.name for member in unbundle(library.read_bytes(), library.name)}
    return {target: [sys.executable, str(program), str(library), "all"] for target in sorted(found)}


def triton() -> dict[str, list[str]]:
    """Kernels of tests/unit/host/worker/triton_kernels.py, compiled by Triton for each target that it knows best."""
    program = ROOT / "tests" / "unit" / "host" / "worker" / "triton_kernels.py"
    targets = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
    return {target: [sys.executable, str(program)] for target in targets}


def iree() -> dict[str, list[str]]:
    """Kernels of tests/unit/host/worker/iree_kernels.py, compiled by IREE for the targets that it knows tiles for."""
    program = ROOT / "tests" / "unit" / "host" / "worker" / "iree_kernels.py"
    targets = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
    return {target: [sys.executable, str(program), "all"] for target in targets}


PARTS = {"bitsandbytes": bitsandbytes, "triton": triton, "iree": iree}
NOTES = {
    "bitsandbytes": "All kernels that its C interface reaches, 172 of 175; the others are stochastic rounding, and "
                    "`kQuantizeBlockwise<T, 4096, 4, 1, 0>`.",
    "triton": "Softmax, dot products of f32 (taken as xf32 on gfx942 by Triton), f16, bf16, both formats of fp8 where "
              "the target has them (CDNA 3's on gfx942, OCP's on gfx950, gfx1201, gfx1250) and int8, scans, sort, "
              "atomics, mathematics.",
    "iree": "Matrix products of f32, f16, bf16, int8 and both formats of fp8 where the target has them (CDNA 3's on "
            "gfx942, OCP's on gfx950, gfx1201 and gfx1250; none elsewhere), of sizes that tiles divide, that they do "
            "not, and that are known only when it runs; softmax, attention, convolutions, rounding to fp8, functions, "
            "division of integers, reductions, sort, scan; through IREE's own HIP driver.",
}
ALIKE = {"bitsandbytes"}  # parts whose numbers are the same on all targets, whatever kinds these have
PACKAGES = {"iree": "iree-base-compiler"}  # where they are not called as their parts


def ran(part: str, target: str, command: list[str]) -> Row:
    """The last argument of the command is the file for results."""
    results, start = FOLDER / f"{part}-{target}.npz", time.monotonic()
    results.unlink(missing_ok=True)
    path = os.pathsep.join([str(runtime_folder()), str(FOLDER / "stand_ins")])
    python = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "LD_LIBRARY_PATH": path, "LUTHIER_DEVICE": f"emulator:{target}",
                   "PYTHONPATH": python, "ROCM_PATH": str(runtime_folder()), "TRITON_DEFAULT_FP_FUSION": "1",
                   "TRITON_CACHE_DIR": str(FOLDER / "triton-cache")}
    done = subprocess.run([*command, str(results)], env=environment, capture_output=True, text=True, timeout=SECONDS)
    count = len(np.load(results)) if results.exists() else 0
    wrong = [line for line in done.stdout.splitlines() if line and line != "PASSED"]
    if done.returncode:
        wrong.append((done.stderr.splitlines() or ["no message"])[-1])
    return Row(target, count, wrong, time.monotonic() - start)


def compared(part: str, row: Row) -> None:
    """With FIRST's results; numbers of 16 bits that are no floats to NumPy are bfloat16."""
    files = [FOLDER / f"{part}-{target}.npz" for target in (FIRST, row.target)]
    if not all(file.exists() for file in files):
        return
    first, own = (np.load(file) for file in files)
    row.same, row.apart = 0, 0.0
    for name in own:
        a, b = (_numbers(each[name]) for each in (first, own))
        if first[name].tobytes() == own[name].tobytes():
            row.same += 1
        else:
            row.apart = max(row.apart, float(np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-30)))


def _numbers(memory: np.ndarray) -> np.ndarray:
    if memory.dtype == np.uint16:
        memory = (memory.astype(np.uint32) << 16).view(np.float32)
    return memory.astype(float)


def table(part: str, version: str, rows: Mapping[str, Row]) -> str:
    heads, kinds = ["target", "results", "as NumPy's"], ["---", "---:", "---:"]
    if part in ALIKE:
        heads, kinds = [*heads, f"bits of {FIRST}", "others differ by (relative)"], [*kinds, "---:", "---:"]
    lines = [f"## {part} {version}", "", NOTES[part], "", _line([*heads, "seconds"]), f"|{'|'.join([*kinds, '---:'])}|"]
    for row in sorted(rows.values(), key=lambda row: int(row.target[3:], 16)):
        cells = [row.target, f"{row.results}", f"{row.results - len(row.wrong)}"]
        cells += [f"{row.same}", f"{row.apart:.1e}"] if part in ALIKE else []
        lines.append(_line([*cells, f"{row.seconds:.0f}"]))
    wrong = [f"* {row.target}: {line}" for row in rows.values() for line in row.wrong]
    return "\n".join([*lines, "", *(["Not right:", "", *wrong, ""] if wrong else [])])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = FOLDER / "results.json"
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    commands = PARTS[options.part]()
    version = importlib.metadata.version(PACKAGES.get(options.part, options.part))
    part = known.setdefault(options.part, {"version": version, "rows": {}})
    for target in options.targets or commands:
        row = ran(options.part, target, commands[target])
        print(row.target, row.results, f"{row.seconds:.0f} s", *row.wrong, sep="\n  ", flush=True)
        part["rows"][target] = asdict(row)
        kept.write_text(json.dumps(known))
    tables = []
    for name, each in known.items():
        rows = {target: Row(**values) for target, values in each["rows"].items()}
        for row in rows.values() if name in ALIKE else ():
            compared(name, row)
        tables.append(table(name, each["version"], rows))
    PAGE.write_text(TEXT.format(parts="WHAT", first=FIRST, tables="\n".join(tables)))


if __name__ == "__main__":
    main()
