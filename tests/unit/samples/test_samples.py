"""The sample kernels are what their sources compile to, and use what their table says."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from luthier_py.features.run.specs import BufferSpec, parse_argument
from luthier_py.samples import FOLDER, SAMPLES, Sample, build, large, sample


def test_objects_have_the_recorded_hashes() -> None:
    recorded = dict(reversed(line.split()) for line in (FOLDER / "SHA256SUMS").read_text().splitlines())
    actual = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FOLDER.glob("*.co")}
    assert actual == recorded


def test_every_source_is_a_sample_with_an_object() -> None:
    names = {one.name for one in SAMPLES}
    assert names == {path.stem for path in FOLDER.glob("*.hip")} == {path.stem for path in FOLDER.glob("*.co")}
    assert all(one.path.exists() and one.source.exists() for one in SAMPLES)


def test_every_sample_is_in_the_table() -> None:
    table = (FOLDER / "README.md").read_text()
    assert [one.name for one in SAMPLES if f"| {one.name} |" not in table] == []


def test_rebuilding_gives_the_same_bytes(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    version = subprocess.run([require_tool(build.clang()), "--version"], capture_output=True, text=True, check=True)
    if not version.stdout.startswith(build.COMPILER):
        require_tool(build.COMPILER)
    assert build.checksums(build.build(tmp_path)) == (FOLDER / "SHA256SUMS").read_text()


def test_scratch_really_uses_scratch(require_tool: Callable[[str], str]) -> None:
    command = [require_tool("llvm-readelf-22"), "--notes", str(sample("scratch").path)]
    notes = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert ".private_segment_fixed_size: 272" in notes


def test_large_launches_only_change_sizes() -> None:
    for one in large():
        small = sample(one.name)
        assert (one.path, one.block, len(one.args)) == (small.path, small.block, len(small.args))


def test_agreement_is_exact_unless_a_tolerance_is_given(sample: Sample) -> None:
    expected = np.array([1.0, 2.0], dtype=np.float32)
    assert sample.agrees(expected, expected)
    assert sample.agrees(expected * np.float32(1 + 1e-7), expected) == (sample.rtol > 0)
    assert not sample.agrees(expected * np.float32(1.01), expected)


def test_references_give_every_output_buffer(sample: Sample) -> None:
    arguments = [parse_argument(text) for text in sample.args]
    outputs = [one.data for one in arguments if isinstance(one, BufferSpec) and one.is_output]
    expected = sample.reference([one.data for one in arguments])
    assert [(array.shape, array.dtype) for array in expected] == [(array.shape, array.dtype) for array in outputs]
