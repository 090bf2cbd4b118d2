"""Recorded launches run again: outputs, counts and tools as they were; a changed kernel is found out."""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compiled_samples import OPTIONS, CompiledSamples

from luthier_py.base.errors import DeviceError, Invalid, LuthierError
from luthier_py.emulator.devices.record_file import read_record, write_record
from luthier_py.features.replay.rerun import Replayed, replay, replay_file
from luthier_py.features.run.launch import Launch
from luthier_py.features.run.launched import launch_file
from luthier_py.features.run.recording_device import RecordingDevice
from luthier_py.features.run.specs import parse_argument
from luthier_py.features.settings.run_settings import run_settings
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import FOLDER, SAMPLES, Sample

BY_NAME = {sample.name: sample for sample in SAMPLES}
EMULATOR = run_settings("emulator")
SAXPY = replace(BY_NAME["saxpy"], grid=(8, 1, 1), args=(
    "u32=1000", "f32=0.7", "in:f32[4000]=random:1", "inout:f32[4000]=random:2"))


def record(sample: Sample, path: Path, code: Path | None = None) -> int:
    """Keeps a launch; the instructions that the emulator counted."""
    gc.collect()
    launch = Launch(sample.kernel, sample.grid, sample.block, tuple(map(parse_argument, sample.args)))
    done = launch_file(code or sample.path, launch, None, run_settings("emulator", record=path))
    assert isinstance(done.device, RecordingDevice) and done.ran.counted is not None
    done.device.save(path)
    specs = [parse_argument(text).data for text in sample.args]
    for actual, expected in zip(done.ran.outputs.values(), sample.reference(specs), strict=True):  # type: ignore[arg-type]
        assert sample is SAXPY or sample.agrees(actual, expected)
    return done.ran.counted


def again(path: Path, tool: str = "", *more: Path, tolerance: float = 0.0) -> Replayed:
    gc.collect()  # the memory of the device that has recorded is where this one's is to be
    return replay_file(path, load_tool(tool, {}) if tool else None, EMULATOR, *more, tolerance=tolerance)


@pytest.fixture(scope="module")
def compiled(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> CompiledSamples:
    return CompiledSamples(require_tool("clang-22"), tmp_path_factory.mktemp("samples"))


@pytest.mark.parametrize(("name", "target", "wave_size"), [
    ("histogram", "gfx90a", 64), ("matmul", "gfx1100", 32), ("function_pointers", "gfx1201", 64), *(
        pytest.param(sample.name, target, 32 if target == "gfx1100" and sample.name != "lds_widths" else 64,
                     marks=pytest.mark.slow)  # lds_widths' work-items rely on being one wave
        for sample in SAMPLES for target in ("gfx90a", "gfx942", "gfx1100", "gfx1201")),
])
def test_a_replay_is_the_launch(
    name: str, target: str, wave_size: int, compiled: CompiledSamples, tmp_path: Path
) -> None:
    """Atomics, LDS, code by pointers in a variable: on each target, alone and under tools that count."""
    counted = record(BY_NAME[name], tmp_path / "it", compiled.path(name, target, wave_size))
    found = again(tmp_path / "it")
    assert (found.comparison.same, found.done.ran.counted) == (True, counted)
    assert read_record(tmp_path / "it").instructions == counted and found.comparison.compared_bytes > 0
    tooled = again(tmp_path / "it", "instr_count")
    assert tooled.comparison.same and tooled.done.ran.report["instructions"] == counted
    assert tooled.done.observed and tooled.done.ran.inserted and tooled.done.ran.counted == (
        counted + tooled.done.ran.inserted)


def test_what_a_record_says_decides(tmp_path: Path) -> None:
    """A value that is another one in the record is the one that is told."""
    record(SAXPY, tmp_path / "it")
    launch = read_record(tmp_path / "it")
    last = max(number for number, page in enumerate(launch.pages) if page.before != page.after)
    page = launch.pages[last]
    start = launch.allocations[-1].address - page.address
    place = max(start, 0) + 8
    after = np.frombuffer(page.after, np.float32).copy()
    after[place // 4] += 1
    pages = (*launch.pages[:last], replace(page, after=after.tobytes()), *launch.pages[last + 1 :])
    write_record(tmp_path / "changed", replace(launch, pages=pages))
    (found,) = again(tmp_path / "changed").comparison.differences
    assert found.buffer.startswith("argument 3") and found.size == 16000 and (found.count, found.type) == (1, "f32")
    assert found.first[0].expected == after[place // 4] == pytest.approx(found.first[0].got + 1, abs=1e-6)
    assert found.address + found.offset == page.address + place


def test_a_library_s_kernel_as_a_regression_test() -> None:
    """bitsandbytes', as it ran under its own program: 4-bit weights times a vector of halves."""
    path = FOLDER / "gemm_4bit.lrec"
    found = again(path, "instr_count")
    assert found.comparison.same and found.done.ran.report["instructions"] == found.record.instructions == 14800
    launch = found.record
    assert [each.size for each in launch.allocations] == [160, 2560, 1024, 20480, 160]
    vector = int.from_bytes(launch.kernarg[:8], "little")
    pages = tuple(replace(page, before=bytes(4096)) if page.address == vector else page for page in launch.pages)
    product, given = replay(replace(launch, pages=pages), path, None, EMULATOR).comparison.differences
    assert (product.buffer, given.buffer) == ("argument 6 (__half*)", "argument 0 (__half const*)")
    assert product.type == "f16" and not product.guessed and (product.count, given.count) == (80, 512)


@pytest.fixture(scope="module")
def rebuilt(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """saxpy with some words changed, compiled."""
    folder = tmp_path_factory.mktemp("rebuilt")
    (folder / "device.h").write_text((FOLDER / "device.h").read_text())

    def make(old: str, new: str) -> Path:
        source, text = folder / "saxpy.hip", (FOLDER / "saxpy.hip").read_text()
        assert old in text
        source.write_text(text.replace(old, new))
        out = folder / f"{abs(hash((old, new)))}.co"
        command = [require_tool("clang-22"), *OPTIONS, "-O1", "--offload-arch=gfx90a", source, "-o", out]
        subprocess.run(command, check=True)
        return out

    return make


def test_a_rebuilt_kernel_is_compared(rebuilt: Callable[[str, str], Path], tmp_path: Path) -> None:
    it, same = tmp_path / "it", "a * x[i] + y[i]"
    record(SAXPY, it)
    assert again(it, "", rebuilt(same, same)).comparison.same
    found = again(it, "", rebuilt(same, f"i == 700 ? 5 : {same}"))
    (wrong,) = found.comparison.differences
    assert (wrong.count, wrong.offset % 4096, wrong.first[0].got) == (1, 2800 % 4096, 5.0)
    near = rebuilt(same, f"{same} * 1.000001f")
    assert again(it, "", near).comparison.differences[0].count > 900
    assert again(it, "instr_count", near, tolerance=1e-5).comparison.same
    assert not again(it, "", near, tolerance=1e-8).comparison.same
    endless = rebuilt(same, f"i == 700 ? __builtin_inff() : {same}")
    assert again(it, "", endless, tolerance=1e-5).comparison.differences[0].count == 1


def test_a_kernel_for_another_target(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """Of the same source, so it writes the same; on the target that is asked for, or else on the kernel's own."""
    it = tmp_path / "it"
    record(SAXPY, it)
    gc.collect()
    code = CompiledSamples(require_tool("clang-22"), tmp_path).path("saxpy", "gfx1100", 32)
    for device in ("emulator", "emulator:gfx1100"):
        found = replay_file(it, None, run_settings(device), code)
        assert found.comparison.same and found.done.device.target.name == "gfx1100"
        gc.collect()
    with pytest.raises(LuthierError, match="compiled for gfx1100, but this device is a gfx90a"):
        replay_file(it, None, run_settings("emulator:gfx90a"), code)


def test_a_rebuilt_kernel_goes_further(rebuilt: Callable[[str, str], Path], tmp_path: Path) -> None:
    """What the record does not hold is told; what was not allocated ends the launch."""
    record(SAXPY, tmp_path / "it")
    found = again(tmp_path / "it", "", rebuilt("i < n", "i < n + 500"))
    assert not found.comparison.same and len(found.comparison.unrecorded) == 2
    record(BY_NAME["saxpy"], tmp_path / "it")
    with pytest.raises(DeviceError, match="bad address .* past the end of buffer"):
        again(tmp_path / "it", "", rebuilt("i < n", "i < n + 300"))
    with pytest.raises(Invalid, match="takes other arguments than the recorded one: .* 8 bytes by_value at 8"):
        again(tmp_path / "it", "", rebuilt("float a", "double a"))
