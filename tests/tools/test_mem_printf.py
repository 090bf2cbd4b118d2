"""mem_printf: a line for each lane of each access, with its address."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from assembled import assembled

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.interface import Buffer
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.isa import Space
from luthier_py.rewrite.pipeline import instrument
from luthier_py.samples import FOLDER, sample
from luthier_py.tools.mem_printf import MemPrintf

PRINTED = re.compile("0x[0-9a-f]{16} - at 0x[0-9a-f]+")


class Placed(EmulatorDevice):
    """A device that remembers where buffers are."""

    def alloc(self, size: int) -> Buffer:
        buffer = super().alloc(size)
        vars(self).setdefault("placed", []).append(buffer)
        return buffer


@pytest.mark.parametrize("name", ("saxpy", "histogram"))
def test_as_many_lines_as_lanes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    chosen, tool = sample(name), MemPrintf()
    code, launch = chosen.path.read_bytes(), launch_of(chosen)
    device = EmulatorDevice(load(code).target)
    before = run_original(device, code, launch).outputs
    profile = device.profile
    assert profile is not None
    ran = run_instrumented(device, instrument(code, tool), tool, launch)
    assert all(ran.outputs[number].tobytes() == data.tobytes() for number, data in before.items())
    lines = [line for line in capsys.readouterr().out.splitlines() if PRINTED.fullmatch(line)]
    counted = {pc: profile.lanes[pc] for pc, inst in profile.insts.items()
               if inst.op.spaces & Space.GLOBAL and profile.lanes.get(pc)}
    printed = Counter(int(line.split()[-1], 16) for line in lines)
    assert printed == counted and ran.records["luthier.printed"].kept == len(lines)
    texts = {row["pc"]: row["instruction"] for row in ran.report["sites"]}
    assert all(texts[pc].startswith(profile.insts[pc].op.mnemonic) for pc in printed)
    assert all(f"  {pc:#x} {text}" in ran.text for pc, text in texts.items())


def test_the_addresses_of_saxpy(capsys: pytest.CaptureFixture[str]) -> None:
    """1000 of 1024 work-items load x[i] and y[i], and store y[i]."""
    chosen, tool = sample("saxpy"), MemPrintf()
    code, launch = chosen.path.read_bytes(), launch_of(chosen)
    device = Placed(load(code).target)
    run_instrumented(device, instrument(code, tool), tool, launch)
    x, y = (buffer.address for buffer in vars(device)["placed"] if buffer.size == 4000)
    expected = Counter(x + 4 * i for i in range(1000)) + Counter(2 * [y + 4 * i for i in range(1000)])
    lines = capsys.readouterr().out.splitlines()
    assert Counter(int(line.split()[0], 16) for line in lines if PRINTED.fullmatch(line)) == expected


def test_what_is_not_known_is_left_out_and_told(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """Images, for one."""
    body = "image_load v2, v[0:1], s[4:11] dmask:0x1 dim:SQ_RSRC_IMG_2D\n global_load_dword v3, v0, s[0:1]\n s_endpgm"
    notes = instrument(assembled(require_tool("clang-22"), tmp_path, "gfx1030", body), MemPrintf()).edits.notes
    (left,) = notes.left_out
    assert left.place.text.startswith("image_load") and len(notes.sites) == 1


def test_the_stack_of_a_function_in_buffers(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    path = tmp_path / "device_call.co"
    options = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 --offload-arch=gfx1030".split()
    subprocess.run([require_tool("clang-22"), *options, FOLDER / "device_call.hip", "-o", path], check=True)
    notes = instrument(path.read_bytes(), MemPrintf()).edits.notes
    assert any(each.text.startswith("buffer_") for each in notes.sites) and not notes.left_out
