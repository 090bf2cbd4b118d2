"""A kernel that fails with a tool in it fails where it does without: the same kernel, pc, instruction and line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from launching import compile_hip, device, launch

from luthier_py import Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.base.errors import DeviceError
from luthier_py.rewrite.pipeline import instrument

SOURCE = r"""
KERNEL void store(u32 *p, u64 offset) { *(u32 *)((char *)p + offset + X * 4) = 7; }
KERNEL void lds(u32 *out, u32 n) {
  SHARED u32 a[64];
  u32 *to = a;
  asm volatile("" : "+v"(to)); // a flat access
  to[X + n] = X; BARRIER out[X] = a[X];
}
KERNEL void stack(u32 *out, u32 n) { volatile u32 a[8]; for (u32 i = 0; i < 8; ++i) a[i] = i; out[X] = a[n]; }
KERNEL void trap(u32 *p) { if (X == 3) __builtin_trap(); p[X] = 1; }
KERNEL void jumped(u32 *p, u64 f) { ((void (*)(u32 *))f)(p); }
KERNEL void meeting(u32 *p) { if (X < 64) { BARRIER } while (p[0] == 0) asm volatile("" ::: "memory"); }
"""
WORDS = np.zeros(64, np.uint32)
FAILURES = [("store", [WORDS, 1 << 32], "argument 0 .*points 4294967296 bytes before it"),
            ("store", [WORDS, 300], "argument 0 .*points 300 bytes before it"),
            ("store", [WORDS, -(1 << 40) & (1 << 64) - 1], "argument 0 .*points 1099511627776 bytes behind it"),
            ("lds", [WORDS, 1 << 20], "outside the work-group"), ("stack", [WORDS, 100000], "scratch address"),
            ("trap", [WORDS], "the program gives up"), ("jumped", [WORDS, 0x1000], "which is not code"),
            ("meeting", [WORDS], "deadlock: .* at pc 0x")]  # fmt: skip


@hook
def endless(total: ptr[u64]) -> None:
    while total[0] == 0:
        pass


@hook
def noted(total: ptr[u64]) -> None:
    total[0] = 7


class AtEntry(Tool):
    """A hook in front of the first instruction."""

    total = Variable(u64)
    entered = noted

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, self.entered, self.total)


class Endless(AtEntry):
    """Waits there for ever."""

    entered = endless


@pytest.fixture(scope="module")
def code(require_tool, tmp_path_factory):
    return compile_hip(require_tool("clang-22"), tmp_path_factory.mktemp("faults"), SOURCE, "-g")


def failure(data, kernel, values):
    with pytest.raises(DeviceError) as caught:
        launch(device(instruction_limit=20_000), data, kernel, values)
    return caught.value


@pytest.mark.parametrize(("kernel", "values", "words"), FAILURES)
def test_the_original_s_place(code, kernel, values, words):
    bare = failure(code, kernel, values)
    assert bare.where.kernel == kernel and (bare.where.lines or kernel == "meeting")
    copy = instrument(code, AtEntry(), kernels=kernel).data
    under_tool = failure(copy, f"{kernel}.luthier", values)
    assert under_tool.where == bare.where
    assert re.search(words, str(bare)) and re.search(words, str(under_tool))


def test_a_hook_without_an_end_is_the_tool_s(code):
    error = failure(instrument(code, Endless(), kernels="store").data, "store.luthier", [WORDS, 0])
    assert error.where.kernel == "store"
    assert "that the tool inserted before pc 0x" in str(error)
