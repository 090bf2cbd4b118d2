"""A kernel as large as one likes: stages of a work-group's tile in LDS, divergent `if`s, loops that lanes leave alone.

In: how many instructions about. Out: a gfx90a code object with the kernel ``large``, kept between runs as long as the
temporary folder is. Invariant: the same compiler and size give the same bytes. It is compiled from HIP, each stage
with other constants, so it has what compilers make: waits, barriers, EXEC saved and put back, short and long blocks.

Run, it prints the seconds and bytes that lift and analysis of the kernel take.

    python benchmarks/large.py [INSTRUCTIONS]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

from luthier_py.binary.loader import load
from luthier_py.program.analysis import Facts, analyse
from luthier_py.program.ir import Program, lift

SAMPLES = Path(__file__).resolve().parent.parent / "tests" / "data"
COMPILER = os.environ.get("CLANG", "clang-22")
OPTIONS = (
    "-x hip --offload-arch=gfx90a --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 "
    "-mcode-object-version=5 -fuse-cuid=none"
).split()
KERNEL = "large"
INSTRUCTIONS_PER_STAGE = 298
HEAD = """#include "device.h"
KERNEL void __launch_bounds__(256) large(u32 n, const float *a, float *b, u32 *counts) {
  __shared__ float tile[16][17];
  u32 tx = thread_x() & 15, ty = thread_x() >> 4, i = global_x();
  float sum = a[i], other = a[i + n];
  u32 bits = i;
"""
STAGE = """  {{
    tile[ty][tx] = sum + a[(i * {odd}u + {stage}u) & (n - 1)];
    sync_threads();
    for (u32 j = 0; j < 16; ++j) sum += tile[ty][j] * tile[j][tx];
    sync_threads();
    if ((bits & {mask}u) > {half}u) {{
      float z = sum, c = other * {scale}f;
      u32 time = 0;
      ROLLED while (time < {limit}u && z * z < 4.0f) {{ z = z * z + c; ++time; }}
      if (time & 1) atomic_add(&counts[time], bits); else other += z;
      for (u32 k = 0; k < 8; ++k) other += a[(bits + k * {odd}u) & (n - 1)] * z;
    }} else if (other > {scale}f) {{
      b[(bits >> 3) & (n - 1)] = other;
      sum = __builtin_amdgcn_rsqf(sum * sum + {scale}f);
    }}
    ROLLED for (u32 k = 0; k < (n & {limit}u); ++k) {{
      bits = bits * 1664525u + {odd}u;
      if (bits >> 31) sum += tile[k & 15][tx];
    }}
    for (u32 k = 0; k < 12; ++k) {{
      bits ^= bits << 13; bits ^= bits >> 17; bits ^= bits << 5;
      sum = sum * other + (float)(bits & 255);
    }}
  }}
"""
TAIL = """  b[i] = sum + other;
  counts[i & 255] = bits;
}
"""


def source(instructions: int) -> str:
    stages = [
        STAGE.format(stage=stage, odd=2 * stage + 1, mask=(1 << stage % 7 + 1) - 1, half=(1 << stage % 7) - 1,
                     scale=f"{0.125 + stage / 64:.6f}", limit=7 + stage % 23)
        for stage in range(max(1, instructions // INSTRUCTIONS_PER_STAGE))
    ]
    return HEAD + "".join(stages) + TAIL


def large(instructions: int = 100_000) -> bytes:
    """The code object; compiled when it is not there yet."""
    path = Path(tempfile.gettempdir()) / "luthier-benchmarks" / f"large-{instructions}.co"
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_bytes(_compile(source(instructions)))
        new.replace(path)
    return path.read_bytes()


def _compile(text: str) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "large.hip").write_text(text)
        command = [COMPILER, *OPTIONS, f"-I{SAMPLES}", "large.hip", "-o", "large.co"]
        subprocess.run(command, cwd=folder, check=True)
        return (folder / "large.co").read_bytes()


def measure(data: bytes) -> tuple[Program, Facts, list[float]]:
    """Lifted, analysed, and the seconds of processor time of each; liveness and waits are asked for at one place."""
    obj = load(data)
    times = [time.process_time()]
    program = lift(obj)
    times.append(time.process_time())
    facts = analyse(program)
    first = program.functions[0].blocks[0].instrs[0]
    facts.live_before(first)
    facts.pending_before(first)
    times.append(time.process_time())
    return program, facts, [b - a for a, b in zip(times, times[1:], strict=False)]


def main(instructions: int) -> None:
    if shutil.which(COMPILER) is None:
        print(f"left out: needs {COMPILER}")
        return
    data = large(instructions)
    measure(data)  # tables are read, code is warm
    program, _, (lifting, analysing) = measure(data)
    count = sum(1 for _ in program.functions[0].instrs)
    tracemalloc.start()
    kept = measure(data)
    size_bytes = tracemalloc.get_traced_memory()[0]
    print(f"{count} instructions, {len(kept[0].functions[0].blocks)} blocks: lift {lifting:.3f} s "
          f"({count / lifting:,.0f} instructions a second), analysis {analysing:.3f} s, "
          f"{size_bytes / count:.0f} bytes for each instruction kept")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
