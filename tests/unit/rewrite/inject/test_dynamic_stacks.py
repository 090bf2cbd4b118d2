"""Kernels whose stack nobody knows the depth of: the tool's private memory is behind the deepest that they can have."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from each_target import sometimes

from luthier_py import Lane, Mutator, Tool, Variable, array, hook, ptr, u32
from luthier_py.base.errors import CheckFailed
from luthier_py.binary.loader import MOST_STACK_BYTES, KernelRecord, load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import vgpr
from luthier_py.proof import prove
from luthier_py.rewrite.pipeline import Instrumented, instrument

DATA = Path(__file__).resolve().parents[3] / "data"
SOURCE = r"""
#include "device.h"

__device__ __noinline__ u32 deep(u32 depth, u32 x) {
  volatile u32 own[12];
  for (u32 k = 0; k < 12; ++k)
    own[k] = x * k + depth;
  u32 sum = depth ? deep(depth - 1, x + 1) : x;
  for (u32 k = 0; k < 12; ++k)
    sum = sum * 31 + own[k];
  return sum;
}

KERNEL void deep_stack(u32 depth, u32 *out) { out[thread_x()] = deep(depth + (thread_x() & 7), thread_x()); }
"""
OPTIONS = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none".split()
DEPTH = 150
RUN_HERE, JUDGED = sometimes(["gfx90a"], ["gfx900", "gfx942"]), sometimes(["gfx1100"], ["gfx1030", "gfx1201"])


@hook
def visit(sums: ptr[u32], x: Lane[u32]) -> None:
    """By way of a stack of 1 kB that it fills."""
    own = array(u32, 256)
    for k in range(256):
        own[k] = u32(k)
    atomic_add(sums + own[x % 256], u32(1))


@hook(lanes="one")
def count(sums: ptr[u32]) -> None:
    atomic_add(sums, u32(1))


class Visits(Tool):
    """What the low byte of v0 was where functions begin, and before each of their accesses to memory."""

    sums = Variable(u32, 256)

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            m.at_entry(function, visit, self.sums, vgpr(0))
            for instr in m.instrs(function, where="store"):
                m.before(instr, visit, self.sums, vgpr(0))

    def report(self, launch: object) -> list[int]:
        return list(launch[self.sums])  # type: ignore[index]


class Counts(Tool):
    """How many waves there were: nothing for which private memory is needed."""

    sums = Variable(u32, 256)

    def instrument(self, m: Mutator) -> None:
        m.at_entry(m.kernels[0], count, self.sums)


@pytest.fixture
def compiled(require_tool: Callable[[str], str], tmp_path: Path) -> Callable[[str], bytes]:
    def code(gpu: str) -> bytes:
        source, output = tmp_path / "deep.hip", tmp_path / f"{gpu}.co"
        source.write_text(SOURCE)
        subprocess.run([require_tool("clang-22"), *OPTIONS, "-I", DATA, f"--offload-arch={gpu}", source, "-o", output],
                       check=True)
        return output.read_bytes()
    return code


def expected(lane: int) -> int:
    def deep(depth: int, x: int) -> int:
        total = deep(depth - 1, x + 1) if depth else x
        for k in range(12):
            total = total * 31 + (x * k + depth & 0xFFFFFFFF) & 0xFFFFFFFF
        return total

    return deep(DEPTH + (lane & 7), lane)


@pytest.mark.parametrize("gpu", RUN_HERE)
def test_deep_stacks_stay_whole(compiled: Callable[[str], bytes], gpu: str) -> None:
    code = compiled(gpu)
    (kernel,) = load(code).kernels
    assert kernel.uses_dynamic_stack and kernel.descriptor.private_segment_fixed_size < 1024
    tool, device = Visits(), EmulatorDevice(load(code).target)
    made = instrument(code, tool)
    launch = Launch("deep_stack", (1, 1, 1), (64, 1, 1), tuple(map(parse_argument, (f"u32={DEPTH}", "out:u32[64]"))))
    bare, ran = run_original(device, code, launch), run_instrumented(device, made, tool, launch)
    (want,), (found,) = bare.outputs.values(), ran.outputs.values()
    assert found.tobytes() == want.tobytes() and list(np.frombuffer(want, np.uint32)) == list(map(expected, range(64)))
    entries = sum(DEPTH + 1 + (lane & 7) for lane in range(64))
    assert sum(ran.report) > 10 * entries
    check_descriptor(made)


@pytest.mark.parametrize("gpu", JUDGED)
def test_each_generation_is_proved(compiled: Callable[[str], bytes], gpu: str) -> None:
    check_descriptor(instrument(compiled(gpu), Visits()))


def test_memory_that_the_stack_may_reach_is_not_the_tools(
    compiled: Callable[[str], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    near = property(lambda record: record.descriptor.private_segment_fixed_size)
    monkeypatch.setattr(KernelRecord, "private_bytes", near)
    with pytest.raises(CheckFailed, match="the tool's private memory may be the application's"):
        instrument(compiled("gfx90a"), Visits())


@pytest.mark.parametrize("tool", [Visits, Counts])
def test_what_the_metadata_say_of_the_stack_is_proved(compiled: Callable[[str], bytes], tool: type[Tool]) -> None:
    """Without memory of the tool's it stays what it was."""
    made, key, false = instrument(compiled("gfx90a"), tool()), b".uses_dynamic_stack", 0xC2
    data = bytearray(made.data)
    at = data.rindex(key) + len(key)
    assert data[at] == (false if tool is Visits else false + 1)
    data[at] ^= 1
    with pytest.raises(CheckFailed, match=f"(private memory|{key.decode()} in the metadata)"):
        prove(made.obj.data, bytes(data), made.patched.claim)


def check_descriptor(made: Instrumented) -> None:
    before, after = made.obj.kernel("deep_stack"), load(made.data).kernel("deep_stack.luthier")
    (private,) = {f.private for f in made.patched.claim.functions if f.private}
    assert private.start >= before.descriptor.private_segment_fixed_size + MOST_STACK_BYTES
    assert after.descriptor.private_segment_fixed_size == private.stop
    assert after.metadata[".private_segment_fixed_size"] == private.stop
    assert not after.uses_dynamic_stack, "ROCm's runtime would give it a stack up to the limit, beyond the tool's"
