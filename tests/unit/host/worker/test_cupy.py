"""CuPy on the emulator's HIP runtime: what it computes, alone and under a tool.

`make test-cupy` fetches what it needs, which CI has not: LUTHIER_CUPY, a Python with PyPI's cupy-rocm-7-0 (70 MB;
numpy), and in LUTHIER_HIP_INCLUDE headers of HIP with hip_fp16.h (PyPI's triton 3.2.0 has them, 250 MB:
triton/backends/amd/include). Its modules are linked with libraries of ROCm 7 that no package here has: empty ones
stand in their place. Of hipcc it wants to know only which folders it includes from. rocThrust's headers are Thrust's,
of which CuPy has a copy.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from empty_libraries import empty_libraries

from luthier_py.host.hip import runtime_folder

PROGRAM = Path(__file__).with_name("cupy_program.py")
PYTHON = os.environ.get("LUTHIER_CUPY", "")
WHERE = "import importlib.util as u; print(u.find_spec('cupy').submodule_search_locations[0])"
HIPCC = '#!/bin/sh\nexec clang++-22 -nogpulib -nogpuinc --cuda-device-only --no-gpu-bundle-output "$@"\n'


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, require_tool: Callable[[str], str]) -> dict[str, str]:
    headers = [Path(path) for path in os.environ.get("LUTHIER_HIP_INCLUDE", "").split(os.pathsep) if path]
    if not PYTHON or not any((path / "hip" / "hip_fp16.h").exists() for path in headers):
        pytest.skip("no CuPy (LUTHIER_CUPY), or no headers of HIP with hip_fp16.h (LUTHIER_HIP_INCLUDE)")
    require_tool("clang++-22")
    package = Path(subprocess.run([PYTHON, "-c", WHERE], capture_output=True, text=True, check=True).stdout.strip())
    libraries, tools = tmp_path_factory.mktemp("libraries"), tmp_path_factory.mktemp("tools")
    modules = [path for name in ("cupy", "cupyx", "cupy_backends") for path in (package.parent / name).rglob("*.so")]
    ours = {path.name for path in runtime_folder().iterdir()}
    rocm = re.compile(r"lib(roc|hip|rccl)")
    made = empty_libraries(modules, lambda name: bool(rocm.match(name)) and name not in ours, libraries)
    assert "libhipblas.so.3" in made and "libamdhip64.so.7" not in made
    hipcc = tools / "hipcc"
    hipcc.write_text(HIPCC)
    hipcc.chmod(0o755)
    thrust = package / "_core" / "include" / "cupy" / "_cccl"
    included = " ".join(f"-isystem {thrust / name}" for name in ("thrust", "libcudacxx", "cub"))
    settings = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "ROCM_HOME": str(runtime_folder()),
        "LD_LIBRARY_PATH": f"{runtime_folder()}{os.pathsep}{libraries}",
        "CUPY_CACHE_DIR": str(tmp_path_factory.mktemp("kernels")),
        "HIPRTC_COMPILE_OPTIONS_APPEND": included,
    }
    device = {"LUTHIER_DEVICE": "emulator:gfx90a"}
    alone = {**os.environ, **settings, **device}
    done = subprocess.run([PYTHON, PROGRAM], env=alone, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "PASSED\n"), done.stderr  # its kernels are compiled now
    return settings


def test_alone_and_under_a_tool(
    environment: dict[str, str], tooled: Callable[..., Any], counted: Callable[..., list[dict[str, Any]]]
) -> None:
    rows = counted(PYTHON, PROGRAM, **environment)
    done = tooled(PYTHON, PROGRAM, **environment)
    assert (done.code, done.out) == (0, "PASSED\n"), done.out + done.err
    found = [(row["kernel"], row["report"]["instructions"]) for row in done.verdict["reports"]]
    assert found == [(row["kernel"], row["instructions"]) for row in rows]
    assert {"add", "squared_difference"} <= {kernel for kernel, _ in found} and not done.verdict["refused"]
