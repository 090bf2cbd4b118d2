"""How fast records come through a channel on the emulator, and how much memory that takes.

    python benchmarks/channel.py [MILLIONS]

In: so many million records, pushed by the lanes of one launch; 10 by default. Out: a table row for each form of record:
records and bytes a second, peak memory before and after; and one for what a single push executes, as the emulator
counts it, and the code that it adds. Every record is checked by its sum.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np

from luthier_py import Channel, Lane, LaunchParameter, LaunchResult, Mutator, Tool, channel, hook, u32, u64, vgpr
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.intrinsics import push
from luthier_py.rewrite.pipeline import instrument
from luthier_py.samples import sample

LANES, GROUPS, ITEMS = 64, 64, 256
MILLION = 1_000_000


class Item:
    item: u32
    number: u32


class Wave:
    number: u64
    items: Lane[u32]


@hook
def send_items(out: channel[Item], item: Lane[u32], times: u32) -> None:
    number = u32(0)
    while number < times:
        push(out, item, number)
        number += 1


@hook
def send_waves(out: channel[Wave], item: Lane[u32], times: u32) -> None:
    number = u32(0)
    while number < times:
        push(out, u64(number), item)
        number += 1


@hook
def send_item(out: channel[Item], item: Lane[u32], number: u32) -> None:
    push(out, item, number)


@hook
def send_wave(out: channel[Wave], item: Lane[u32], number: u64) -> None:
    push(out, number, item)


class Sender(Tool):
    """Sends what is to be measured."""

    times = LaunchParameter(u32)
    items = Channel(Item)
    waves = Channel(Wave)

    def __init__(self, by_wave: bool) -> None:
        super().__init__()
        self.by_wave, self.records, self.total = by_wave, 0, 0

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            if self.by_wave:
                m.at_entry(kernel, send_waves, self.waves, vgpr(0), self.times)
            else:
                m.at_entry(kernel, send_items, self.items, vgpr(0), self.times)

    def received(self, channel: Channel, launch: LaunchResult, records: np.ndarray[Any, Any]) -> None:
        self.records += len(records)
        self.total += int(records["number"].sum(dtype=np.uint64))


def once(full: str, by_wave: bool) -> type[Tool]:
    """A tool that sends one record of each wave, or of each lane, at a kernel's entry."""
    class Once(Tool):
        sent = Channel(Wave if by_wave else Item, full=full)

        def instrument(self, m: Mutator) -> None:
            for kernel in m.kernels:
                m.at_entry(kernel, send_wave if by_wave else send_item, self.sent, vgpr(0), 7)

        def received(self, channel: Channel, launch: LaunchResult, records: np.ndarray[Any, Any]) -> None:
            assert (records["number"] == 7).all()

    return Once


def push_cost(full: str, by_wave: bool) -> None:
    """One row."""
    tool, chosen = once(full, by_wave)(), sample("vector_add")
    code, launch = chosen.path.read_bytes(), launch_of(chosen)
    device, made = EmulatorDevice(load(code).target), instrument(code, tool)
    alone = run_original(device, code, launch)
    ran = run_instrumented(device, made, tool, launch)
    assert device.profile is not None and alone.counted is not None and ran.counted is not None
    waves, [cloned] = device.profile.waves, made.patched.report
    assert ran.records["sent"].kept == waves * (1 if by_wave else LANES)
    print(f"| {'wave, a `u64` and 64 `u32`' if by_wave else 'lane, two `u32`'} | {full} | "
          f"{(ran.counted - alone.counted) / waves:.0f} | {cloned.bytes_after - cloned.bytes_before} |")


def measure(by_wave: bool, wanted: int) -> None:
    """One row."""
    tool, chosen = Sender(by_wave), sample("vector_add")
    code, launch = chosen.path.read_bytes(), launch_of(chosen)
    buffer = parse_argument(f"in:f32[{GROUPS * ITEMS}]=zeros")
    launch = replace(launch, grid=(GROUPS, 1, 1), arguments=(buffer,) * 3)
    device, made = EmulatorDevice(load(code).target), instrument(code, tool)
    each_time = GROUPS * (ITEMS // LANES if by_wave else ITEMS)
    tool.times = 1
    run_instrumented(device, made, tool, launch)  # what is compiled once
    tool.times = times = wanted // each_time
    tool.records = tool.total = 0
    before, began = peak_bytes(), time.perf_counter()
    ran = run_instrumented(device, made, tool, launch)
    seconds = time.perf_counter() - began
    count = next(iter(ran.records.values()))
    assert tool.records == count.kept == count.pushed == times * each_time
    assert tool.total == each_time * (times * (times - 1) // 2)
    slot = (tool.waves if by_wave else tool.items).record.slot_bytes
    print(f"| {'wave' if by_wave else 'lane'}, {slot} bytes | {tool.records:,} | {seconds:.1f} | "
          f"{tool.records / seconds / MILLION:.2f} | {tool.records * slot / seconds / MILLION:.0f} | "
          f"{before / MILLION:.0f} | {peak_bytes() / MILLION:.0f} |", flush=True)


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    wanted = int(float(sys.argv[1] if len(sys.argv) > 1 else 10) * MILLION)
    print("| a record for each | records | seconds | million records/s | MB/s | peak MB before | and after |")
    print("|---|---|---|---|---|---|---|")
    measure(False, wanted)
    measure(True, wanted // LANES)
    print("\n| a record for each | full means | wave instructions of one push | bytes of code |")
    print("|---|---|---|---|")
    for by_wave in (False, True):
        for full in ("wait", "drop"):
            push_cost(full, by_wave)


if __name__ == "__main__":
    main()
