"""What memory a launch comes to: pages, with what they held before; to look changes nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.interface import Buffer, pack_arguments
from luthier_py.emulator.memory.touched import PAGE_BYTES, TouchedMemory
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.features.run.specs import BufferSpec, parse_argument
from luthier_py.samples import SAMPLES, Sample

SPREAD = tuple(one for one in SAMPLES if one.name in ("saxpy", "histogram", "matmul", "scratch", "function_pointers"))
FREE = 1 << 20  # bytes in front of each buffer, so that nobody shares its pages


def launch(
    sample: Sample, device: EmulatorDevice, touched: bool = True
) -> tuple[dict[int, Buffer], TouchedMemory | None, list[bytes], int]:
    """Buffers by argument, what was touched, what buffers hold afterwards, and instructions."""
    module = device.load(sample.path.read_bytes())
    kernel, values, buffers = module.kernel(sample.kernel), [], dict[int, Buffer]()
    for number, spec in enumerate(map(parse_argument, sample.args)):
        if isinstance(spec, BufferSpec):
            device.alloc(FREE)
            buffers[number] = device.alloc(spec.data.nbytes)
            device.write(buffers[number].address, spec.data.tobytes())
        values.append(buffers[number] if number in buffers else spec.data)  # type: ignore[arg-type]
    kernarg = pack_arguments(kernel.record, values, sample.grid, sample.block)
    device.run(device.ready(kernel, sample.grid, sample.block, len(kernarg), touched=touched), kernarg)
    assert device.profile is not None
    after = [device.read(each.address, each.size) for each in buffers.values()]
    return buffers, device.touched, after, device.profile.total


def pages_of(buffer: Buffer) -> set[int]:
    return set(range(buffer.address // PAGE_BYTES * PAGE_BYTES, buffer.address + buffer.size, PAGE_BYTES))


@pytest.mark.parametrize("sample", SPREAD, ids=lambda sample: sample.name)
@pytest.mark.parametrize("checks", [Checks.NONE, Checks.RACES | Checks.BOUNDS], ids=["alone", "checked"])
def test_samples_touch_their_buffers_whole(sample: Sample, checks: Checks) -> None:
    """They do, each of their pages; and outputs and counts are those of a launch that nobody looks at."""
    device = EmulatorDevice(load(sample.path.read_bytes()).target, options=LaunchOptions(checks=checks))
    buffers, touched, after, instructions = launch(sample, device)
    assert touched is not None and not touched.elsewhere
    found = {page.address: page for page in touched.pages}
    specs = [parse_argument(text) for text in sample.args]
    for number, buffer in buffers.items():
        assert pages_of(buffer) <= found.keys()
        spec = specs[number]
        assert isinstance(spec, BufferSpec)
        assert {found[page].written for page in pages_of(buffer)} == {spec.is_output}
        held = b"".join(found[page].before for page in sorted(pages_of(buffer)))
        start = buffer.address % PAGE_BYTES
        assert held[start : start + buffer.size] == spec.data.tobytes()  # before the launch
    outputs = [after[place] for place, number in enumerate(buffers) if specs[number].is_output]  # type: ignore[union-attr]
    expected = sample.reference([spec.data for spec in specs])  # type: ignore[misc]
    assert all(sample.agrees(np.frombuffer(data, one.dtype), one) for data, one in zip(outputs, expected, strict=True))
    _, nothing, again, counted = launch(sample, EmulatorDevice(device.target), touched=False)
    assert (again, counted, nothing) == (after, instructions, None)
    for page in found.keys() - {page for buffer in buffers.values() for page in pages_of(buffer)}:
        first, last = device.memory.find(page), device.memory.find(page + PAGE_BYTES - 1)
        assert first is None or first != last or first.name == "<memory>"  # none is inside of what is free


def test_pages_that_nobody_comes_to_are_left_out() -> None:
    """saxpy stops at n: of larger buffers it touches the first pages alone."""
    sample = next(one for one in SAMPLES if one.name == "saxpy")
    large = Sample("saxpy", sample.grid, sample.block, ("u32=1000", "f32=0.7", "in:f32[9000]=random:1",
                   "inout:f32[9000]=random:2"), sample.reference)
    device = EmulatorDevice(load(Path(sample.path).read_bytes()).target)
    buffers, touched, _, _ = launch(large, device)
    assert touched is not None
    for buffer in buffers.values():
        first = Buffer(buffer.address, 4000)
        assert pages_of(buffer) & {page.address for page in touched.pages} == pages_of(first) < pages_of(buffer)
        ends = [page.touches(first.address + 3999, first.address + 4000) for page in touched.pages]
        behind = [page.touches(first.address + 4032, buffer.address + buffer.size) for page in touched.pages]
        assert sum(ends) == 1 and not any(behind)  # lines of 64 bytes
