"""Objects without a metadata note: kernels are those whose descriptors symbols name, and run as they did with it."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.interface import Buffer, pack_arguments
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample


def without(name: str) -> bytes:
    """A sample whose note is another owner's."""
    return sample(name).path.read_bytes().replace(b"AMDGPU\0", b"OTHERS\0")


def test_kernels_are_those_of_descriptors() -> None:
    obj, stated = load(without("saxpy")), load(sample("saxpy").path.read_bytes())
    (kernel,) = obj.kernels
    assert obj.metadata == {} and kernel.name == "saxpy" and not kernel.states_arguments
    assert (kernel.entry, kernel.descriptor) == (stated.kernels[0].entry, stated.kernels[0].descriptor)


@pytest.mark.parametrize("name", ["reduce", "transpose"])  # which take no hidden arguments
def test_they_run_bare_and_instrumented(name: str) -> None:
    launch, tool = launch_of(sample(name)), load_tool("instr_count", {})
    device = EmulatorDevice(load(sample(name).path.read_bytes()).target)
    stated = run_original(device, sample(name).path.read_bytes(), launch).outputs
    counts = device.profile.counts
    made = instrument(without(name), tool)
    after = run_instrumented(device, made, tool, launch)
    assert {n: data.tobytes() for n, data in after.outputs.items()} == {n: data.tobytes() for n, data in stated.items()}
    assert after.report["instructions"] == sum(counts.values())


def test_copies_apart_have_the_same_kernels() -> None:
    copy = load(instrument(without("saxpy"), load_tool("instr_count", {}), apart=True).data)
    assert copy.metadata == {} and [kernel.name for kernel in copy.kernels] == ["saxpy.luthier"]


def test_arguments_are_laid_out_as_c_does() -> None:
    (kernel,) = load(without("saxpy")).kernels
    values = [np.uint8(7), np.float32(0.5), Buffer(0x1000, 64), np.uint16(3), b"abcdefgh"]
    segment = pack_arguments(kernel, values, (1, 1, 1), (64, 1, 1))
    assert segment.startswith(struct.pack("<B3xfQH6x8s", 7, 0.5, 0x1000, 3, b"abcdefgh"))
    assert len(segment) == kernel.descriptor.kernarg_size
    with pytest.raises(Invalid, match="no metadata.*numpy.int32"):
        pack_arguments(kernel, [7], (1, 1, 1), (64, 1, 1))
