"""What is called through a pointer: clones of functions that the object knows, all others as they are."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from luthier_py.base.errors import CheckFailed
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import is_right, launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.isa import build
from luthier_py.rewrite.inject import apply, lookup
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

WRONG = {"no borrow where the distance is taken": ("subtract_with_borrow", build.subtract),
         "no carry where it is added again": ("add_with_carry", build.add),
         "no upper half": ("add_with_carry", lambda isa, to, a, b: build.nothing(isa))}


@pytest.mark.parametrize("what", WRONG)
def test_strangers_stay_where_they_are(monkeypatch, what):
    """Also those that lie before all functions whose clones are looked up: the way to them is a negative one."""
    name, other = WRONG[what]
    monkeypatch.setattr(lookup, "build", SimpleNamespace(**vars(build) | {name: other}))
    with pytest.raises(CheckFailed, match="a call of 0x[0-9a-f]* goes astray"):
        instrument(sample("function_pointers").path.read_bytes(), load_tool("instr_count"))


@pytest.fixture
def unoptimised(require_tool, tmp_path) -> bytes:
    """A function is called twice: once behind the code that makes its address, once through what was kept of that."""
    source, output = sample("reduce_padded").path.with_suffix(".hip"), tmp_path / "reduce_padded.co"
    options = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O0 --offload-arch=gfx90a".split()
    subprocess.run([require_tool("clang-22"), *options, source, "-o", output], check=True)
    return output.read_bytes()


@pytest.mark.parametrize("tool", ["instr_count", "opcode_histogram"])
def test_known_functions_whose_addresses_are_kept(unoptimised, tool):
    one = sample("reduce_padded")
    device, launch, tool = EmulatorDevice(load(unoptimised).target), launch_of(one), load_tool(tool)
    bare = run_original(device, unoptimised, launch)
    assert device.profile is not None
    counts = device.profile.opcodes()
    ran = run_instrumented(device, instrument(unoptimised, tool), tool, launch)
    assert is_right(one, launch, bare)
    assert [data.tobytes() for data in ran.outputs.values()] == [data.tobytes() for data in bare.outputs.values()]
    if "opcodes" in ran.report:
        assert ran.report["opcodes"] == counts
    else:
        assert ran.report["instructions"] == sum(counts.values())


def test_calls_of_known_functions_are_proved_as_well(monkeypatch, unoptimised):
    """The last of its two is made to call the original, as if nothing had been looked up."""
    monkeypatch.setattr(lookup, "look_up", lambda isa, clone, calls, pointed, pool_at: clone)
    monkeypatch.setattr(apply, "look_up", lookup.look_up)
    with pytest.raises(CheckFailed, match="a call goes elsewhere than the original"):
        instrument(unoptimised, load_tool("instr_count"))


@pytest.mark.parametrize("what", ["no carry where it is added again", "no upper half"])
def test_the_way_to_known_functions_is_run_too(monkeypatch, unoptimised, what):
    name, other = WRONG[what]
    monkeypatch.setattr(lookup, "build", SimpleNamespace(**vars(build) | {name: other}))
    with pytest.raises(CheckFailed, match="goes astray"):
        instrument(unoptimised, load_tool("instr_count"))
