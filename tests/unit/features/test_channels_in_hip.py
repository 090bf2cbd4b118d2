"""Channels in hooks in HIP C++: the same records, in the same order, as pushes in Python; with all that channels do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luthier_py import (
    Channel,
    Hooks,
    Lane,
    Mutator,
    Tool,
    channel,
    device,
    f32,
    f64,
    hook,
    i16,
    i32,
    u8,
    u32,
    u64,
    vgpr,
)
from luthier_py.base.errors import DeviceError, HookError
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Ran, run_instrumented, run_original
from luthier_py.intrinsics import active_mask, push
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool.cpp.hip import HipSource
from luthier_py.samples import sample

WAVES, LANES = 32, 64  # of the vector_add sample
HEADER = "#include <luthier/hooks.h>\nusing namespace luthier;\n"
TEXT = HEADER + r"""
struct Item { u32 wave; u8 kind; u64 wide; f32 half; i16 less; };
namespace inner { struct Wave { u64 wave; u64 mask; lane<u32> items; lane<f64> roots; lane<u8> low; }; }

LUTHIER_HOOK() void send_lanes(channel<Item> out, u32 wave, lane<u32> item) {
    for (u32 number = 0; number < 3; ++number)
        if (item % 4 != number) out.push({wave, u8(number), u64(item) << 33, item / 2.0f, i16(-int(item))});
}
LUTHIER_HOOK() void send_wave(channel<inner::Wave> out, lane<u32> item) {
    inner::Wave record = {7, 0, item, 0.5 * item, u8(item)};
    if (item % 3 == 0) {
        record.mask = active_mask();
        out.push(record);
    }
}
LUTHIER_HOOK(one) void send_one(channel<Item> out, u32 wave) { out.push({wave, 1, 2, 3, 4}); }
LUTHIER_HOOK() void send_both(channel<Item> first, channel<Item> second, lane<u32> item) {
    if (item % 2) first.push({item, 0, 0, 0, 0});
    second.push({1000, 0, 0, 0, 0});
}
LUTHIER_HOOK() void send_chosen(channel<Item> first, channel<Item> second, lane<u32> item) {
    (item % 2 ? first : second).push({item, 0, 0, 0, 0});
}
LUTHIER_DEVICE void tell(channel<Item> out, lane<u32> item) { out.push({5, 6, item, 0.25f, -1}); }

LUTHIER_DEPTH(8) __device__ u32 halves(channel<Item> out, u32 item) {
    if (item == 0) return 0;
    u32 below = halves(out, item / 2);
    out.push({item, u8(below), 0, 0, 0});
    return below + halves(out, item / 4) + 1;
}
LUTHIER_HOOK() void send_levels(channel<Item> out, lane<u32> item) { halves(out, item % 64); }
"""


class Item:
    wave: u32
    kind: u8
    wide: u64
    half: f32
    less: i16


class Wave:
    wave: u64
    mask: u64
    items: Lane[u32]
    roots: Lane[f64]
    low: Lane[u8]


@hook
def send_lanes(out: channel[Item], wave: u32, item: Lane[u32]) -> None:
    for number in range(3):
        if item % 4 != u32(number):
            push(out, wave, u8(number), u64(item) << 33, f32(item) / 2, i16(-i32(item)))


@hook
def send_wave(out: channel[Wave], item: Lane[u32]) -> None:
    if item % 3 == 0:
        push(out, 7, active_mask(), item, f64(item) * 0.5, u8(item & 0xFF))


@hook(lanes="one")
def send_one(out: channel[Item], wave: u32) -> None:
    push(out, wave, u8(1), 2, 3.0, i16(4))


class Sender(Tool):
    """Sends what tests want: a hook, with what goes before the work-item's number."""

    items = Channel(Item, capacity=128)
    waves = Channel(Wave, capacity=128)
    hook: Any = None
    given: tuple[Any, ...] = ()
    with_item = True

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, self.hook, *self.given, *([vgpr(0)] if self.with_item else []))

    def received(self, channel: Channel, launch: Any, records: np.ndarray[Any, Any]) -> None:
        vars(self).setdefault("got", {}).setdefault(channel.attribute, []).append(records)

    def records(self, name: str = "items") -> Any:
        """In an order of their own: waves come in any."""
        return np.sort(np.concatenate(vars(self)["got"][name]))


pytestmark = pytest.mark.usefixtures("clang")


@pytest.fixture(scope="module")
def hooks() -> Hooks:
    """Compiled by the test that wants them first."""
    return Hooks.from_hip(TEXT)


def run(one: Any, *given: Any, with_item: bool = True, kind: type[Sender] = Sender) -> tuple[Sender, Ran]:
    """The sample under the tool: what it computes is what it computed before."""
    chosen = sample("vector_add")
    code, launch, tool = chosen.path.read_bytes(), launch_of(chosen), kind()
    tool.hook, tool.given, tool.with_item = one, given, with_item
    device = EmulatorDevice(load(code).target, threads=1)
    before = run_original(device, code, launch).outputs
    ran = run_instrumented(device, instrument(code, tool), tool, launch)
    assert all(ran.outputs[number].tobytes() == data.tobytes() for number, data in before.items())
    return tool, ran


@pytest.mark.parametrize("name, given, with_item", [
    ("send_lanes", (Sender.items, 3), True), ("send_wave", (Sender.waves,), True),
    ("send_one", (Sender.items, 9), False),
])
def test_records_are_those_that_python_pushes(hooks: Hooks, name: str, given: tuple[Any, ...], with_item: bool) -> None:
    in_python, of_python = run(globals()[name], *given, with_item=with_item)
    in_hip, of_hip = run(hooks[name], *given, with_item=with_item)
    channel = given[0].attribute
    assert in_hip.records(channel).tobytes() == in_python.records(channel).tobytes()
    assert of_hip.records[channel] == of_python.records[channel]
    assert of_hip.records[channel].kept == len(in_hip.records(channel)) > 0


def test_each_active_lane_pushes_what_numpy_works_out(hooks: Hooks) -> None:
    tool, _ = run(hooks.send_lanes, Sender.items, 3)
    item = np.repeat(np.tile(np.arange(4 * LANES), WAVES // 4), 3)
    number = np.tile(np.arange(3), len(item) // 3)
    item, number = item[item % 4 != number], number[item % 4 != number]
    found = tool.records()
    assert sorted(zip(found["kind"].tolist(), (found["wide"] >> np.uint64(33)).tolist(), strict=True)) == sorted(
        zip(number.tolist(), item.tolist(), strict=True))
    assert np.array_equal(found["half"], (found["wide"] >> np.uint64(33)) / 2)
    assert np.array_equal(found["less"], -(found["wide"] >> np.uint64(33)).astype(np.int16))
    assert set(found["wave"].tolist()) == {3}


def test_records_of_one_wave_come_in_its_order(hooks: Hooks) -> None:
    tool, _ = run(hooks.send_lanes, Sender.items, 3)
    records = np.concatenate(vars(tool)["got"]["items"])
    for start in range(4 * WAVES // 4):
        mine = records[records["wide"] == np.uint64(start << 33)]["kind"].tolist()
        assert sorted(mine) == [number for number in range(3) if number != start % 4 for _ in range(WAVES // 4)]
    first = records[: 2 * LANES]  # of the wave that came first, at least one push whole
    assert np.all(np.diff(first["wide"][first["kind"] == 0][:LANES // 2].astype(np.int64)) > 0)


class Dropper(Sender):
    """Has no patience."""

    dropped = Channel(Item, capacity=128, full="drop")

    def received(self, channel: Channel, launch: Any, records: np.ndarray[Any, Any]) -> None:
        super().received(channel, launch, records)
        if channel is self.dropped:
            time.sleep(0.02)


def test_what_is_dropped_is_counted(hooks: Hooks) -> None:
    tool, ran = run(hooks.send_lanes, Dropper.dropped, 3, kind=Dropper)
    count = ran.records["dropped"]
    assert count.dropped > 0 and count.kept == len(tool.records("dropped"))
    assert count.pushed == WAVES // 4 * sum(item % 4 != number for item in range(4 * LANES) for number in range(3))


class Stopper(Sender):
    """Wants all or nothing."""

    stopped = Channel(Item, capacity=128, full="stop")

    def received(self, channel: Channel, launch: Any, records: np.ndarray[Any, Any]) -> None:
        time.sleep(0.02)


def test_a_launch_is_stopped_when_its_channel_is_full(hooks: Hooks) -> None:
    with pytest.raises(DeviceError, match=r"Channel\(Stopper.stopped: Item\) (is|was) full"):
        run(hooks.send_lanes, Stopper.stopped, 3, kind=Stopper)


class Two(Sender):
    """Channels of the same records that do not do the same when they are full: pushes must find out which it is."""

    large = Channel(Item, capacity=1 << 14, full="drop")


def test_one_push_serves_several_channels(hooks: Hooks) -> None:
    tool, ran = run(hooks.send_both, Two.items, Two.large, kind=Two)
    odd = np.sort(np.repeat(np.arange(1, 4 * LANES, 2), WAVES // 4))
    assert np.array_equal(tool.records()["wave"], odd)
    assert tool.records("large")["wave"].tolist() == [1000] * WAVES * LANES
    assert ran.records["items"].dropped == ran.records["large"].dropped == 0


def test_a_channel_is_one_for_the_wave(hooks: Hooks) -> None:
    """Where lanes choose different ones, that of the first lane is it, as for all that is one for the wave."""
    tool, ran = run(hooks.send_chosen, Two.items, Two.large, kind=Two)
    assert tool.records("large")["wave"].tolist() == sorted([*range(4 * LANES)] * (WAVES // 4))
    assert ran.records["items"].pushed == 0


def test_python_calls_what_pushes(hooks: Hooks) -> None:
    @device
    def through(out: channel[Item], item: Lane[u32]) -> None:
        hooks.tell(out, item)

    @hook
    def calls(out: channel[Item], item: Lane[u32]) -> None:
        if item < 10:
            through(out, item)
        push(out, item, u8(0), 0, 0.0, i16(0))

    tool, _ = run(calls, Sender.items)
    found = tool.records()
    told = found[found["kind"] == 6]
    assert np.array_equal(np.sort(told["wide"]), np.sort(np.repeat(np.arange(10), WAVES // 4)))
    assert set(told["wave"].tolist()) == {5} and set(told["less"].tolist()) == {-1}
    assert np.array_equal(found[found["kind"] == 0]["wave"], np.sort(np.tile(np.arange(4 * LANES), WAVES // 4)))


def test_functions_that_call_themselves_push(hooks: Hooks) -> None:
    tool, _ = run(hooks.send_levels, Sender.items)
    wanted: list[tuple[int, int]] = []

    def halves(item: int) -> int:
        if item == 0:
            return 0
        below = halves(item // 2)
        wanted.append((item, below))
        return below + halves(item // 4) + 1

    for item in range(LANES):
        halves(item)
    found = tool.records()
    assert sorted(zip(found["wave"].tolist(), found["kind"].tolist(), strict=True)) == sorted(wanted * WAVES)


def test_bitcode_pushes(hooks: Hooks, tmp_path: Path) -> None:
    (tmp_path / "mine.bc").write_bytes(HipSource("mine", TEXT).bitcode("gfx90a", 64))
    tool, _ = run(Hooks.from_bitcode(tmp_path / "mine.bc").send_wave, Sender.waves)
    other, _ = run(hooks.send_wave, Sender.waves)
    assert tool.records("waves").tobytes() == other.records("waves").tobytes()


def test_a_push_is_as_short_as_in_python(hooks: Hooks) -> None:
    class Large(Sender):
        large = Channel(Item, capacity=1 << 14)

    counts = []
    for one in (send_lanes, hooks.send_lanes):
        counts.append(run(one, Large.large, 3, kind=Large)[1].inserted)
    assert counts[1] <= 1.05 * counts[0]


OTHER = HEADER + r"""
struct Item { u32 wave; u8 kind; u32 wide; f32 half; i16 less; };
LUTHIER_HOOK() void other(channel<Item> out) { out.push({}); }
struct Unknown { u32 wave; };
LUTHIER_HOOK() void unknown(channel<Unknown> out) { out.push({3}); }
"""


@pytest.mark.parametrize("name, words", [
    ("other", r"out: channel\[Item\] cannot take Channel\(Sender.items: Item\): they send different records, "
              r"the hook Item \(wave: u32, kind: u8, wide: u32, half: f32, less: i16\), "
              r"the channel Item \(wave: u32, kind: u8, wide: u64, half: f32, less: i16\)"),
    ("unknown", r"out: channel\[Unknown\] cannot take Channel\(Sender.items: Item\); declare it out: channel\[Item\]"),
])
def test_other_records_than_the_channels_are_refused(name: str, words: str) -> None:
    with pytest.raises(HookError, match=words):
        run(Hooks.from_hip(OTHER)[name], Sender.items, with_item=False)


@pytest.mark.parametrize("record, words", [
    ("struct R { bool yes; };", r"h: out: record R: yes: bool_ cannot be sent; give one of u8"),
    ("struct R { u32 *where; };", r"record R: where: ptr\[u32\] cannot be sent"),
    ("struct R { u32 some[4]; };", r"record R: some: void is not a device type"),
    ("struct R { u32 low : 4; };", r"record R: low has a part of the bits of a number"),
    ("struct Base { u32 x; }; struct R : Base { u32 y; };", r"R: give a structure with members, and without"),
    ("using R = u32;", r"record unsigned int: give a structure with members"),
])
def test_records_that_cannot_be_sent_are_refused(record: str, words: str) -> None:
    text = f"{HEADER}{record}\nLUTHIER_HOOK() void h(channel<R> out) {{ out.push(R()); }}\n"
    with pytest.raises(HookError, match=words):
        Hooks.from_hip(text).h  # noqa: B018
