"""Arguments about the launch, in every lane of grids of any sides, as NumPy has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from packets import Host
from test_partial_groups import SHAPES, expected, three

from luthier_py.base.errors import HookError
from luthier_py.binary.loader import load
from luthier_py.emulator.memory.device_memory import read_bytes, write_bytes
from luthier_py.intrinsics import atomic_add
from luthier_py.program.ir import Kernel, lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import (
    Lane,
    Mutator,
    Tool,
    Variable,
    f32,
    grid_size,
    hook,
    kernel_argument,
    lane_id,
    ptr,
    u32,
    u64,
    wave_in_group,
    wave_in_launch,
    workgroup_id,
    workgroup_in_launch,
    workgroup_size,
    workitem_id,
    workitem_in_launch,
)
from luthier_py.rewrite.tool.records.ring import HEAD_BYTES, RingReader, cell_words, head_words, ring_bytes
from luthier_py.samples import sample
from luthier_py.tools.mem_trace import MemTrace

CODE = sample("saxpy").path.read_bytes()
WORDS = 8


class Notes(Tool):
    """A row for each work-item."""

    def __init__(self, items: int) -> None:
        super().__init__()
        self.rows = Variable(u32, items * WORDS, name="rows")

    cursor = Variable(u32)

    @hook
    def ids(rows: ptr[u32], cursor: ptr[u32], x: Lane[u32], y: Lane[u32], z: Lane[u32], gx: u32, gy: u32,
            gz: u32, wave: u32) -> None:
        at = atomic_add(cursor, u32(1)) * 8
        rows[at] = x
        rows[at + 1] = y
        rows[at + 2] = z
        rows[at + 3] = gx
        rows[at + 4] = gy
        rows[at + 5] = gz
        rows[at + 6] = wave
        rows[at + 7] = lane_id()

    def instrument(self, m: Mutator) -> None:
        state = (self.rows, self.cursor)
        m.at_entry(m.kernels[0], self.ids, *state, *map(workitem_id, "xyz"), *map(workgroup_id, "xyz"),
                   wave_in_group())


class Numbers(Tool):
    """A row for each work-item: what numbers it has in its launch."""

    def __init__(self, items: int) -> None:
        super().__init__()
        self.rows = Variable(u32, items * 3, name="rows")

    cursor = Variable(u32)

    @hook
    def numbers(rows: ptr[u32], cursor: ptr[u32], group: u32, wave: u32, item: Lane[u32]) -> None:
        at = atomic_add(cursor, u32(1)) * 3
        rows[at] = group
        rows[at + 1] = wave
        rows[at + 2] = item

    def instrument(self, m: Mutator) -> None:
        given = workgroup_in_launch(), wave_in_launch(), workitem_in_launch()
        m.at_entry(m.kernels[0], self.numbers, self.rows, self.cursor, *given)


class Sizes(Tool):
    found = Variable(u32, 6)

    @hook(lanes="one")
    def note(found: ptr[u32], sx: u32, sy: u32, sz: u32, nx: u32, ny: u32, nz: u32) -> None:
        found[0] = sx
        found[1] = sy
        found[2] = sz
        found[3] = nx
        found[4] = ny
        found[5] = nz

    def instrument(self, m: Mutator) -> None:
        m.at_exit(m.kernels[0], self.note, self.found, *map(workgroup_size, "xyz"), *map(grid_size, "xyz"))


class Arguments(Tool):
    found = Variable(u64, 8)
    number = Variable(f32)

    @hook(lanes="one")
    def note(found: ptr[u64], number: ptr[f32], n: u32, a: f32, x: u64, y: ptr[u32], low: u32) -> None:
        found[0] = n
        found[1] = x
        found[2] = u64(y)
        found[3] = low
        found[4] = y[1]
        number[0] = a

    def instrument(self, m: Mutator) -> None:
        (kernel,) = m.kernels
        given = (kernel_argument(kernel, 0), kernel_argument(kernel, 1, f32), kernel_argument(kernel, 2),
                 kernel_argument(kernel, 3), kernel_argument(kernel, 2, dword=0))
        m.at_exit(kernel, self.note, self.found, self.number, *given)


def launched(tool: Tool, variables: list[Variable], items: Any = (64, 1, 1), block: Any = (64, 1, 1), n: int = 0,
             ) -> list[np.ndarray]:
    """What the tool's variables hold after a launch of saxpy, which does nothing where ``n`` is 0."""
    made = instrument(CODE, tool)
    host, obj = Host(), load(made.data)
    x, y = np.arange(8, dtype=np.float32), np.arange(8, dtype=np.float32) + 100
    base = host.place(made.data)
    host.dispatch(base, obj.kernel("saxpy.luthier"), [n, 2.5, x, y], items, block)
    symbols = {symbol.name: symbol for symbol in obj.symbols}
    return [np.frombuffer(read_bytes(base + symbols[each.name].address, each.size_bytes), each.type.letter)
            for each in variables]


def linear_ids(rows: Any, items: Any, block: Any) -> Any:
    """Of each work-item in its work-group, which at the edge is smaller."""
    sides = [np.minimum(block[k], items[k] - rows[:, 3 + k].astype(int) * block[k]) for k in range(3)]
    return rows[:, 0] + sides[0] * (rows[:, 1] + sides[1] * rows[:, 2])


@pytest.mark.parametrize(("items", "block"), SHAPES, ids=str)
def test_ids_of_every_work_item(items: Any, block: Any) -> None:
    items, block = three(items), three(block)
    rows, lanes = expected(items, block)
    tool = Notes(len(rows))
    (found,) = launched(tool, [tool.rows], items, block)
    found = found.reshape(-1, WORDS).astype(np.int64)
    linear = linear_ids(rows, items, block)
    wanted = np.column_stack([rows, linear // 64, lanes]).astype(np.int64)
    np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(wanted, axis=0))
    assert len(found) == len(np.unique(found, axis=0))


@pytest.mark.parametrize(("items", "block"), SHAPES, ids=str)
def test_numbers_in_the_launch(items: Any, block: Any) -> None:
    """Each is there once, and a group's are together: of groups at the edge those that a whole one would have."""
    items, block = three(items), three(block)
    rows, _ = expected(items, block)
    tool = Numbers(len(rows))
    (found,) = launched(tool, [tool.rows], items, block)
    linear = linear_ids(rows, items, block)
    groups = [-(-items[k] // block[k]) for k in range(3)]
    number = rows[:, 3] + groups[0] * (rows[:, 4] + groups[1] * rows[:, 5])
    size = int(np.prod(block))
    wanted = np.column_stack([number, number * -(-size // 64) + linear // 64, number * size + linear]).astype(np.int64)
    found = found.reshape(-1, 3).astype(np.int64)
    np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(wanted, axis=0))
    assert len(np.unique(found[:, 2])) == len(found)


@pytest.mark.parametrize(("items", "block"), [((100, 4), (64, 4)), ((33, 9, 5), (8, 4, 2))], ids=str)
def test_waves_in_a_trace(items: Any, block: Any) -> None:
    """Of waves of groups at the edge of a grid, too: each of saxpy's three accesses has a record with its number."""
    items, block = three(items), three(block)
    rows, _ = expected(items, block)
    linear = linear_ids(rows, items, block)
    waves = np.unique(np.column_stack([rows[:, 3:6], linear // 64]).astype(int), axis=0).tolist()
    records = traced(items, block)
    found = np.column_stack([records[name] for name in ("workgroup_x", "workgroup_y", "workgroup_z", "wave")])
    assert sorted(found.astype(int).tolist()) == sorted(3 * waves)


def traced(items: Any, block: Any) -> np.ndarray:
    """Records of mem_trace under saxpy, whose ring is read when the launch is over."""
    made, channel, host = instrument(CODE, MemTrace()), MemTrace.accesses, Host()
    obj, base = load(made.data), host.place(made.data)
    memory = np.zeros(ring_bytes(channel), np.uint8)
    ring, head = host.buffer(memory), host.buffer(np.zeros(HEAD_BYTES, np.uint8))
    write_bytes(head, head_words(channel, ring))
    cell = next(symbol for symbol in obj.symbols if symbol.name == channel.name)
    write_bytes(base + cell.address, cell_words(head, 0))
    x = np.zeros(items[0], np.float32)
    host.dispatch(base, obj.kernel("saxpy.luthier"), [items[0], 2.5, x, x.copy()], items, block)
    slots = RingReader(channel, np.frombuffer(bytearray(read_bytes(ring, memory.nbytes)), np.uint8)).take()
    return channel.record.unpack_records(slots)


@pytest.mark.parametrize(("items", "block"), [((1000, 1, 1), (256, 1, 1)), ((33, 9, 5), (8, 4, 2))])
def test_sizes(items: Any, block: Any) -> None:
    (found,) = launched(Sizes(), [Sizes.found], items, block)
    assert found.tolist() == [*block, *items]


def test_arguments_of_the_kernel() -> None:
    found, number = launched(Arguments(), [Arguments.found, Arguments.number], n=3)
    n, x, y, low, second = found.tolist()[:5]
    assert n == 3 and number.tolist() == [2.5] and low == x & 0xFFFFFFFF and 0 != x != y
    assert np.array([second], np.uint32).view(np.float32)[0] == 103.5  # 101 + 2.5 * 1, which saxpy stored


@pytest.mark.parametrize(("which", "options", "message"), [
    ("n", {}, "saxpy has no argument n; it has 0, 1, 2, 3"), (99, {}, "saxpy has no argument 99"),
    (0, {"type": u64}, "argument 0 of saxpy has 4 bytes at 0; it is no u64"),
    (0, {"dword": 1}, "argument 0 of saxpy has 4 bytes; dword 1 is none of it"),
    (0, {"type": "f16"}, "argument 0 of saxpy cannot be a f16; choose one of u32"),
])
def test_what_is_no_argument(which: Any, options: Any, message: str) -> None:
    kernel: Kernel = lift(load(CODE)).kernel("saxpy")
    with pytest.raises(HookError, match=message):
        kernel_argument(kernel, which, **options)


def test_what_is_no_axis() -> None:
    with pytest.raises(HookError, match="'w' is no axis; choose one of x, y, z"):
        workitem_id("w")


def test_arguments_have_names_where_the_metadata_has_them() -> None:
    kernel: Kernel = lift(load(CODE)).kernel("saxpy")
    named = [replace(each, name=name) for each, name in zip(kernel.record.args, "naxy", strict=False)]
    small = replace(named[0], name="small", offset=6, size=1)
    large = replace(named[0], name="large", offset=8, size=12)
    kernel = replace(kernel, record=replace(kernel.record, args=(*named, small, large)))
    assert [str(kernel_argument(kernel, each).result.type) for each in ("n", "y", "small")] == ["u32", "u64", "u32"]
    assert kernel_argument(kernel, "y").inputs == kernel_argument(kernel, 3).inputs
    assert kernel_argument(kernel, "small").inputs[1:] == (1, 16, 255)
    assert kernel_argument(kernel, "large", dword=2).inputs[1:] == (4, 0, 0xFFFFFFFF)
    with pytest.raises(HookError, match="argument large of saxpy has 12 bytes; say which: dword=0"):
        kernel_argument(kernel, "large")
    with pytest.raises(HookError, match="saxpy has no argument m; it has n, a, x, y, small, large"):
        kernel_argument(kernel, "m")
