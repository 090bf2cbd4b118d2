"""Hundreds of defects in the sample kernels: missing barriers and waits, waits that are too weak, stores that are left
out, buffers that are one element too short. All are found; in the kernels as they are nothing is.

Each defect is a kernel to compile: what always runs has one in four of each kind of each sample; all are marked slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from compiled_samples import CompiledSamples
from defects import Defect, comes_to_a_barrier, first_store_left_out, instructions, weaker_waits, without

from luthier_py.base.errors import DeviceError
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import ALL, FindingKind
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.emulator.options.schedule import Schedule
from luthier_py.emulator.watching.findings import Finding
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_original
from luthier_py.features.run.specs import BufferSpec
from luthier_py.isa import Counter, OpFlag
from luthier_py.samples import SAMPLES, Sample, sample

LEAST = {"vector_add": 4, "saxpy": 6, "reduce": 29, "matmul": 25, "mandelbrot": 6, "histogram": 13, "nbody": 7,
         "bitonic_sort": 15, "device_call": 4, "function_pointers": 10, "scratch": 14, "transpose": 10,
         "transpose_padded": 10, "reduce_strided": 12, "reduce_padded": 12}  # 177 defects
SHIPPED = [one for one in SAMPLES if one.path.suffix == ".co" and one.name != "lds_widths"]
"""lds_widths is assembly that waits after each instruction, mostly for nothing."""
OTHERS = [("gfx803", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1030", 64), ("gfx1100", 32), ("gfx1201", 32),
          ("gfx1250", 32)]
NAMES = ("transpose", "reduce_strided", "histogram", "vector_add", "bitonic_sort")
SMALL = [pytest.param(name, *where, id=f"{name}-{'-wave'.join(map(str, where))}",
                      marks=() if (number + at) % 5 == 0 else pytest.mark.slow)
         for number, where in enumerate(OTHERS) for at, name in enumerate(NAMES)]
PART = 4
EVERY = [False, pytest.param(True, marks=pytest.mark.slow, id="every defect")]
TREE, WORK_ITEMS = "reduce", 256
"""Its loop is unrolled: from some step on one wave is left, which needs no barrier."""


def findings(data: bytes, launch: Launch, seed: int | None = None) -> list[Finding]:
    schedule = None if seed is None else Schedule(seed)
    device = EmulatorDevice(load(data).target, options=LaunchOptions(time_limit=60, schedule=schedule, checks=ALL))
    try:
        run_original(device, data, launch)
    except DeviceError:
        assert device.findings
    return device.findings


def defects(data: bytes, kernel: str) -> Iterator[Defect]:
    yield from without(data, kernel, OpFlag.BARRIER, "barrier")
    yield from weaker_waits(data, kernel)
    yield from first_store_left_out(data, kernel)


def matters(one: Sample, data: bytes, wave_size: int, defect: Defect) -> bool:
    """Of the tree's barriers the first matters, and those after steps whose sums come from more than one wave."""
    if one.name != TREE or not comes_to_a_barrier(data, one.kernel, defect):
        return True
    places = [each.pc for each in without(data, one.kernel, OpFlag.BARRIER, "barrier")]
    number = sum(place < defect.pc for place in places)
    return number == 0 or WORK_ITEMS >> number > wave_size


def waits_twice(one: Sample, data: bytes, defect: Defect) -> bool:
    """A wait for scalar loads where two ways meet, of which one has waited already, and the other is not taken."""
    at = dict(instructions(load(data), one.kernel))[defect.pc]
    return one.name == "transpose" and at.op.base == "S_WAIT_KMCNT"


def waits_for_caches(one: Sample, data: bytes, defect: Defect) -> bool:
    """A wait for LDS before a barrier, and in the same instruction for what was invalidated, which has no results:
    all loads have been waited for where they are used."""
    at = dict(instructions(load(data), one.kernel))[defect.pc]
    return (one.name in ("histogram", "bitonic_sort") and at.op.base == "S_WAIT_LOADCNT_DSCNT"
            and defect.counter is Counter.VM and comes_to_a_barrier(data, one.kernel, defect))


def some(made: list[Defect]) -> list[Defect]:
    """One in PART of each kind, and at least one."""
    kinds = {defect.what for defect in made}
    return [defect for kind in sorted(kinds) for defect in [one for one in made if one.what == kind][::PART]]


def judge(one: Sample, data: bytes, wave_size: int, every: bool = True) -> int:
    """How many defects there are; all that are tried are found."""
    launch = launch_of(one)
    assert findings(data, launch) == [] == findings(data, launch, 5)
    made = [defect for defect in defects(data, one.kernel) if matters(one, data, wave_size, defect)]
    missed = [defect for defect in (made if every else some(made)) if not findings(defect.data, launch)]
    harmless = waits_twice, waits_for_caches
    assert [f"{defect.what} at 0x{defect.pc:x}" for defect in missed
            if not any(is_so(one, data, defect) for is_so in harmless)] == []
    return len(made)


def shortened(launch: Launch) -> Iterator[Launch]:
    """Each buffer one element shorter."""
    for number, argument in enumerate(launch.arguments):
        if isinstance(argument, BufferSpec):
            shorter = replace(argument, data=np.ascontiguousarray(argument.data.ravel()[:-1]))
            yield replace(launch, arguments=(*launch.arguments[:number], shorter, *launch.arguments[number + 1 :]))


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.name)
def test_defects_of_code_are_found(one, every):
    assert judge(one, one.path.read_bytes(), 64, every) >= LEAST[one.name]


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.name)
def test_one_element_past_the_end_is_found(one):
    for launch in shortened(launch_of(one)):
        found = findings(one.path.read_bytes(), launch)
        assert found and {finding.kind for finding in found} == {FindingKind.BOUNDS}


@pytest.fixture(scope="module")
def compiled(require_tool, tmp_path_factory) -> CompiledSamples:
    return CompiledSamples(require_tool("clang-22"), tmp_path_factory.mktemp("defects"))


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize(("name", "target", "wave_size"), SMALL)
def test_defects_are_found_on_other_targets(name, target, wave_size, every, compiled):
    assert judge(sample(name), compiled.code(name, target, wave_size), wave_size, every) > 1
