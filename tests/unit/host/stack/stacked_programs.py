"""Programs on ROCm's own stack: compiled for it once, run on the emulator alone, or under a tool by `luthier exec`.

In: names of programs, a stack. Out: executables; exit codes, output, counts. Invariant: kernels that ROCm launches for
itself are in no count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from compiled_programs import PROGRAMS, TARGET, Recipe, compiled, compilers, headers_key, headers_recipe, key_of
from program_builder import builder
from rocm_stack import ABI, CODE_OBJECT, RocmStack

from luthier_py.host.hip import runtime_folder
from luthier_py.host.kfd.topology import USE_SVM

ROOT = Path(__file__).resolve().parents[4]
DEVICE = f"emulator:{TARGET}"
SECONDS = 600  # until a program hangs, on a machine that is busy with others
EXEC = sys.executable, "-c", "from luthier_py.cli import main; main()", "exec"
OPENMP = "clang-19"
LLVM = Path("/usr/lib/llvm-19/lib")
RUNTIME = f"-Wl,-rpath,{LLVM}"  # libomptarget is in no folder that programs look into
TOOLS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "instr_count": (lambda report: report["instructions"], lambda row: row["instructions"]),
    "opcode_histogram": (lambda report: sorted(report["opcodes"].items()), lambda row: sorted(row["opcodes"].items())),
    "lds_bank_conflicts": (
        lambda report: report["total"]["accesses"],
        lambda row: sum(count for name, count in row["active_opcodes"].items() if name.startswith("ds_")),
    ),
}
"""What a tool reports of a launch, and where the emulator's own count of the same is."""
OWN = "__amd_rocclr_", "kernel@"  # kernels of ROCclr for copies and fills, and of ROCr, which are in no code object


def some(cases: Iterable[Any], always: Collection[Any]) -> list[Any]:
    """Cases as parameters: those of ``always`` run always, the others with ``-m slow``."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)),
                         marks=() if case in always else pytest.mark.slow) for case in cases]


class Done(NamedTuple):
    """``profile``: what the emulator counted of the program's launches; ``verdict``: a tool's."""

    code: int
    out: str
    err: str
    profile: list[dict[str, Any]]
    verdict: Any = None


def executed(done: Done, tool: str) -> Counter[tuple[str, str]]:
    """What the emulator counted; launches that have nothing for a tool are none to it."""
    _, of_row = TOOLS[tool]
    rows = ((row["kernel"], of_row(row)) for row in done.profile)
    return Counter((kernel, str(count)) for kernel, count in rows if count)


def reported(done: Done, tool: str) -> Counter[tuple[str, str]]:
    of_report, _ = TOOLS[tool]
    return Counter((row["kernel"], str(of_report(row["report"]))) for row in done.verdict["reports"])


class Programs:
    """Executables for a stack."""

    def __init__(self, stack: RocmStack) -> None:
        self.stack = stack

    def hip(self, name: str, target: str = TARGET) -> Path:
        """tests/programs/NAME.hip, without assertions: a kernel with one may print, see docs/runtime.md."""
        source = PROGRAMS / f"{name}.hip"
        library = next(filter(None, map(builder.device_library, builder.header_folders())), None)
        words, begun = ("-DNDEBUG",), None
        if target == TARGET:
            begun = compiled(headers_recipe(self.stack.headers, *words, code_object=CODE_OBJECT))
        return self._kept(name, source, lambda path: builder.build(
            source, path, self.stack.headers, self.stack.libraries, (target,), words,
            abi=ABI, code_object=CODE_OBJECT, library=library, precompiled=begun), library, target)

    def openmp(self, name: str) -> Path:
        """tests/programs/NAME.c, as clang's driver makes it."""
        words = f"-O2 -g -Wall -Wextra -Werror -fopenmp --offload-arch={TARGET}".split()
        library = f"--rocm-device-lib-path={self.stack.device_libraries}"
        linked = sorted([*self.stack.device_libraries.glob("*.bc"), *LLVM.glob(f"libomptarget*{TARGET}.bc")])
        return self._command(name, PROGRAMS / f"{name}.c", OPENMP, *words, library, RUNTIME, linked=linked)

    def hsa(self, name: str, *more: str) -> Path:
        """tests/programs/NAME.c, on ROCr itself; ``more``: options of the compiler."""
        words = f"-std=gnu11 -O1 -pthread -Wall -Wextra -Werror -isystem {self.stack.headers}".split()
        libraries = f"-L{self.stack.libraries} -l:libhsa-runtime64.so.1 -Wl,--allow-shlib-undefined".split()
        return self._command(name, PROGRAMS / f"{name}.c", "cc", *words, *more, behind=libraries)

    def code_object(self, name: str) -> Path:
        """tests/data/NAME.hip, in the version that this ROCm loads."""
        how = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none".split()
        version = f"-mcode-object-version={CODE_OBJECT}"
        source = ROOT / "tests" / "data" / f"{name}.hip"
        return self._command(f"{name}.co", source, builder.COMPILER, *how, f"--offload-arch={TARGET}", version)

    def _command(
        self, name: str, source: Path, *words: str, behind: Sequence[str] = (), linked: Sequence[Path] = ()
    ) -> Path:
        """``linked``: libraries that the compiler finds by itself."""
        whole = *words, str(source)  # its path, too, as line tables have it

        def make(path: Path) -> None:
            builder.run(*whole, "-o", str(path), *behind)

        return self._kept(name, source, make, whole, behind, compilers(words[0]), *linked)

    def _kept(self, name: str, source: Path, make: Callable[[Path], object], *parts: object) -> Path:
        headers = sorted({*PROGRAMS.glob("*.h"), *source.parent.glob("*.h")})
        key = key_of("rocm", source, *headers, PROGRAMS / "build.py", headers_key(self.stack.headers), *parts)
        return compiled(Recipe(Path(name).name, key, make))


class Stacked:
    """Runs programs; ``folders``: of more libraries that they need."""

    def __init__(self, stack: RocmStack, folder: Path) -> None:
        self.stack = stack
        self.folder = folder

    def alone(self, *command: str | Path, device: str = DEVICE, folders: tuple[str, ...] = (), **more: str) -> Done:
        return self._run(command, {**self.stack.environment(device, *folders), **more})

    def on_ours(self, *command: str | Path, folders: tuple[str, ...] = ()) -> Done:
        """The same on our HIP runtime."""
        path = os.pathsep.join([str(runtime_folder()), *folders])
        return self._run(command, {"LUTHIER_DEVICE": DEVICE, "LD_LIBRARY_PATH": path})

    def under(
        self, tool: str, *command: str | Path, folders: tuple[str, ...] = (), stack: str = "rocm", level: str = "hip",
        options: tuple[str, ...] = (), **more: str,
    ) -> Done:
        """By `luthier exec`."""
        words = [*EXEC, "-t", tool]
        verdict = self.folder / "verdict.json"
        verdict.unlink(missing_ok=True)
        environment = {**self.stack.search(*folders), "LUTHIER_VERDICT": str(verdict), **more}
        words += ["--level", level, *options]
        done = self._run((*words, "--stack", stack, "--device", DEVICE, "--", *command), environment)
        return done._replace(verdict=json.loads(verdict.read_text()) if verdict.exists() else None)

    def by_exec(self, *command: str | Path, device: str = DEVICE) -> Done:
        """The same without a tool."""
        return self._run((*EXEC, "--stack", "rocm", "--device", device, "--", *command), self.stack.search())

    def _run(self, command: tuple[str | Path, ...], environment: dict[str, str]) -> Done:
        profile = self.folder / "profile"
        profile.unlink(missing_ok=True)
        shared = {USE_SVM: "1"} if Path(command[-1]).stem == "managed_ranges" else {}
        settings = {**os.environ, "LUTHIER_DEVICE_PROFILE": str(profile), **shared, **environment}
        done = subprocess.run(
            list(map(str, command)), env=settings, capture_output=True, text=True, timeout=SECONDS
        )
        rows = [json.loads(line) for line in profile.read_text().splitlines()] if profile.exists() else []
        own = [row for row in rows if not row["kernel"].startswith(OWN)]
        return Done(done.returncode, done.stdout, done.stderr, own)
