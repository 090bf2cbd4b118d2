"""Predicted strides and lines against the addresses of each lane in a trace of the same launch: right wherever there is
a prediction, on every sample, on other targets, and on a kernel whose strides are known by hand."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_samples import OPTIONS, CompiledSamples

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.features.run.specs import parse_argument
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Several
from luthier_py.samples import FOLDER
from luthier_py.samples import sample as sample_called
from luthier_py.tools.access_patterns import AccessPatterns
from luthier_py.tools.mem_trace import MemTrace

LINE = 128


class Kept(MemTrace):
    """Keeps the records."""

    def received(self, channel: Any, launch: Any, records: Any) -> None:
        super().received(channel, launch, records)
        self.gathered.setdefault("kept", []).append(records)


def check(code: bytes, launch: Any) -> dict[str, Any]:
    """The report, after each record of the launch was compared with it."""
    trace, target = Kept(print_records=False, spaces="global"), load(code).target
    tool = Several(AccessPatterns(line_bytes=LINE), trace)
    report = run_instrumented(EmulatorDevice(target), instrument(code, tool), tool, launch).report["access_patterns"]
    rows = {row["pc"]: row for row in report["instructions"]}
    for record in np.concatenate(trace.gathered["kept"]):
        row = rows[int(record["pc"])]
        if row["stride"] is not None:
            compare(row, report["lanes"], record, launch.block)
    return report


def compare(row: dict[str, Any], lanes: int, record: Any, block: tuple[int, int, int]) -> None:
    """Two lanes of a row that follow each other, with those between them turned off, and the lines of all lanes."""
    on = [lane for lane in range(64) if int(record["lanes"]) >> lane & 1]
    at = [int(record["address"][lane]) for lane in on]
    rows = [(lane if row["row"] == lanes else (int(record["wave"]) * lanes + lane) % block[0]) for lane in on]
    for (a, b), (x, y) in zip(zip(at, at[1:], strict=False), zip(rows, rows[1:], strict=False), strict=True):
        assert x > y or (b - a) % (1 << 32) == row["stride"] * (y - x) % (1 << 32), row
    if len(on) == lanes:
        lines = {byte // LINE for first in at for byte in (first, first + row["bytes"] - 1)}
        assert row["least_lines"] <= len(lines) <= row["most_lines"], row


def shapes(report: dict[str, Any]) -> list[tuple[str, int | None, int | None]]:
    return [(row["shape"], row["stride"], row["row"]) for row in report["instructions"]]


def test_on_every_sample(sample: Any) -> None:
    report = check(sample.path.read_bytes(), launch_of(sample))
    if sample.name in ("vector_add", "saxpy", "reduce", "nbody", "transpose", "histogram", "lds_widths"):
        assert report["predicted"] == len(report["instructions"])  # none of these loads its addresses


@pytest.mark.parametrize(("target", "wave_size"), [
    pytest.param("gfx942", 64, marks=pytest.mark.slow), pytest.param("gfx1030", 32, marks=pytest.mark.slow),
    ("gfx1100", 64), ("gfx1201", 32)])
def test_on_other_targets(target: str, wave_size: int, require_tool: Callable[[str], str], tmp_path: Path) -> None:
    samples = CompiledSamples(require_tool("clang-22"), tmp_path)
    for name in ("transpose", "nbody"):
        found = sample_called(name)
        report = check(samples.code(name, target, wave_size), launch_of(found))
        assert report["predicted"] == len(report["instructions"]), name


STRIDES = r"""
#include "device.h"
struct Body { u32 a[64]; };
KERNEL void __launch_bounds__(128) strides(u32 n, const volatile Body *bodies, volatile u32 *out) {
  u32 x = thread_x(), y = thread_y();
  u32 sum = bodies[x].a[1];
  sum += bodies[1].a[63 - x];
  sum += bodies[2].a[y];
  sum += bodies[3].a[n * y + 2 * x];
  out[y * 16 + x] = sum;
  out[128 + x * 8 + y] = sum;
  out[256 + bodies[4].a[x] % 64] = sum;
}
"""
BY_HAND = [("strided", 256, 16), ("unit stride", -4, 16), ("broadcast", 0, 16), ("strided", 8, 16)]


@pytest.mark.parametrize(("target", "wave"), [
    ("gfx90a", 64), pytest.param("gfx942", 64, marks=pytest.mark.slow), ("gfx1100", 32), ("gfx1201", 32),
    pytest.param("gfx1030", 32, marks=pytest.mark.slow)])
def test_strides_that_are_known_by_hand(
    target: str, wave: int, require_tool: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "strides.hip").write_text(STRIDES)
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O2", "-I", FOLDER, f"--offload-arch={target}",
                    tmp_path / "strides.hip", "-o", tmp_path / "strides.co"], check=True)
    texts = "u32=5", "in:u32[64,64]=random:1", "out:u32[320]"
    launch = replace(launch_of(sample_called("transpose")), kernel="strides", grid=(2, 1, 1), block=(16, 8, 1),
                     arguments=tuple(map(parse_argument, texts)))
    report = check((tmp_path / "strides.co").read_bytes(), launch)
    found = shapes(report)
    for each in BY_HAND:
        assert each in found
    assert ("unit stride", 4, wave) in found  # through rows: y * 16 + x
    assert ("strided", 32, 16) in found and found.count(("gather", None, None)) == 1
    gather = next(row for row in report["instructions"] if row["shape"] == "gather")
    loads = [row for row in report["instructions"] if row["pc"] in gather["made_of"]]
    assert gather["kind"] == "store" and [(row["kind"], row["stride"]) for row in loads] == [("load", 4)]
    told = {row["stride"]: row for row in report["instructions"]}
    rows = wave // 16
    assert (told[256]["least_lines"], told[256]["most_lines"]) == (16, 16)  # each row has the same addresses
    assert told[256]["advice"].startswith("stride of 256 bytes between lanes: each access touches 16 lines of 128")
    assert told[8]["least_lines"] == 1 and told[8]["most_lines"] == 2 * rows  # n * y is not known
