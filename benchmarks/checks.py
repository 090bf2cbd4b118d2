"""What checks, schedules and the cycle model cost: launches bare and under each of them, as a Markdown table.

In: nothing. Out: milliseconds of processor time for a launch, the least of some, all code compiled before.
"""

from __future__ import annotations

import time
from dataclasses import replace

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import ALL, NAMES
from luthier_py.emulator.options.clock_kind import ClockKind
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.emulator.options.schedule import Schedule
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_original
from luthier_py.samples import Sample, large, sample

SMALL = ("histogram", "bitonic_sort")
MATMUL = replace(sample("matmul"), grid=(8, 8, 1), args=(
    "u32=128", "in:f32[128,128]=random:1", "in:f32[128,128]=random:2", "out:f32[128,128]"))
REPEATED = 2


def milliseconds(one: Sample, options: LaunchOptions) -> float:
    code = one.path.read_bytes()
    device = EmulatorDevice(load(code).target, options=options)
    launch, best = launch_of(one), float("inf")
    for _ in range(REPEATED + 1):  # the first time compiles
        began = time.process_time()
        run_original(device, code, launch)
        assert not device.findings
        best = min(best, time.process_time() - began)
    return 1e3 * best


def main() -> None:
    ways = [("bare", LaunchOptions()), ("--schedule", LaunchOptions(schedule=Schedule(1))),
            ("--clock model", LaunchOptions(clock=ClockKind.MODEL)),
            *((name, LaunchOptions(checks=check)) for name, check in NAMES.items()), ("all", LaunchOptions(checks=ALL))]
    print(f"| sample | {' | '.join(name for name, _ in ways)} |")
    print("|---" * (len(ways) + 1) + "|")
    for one in (*map(sample, SMALL), large()[0], MATMUL):
        row = [milliseconds(one, options) for _, options in ways]
        print(f"| {one.name} | {' | '.join(f'{each:.0f}' for each in row)} |", flush=True)


if __name__ == "__main__":
    main()
