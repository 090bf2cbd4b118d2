"""Channels on the emulator: every record that waves push comes to the tool, whole, in order, and once."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from luthier_py import Channel, Lane, Mutator, Tool, Variable, channel, device, hook, ptr, u32, u64, vgpr
from luthier_py.base.errors import DeviceError, HookError, Invalid, ToolError
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Ran, run_instrumented, run_original
from luthier_py.intrinsics import active_mask, atomic_add, lane_id, push
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import LaunchResult
from luthier_py.samples import sample

WAVES, LANES = 32, 64  # of the vector_add sample


class Item:
    wave: u32
    item: u32
    wide: u64


class Wave:
    wave: u64
    mask: u64
    items: Lane[u32]
    squares: Lane[u64]


@hook
def send_lanes(out: channel[Item], waves: ptr[u32], item: Lane[u32]) -> None:
    wave = u32(0)
    if lane_id() == 0:
        wave = atomic_add(waves, 1)
    for number in range(3):
        push(out, wave, item, u64(item) * 5 + u64(number))


@hook
def send_wave(out: channel[Wave], item: Lane[u32]) -> None:
    if item % 3 == 0:
        push(out, 7, active_mask(), item, u64(item) * item)


@hook(lanes="one")
def send_one(out: channel[Item], wave: u32) -> None:
    push(out, wave, 1, 2)


class Sender(Tool):
    """Sends what tests want."""

    lanes = Channel(Item, capacity=128)
    waves = Channel(Wave, capacity=128)
    number = Variable(u32)
    which = "lanes"
    slow = 0.0

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            if self.which == "lanes":
                m.at_entry(kernel, send_lanes, self.lanes, self.number, vgpr(0))
            elif self.which == "one":
                m.at_entry(kernel, send_one, self.lanes, 9)
            else:
                m.at_entry(kernel, send_wave, self.waves, vgpr(0))

    def received(self, channel: Channel, launch: LaunchResult, records: np.ndarray[Any, Any]) -> None:
        vars(self).setdefault("got", []).append(records)
        vars(self).setdefault("launches", []).append((channel, launch))
        time.sleep(self.slow)


def run(tool: Sender, threads: int = 1, index: int = 0) -> Ran:
    """The sample under the tool: what it computes is what it computed before."""
    chosen = sample("vector_add")
    code, launch = chosen.path.read_bytes(), launch_of(chosen)
    device = EmulatorDevice(load(code).target, threads=threads)
    before = run_original(device, code, launch).outputs
    ran = run_instrumented(device, instrument(code, tool), tool, launch, index)
    assert all(ran.outputs[number].tobytes() == data.tobytes() for number, data in before.items())
    return ran


@pytest.mark.parametrize("slow, threads", [(0.0, 1), (0.002, 1), (0.0, 4)])
def test_every_record_of_every_lane_comes_in_the_order_of_its_wave(slow: float, threads: int) -> None:
    tool = Sender()
    tool.slow = slow
    ran = run(tool, threads, index=5)
    records = np.concatenate(tool.got)
    assert len(records) == 3 * WAVES * LANES == ran.records["lanes"].pushed == ran.records["lanes"].kept
    number = records["wide"] - records["item"].astype(np.uint64) * np.uint64(5)
    for wave in range(WAVES // 4):  # items count from 0 in each group of four waves
        for item in range(4 * LANES):
            mine = number[records["item"] == item]
            assert sorted(mine.tolist()) == sorted([0, 1, 2] * (WAVES // 4)), (wave, item)
    first = records[records["wave"] > 0]
    assert all(number[records["wave"] == wave].tolist() == [0, 1, 2] for wave in set(first["wave"].tolist()))
    assert {(channel, launch.index, launch.kernel) for channel, launch in tool.launches} == {
        (Sender.lanes, 5, "vector_add")}


def test_a_record_of_the_wave_has_an_entry_for_each_lane_that_took_part() -> None:
    tool = Sender()
    tool.which = "waves"
    ran = run(tool)
    records = np.concatenate(tool.got)
    assert len(records) == WAVES == ran.records["waves"].kept and set(records["wave"].tolist()) == {7}
    for record in records:
        lanes = np.array([record["mask"] >> np.uint64(lane) & np.uint64(1) for lane in range(LANES)], bool)
        first = record["items"][lanes][0]
        start = first - first % LANES
        items = np.arange(start, start + LANES, dtype=np.uint32)
        expected = np.where(items % 3 == 0, items, 0)
        assert np.array_equal(record["items"], expected)
        assert np.array_equal(record["squares"], expected.astype(np.uint64) ** 2)


def test_a_hook_of_one_lane_sends_one_record() -> None:
    tool = Sender()
    tool.which = "one"
    ran = run(tool)
    records = np.concatenate(tool.got)
    assert records.tolist() == [(9, 1, 2)] * WAVES and ran.records["lanes"].pushed == WAVES


def test_a_slow_host_is_waited_for_and_is_no_deadlock() -> None:
    tool = Sender()
    tool.slow = 0.05  # all waves stand still meanwhile
    ran = run(tool)
    assert ran.records["lanes"].kept == 3 * WAVES * LANES


class Dropper(Sender):
    """Has no patience."""

    lanes = Channel(Item, capacity=128, full="drop")
    slow = 0.02


def test_what_is_dropped_is_counted_and_the_rest_is_whole() -> None:
    tool = Dropper()
    ran = run(tool)
    records, count = np.concatenate(tool.got), ran.records["lanes"]
    assert count.pushed == 3 * WAVES * LANES and count.dropped > 0
    assert len(records) == count.kept == count.pushed - count.dropped
    number = records["wide"] - records["item"].astype(np.uint64) * np.uint64(5)
    assert set(number.tolist()) <= {0, 1, 2}
    assert not count.dropped % LANES  # a push is dropped whole


class Stopper(Sender):
    """Wants all or nothing."""

    lanes = Channel(Item, capacity=128, full="stop")
    slow = 0.02


def test_a_launch_is_stopped_when_its_channel_is_full() -> None:
    with pytest.raises(DeviceError, match=r"Channel\(Stopper.lanes: Item\) (is|was) full"):
        run(Stopper())


class Failing(Sender):
    """Takes one array and no more."""

    def received(self, channel: Channel, launch: LaunchResult, records: np.ndarray[Any, Any]) -> None:
        raise KeyError("no room at the tool's")


def test_what_the_tool_raises_is_raised_when_the_launch_is_over() -> None:
    with pytest.raises(KeyError, match="no room at the tool's"):
        run(Failing())


class Deaf(Tool):
    """Says nothing of records."""

    lanes = Channel(Item)

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, send_one, self.lanes, 9)


def test_a_tool_that_does_not_say_what_becomes_of_records_is_told() -> None:
    with pytest.raises(ToolError, match="does not say what to do with what lanes sends"):
        run(Deaf())


@device
def passed_on(out: channel[Item], item: Lane[u32]) -> None:
    push(out, 3, item, u64(item))


@hook
def send_through(out: channel[Item], item: Lane[u32]) -> None:
    passed_on(out, item)


@pytest.mark.parametrize(("full", "most"), [("wait", 50), ("drop", 70)])
def test_a_push_is_short(full: str, most: int) -> None:
    """What is known of a channel is known in functions, too: no code for what it does not do."""
    class Through(Sender):
        through = Channel(Item, capacity=4096, full=full)

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], send_through, self.through, vgpr(0))

    ran = run(tool := Through())
    assert sorted(np.concatenate(tool.got)["item"].tolist()) == sorted([*range(256)] * 8)
    assert ran.inserted is not None and ran.inserted <= WAVES * most


class Pointed:
    address: ptr[u32]


class Unknown:
    address: nowhere  # noqa: F821


class Empty:
    pass


@pytest.mark.parametrize("record, options, message", [
    (Pointed, {}, "record Pointed: address: ptr\\[u32\\] cannot be sent"),
    (Unknown, {}, "record Unknown: an annotation cannot be read"),
    (Empty, {}, "record Empty has no fields"),
    (3, {}, "3 is no record"),
    (Item, {"capacity": 100}, "capacity=100: give a power of two"),
    (Item, {"full": "burst"}, "full='burst': give one of wait, drop, stop"),
])
def test_channels_that_make_no_sense_are_refused(record: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        Channel(record, **options)


@hook
def too_few(out: channel[Item]) -> None:
    push(out, 1, 2)


@hook
def no_channel(out: ptr[u64]) -> None:
    push(out, 1, 2, 3)


@hook
def uniform(out: channel[Wave], item: Lane[u32]) -> None:
    push(out, item, 0, item, 0)


@pytest.mark.parametrize("hook, args, message", [
    (too_few, (Sender.lanes,), "record Item has 3 fields \\(wave, item, wide\\), 2 given"),
    (no_channel, (Sender.number,), "ptr\\[u64\\]"),
    (send_one, (Sender.waves, 1), "declare it out: channel\\[Wave\\]"),
    (uniform, (Sender.waves, vgpr(0)), "wave differs between lanes, but record Wave is one for the wave"),
])
def test_pushes_that_make_no_sense_are_refused(hook: Any, args: tuple[Any, ...], message: str) -> None:
    class Wrong(Tool):
        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], hook, *args)

    with pytest.raises(HookError, match=message):
        instrument(sample("vector_add").path, Wrong())
