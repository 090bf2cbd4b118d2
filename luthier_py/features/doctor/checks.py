"""What works on this computer, what does not, and what to install for it.

In: a machine. Out: facts. Invariant: what is said to work was tried as far as that is possible without a program: code
is generated, libraries are built; nothing is installed, and nothing runs on a GPU.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from luthier_py.base.errors import LuthierError, Unsupported, one_line
from luthier_py.base.llvm import Effort, amdgpu_object, host_object, version
from luthier_py.base.records import dataclass
from luthier_py.base.storage import cache_folder, trust
from luthier_py.features.doctor.machine import COMPILERS, LIBRARIES, OMPTARGET, THUNK, FoundPart, Machine
from luthier_py.features.settings.stack import HIP_LIBRARY, HSA_LIBRARY
from luthier_py.host.hip import runtime_folder
from luthier_py.host.hiprtc.compilation import SourceText, compile_program
from luthier_py.host.hsa import hsa_tool_library
from luthier_py.host.kfd import device_library
from luthier_py.host.preload import tool_library
from luthier_py.host.releases.table import RELEASES
from luthier_py.isa import targets
from luthier_py.rewrite.clang.search import HIP_HEADERS, Search
from luthier_py.rewrite.tool.cpp.hip import HipSource

WORKS, MISSING, BROKEN = "works", "missing", "broken"
HSA_NAME = "libhsa-runtime64.so by this name"
INSTALL = {
    "cc": "apt install gcc libc6-dev",
    HIP_LIBRARY: "apt install libamdhip64-5 (Debian, Ubuntu) or hip-runtime-amd (AMD's packages)",
    HSA_LIBRARY: f"`luthier fetch {next(iter(RELEASES))}` brings a ROCm into a folder; or apt install "
                 "libhsa-runtime64-1 (Debian, Ubuntu), hsa-rocr (AMD's packages)",
    HSA_NAME: "apt install libhsa-runtime-dev (Debian, Ubuntu) or hsa-rocr-dev (AMD's packages): libomptarget opens "
              f"{HSA_LIBRARY}, without a version",
    "lsmod": "apt install kmod: rocminfo asks it for the driver's module",
    "headers": "apt install libamdhip64-dev (Debian, Ubuntu) or hip-dev (AMD's), or set LUTHIER_HIP_INCLUDE",
    "clang++": "apt install clang",
    "ld.lld": "apt install lld",
    OMPTARGET: "apt install libomp-19-dev (Debian; not every version's has it) or openmp-extras-runtime (AMD's)",
    "device libraries": "apt install rocm-device-libs",
    "GPU": "needs an AMD GPU with the driver amdgpu",
    "permission": "add yourself to the groups render and video: usermod -aG render,video NAME",
}
_EMPTY_HOOK = "#include <luthier/hooks.h>\nLUTHIER_HOOK() void nothing() {}\n"
_EMPTY = "void @f() { ret void }"


@dataclass(frozen=True, slots=True)
class Check:
    """``state``: one of the above. ``advice``: why, or what to install."""

    what: str
    state: str
    advice: str = ""


def examine(machine: Machine | None = None) -> dict[str, Any]:
    """All facts, JSON-ready."""
    machine = machine or Machine()
    checks = list(_checks(machine))
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "found": [asdict(part) for part in _find_parts(machine)],
        "checks": [asdict(check) for check in checks],
        "healthy": not any(check.state == BROKEN for check in checks),
    }


def _find_parts(machine: Machine) -> Iterator[FoundPart]:
    yield from machine.packages()
    yield machine.c_compiler() or FoundPart("C compiler", "", "")
    for name in COMPILERS:
        yield machine.program(name) or FoundPart(name, "", "")
    for name in LIBRARIES:
        if name == THUNK:
            yield machine.thunk() or FoundPart(THUNK, "", "")
        else:
            yield from machine.libraries(name) or [FoundPart(name, "", "")]
    yield from machine.releases()
    yield machine.device_libraries() or FoundPart("device libraries", "", "")
    for files in (HIP_HEADERS, ("hsa/hsa.h",)):
        yield machine.headers(*files) or FoundPart(files[0], "", "")
    yield machine.driver() or FoundPart("/dev/kfd", "", "")
    yield from machine.gpus() or [FoundPart("GPU", "", "")]
    yield FoundPart("cache", "", str(cache_folder() or "off"))


def _checks(machine: Machine) -> Iterator[Check]:
    gone = [part.name for part in machine.packages() if not part.version and part.name != "hip-python"]
    packages = f"pip install {' '.join(gone)}" if gone else ""
    hook, gpu = f"define amdgpu_cs {_EMPTY}", targets()[0]
    yield _run_check(
        "load and instrument files", packages, lambda: amdgpu_object(hook, gpu.name, gpu.wave_sizes[0])
    )
    yield _run_check("run kernels on the emulator", packages, lambda: host_object(f"define {_EMPTY}", Effort.FAST))
    compiler = machine.c_compiler()
    no_compiler = "" if compiler else INSTALL["cc"]
    yield _run_check("exec on the emulator (own HIP runtime)", no_compiler, runtime_folder)
    yield _run_check("exec under a tool, build", no_compiler, tool_library)
    yield _run_check("exec --level hsa, build --level hsa", no_compiler, hsa_tool_library)
    yield _rocm(machine, no_compiler)
    yield _gpu(machine)
    yield _needs("compile HIP programs", {name: machine.program(name) for name in ("clang++", "ld.lld")},
                 {"headers": machine.headers(*HIP_HEADERS)})  # fmt: skip
    yield _runtime_compilation(machine, gpu.name)
    yield _needs("OpenMP offload (--stack rocm, GPU)", {
        OMPTARGET: machine.libraries(OMPTARGET), **_hsa_by_name(machine),
        "device libraries": machine.device_libraries(),
    })  # fmt: skip
    if machine.program("rocminfo"):
        yield _needs("rocminfo", {"lsmod": machine.program("lsmod")})
    yield _cache()
    yield _hip_hooks(machine, gpu.name)


def _run_check(what: str, lacking: str, attempt: Callable[[], object]) -> Check:
    """``lacking``: what to install first."""
    if lacking:
        return Check(what, MISSING, lacking)
    try:
        attempt()
    except (LuthierError, OSError, RuntimeError) as error:
        return Check(what, BROKEN, one_line(error))
    return Check(what, WORKS)


def _runtime_compilation(machine: Machine, processor: str) -> Check:
    """A program with nothing in it, through everything that hiprtc needs."""
    what, search = "hiprtc on the emulator (programs that compile kernels)", Search(machine.root, machine.environment)
    try:
        compile_program(SourceText("/", processor, "", "__global__ void nothing() {}"), search)
    except Unsupported as error:
        return Check(what, MISSING, one_line(error))
    except LuthierError as error:
        return Check(what, BROKEN, one_line(error))
    found = search.toolchain(processor)
    return Check(what, WORKS, f"{found.compiler}, headers of HIP {'.'.join(map(str, found.version))}")


def _hip_hooks(machine: Machine, processor: str) -> Check:
    """A hook with nothing in it, through everything that hooks in C++ need."""
    what, search = "hooks in HIP C++", Search(machine.root, machine.environment)
    try:
        HipSource("doctor", _EMPTY_HOOK, search=search).bitcode(processor, 64)
        return Check(what, WORKS, str(search.compiler(processor, version())))
    except Unsupported as error:
        return Check(what, MISSING, one_line(error))
    except LuthierError as error:
        return Check(what, BROKEN, one_line(error))


def _needs(what: str, *parts: dict[str, Any]) -> Check:
    lacking = [name for group in parts for name, found in group.items() if not found]
    return Check(what, MISSING if lacking else WORKS, "; ".join(INSTALL[name] for name in lacking))


def _hsa_by_name(machine: Machine) -> dict[str, Any]:
    """What libomptarget opens; without any version of it, and without a release, the library itself is lacking."""
    if not machine.libraries(HSA_LIBRARY):
        return {HSA_LIBRARY: machine.releases()}
    return {HSA_NAME: machine.library_named(HSA_LIBRARY)}


def _rocm(machine: Machine, no_compiler: str) -> Check:
    what = "exec --stack rocm on the emulator"
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return Check(what, MISSING, "ROCm and the device below it are for Linux on x86-64")
    if not machine.libraries(HSA_LIBRARY) and (fetched := machine.releases()):
        tried = _run_check(what, no_compiler, device_library)
        return Check(what, WORKS, f"with {fetched[0].name}") if tried.state == WORKS else tried
    lacking = [] if machine.libraries(HSA_LIBRARY) else [INSTALL[HSA_LIBRARY]]
    hip = "" if machine.libraries(HIP_LIBRARY) else INSTALL[HIP_LIBRARY]
    tried = _run_check(what, "; ".join(filter(None, [no_compiler, *lacking, hip if lacking else ""])), device_library)
    return Check(what, WORKS, f"not HIP programs: {hip}") if tried.state == WORKS and hip else tried


def _gpu(machine: Machine) -> Check:
    what, driver = "exec on a GPU", machine.driver()
    if driver is None or not machine.gpus():
        return Check(what, MISSING, INSTALL["GPU"])
    if driver.version:
        return Check(what, BROKEN, f"no permission for {driver.where}: {INSTALL['permission']}")
    return _needs(what, {name: machine.libraries(name) for name in (HIP_LIBRARY, HSA_LIBRARY)})


def _cache() -> Check:
    folder = cache_folder()
    if folder is None:
        return Check("cache", WORKS, "off: everything is compiled again each time")
    try:
        if folder.exists():
            trust(folder, folder.stat())
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if not os.access(nearest, os.W_OK):
            return Check("cache", WORKS, f"{nearest} cannot be written: only what is there is used")
    except OSError as error:
        return Check("cache", BROKEN, one_line(error))
    return Check("cache", WORKS, _size(folder))


def _size(folder: Path) -> str:
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return f"{len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"
