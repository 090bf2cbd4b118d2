"""Source lines: those that LLVM's symbolizer tells, and nothing worse than none for damaged tables."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from luthier_py.binary.loader import load
from luthier_py.program.analysis.frames import frames_of
from luthier_py.program.analysis.lines import SourceLine, line_order, lines_of, source_lines
from luthier_py.program.ir import lift
from luthier_py.samples import sample


@pytest.mark.parametrize("name", ["transpose", "reduce_padded"])
def test_lines_are_the_symbolizer_s(name: str, require_tool: Callable[[str], str]) -> None:
    obj = load(sample(name).path.read_bytes())
    lines = source_lines(obj)
    pcs = [instr.pc for function in lift(obj).functions for instr in function.instrs]
    command = [require_tool("llvm-symbolizer-22"), f"--obj={sample(name).path}", "--no-inlines", "--output-style=GNU"]
    told = subprocess.run([*command, *map(hex, pcs)], capture_output=True, text=True, check=True).stdout.splitlines()
    places = [line.replace("./", "").partition(" ")[0] for line in told if ":" in line]
    assert len(places) == len(pcs)
    for pc, place in zip(pcs, places, strict=True):
        got = lines.at(pc)
        assert place == str(got) if got else place.endswith((":0", ":?"))


def test_lines_are_sorted_by_number() -> None:
    texts = ["b.hip:9", "a.hip:10", "", "a.hip:9", "a.hip:100", "a.hip:21-30", None]
    assert sorted(texts, key=line_order) == ["", None, "a.hip:9", "a.hip:10", "a.hip:21-30", "a.hip:100", "b.hip:9"]


def test_known_lines() -> None:
    lines = source_lines(load(sample("transpose").path.read_bytes()))
    assert lines and lines.at(0x1710) == SourceLine("transpose.hip", 11)
    assert lines.at(0) is None and lines.at(1 << 40) is None


def test_objects_without_line_tables_have_no_lines() -> None:
    lines = source_lines(load(sample("reduce").path.read_bytes()))
    assert not lines and lines.at(0x1600) is None


SHF_COMPRESSED = 0x800


@pytest.mark.parametrize("how", ["zlib", "zstd"])
def test_compressed_tables_have_the_same_lines_and_frames(
    how: str, require_tool: Callable[[str], str], tmp_path: Path
) -> None:
    given, packed = sample("transpose").path, tmp_path / "packed.co"
    subprocess.run([require_tool("llvm-objcopy-22"), f"--compress-debug-sections={how}", given, packed], check=True)
    data = packed.read_bytes()
    assert any(section.flags & SHF_COMPRESSED for section in load(data).sections) and lines_of(data)
    assert frames_of(data) == frames_of(given.read_bytes())


def test_tables_that_claim_to_unpack_to_more_than_they_can_have_no_lines(
    require_tool: Callable[[str], str], tmp_path: Path
) -> None:
    packed = tmp_path / "packed.co"
    command = [require_tool("llvm-objcopy-22"), "--compress-debug-sections=zstd", sample("transpose").path, packed]
    subprocess.run(command, check=True)
    obj = load(packed.read_bytes())
    tables = next(section for section in obj.sections if section.name == ".debug_line")
    for size in (1, 1 << 20, 1 << 40, (1 << 64) - 1):
        data = bytearray(obj.data)
        data[tables.offset + 8 : tables.offset + 16] = size.to_bytes(8, "little")
        assert not lines_of(bytes(data))


def test_damaged_tables_are_no_error() -> None:
    obj = load(sample("transpose").path.read_bytes())
    tables = [section for section in obj.sections if section.name.startswith(".debug")]
    rng, unreadable = random.Random(1), 0
    for _ in range(200):
        data = bytearray(obj.data)
        for _ in range(rng.choice((1, 4))):
            section = rng.choice(tables)
            data[section.offset + rng.randrange(section.size)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        unreadable += not source_lines(replace(obj, data=bytes(data)))
    assert 0 < unreadable < 200
