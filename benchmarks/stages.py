"""One measurement of instrumentation in one process, for benchmarks/instrument.py, which starts it for this checkout
and for another one in turn: it uses only what both have.

In: `stages` or `first`, a code object, a kernel, a tool. Out: JSON on stdout, in seconds of processor time. `stages`:
tables are read and code is warm, no hook is compiled; `first`: what a program waits for at a kernel's first launch, in
a worker that has just been started, as the cache (LUTHIER_CACHE_DIR) has it.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

WARM = "reduce"  # a sample kernel
CLOCK = SimpleNamespace(perf_counter=time.process_time)  # others may use the computer, too


def stages(code: bytes, kernel: str, tool: str) -> dict[str, Any]:
    import luthier_py.rewrite.pipeline as pipeline
    from luthier_py.rewrite.tool import load_tool
    from luthier_py.samples import sample

    pipeline.time = CLOCK  # type: ignore[attr-defined]
    pipeline.instrument(sample(WARM).path.read_bytes(), load_tool(tool))
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _status("VmRSS")
    made = pipeline.instrument(code, load_tool(tool), kernels=[kernel])
    report = made.patched.report
    return {
        "seconds": dict(made.seconds), "memory_bytes": _status("VmHWM") - before,
        "instructions": sum(1 for function in made.program.functions for _ in function.instrs),
        "sites": sum(row.sites for row in report),
        "growth": sum(row.bytes_after for row in report) / max(1, sum(row.bytes_before for row in report)),
    }


def _status(name: str) -> int:
    """Bytes, as Linux tells (proc(5))."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


def first(code: bytes, kernel: str, tool: str) -> dict[str, Any]:
    start = time.process_time()
    import luthier_py.host.worker.instrument.instrumentation  # noqa: F401
    from luthier_py.host.worker.instrument.patching import patch
    from luthier_py.rewrite.tool import load_tool

    made = load_tool(tool)
    loaded, wall = time.process_time(), time.perf_counter()
    copy = patch(code, made, kernel)
    done = time.process_time()
    return {"import": loaded - start, "launch": done - loaded, "wall": time.perf_counter() - wall,
            "copy_bytes": len(copy.made.data)}


if __name__ == "__main__":
    mode, path, kernel, tool = sys.argv[1:]
    print(json.dumps({"stages": stages, "first": first}[mode](Path(path).read_bytes(), kernel, tool)))
