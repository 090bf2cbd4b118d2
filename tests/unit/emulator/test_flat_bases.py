"""Flat instructions of gfx1250 with a scalar base: the sum of base and offset says whose memory it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from launching import compile_hip, launch

from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import ALL
from luthier_py.emulator.options.launch_options import NO_OPTIONS, LaunchOptions
from luthier_py.isa import target

SOURCE = """
#define FLAT(text, ...) asm volatile("flat_" text "\\n s_wait_loadcnt_dscnt 0" __VA_ARGS__)
DEVICE u64 uniform(const volatile void *at) {
  return (u32)__builtin_amdgcn_readfirstlane((u32)(u64)at)
    | (u64)__builtin_amdgcn_readfirstlane((u32)((u64)at >> 32)) << 32;
}
DEVICE u32 used(u64 base, u32 x) {
  u32 loaded, old, near = X ^ 1, words = 4 * X, three = 3;
  FLAT("store_b32 %0, %1, %2 scale_offset", :: "v"(X), "v"(x), "s"(base) : "memory");
  FLAT("load_b32 %0, %1, %2 offset:-8", : "=v"(loaded) : "v"(4 * near + 8), "s"(base) : "memory");
  FLAT("atomic_add_u32 %0, %1, %2, %3 th:TH_ATOMIC_RETURN", : "=v"(old) : "v"(words), "v"(three), "s"(base) : "memory");
  FLAT("load_b32 %0, %1, %2", : "=v"(x) : "v"(words), "s"(base) : "memory");
  return loaded << 16 | (x - old) << 8 | old;
}
KERNEL void shared(u32 *out) {
  SHARED u32 words[32];
  out[X] = used(uniform(words), X + 1);
}
KERNEL void global(u32 *out) { out[X] = used(uniform(out), X + 1); }
KERNEL void own(u32 *out) {
  volatile u32 words[2];
  u32 loaded;
  u64 base = (u64)(volatile void *)words;
  words[0] = 0; words[1] = 0;
  if (X == 5) {
    base = uniform(words);
    FLAT("store_b32 %0, %1, %2 offset:4", :: "v"(0), "v"(77), "s"(base) : "memory");
    FLAT("load_b32 %0, %1, %2 scale_offset", : "=v"(loaded) : "v"(1), "s"(base) : "memory");
  }
  out[X] = X == 5 ? loaded : words[1];
}
"""


@pytest.fixture(scope="module")
def code(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    flags = "--no-offload-arch=gfx90a", "--offload-arch=gfx1250"
    return compile_hip(require_tool("clang-22"), Path(tmp_path_factory.mktemp("flat")), SOURCE, *flags)


@pytest.mark.parametrize("options", (NO_OPTIONS, LaunchOptions(checks=ALL)), ids=("bare", "checked"))
@pytest.mark.parametrize("kernel", ("shared", "global", "own"))
def test_where_the_sum_lies(kernel: str, options: LaunchOptions, code: bytes) -> None:
    """A store, a load of the neighbour's, an atomic with its old value; private memory is that of the lane in it."""
    device, out = EmulatorDevice(target("gfx1250"), options=options), np.zeros(32, np.uint32)
    launch(device, code, kernel, [out], block=(32, 1, 1))
    lane = np.arange(32, dtype=np.uint32)
    expected = np.where(lane == 5, 77, 0) if kernel == "own" else ((lane ^ 1) + 1) << 16 | 3 << 8 | lane + 1
    assert np.array_equal(out, expected) and not device.findings
