"""How long does a first launch wait for the emulator's code? Cold, and with what that left in the cache.

In: how many instructions the kernel has about (large.py); `--before FOLDER`, a checkout to measure in turn with this
one; `--write` makes translation.md. Out: a table: seconds from loading the object to the end of a launch of one
work-group, each in a process of its own, and what they computed, which must be the same. It needs clang-22.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE / "translation.md"
INSTRUCTIONS = (2_500, 15_000, 60_000)
RUNS = ("cold", "warm", "warm again")
TEXT = """# The first launch of a large kernel

`python benchmarks/translation.py --write` wrote this page: {machine}. Seconds from loading the object to the end of a
launch of one work-group: by the clock, and in brackets of the processors, with children and the start of Python. *Cold*
has no cache, *warm* what that left; each is a process of its own. *Before* is another checkout, measured in turn. The
machine had other work, so the clock says little. Results and counts were equal in all runs.

{table}
"""


def first_launch(instructions: int) -> dict[str, Any]:
    """In this process."""
    import numpy as np
    from large import KERNEL, large

    from luthier_py.binary.loader import load
    from luthier_py.emulator import EmulatorDevice
    from luthier_py.emulator.interface import pack_arguments

    data, items = large(instructions), 256
    numbers = np.random.default_rng(1).random(2 * items, dtype=np.float32)
    started = time.perf_counter()
    device = EmulatorDevice(load(data).target)
    kernel = device.load(data, KERNEL).kernel(KERNEL)
    buffers = [device.alloc(size) for size in (8 * items, 4 * items, 1024)]
    device.write(buffers[0].address, numbers.tobytes())
    shape = (1, 1, 1), (items, 1, 1)
    device.launch(kernel, *shape, pack_arguments(kernel.record, [np.uint32(items), *buffers], *shape))
    seconds = time.perf_counter() - started
    assert device.profile is not None
    left = b"".join(device.read(buffer.address, buffer.size) for buffer in buffers)
    counts = repr([sorted(each.items()) for each in (device.profile.counts, device.profile.lanes)])
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {"seconds": seconds, "processor": sum(one.ru_utime + one.ru_stime for one in used),
            "waves": device.profile.total, "result": zlib.crc32(left + counts.encode())}


def measured_in(folder: Path, instructions: int, cache: str) -> dict[str, Any]:
    """By a process whose package is that of a checkout; its start is in the time of the processors, too."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "LUTHIER_CACHE_DIR": cache}
    command = [sys.executable, str(HERE / "translation.py"), "--json", str(instructions)]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instructions", nargs="*", type=int)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(first_launch(options.instructions[0])))
        return
    from large import large

    places = [("before", options.before)] if options.before else []
    places.append(("now", HERE.parent))
    lines = ["| kernel | run | " + " | ".join(title for title, _ in places) + " |", "|---|---|" + "---:|" * len(places)]
    for instructions in options.instructions or INSTRUCTIONS:
        size, results = len(large(instructions)), set()
        with tempfile.TemporaryDirectory() as folder:
            for run in RUNS:
                cells = []
                for title, place in places:
                    found = measured_in(place, instructions, str(Path(folder, title)))
                    results.add((found["waves"], found["result"]))
                    cells.append(f"{found['seconds']:.2f} ({found['processor']:.2f})")
                lines.append(f"| {size / 1e3:.0f} kB | {run} | " + " | ".join(cells) + " |")
        assert len(results) == 1, "results differ"
    table = "\n".join(lines)
    print(table)
    if options.write:
        machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
        PAGE.write_text(TEXT.format(machine=machine, table=table))


if __name__ == "__main__":
    main()
