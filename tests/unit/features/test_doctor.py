"""luthier doctor: this computer as it is, and computers that are folders."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from rich.console import Console

from luthier_py.features.doctor.checks import BROKEN, MISSING, WORKS, examine
from luthier_py.features.doctor.machine import Machine
from luthier_py.features.doctor.report import doctor_tables

VERSIONED = "usr/lib/x86_64-linux-gnu"
GPU = "sys/class/kfd/kfd/topology/nodes"
STACK, ON_GPU = "exec --stack rocm on the emulator", "exec on a GPU"
OWN_STACK = "exec on the emulator (own HIP runtime)"


def doctor(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from luthier_py.cli import main; main()", "doctor", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **environment})


def computer(root: Path, files: dict[str, str], **environment: str) -> Machine:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Machine(root, {"PATH": os.environ["PATH"], "HOME": str(root), **environment})


def states(facts: dict[str, Any]) -> dict[str, str]:
    return {check["what"]: check["state"] for check in facts["checks"]}


def advice(facts: dict[str, Any], what: str) -> str:
    found: str = next(check["advice"] for check in facts["checks"] if check["what"] == what)
    return found


def test_here(require_tool: Callable[[str], str]) -> None:
    require_tool("cc")
    done = doctor("--json")
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    works = states(facts)
    assert facts["healthy"] and works["run kernels on the emulator"] == works[OWN_STACK] == WORKS
    require_tool("clang++-22")
    assert works["hooks in HIP C++"] == WORKS
    python = next(part for part in facts["found"] if part["name"] == "Python")
    assert python["version"] == ".".join(map(str, sys.version_info[:3]))


def test_table() -> None:
    done = doctor()
    assert done.returncode == 0 and "run kernels on the emulator" in done.stdout and "llvmlite" in done.stdout


def test_a_compiler_that_is_broken(tmp_path: Path) -> None:
    """It is there, and builds nothing: something that should work does not."""
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'error: no space left' >&2\nexit 1\n")
    broken.chmod(0o755)
    done = doctor("--json", CC=str(broken), LUTHIER_CACHE_DIR="off")
    facts = json.loads(done.stdout)
    assert done.returncode == 1 and states(facts)[OWN_STACK] == BROKEN
    assert "no space left" in advice(facts, OWN_STACK)


def test_no_compiler(tmp_path: Path) -> None:
    facts = examine(computer(tmp_path, {}, CC="no-such-compiler"))
    assert states(facts)[OWN_STACK] == MISSING and advice(facts, OWN_STACK) == "apt install gcc libc6-dev"
    assert facts["healthy"]


def test_debian_s_rocm(
    tmp_path: Path, require_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ROCm 5.2: the thunk is a library of its own. There is no GPU."""
    require_tool("cc")
    monkeypatch.setattr("luthier_py.rewrite.clang.search._of_triton", lambda below: [])
    names = ("libamdhip64.so.5.2.21153", "libhsa-runtime64.so.1.5.0", "libhsakmt.so.1.0.6", "amdgcn/bitcode/ocml.bc")
    files = {f"{VERSIONED}/{name}": "" for name in names}
    headers = {
        "usr/include/hip/hip_runtime.h": "",
        "usr/include/hip/hip_version.h": "#define HIP_VERSION_MAJOR 5\n#define HIP_VERSION_MINOR 2\n",
    }
    machine = computer(tmp_path, {**files, **headers})
    facts = examine(machine)
    assert states(facts)[STACK] == WORKS and states(facts)[ON_GPU] == MISSING
    found = {part["name"]: (part["version"], part["where"]) for part in facts["found"]}
    folder = tmp_path / VERSIONED
    assert found["libamdhip64.so"] == ("5.2.21153", f"{folder}/libamdhip64.so.5.2.21153")
    assert found["libhsakmt.so"] == ("1.0.6", f"{folder}/libhsakmt.so.1.0.6")
    assert found["hip/hip_runtime.h"] == ("5.2", f"{tmp_path}/usr/include")
    assert found["device libraries"] == ("", f"{folder}/amdgcn/bitcode")


def test_openmp_opens_a_name_without_a_version(tmp_path: Path) -> None:
    what = "OpenMP offload (--stack rocm, GPU)"
    files = ("libomptarget.so.19.1", "libhsa-runtime64.so.1", "amdgcn/bitcode/ocml.bc")
    machine = computer(tmp_path, {f"{VERSIONED}/{name}": "" for name in files}, CC="no-such-compiler")
    facts = examine(machine)
    assert states(facts)[what] == MISSING and advice(facts, what).startswith("apt install libhsa-runtime-dev")
    (tmp_path / VERSIONED / "libhsa-runtime64.so").symlink_to("libhsa-runtime64.so.1")
    assert states(examine(machine))[what] == WORKS


def test_hsa_without_hip(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    """OpenMP and programs on HSA need no HIP."""
    require_tool("cc")
    facts = examine(computer(tmp_path, {f"{VERSIONED}/libhsa-runtime64.so.1": ""}))
    assert states(facts)[STACK] == WORKS
    assert advice(facts, STACK).startswith("not HIP programs: apt install libamdhip64")


def test_a_rocm_that_was_fetched(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    require_tool("cc")
    assert "luthier fetch rocm-" in advice(examine(computer(tmp_path, {})), STACK)
    place = ".local/share/luthier/releases/rocm-6.4"
    facts = examine(computer(tmp_path, {f"{place}/status": "Package: libhsa-runtime64-1\nVersion: 6.4.3\n"}))
    assert states(facts)[STACK] == WORKS and advice(facts, STACK) == "with rocm-6.4"
    found = next(part for part in facts["found"] if part["name"] == "rocm-6.4")
    assert (found["version"], found["where"]) == ("6.4.3", str(tmp_path / place))
    openmp = advice(facts, "OpenMP offload (--stack rocm, GPU)")
    assert "device-libs" in openmp and "luthier fetch" not in openmp


def test_rocminfo_asks_lsmod(tmp_path: Path) -> None:
    def with_programs(*names: str) -> Machine:
        for name in names:
            (tmp_path / name).write_text("#!/bin/sh\n")
            (tmp_path / name).chmod(0o755)
        return Machine(tmp_path, {"PATH": str(tmp_path), "CC": "no-such-compiler"})

    assert "rocminfo" not in states(examine(with_programs()))
    facts = examine(with_programs("rocminfo"))
    assert states(facts)["rocminfo"] == MISSING and advice(facts, "rocminfo").startswith("apt install kmod")
    assert states(examine(with_programs("lsmod")))["rocminfo"] == WORKS


def test_the_tool_at_the_level_of_hsa_is_built(require_tool: Callable[[str], str]) -> None:
    require_tool("cc")
    assert states(examine())["exec --level hsa, build --level hsa"] == WORKS


def test_the_thunk_inside(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    """ROCm from 6.3 on: libhsa-runtime64 asks for no libhsakmt. Several ROCms are all found."""
    library = tmp_path / "opt" / "rocm-6.3.0" / "lib" / "libhsa-runtime64.so.1"
    library.parent.mkdir(parents=True)
    source = tmp_path / "empty.c"
    source.write_text("int hsa_init(void) { return 0; }\n")
    subprocess.run([require_tool("cc"), "-shared", "-fPIC", source, "-o", library], check=True)
    other = {f"{VERSIONED}/libamdhip64.so.5": "", "opt/rocm-6.3.0/lib/libamdhip64.so.6": ""}
    machine = computer(tmp_path, other)
    thunk = machine.thunk()
    assert thunk is not None and thunk.where == f"inside {library}"
    assert [part.version for part in machine.libraries("libamdhip64.so")] == ["6", "5"]


@pytest.mark.parametrize("allowed", (True, False))
def test_gpus(allowed: bool, tmp_path: Path) -> None:
    """gfx_target_version: 90010 is gfx90a, 110501 is gfx1151; node 0 is the processor."""
    if not allowed and os.geteuid() == 0:
        pytest.skip("root may use everything")
    machine = computer(tmp_path, {
        "dev/kfd": "", f"{GPU}/0/properties": "cpu_cores_count 8\ngfx_target_version 0\n",
        f"{GPU}/1/properties": "simd_count 416\ngfx_target_version 90010\n",
        f"{GPU}/2/properties": "simd_count 40\ngfx_target_version 110501\n",
        **{f"{VERSIONED}/{name}": "" for name in ("libamdhip64.so.6", "libhsa-runtime64.so.1")},
    })  # fmt: skip
    if not allowed:
        (tmp_path / "dev" / "kfd").chmod(0)
    facts = examine(machine)
    assert [part.version for part in machine.gpus()] == ["gfx90a", "gfx1151"]
    assert states(facts)[ON_GPU] == (WORKS if allowed else BROKEN)
    assert allowed or "render and video" in advice(facts, ON_GPU)


def test_nothing_is_hidden_by_a_narrow_terminal() -> None:
    facts = examine(Machine(Path("/nonexistent"), {"PATH": ""}))
    text = io.StringIO()
    Console(file=text, width=60).print(doctor_tables(facts))
    assert "…" not in text.getvalue() and "libc6-dev" in text.getvalue()
