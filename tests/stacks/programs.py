"""The programs that every release runs, compiled against its own headers and libraries.

In: a release, a folder. Out: for each program a command line, or why there is none. Invariant: every program
checks its own results, and its last line is PASSED, but those of packages, whose output is looked at here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from stacks import DEVICE_LIBRARIES, OPENMP_LIBRARIES, Stack, fetch

from luthier_py.host.kfd.topology import USE_SVM
from luthier_py.isa import target as isa_target
from luthier_py.isa.model.cards import pci_device

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
sys.path.insert(0, str(PROGRAMS))
import build  # noqa: E402

HIP, HSA = "hip", "hsa"
WARNINGS = "-Wall", "-Wextra", "-Werror"
LENIENT = ("-Wl,--allow-shlib-undefined",)


@dataclass(frozen=True, slots=True)
class Program:
    """``levels``: of the tools that can count it; ``waits``: how much it executes depends on when waves meet others;
    ``graphs``: it launches graphs, in which HIP's level has one count for all launches of a kernel; ``ours``: our HIP
    runtime is enough for it; ``ours_counted``: the tool counts it there, too; ``outcomes``: what a line of its output
    says of one of its tests; ``seconds``: what one run may take;
    ``processes``: so many launch the same, and a verdict is of one."""

    name: str
    make: Callable[[Stack, Path, str], list[str]]
    levels: tuple[str, ...] = (HSA,)
    waits: bool = False
    graphs: bool = False
    ours: bool = False
    ours_counted: bool = False
    passed: str = r"PASSED\n\Z"
    outcomes: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    devices: int = 1
    processes: int = 1
    seconds: int = 600


def device_libraries() -> Path:
    """ocml.bc and the others, of one release for all: the later ones' are for one version of LLVM each."""
    return fetch(DEVICE_LIBRARIES, "rocm-device-libs").libraries / "amdgcn" / "bitcode"


def hip(stack: Stack, output: Path, target: str) -> list[str]:
    source = PROGRAMS / f"{output.name}.hip"
    source = source if source.exists() else PROGRAMS / "rocm" / source.name
    library = device_libraries() / "ockl.bc"
    rtc = ("-l:libhiprtc.so",) if (stack.libraries / "libhiprtc.so").exists() else ()  # else libamdhip64 is it
    how = {"abi": stack.needs.abi, "code_object": stack.needs.code_object, "library": library,
           "link": (*LENIENT, *rtc)}
    build.build(source, output, stack.headers, stack.libraries, (target,), ("-DNDEBUG",), **how)
    return [str(output), *([str(output.with_suffix(".pages"))] if output.name == "two_processes" else ())]


def hsa(stack: Stack, output: Path, target: str) -> list[str]:
    compile_c(stack, output, "-pthread", "-l:libhsa-runtime64.so.1")
    code = output.with_suffix(".co")
    how = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none".split()
    version = "-mcode-object-version=4"  # later: hidden arguments, which a program on HSA would have to fill in
    source = ROOT / "tests" / "data" / "saxpy.hip"
    build.run(build.COMPILER, *how, f"--offload-arch={target}", version, str(source), "-o", str(code))
    return [str(output), str(code)]


def opencl(stack: Stack, output: Path, target: str) -> list[str]:
    if not (stack.root / "etc" / "OpenCL" / "vendors").exists():
        raise RuntimeError("no package of ROCm's OpenCL")
    compile_c(stack, output, "-l:libOpenCL.so.1")
    code = output.with_suffix(".co")
    how = "-x cl -cl-std=CL2.0 --target=amdgcn-amd-amdhsa -nogpulib -O2".split()
    version = f"-mcode-object-version={stack.needs.code_object}"
    build.run(build.COMPILER, *how, f"-mcpu={target}", version, str(PROGRAMS / f"{output.name}.cl"), "-o", str(code))
    return [str(output), str(code)]


def compile_c(stack: Stack, output: Path, *more: str) -> None:
    words = "cc", "-std=gnu11", "-O1", *WARNINGS, "-isystem", str(stack.headers), str(PROGRAMS / f"{output.name}.c")
    build.run(*words, "-o", str(output), f"-L{stack.libraries}", *more, *LENIENT)


def openmp(stack: Stack, output: Path, target: str) -> list[str]:
    """By LLVM 19, whose OpenMP Debian 12 has; later versions in Debian have no libomptarget."""
    if not (OPENMP_LIBRARIES / "libomptarget.so").exists():
        raise RuntimeError("no libomp-19-dev on this machine")
    library = f"--rocm-device-lib-path={device_libraries()}"
    # What ROCr and libomptarget both need: the release's come first.
    shared = "libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "libzstd.so.1", "libelf.so.1"
    first = [f"-L{stack.libraries}", "-Wl,--no-as-needed", *(f"-l:{name}" for name in shared)]
    words = "-O2", "-g", *WARNINGS, "-fopenmp", f"--offload-arch={target}", library
    build.run("clang-19", *words, str(PROGRAMS / f"{output.name}.c"), "-o", str(output), *LENIENT, *first)
    return [str(output)]


def packaged(stack: Stack, output: Path, target: str) -> list[str]:
    path = stack.root / "usr" / "bin" / output.name
    if not path.exists():
        raise RuntimeError("no such package")
    return [str(path)]


def with_opencl(stack: Stack, output: Path, target: str) -> list[str]:
    if not (stack.root / "etc" / "OpenCL" / "vendors").exists():
        raise RuntimeError("no package of ROCm's OpenCL")
    return packaged(stack, output, target)


def monitor(stack: Stack, output: Path, target: str) -> list[str]:
    script = stack.root / "usr" / "libexec" / "rocm_smi" / "rocm_smi.py"
    if not script.exists():
        raise RuntimeError("no such package")
    return [sys.executable, str(script)]


def calling(stack: Stack, output: Path, target: str) -> list[str]:
    """A program beside this file that calls the library whose name it has."""
    begin = f"lib{output.name}.so."
    if not any(path.name.lower().startswith(begin) for path in stack.libraries.iterdir()):  # libMIOpen.so.1
        raise RuntimeError(f"no package of lib{output.name}")
    script = Path(__file__).with_name(f"{output.name}_program.py")
    return [sys.executable, str(script), str(stack.libraries)]


def framework(stack: Stack, output: Path, target: str) -> list[str]:
    """A program in frameworks/, with PyPI's packages for it in an environment of its own."""
    packages = FRAMEWORKS[output.name]
    place = output.with_name(f"{packages[0].partition('=')[0]}-environment")
    if not (place / "made").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        subprocess.run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages], check=True)
        (place / "made").touch()
    return [str(place / "bin" / "python"), str(Path(__file__).parent / "frameworks" / f"{output.name}.py")]


def llama(stack: Stack, output: Path, target: str) -> list[str]:
    """By the numbers that its name ends in."""
    name, _, numbers = output.name.partition("-")
    return [*framework(stack, output.with_name(name), target), numbers]


def ggml(stack: Stack, output: Path, target: str) -> list[str]:
    """ggml's own tests of all its operations, which compare with its CPU backend, of the same numbers in each run."""
    program = stack.root / "usr/libexec/x86_64-linux-gnu/ggml/test-backend-ops"
    if not program.exists():
        raise RuntimeError("no such package")
    numbers, source = output.with_suffix(".so"), Path(__file__).with_name("same_numbers.c")
    build.run("cc", "-std=gnu11", "-O1", *WARNINGS, "-shared", "-fPIC", str(source), "-o", str(numbers))
    backends = next(stack.libraries.glob("ggml/backends*"))
    words = "sh", "-c", 'cd "$0"; LD_PRELOAD="$1:$LD_PRELOAD"; export LD_PRELOAD; shift; exec "$@"'
    return [*words, str(backends), str(numbers), str(program), "test", "-b", "ROCm0"]


NO_ASSEMBLY = {"MIOPEN_DEBUG_GCN_ASM_KERNELS": "0"}  # Debian's MIOpen lacks sources of some: Conv_Winograd_Fury_*.s
CALLED = "rocblas", "rocfft", "rocsolver", "hipblaslt", "rocsparse", "rocrand", "miopen"
JAX_WHEELS = "jax==0.10.2", "jax-rocm7-plugin==0.10.2", "jax-rocm7-pjrt==0.10.2"
FRAMEWORKS = {
    "jax_training": JAX_WHEELS, "jax_growth": JAX_WHEELS,
    "cupy_steps": ("cupy-rocm-7-0==14.2.0", "scipy"),
    "openmm_forces": ("openmm==8.6.1", "openmm-hip-7==8.6.1"),
    "llama_tokens": ("gguf==0.19.0",),
    "onnx_network": ("onnxruntime-rocm==1.22.2.post3", "onnx"),
}
JAX = {"JAX_PLATFORMS": "rocm,cpu", "XLA_FLAGS": "--xla_gpu_autotune_level=0", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
MANAGED = {"allocations", "managed_memory", "managed_ranges"}  # HIP 7 has no managed variables without it
FAULTS = {"faults", "faulty"}  # what their argument says goes wrong: tests/unit


def every(release: str, target: str) -> Iterator[Program]:
    waiting = {"cooperative", "grid_sync", "printing", "device_malloc", "kernel_heap"}
    # At HIP's level there is one result for all launches of a kernel in a graph.
    graphs = {"graph", "graphs", "graph_changes", "graph_exchanges", "graph_nodes", "graph_sizes"}
    for path in sorted([*PROGRAMS.glob("*.hip"), *PROGRAMS.glob("rocm/*.hip")]):
        levels = (HSA,) if path.stem in graphs else (HIP, HSA)
        levels = () if path.stem == "graph_sizes" else levels  # it looks how much memory is left, of which a tool takes
        if path.stem not in FAULTS:
            processes = 2 if path.stem == "two_processes" else 1
            environment = {USE_SVM: "1"} if path.stem in MANAGED else {}
            yield Program(path.stem, hip, levels, path.stem in waiting, ours=True, environment=environment,
                          processes=processes)
    yield Program("hsa_dispatch", hsa)
    offload = {"OMP_TARGET_OFFLOAD": "MANDATORY", "LD_LIBRARY_PATH": str(OPENMP_LIBRARIES)}
    for path in sorted(PROGRAMS.glob("openmp_*.c")):
        yield Program(path.stem, openmp, environment=offload)
    yield Program("opencl_saxpy", opencl)
    yield Program("rocminfo", packaged, (), passed=rf"Name: +{target}")
    if release == "rocm-7.2":
        for name in CALLED:
            yield Program(name, calling, (HIP, HSA), environment=NO_ASSEMBLY, ours=True)
        yield Program("rccl", calling, (), devices=2)
        yield Program("jax_training", framework, (HIP, HSA), environment=JAX, ours=True)
        yield Program("jax_growth", framework, (), environment=JAX, ours=True)
        for name in ("cupy_steps", "onnx_network", "openmm_forces"):
            yield Program(name, framework, (HIP, HSA), ours=True)
    if release == "rocm-6.4":
        how = {"levels": (HIP, HSA), "graphs": True, "ours": True, "ours_counted": True}
        for numbers in ("f16", "Q8_0", "Q4_0"):
            yield Program(f"llama_tokens-{numbers}", llama, **how)
        yield Program("ggml_operations", ggml, **how, passed=r"(\d)/\1 backends passed", seconds=8 * 3600,
                      outcomes=r"\): (?:\x1b\S*m)?(OK|FAIL|not supported)")
    if release != "rocm-5.2":
        yield Program("rocm-smi", monitor, (), passed=f"0x{pci_device(isa_target(target)):04x}")
    yield Program("clinfo", with_opencl, (), passed=rf"Device Name +{target}")
