"""What do the two stacks cost beside each other: our HIP runtime, and ROCm's own libraries above the emulated driver?

In: nothing; `--repeats N`. Out: a table on stdout, and the last section of programs.md. One executable (stacks.hip),
one run at a time, the stacks in turn; figures are medians. Needs clang-22, and ROCm 5's libraries and headers unpacked
where LUTHIER_ROCM_STACK says, as the tests do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from statistics import median

from programs import BUILT, HERE, PAGE, STACKS, TARGET, builder

sys.path.insert(0, str(HERE.parent / "tests"))
from rocm_stack import ABI, CODE_OBJECT, VARIABLE, RocmStack, find_stack  # noqa: E402  (beside the tests)

from luthier_py.host.hip import runtime_folder  # noqa: E402

WHOLE = "a process that does all this"
SECONDS = 120
TEXT = """{heading}

`python benchmarks/stacks.py` wrote this section: `benchmarks/stacks.hip`, one executable, on our HIP runtime
(`--stack luthier`) and on Debian's ROCm 5.2.3 above the emulated driver (`--stack rocm`), medians of {repeats} runs, in
turn with each other, warm caches.

{table}

What ROCm does at its start is in the first call, and in the first launch: ROCr's initialisation, and ROCclr's own
kernels, which comgr builds. Its copies go through queues of the device; ours are `memmove` in the program.
"""


def run(program: Path, environment: Mapping[str, str]) -> dict[str, float]:
    start = time.perf_counter()
    done = subprocess.run(
        [program], env={**os.environ, **environment}, capture_output=True, text=True, timeout=SECONDS
    )
    took = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{program.name}: exit code {done.returncode}: {done.stderr}")
    return {WHOLE: took, **json.loads(done.stdout)}


def shown(seconds: float) -> str:
    if seconds >= 0.1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.1f} us"


def table(found: Mapping[str, Mapping[str, float]]) -> str:
    rows = [("step", "luthier", "rocm", "rocm / luthier"), ("---", "---:", "---:", "---:")]
    for step, ours in found["luthier"].items():
        rocm = found["rocm"][step]
        ratio = rocm / ours
        rows.append((step, shown(ours), shown(rocm), f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}"))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def measure(stack: RocmStack, repeats: int) -> dict[str, dict[str, float]]:
    BUILT.mkdir(parents=True, exist_ok=True)
    program = builder().build(
        HERE / "stacks.hip", BUILT / "stacks", stack.headers, stack.libraries, (TARGET,), abi=ABI,
        code_object=CODE_OBJECT,
    )  # fmt: skip
    ours = {"LUTHIER_DEVICE": f"emulator:{TARGET}", "LD_LIBRARY_PATH": str(runtime_folder())}
    environments = {"luthier": ours, "rocm": stack.environment(f"emulator:{TARGET}")}
    times: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in environments}
    for number in range(repeats + 1):
        for name, environment in environments.items():
            found = run(program, environment)
            for step, took in found.items() if number else ():  # the first fills caches
                times[name][step].append(took)
    return {name: {step: median(all_times) for step, all_times in steps.items()} for name, steps in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    stack = find_stack()
    if stack is None or which(builder().COMPILER) is None:
        print(f"left out: needs {builder().COMPILER}, and ROCm's libraries where {VARIABLE} says")
        return
    text = table(measure(stack, given.repeats))
    print(text)
    before = PAGE.read_text().partition(STACKS)[0].rstrip()
    PAGE.write_text(f"{before}\n\n{TEXT.format(heading=STACKS, repeats=given.repeats, table=text)}")


if __name__ == "__main__":
    main()
