"""The figures of docs/bank-conflicts.md: four kernels instruction by instruction, and loads of a wave by stride.

    python -m luthier_py.tools.lds_bank_conflicts.study [FOLDER]

prints both tables; with a folder, each kernel's report and a plot go there. Everything runs on the emulator.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from luthier_py.emulator import EmulatorDevice
from luthier_py.loader import load
from luthier_py.pipeline import instrument
from luthier_py.report.columns import aligned
from luthier_py.report.plots import available, stacked_bars
from luthier_py.samples import FOLDER, Sample, sample
from luthier_py.session.demo import launch_of
from luthier_py.session.run import Launch, Ran, run_instrumented
from luthier_py.session.specs import Buffer
from luthier_py.tool import load_tool

KERNELS = ("transpose", "transpose_padded", "reduce_strided", "reduce_padded")
STRIDES = (1, 2, 3, 4, 5, 8, 12, 16, 17, 20, 32, 33, 36, 64)
LOADS = ("ds_read_b32", "ds_read_b64", "ds_read_b128")


def run(one: Sample, launches: list[Launch], **options: str) -> Iterator[tuple[Any, Ran]]:
    """The tool and what each launch left."""
    code, tool = one.path.read_bytes(), load_tool("lds_bank_conflicts", {"order": "pc", **options})
    made, device = instrument(code, tool, one.name), EmulatorDevice(load(code).target)
    for index, launch in enumerate(launches):
        yield tool, run_instrumented(device, made, tool, launch, index)


def kernels(folder: Path | None) -> Iterator[str]:
    """Their tables; their files to ``folder``."""
    totals = []
    for name in KERNELS:
        [(tool, ran)] = run(sample(name), [launch_of(sample(name))], sources=str(FOLDER))
        totals.append(ran.report["total"])
        yield ran.text
        if folder is not None:
            (folder / name).mkdir(parents=True, exist_ok=True)
            for file, content in tool.files(ran.result, ran.report).items():
                (folder / name / file).write_bytes(content)
    if folder is not None and available():
        parts = {"conflict-free": "conflict_free_cycles", "conflict": "conflict_cycles"}
        bars = {label: [total[key] for total in totals] for label, key in parts.items()}
        (folder / "kernels.png").write_bytes(stacked_bars(KERNELS, bars, "LDS cycles of four kernels", "cycles"))


def strides() -> str:
    """Cycles of one load of a whole wave, whose lanes are ``stride`` words apart."""
    one, rows = sample("lds_widths"), []
    launches = []
    for stride in STRIDES:
        unit, addresses, out = launch_of(one).arguments
        assert isinstance(addresses, Buffer)
        apart = replace(addresses, data=np.arange(64, dtype=np.uint32) * stride % (12288 // 4))
        launches.append(replace(launch_of(one), arguments=(replace(unit, data=np.uint32(4)), apart, out)))
    for stride, (_, ran) in zip(STRIDES, run(one, launches), strict=True):
        cycles = {row["instruction"].split()[0]: row["cycles"] for row in ran.report["instructions"]}
        rows.append((stride, *(cycles[name] for name in LOADS)))
    return aligned(("stride", *LOADS), rows, left=0)


def main(arguments: list[str]) -> int:
    for text in kernels(Path(arguments[0]) if arguments else None):
        print(f"{text}\n")
    print(strides())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
