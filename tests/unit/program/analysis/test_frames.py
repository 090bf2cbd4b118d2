"""Inlined frames: those that LLVM's symbolizer tells, whatever the version of the debug information."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from luthier_py.binary.loader import load
from luthier_py.program.analysis import frames, lines, source_frames
from luthier_py.program.analysis.debug_sections import read_debug_sections
from luthier_py.program.analysis.frames import frames_of
from luthier_py.program.analysis.lines import lines_of
from luthier_py.program.ir import lift
from luthier_py.samples import sample

SOURCE = """
typedef unsigned u32;
#define DEVICE static __attribute__((device)) inline
DEVICE u32 inner(u32 x) {
  return x * 12345u + 7u;
}
DEVICE u32 outer(u32 x) {
  return inner(x) ^
    inner(x + 99u);
}
extern "C" __attribute__((global)) void k(u32 *p) {
  u32 i = __builtin_amdgcn_workitem_id_x();
  for (u32 n = 0; n < 4; ++n)
    p[i + n] = outer(p[i]) + inner(n * p[1]);
}
"""
OPTIONS = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none".split()


@pytest.mark.parametrize("debug", ["-g", "-g -gdwarf-4", "-gline-tables-only"])
def test_frames_are_the_symbolizer_s(debug: str, tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    source, out = tmp_path / "k.hip", tmp_path / "k.co"
    source.write_text(SOURCE)
    subprocess.run([require_tool("clang-22"), *OPTIONS, "--offload-arch=gfx90a", *debug.split(), source, "-o", out],
                   check=True)
    obj = load(out.read_bytes())
    frames = source_frames(obj)
    pcs = [instr.pc for function in lift(obj).functions for instr in function.instrs]
    command = [require_tool("llvm-symbolizer-22"), f"--obj={out}", "--inlines", "--no-demangle", "--functions=linkage"]
    told = subprocess.run([*command, *map(hex, pcs)], capture_output=True, text=True, check=True).stdout
    depths = set()
    for pc, rows in zip(pcs, told.strip().split("\n\n"), strict=True):
        lines = rows.splitlines()
        wanted = [(name, place.rsplit(":", 1)[0]) for name, place in zip(lines[::2], lines[1::2], strict=True)]
        found = [(frame.function, str(frame.line)) for frame in frames.at(pc)]
        if not wanted[0][1].endswith(":0"):  # code that is of no line
            assert found == wanted
            depths.add(len(found))
    assert depths == {1, 2, 3}


def test_objects_without_debug_information_have_no_frames() -> None:
    frames = source_frames(load(sample("reduce").path.read_bytes()))
    assert frames.at(0x1600) == () and not frames.scopes


def test_damaged_information_is_no_error() -> None:
    obj = load(sample("transpose").path.read_bytes())
    tables = [section for section in obj.sections if section.name.startswith(".debug")]
    rng = random.Random(2)
    for _ in range(100):
        data, section = bytearray(obj.data), rng.choice(tables)
        data[section.offset + rng.randrange(section.size)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        source_frames(replace(obj, data=bytes(data))).at(0x1710)


def test_one_reading_gives_lines_and_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    data, read = sample("transpose").path.read_bytes(), []
    for module in (frames, lines):
        monkeypatch.setattr(module, "read_debug_sections", lambda data: read.append(data) or read_debug_sections(data))
    assert frames_of(data).lines.lines and read == [data]
    assert frames_of(data).lines == lines_of(data)
