"""What a program computes on the device and on the CPU, and how long each takes, one after the other."""

import os
import time


def beside(device, cpu):
    """What ``device`` and ``cpu`` return. Each runs twice: at first code is compiled and translated, too. Prints what
    run.py reads, or computes on the CPU alone and ends, for run.py to see what memory that takes."""
    if os.environ.get("BESIDE") == "cpu":
        cpu()
        raise SystemExit
    results, seconds = [], []
    for compute in (device, cpu):
        for _ in range(2):
            began = time.monotonic()
            found = compute()
            seconds.append(time.monotonic() - began)
        results.append(found)
    print("seconds: device {:.3f}, again {:.3f}; CPU {:.3f}, again {:.3f}".format(*seconds))
    return results
