"""Grids that are no multiple of the work-group: fewer work-items at the far sides, as NumPy counts them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from launching import compile_hip
from packets import Host

from luthier_py.base.errors import TimeLimit
from luthier_py.binary.loader import load
from luthier_py.emulator import LaunchOptions

SOURCE = r"""
#define RECORD(at) u32 *r = out + (at) * 6; r[0] = X; r[1] = Y; r[2] = Z; r[3] = GX; r[4] = GY; r[5] = GZ;
typedef __attribute__((address_space(4))) const u8 *bytes;
typedef __attribute__((address_space(4))) const unsigned short *shorts;
typedef __attribute__((address_space(4))) const u32 *words;
#define PACKET __builtin_amdgcn_dispatch_ptr()
KERNEL void where(u32 *out, u32 *lanes) {
  shorts block = (shorts)PACKET + 2; words grid = (words)PACKET + 3;
  u32 x = GX * block[0] + X, y = GY * block[1] + Y, z = GZ * block[2] + Z;
  u32 at = (z * grid[1] + y) * grid[0] + x;
  RECORD(at)
  lanes[at] = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}
// As AMD's device library works out get_local_size with code object version 5.
KERNEL void sizes(u32 *out) {
  bytes implicit = (bytes)__builtin_amdgcn_implicitarg_ptr();
  words counts = (words)implicit; shorts group = (shorts)(implicit + 12), remainder = (shorts)(implicit + 18);
  u32 size = GX < counts[0] ? group[0] : remainder[0];
  out[GX * group[0] + X] = size;
}
// All waves of each work-group meet; the sum is of those that exist.
KERNEL void meet(u32 *sums) {
  SHARED u32 sum;
  if (X == 0) sum = 0;
  BARRIER
  __hip_atomic_fetch_add(&sum, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  BARRIER
  if (X == 0) sums[GX] = sum;
  BARRIER
}
KERNEL void stuck(volatile u32 *sums) { while (sums[0] == 0); }
"""
SHAPES = [
    ((1000,), (256,)), ((1,), (64,)), ((10,), (64,)), ((65,), (64,)), ((257,), (256,)), ((100, 7), (16, 4)),
    ((64, 7), (16, 4)), ((33, 8), (16, 4)), ((33, 9, 5), (8, 4, 2)), ((16, 8, 5), (8, 4, 2)), ((7, 3, 2), (8, 4, 3)),
    ((65, 2), (65, 2)), ((130, 3), (65, 2)), ((70, 5, 3), (35, 3, 2)),
]


@pytest.fixture(scope="module")
def compiled(require_tool, tmp_path_factory):
    folder = tmp_path_factory.mktemp("partial")
    return compile_hip(require_tool("clang-22"), folder, SOURCE, "-fno-offload-uniform-block")


def three(sizes):
    return (*sizes, 1, 1)[:3]


def expected(items, block):
    """Of each work-item of the grid, x fastest: its id, its work-group's, and the lane that it runs in."""
    rows, lanes = [], []
    for z, y, x in itertools.product(*(range(size) for size in reversed(items))):
        place = (x, y, z)
        group = [p // b for p, b in zip(place, block, strict=True)]
        item = [p % b for p, b in zip(place, block, strict=True)]
        size = [min(b, n - g * b) for b, n, g in zip(block, items, group, strict=True)]
        rows.append([*item, *group])
        lanes.append((item[0] + size[0] * (item[1] + size[1] * item[2])) % 64)
    return np.array(rows, np.uint32), np.array(lanes, np.uint32)


@pytest.mark.parametrize(("items", "block"), SHAPES, ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_every_work_item_once(compiled, items, block, threads):
    """Ids, lanes and waves: work-items of a partial work-group are packed as if it were that small."""
    items, block = three(items), three(block)
    host, record = Host(threads=threads), load(compiled).kernel("where")
    rows, lanes = expected(items, block)
    out, found = np.full(rows.shape, 99, np.uint32), np.full(lanes.shape, 99, np.uint32)
    profile = host.dispatch(host.place(compiled), record, [out, found], items, block)
    np.testing.assert_array_equal(out, rows)
    np.testing.assert_array_equal(found, lanes)
    groups = [range(-(-n // b)) for n, b in zip(items, block, strict=True)]
    sizes = [np.prod([min(b, n - g * b) for b, n, g in zip(block, items, group, strict=True)])
             for group in itertools.product(*groups)]
    waves = sum(-(-int(size) // 64) for size in sizes)
    assert profile.groups == len(sizes) and profile.waves == waves
    first = min(profile.counts)
    assert profile.counts[first] == waves, "no wave starts that would have no work-item"
    assert profile.lanes[first] == len(rows)


@pytest.mark.parametrize("items", [1000, 1024, 100])
def test_hidden_arguments_say_how_large_the_last_work_group_is(compiled, items):
    host, out = Host(), np.zeros(items, np.uint32)
    host.dispatch(host.place(compiled), load(compiled).kernel("sizes"), [out], (items, 1, 1), (256, 1, 1))
    whole = items // 256 * 256
    np.testing.assert_array_equal(out, [256] * whole + [items % 256] * (items - whole))


def test_waves_that_do_not_exist_are_not_told(compiled):
    """Where waves stand: two work-groups have four, the last one two."""
    host, sums = Host(options=LaunchOptions(time_limit=0.2)), np.zeros(4, np.uint32)
    with pytest.raises(TimeLimit) as caught:
        host.dispatch(host.place(compiled), load(compiled).kernel("stuck"), [sums], (640, 1, 1), (256, 1, 1))
    assert "10 waves (wave 0 of work-group 0 first)" in str(caught.value) and "ended" not in str(caught.value)


@pytest.mark.parametrize("items", [1000, 1025, 2048 - 63, 63])
def test_barriers_wait_for_the_waves_that_exist(compiled, items):
    host, groups = Host(), -(-items // 1024)
    sums = np.zeros(groups, np.uint32)
    host.dispatch(host.place(compiled), load(compiled).kernel("meet"), [sums], (items, 1, 1), (1024, 1, 1))
    np.testing.assert_array_equal(sums, [min(1024, items - 1024 * group) for group in range(groups)])
