"""The compiler for programs and hooks that come as text, and what it needs: HIP's headers, AMD's device library, a
linker.

In: an environment, a root folder, a processor. Out: a Toolchain. Invariant: what is missing is Unsupported, with what
to install; of what is there, the first that supports the processor is taken: LUTHIER_CLANG, ROCm's, the search
path's.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import dataclass, field

DEVICE_LIBS = "LUTHIER_DEVICE_LIBS", "HIP_DEVICE_LIB_PATH"
CLANG, HEADERS = "LUTHIER_CLANG", "LUTHIER_HIP_INCLUDE"
HIP_HEADERS = "hip/hip_runtime.h", "hip/hip_version.h"
NO_COMPILER = (
    f"no clang++ with a target amdgcn: install one (Debian and Ubuntu: apt install clang lld; ROCm has its own), or "
    f"set {CLANG}"
)
NO_HEADERS = (
    f"no HIP headers (hip/hip_runtime.h): install ROCm, or triton from PyPI, which has them, or set {HEADERS} to "
    "their folder"
)
NO_LIBRARY = (
    "no device library (ocml.bc, ockl.bc): install ROCm (Debian and Ubuntu: apt install rocm-device-libs), or triton "
    "from PyPI, which has it, or set HIP_DEVICE_LIB_PATH or LUTHIER_DEVICE_LIBS to its folder"
)
NO_LINKER = "no ld.lld beside the compiler or in the search path: apt install lld"
_SECONDS = 20  # that a compiler gets to list its processors


@dataclass(frozen=True, slots=True)
class Toolchain:
    """``library``: the folder with ocml.bc and ockl.bc."""

    compiler: Path
    headers: Path
    library: Path
    version: tuple[int, int]
    """Of the headers: HIP_VERSION_MAJOR and _MINOR."""

    @property
    def identity(self) -> str:
        """What results depend on, besides the files that a compilation reads."""
        files = self.compiler.resolve(), self.library / "ocml.bc", self.library / "ockl.bc"
        return repr([self.headers, self.version, *((str(path), _state(path)) for path in files)])


@dataclass(frozen=True)
class Search:
    """``root``: where /usr and /opt are."""

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def toolchain(self, processor: str) -> Toolchain:
        """All that compiling for ``processor`` takes; Unsupported names the first part that is missing:
        compiler, linker, headers, device library."""
        compiler = self.compiler(processor)
        if self.linker(compiler) is None:
            raise Unsupported(NO_LINKER)
        headers = self.headers()
        return Toolchain(compiler, headers, self.library(compiler, headers), header_version(headers))

    def compiler(self, processor: str, newest: int | None = None) -> Path:
        """The first compiler that supports the processor; if none does, the first, whose own error says so.
        ``newest``: the last major version that will do."""
        chosen = self.environment.get(CLANG, "")
        if chosen:
            found = shutil.which(chosen, path=self.environment.get("PATH"))
            if found is None:
                raise Unsupported(f"{CLANG}={chosen}: there is no such program")
            return Path(found)
        able = [path for path in self._compilers() if processors(str(path))]
        if not able:
            raise Unsupported(NO_COMPILER)
        fit = [path for path in able if newest is None or compiler_version(str(path)) <= newest]
        if not fit:
            raise Unsupported(f"no clang++ of version {newest} or older with a target amdgcn, whose bitcode can be "
                              f"read: install one (Debian and Ubuntu: apt install clang-{newest}), or set {CLANG}")
        able = fit
        return next((path for path in able if processor in processors(str(path))), able[0])

    def linker(self, compiler: Path) -> Path | None:
        """The linker that the compiler names, else the first in these folders."""
        named = Path(_query_compiler(str(compiler), "-print-prog-name=ld.lld").partition("\n")[0])
        if named.is_absolute() and named.exists():
            return named
        folders = [compiler.parent, compiler.resolve().parent, *self._path()]
        return next((folder / "ld.lld" for folder in folders if (folder / "ld.lld").exists()), None)

    def headers(self) -> Path:
        """The folder with HIP's headers (``hip/hip_runtime.h`` is below it); Unsupported if there is none."""
        found = self.header_folder(*HIP_HEADERS)
        if found is None:
            raise Unsupported(NO_HEADERS)
        return found

    def header_folder(self, *files: str) -> Path | None:
        """Where all of these are: LUTHIER_HIP_INCLUDE, then ROCm's, then the newest of the others."""
        chosen = [Path(path) for path in self.environment.get(HEADERS, "").split(os.pathsep) if path]
        for folder in (*chosen, *self._rocm("include")):
            if _has(folder, files):
                return folder
        others = (self.root / "usr" / "include", *_of_triton("include"))
        return max((folder for folder in others if _has(folder, files)), key=header_version, default=None)

    def library(self, compiler: Path | None = None, headers: Path | None = None) -> Path:
        """LUTHIER_DEVICE_LIBS; HIP_DEVICE_LIB_PATH, which clang reads too; then what belongs to the compiler, to the
        headers, to ROCm."""
        places = [Path(chosen) for name in DEVICE_LIBS if (chosen := self.environment.get(name, ""))]
        if compiler is not None:
            own = compiler.resolve().parents[1]
            places += [*_glob(own, "lib/clang/*/lib/amdgcn/bitcode"), *_glob(own, "lib/clang/*/amdgcn/bitcode")]
            places += [own.parent / "amdgcn" / "bitcode"]
        if headers is not None:
            places += [headers.parent / "amdgcn" / "bitcode", headers.parent / "lib"]
        places += [*self._rocm("amdgcn/bitcode"), *_glob(self.root, "usr/lib/*/amdgcn/bitcode"), *_of_triton("lib")]
        for place in places:
            if (place / "ocml.bc").exists() and (place / "ockl.bc").exists():
                return place
        raise Unsupported(NO_LIBRARY)

    def _compilers(self) -> Iterator[Path]:
        """ROCm's, then those of the search path: NAME-VERSION the newest first, then NAME."""
        for folder in (*self._rocm("llvm/bin"), *self._rocm("lib/llvm/bin")):
            if (folder / "clang++").exists():
                yield folder / "clang++"
        versions: dict[int, Path] = {}
        for folder in self._path():
            for path in folder.glob("clang++-*"):
                if number := re.fullmatch(r"clang\+\+-(\d+)", path.name):
                    versions.setdefault(int(number[1]), path)
        yield from (path for _, path in sorted(versions.items(), reverse=True))
        yield from (folder / "clang++" for folder in self._path() if (folder / "clang++").exists())

    def _path(self) -> list[Path]:
        return [Path(folder) for folder in self.environment.get("PATH", "").split(os.pathsep) if folder]

    def _rocm(self, below: str) -> list[Path]:
        chosen = self.environment.get("ROCM_PATH")
        roots = [Path(chosen)] if chosen else []
        return [root / below for root in (*roots, *_glob(self.root, "opt/rocm*"))]


def processors(compiler: str) -> frozenset[str]:
    """Those for which it compiles; none if it has no such target, or is no compiler."""
    said = _query_compiler(compiler, "--target=amdgcn-amd-amdhsa", "-print-supported-cpus")
    return frozenset(word for word in re.findall(r"^\s+(\S+)$", said, re.M) if word.startswith("gfx"))


def compiler_version(compiler: str) -> int:
    """Clang's major version; 0 where it does not say."""
    found = re.search(r"clang version (\d+)", _query_compiler(compiler, "--version"))
    return int(found[1]) if found is not None else 0


@cache
def _query_compiler(compiler: str, *arguments: str) -> str:
    """On stdout, then on stderr; nothing if it fails."""
    command = [compiler, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout + done.stderr


def header_version(headers: Path) -> tuple[int, int]:
    """HIP_VERSION_MAJOR and _MINOR of these headers; (0, 0) where they do not say."""
    path = headers / "hip" / "hip_version.h"
    text = path.read_text(errors="replace") if path.exists() else ""
    found = dict(re.findall(r"^#define HIP_VERSION_(MAJOR|MINOR) +(\d+)", text, re.M))
    return int(found.get("MAJOR", 0)), int(found.get("MINOR", 0))


def _has(folder: Path, files: Sequence[str]) -> bool:
    return all((folder / file).exists() for file in files)


def _of_triton(below: str) -> list[Path]:
    """PyPI's package triton has HIP's headers and the device library."""
    spec = importlib.util.find_spec("triton")
    return [] if spec is None or spec.origin is None else [Path(spec.origin).parent / "backends" / "amd" / below]


def _glob(folder: Path, pattern: str) -> list[Path]:
    return [Path(path) for path in sorted(glob.glob(f"{glob.escape(str(folder))}/{pattern}"), reverse=True)]


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
