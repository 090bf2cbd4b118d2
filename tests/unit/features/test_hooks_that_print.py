"""print and assert in hooks: lines are those that Python prints of the same values, each lane's in its order."""

from __future__ import annotations

from typing import Any

import pytest

from luthier_py import Lane, Mutator, Tool, Variable, device, f32, f64, hook, i32, i64, lds, ptr, u32, u64, vgpr
from luthier_py.base.errors import HookError, ToolError
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Ran, run_instrumented
from luthier_py.intrinsics import is_first_lane, lane_id
from luthier_py.rewrite.pipeline import instrument
from luthier_py.samples import sample

WAVES, LANES = 32, 64  # of the vector_add sample


def run(one: Any, *args: Any) -> Ran:
    class Printing(Tool):
        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], one, *args)

    chosen, tool = sample("vector_add"), Printing()
    code = chosen.path.read_bytes()
    return run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch_of(chosen))


@hook
def items(item: Lane[u32], number: u32) -> None:
    print("item", item, f"of {number:04x}: {item * 2:>5}|")


def test_each_lane_prints_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    ran = run(items, vgpr(0), 0xAB)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == sorted(f"item {item} of {0xAB:04x}: {item * 2:>5}|" for item in [*range(256)] * 8)
    assert ran.records["luthier.printed"].kept == WAVES * LANES
    starts = [int(line.split()[1]) for line in lines[::LANES]]
    assert [int(line.split()[1]) for line in lines] == [item for at in starts for item in range(at, at + LANES)]


@hook(lanes="one")
def places(near: lds[u32], far: ptr[u32]) -> None:
    print("at", near + 1, f"{near:#x}", u64(far + 1) - u64(far), far)


def test_addresses_are_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    run(places, 48, Variable(u32, name="here"))
    lines = {tuple(line.split()) for line in capsys.readouterr().out.splitlines()}
    assert {line[:-1] for line in lines} == {("at", "52", "0x30", "4")} and all(int(line[-1]) > 0 for line in lines)


@device
def told(value: Lane[f32]) -> None:
    if is_first_lane():
        print(f"{{{value}}}", value / 3, f64(value) / 3, f"{value:.3f}")


@hook
def kinds(item: Lane[u32]) -> None:
    if is_first_lane():
        print(-i32(item) - 5, i64(item) - (1 << 40), u64(0) - 1, item == item, not (item == item))
    told(f32(item) + 0.1)


def test_every_kind_of_value_reads_as_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    import numpy as np

    run(kinds, vgpr(0))
    lines = capsys.readouterr().out.splitlines()
    expected = []
    for item in [0, 64, 128, 192] * 8:
        expected.append(f"{-item - 5} {item - (1 << 40)} {(1 << 64) - 1} True False")
        value = np.float32(item) + np.float32(0.1)
        expected.append(f"{{{value}}} {value / np.float32(3)!s} {float(value) / 3} {value:.3f}")
    assert sorted(lines) == sorted(expected)


@hook
def in_turn(item: Lane[u32]) -> None:
    for number in range(3):
        if item % 64 == 5:
            print("lane", lane_id(), "step", number)


def test_lines_of_a_lane_come_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    run(in_turn, vgpr(0))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 * WAVES and set(lines) == {f"lane 5 step {number}" for number in range(3)}
    assert lines[0].endswith("step 0")


@hook(lanes="one")
def once(value: u32) -> None:
    print("a wave", value)


def test_a_hook_of_one_lane_prints_once(capsys: pytest.CaptureFixture[str]) -> None:
    run(once, 7)
    assert capsys.readouterr().out.splitlines() == ["a wave 7"] * WAVES


@hook
def holds(item: Lane[u32]) -> None:
    assert item < 256


@hook
def fails(item: Lane[u32], seen: ptr[u32]) -> None:
    assert item != 70, f"item {item} of {{all}}"
    seen[0] = 1


def test_assertions(capsys: pytest.CaptureFixture[str]) -> None:
    run(holds, vgpr(0))
    assert capsys.readouterr().out == ""
    place = "test_hooks_that_print.py:{line}: assertion failed: item != 70: item 70 of {{all}} [lane 6]"
    line = fails.function.__code__.co_firstlineno + 2
    with pytest.raises(ToolError) as raised:
        run(fails, vgpr(0), Variable(u32, name="seen"))
    expected = place.format(line=line)
    assert raised.value.message == expected
    assert capsys.readouterr().out.splitlines() == [expected] * 8


@hook
def too_many(item: Lane[u32]) -> None:
    print(item, item, item, item, item, item, item)


@hook
def wrong_format(item: Lane[u32]) -> None:
    print(f"{item:q}")


@hook
def wrong_kind(item: Lane[f32]) -> None:
    print(f"{item:x}")


@hook
def converted(item: Lane[u32]) -> None:
    print(f"{item!r}")


@hook
def with_keyword(item: Lane[u32]) -> None:
    print(item, end="")


@pytest.mark.parametrize("one, message", [
    (too_many, "7 values are too many for one line; 6 at most"),
    (wrong_format, "this cannot be printed so: Unknown format code 'q'"),
    (wrong_kind, "this cannot be printed so: Unknown format code 'x'"),
    (converted, "only {value} and {value:format}"),
    (with_keyword, "print takes no keywords in device code"),
])
def test_what_cannot_be_printed_is_refused(one: Any, message: str) -> None:
    with pytest.raises(HookError, match=message.replace("{", "\\{")):
        run(one, vgpr(0))
