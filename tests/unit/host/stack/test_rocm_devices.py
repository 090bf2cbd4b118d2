"""What ROCm's own programs say of the emulated GPUs: rocminfo."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from rocm_stack import RocmStack
from stacked_programs import Programs, Stacked


@pytest.mark.parametrize("target", [
    "gfx1030", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gfx902", "gfx906", "gfx1010", "gfx1035"))])
def test_other_cards(target: str, programs: Programs, stacked: Stacked) -> None:
    """Waves of 32 lanes, and of 64."""
    for name in ("reduction", "softmax"):
        done = stacked.alone(programs.hip(name, target), device=f"emulator:{target}")
        assert (done.code, done.out) == (0, "PASSED\n") and done.profile, done.err


def test_a_card_that_nobody_knows(programs: Programs, stacked: Stacked) -> None:
    done = stacked.alone(programs.hip("reduction"), device="emulator:gfx803")
    lines = [line for line in done.err.splitlines() if line.startswith("luthier:")]
    assert done.code and len(lines) == 1 and "ROCm's own stack has no gfx803 here" in lines[0], done.err


def test_a_program_for_another_device(programs: Programs, stacked: Stacked) -> None:
    """`exec` knows what ROCm does not tell, or tells otherwise in each of its releases."""
    path = programs.hip("reduction")
    done = stacked.by_exec(path, device="emulator:gfx1030")
    said = f"{path} has code for gfx90a, and nothing that runs on gfx1030: compile it with --offload-arch=gfx1030"
    assert done.code and f"luthier: {said}" in done.err.splitlines()


def test_rocminfo(rocm_stack: RocmStack, stacked: Stacked, tmp_path: Path) -> None:
    """ROCm 5.2's asks lsmod for the driver's module before anything else, which no library can answer for."""
    lsmod = tmp_path / "lsmod"
    lsmod.write_text("#!/bin/sh\necho amdgpu 1 0\n")
    lsmod.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    program = rocm_stack.root / "usr" / "bin" / "rocminfo"
    done = stacked.alone(program, device="emulator:gfx90a,emulator:gfx908", PATH=path)
    assert done.code == 0 and done.out.rstrip().endswith("*** Done ***"), done.out + done.err
    fields = re.findall(r"^ +(Name|Marketing Name|Device Type): +(.*?) *$", done.out, re.MULTILINE)
    for target in ("gfx90a", "gfx908"):
        place = fields.index(("Name", target))
        assert fields[place + 1 : place + 3] == [
            ("Marketing Name", f"Luthier-py emulator ({target})"), ("Device Type", "GPU"),
        ]  # fmt: skip
        assert any(value.startswith(f"amdgcn-amd-amdhsa--{target}:") for _, value in fields)
