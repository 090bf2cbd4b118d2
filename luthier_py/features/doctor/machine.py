"""What of this computer matters to us: packages, compilers, ROCm's libraries, GPUs.

In: an environment, a root folder. Out: what was found, with version and place. Invariant: nothing is loaded, built or
changed; what is not there is no error.
"""

from __future__ import annotations

import glob
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from luthier_py.base.records import dataclass, field
from luthier_py.features.settings.stack import HIP_LIBRARY, HSA_LIBRARY
from luthier_py.host.releases.fetched import list_fetched_releases
from luthier_py.rewrite.clang.search import HIP_HEADERS, Search, header_version

DISTRIBUTION = "luthier-py"
COMPILERS = "clang++", "ld.lld", "llvm-objdump"
THUNK, COMGR, OMPTARGET = "libhsakmt.so", "libamd_comgr.so", "libomptarget.so"
LIBRARIES = HIP_LIBRARY, HSA_LIBRARY, THUNK, COMGR, OMPTARGET
NODES = "sys/class/kfd/kfd/topology/nodes/*/properties"
_SECONDS = 10  # that a compiler gets to say its version


@dataclass(frozen=True, slots=True)
class FoundPart:
    """``version`` is empty where there is none to be known."""

    name: str
    version: str
    where: str


@dataclass(frozen=True)
class Machine:
    """``root``: where /usr, /opt, /dev and /sys are."""

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def packages(self) -> Iterator[FoundPart]:
        """Python, ourselves and what we ask for; of what is missing the version is empty."""
        yield FoundPart("Python", platform.python_version(), sys.executable)
        yield FoundPart(DISTRIBUTION, metadata.version(DISTRIBUTION), str(Path(__file__).parents[2]))
        for requirement in metadata.requires(DISTRIBUTION) or ():
            match = re.match(r"[\w.-]+", requirement)
            if match and "extra ==" not in requirement:
                yield _package(match[0])
        yield _package("hip-python")

    def program(self, name: str) -> FoundPart | None:
        """A program of the search path, or NAME-VERSION, the newest."""
        folders = [Path(folder) for folder in self.environment.get("PATH", "").split(os.pathsep) if folder]
        folders += self._rocm("llvm/bin")
        newest = lambda path: int(path.rpartition("-")[2])  # noqa: E731
        for folder in folders:
            others = [path for path in glob.glob(f"{glob.escape(str(folder / name))}-*") if re.search(r"-\d+$", path)]
            for path in (str(folder / name), *sorted(others, key=newest, reverse=True)):
                if shutil.which(path):
                    return FoundPart(name, _version(path), path)
        return None

    def c_compiler(self) -> FoundPart | None:
        """Which is used to build libraries."""
        name = self.environment.get("CC") or "cc"
        path = shutil.which(name, path=self.environment.get("PATH"))
        return FoundPart("C compiler", _version(path), path) if path else None

    def libraries(self, name: str) -> list[FoundPart]:
        """Every version of a library, in the order in which programs look."""
        found: dict[Path, FoundPart] = {}
        for folder in self._library_folders():
            for path in sorted(folder.glob(f"{name}*")):
                real = path.resolve()
                version = re.search(r"\.so\.([\d.]+)$", real.name) or re.search(r"\.so\.([\d.]+)$", path.name)
                if real.is_file() and version:
                    found.setdefault(real, FoundPart(name, version[1], str(path)))
        return list(found.values())

    def releases(self) -> list[FoundPart]:
        """Those of ROCm that `luthier fetch` has brought, the newest first."""
        return [FoundPart(each.name, each.versions.get("libhsa-runtime64-1", ""), str(each.root.parent))
                for each in list_fetched_releases(self.environment)]

    def library_named(self, name: str) -> Path | None:
        """The first file of exactly this name, in the order in which programs look."""
        return next((folder / name for folder in self._library_folders() if (folder / name).is_file()), None)

    def thunk(self) -> FoundPart | None:
        """The library that calls the kernel driver: a separate one, or a part of ROCr since ROCm 6.3."""
        for part in self.libraries(HSA_LIBRARY):
            if THUNK not in _read_needed_libraries(Path(part.where)):
                return FoundPart("thunk", "", f"inside {part.where}")
        return next(iter(self.libraries(THUNK)), None)

    def device_libraries(self) -> FoundPart | None:
        """ocml.bc and the others, which clang links with device code."""
        places = [*self._rocm("amdgcn/bitcode"), *self._usr("lib/*/amdgcn/bitcode")]
        places += self._usr("lib/llvm-*/lib/clang/*/amdgcn/bitcode")
        found = next((path for path in places if (path / "ocml.bc").exists()), None)
        return FoundPart("device libraries", "", str(found)) if found else None

    def headers(self, *files: str) -> FoundPart | None:
        """The folder in which an #include finds the first, beside the others."""
        found = Search(self.root, self.environment).header_folder(*files)
        if found is None:
            return None
        version = header_version(found) if files == HIP_HEADERS else (0, 0)
        return FoundPart(files[0], ".".join(map(str, version)) if any(version) else "", str(found))

    def driver(self) -> FoundPart | None:
        """/dev/kfd; its version says whether we may use it."""
        path = self.root / "dev" / "kfd"
        if not path.exists():
            return None
        allowed = os.access(path, os.R_OK | os.W_OK)
        return FoundPart("/dev/kfd", "" if allowed else "no permission", str(path))

    def gpus(self) -> list[FoundPart]:
        """The GPUs in the driver's topology, whose gfx_target_version is 10000 * major + 100 * minor + stepping."""
        found = []
        for path in sorted(glob.glob(f"{glob.escape(str(self.root))}/{NODES}")):
            text = Path(path).read_text(errors="replace")
            version = int(next(iter(re.findall(r"^gfx_target_version (\d+)$", text, re.M)), 0))
            if version:
                name = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
                found.append(FoundPart("GPU", name, str(Path(path).parent)))
        return found

    def _library_folders(self) -> list[Path]:
        own = [Path(path) for path in self.environment.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path]
        lines = []
        for path in sorted((self.root / "etc" / "ld.so.conf.d").glob("*.conf")):
            lines += [line.strip() for line in path.read_text(errors="replace").splitlines()]
        listed = [self.root / line.lstrip("/") for line in lines if line.startswith("/")]
        usual = [*self._usr("lib/*-linux-gnu"), *self._usr("lib64"), *self._usr("lib"), *self._usr("lib/llvm-*/lib")]
        return list(dict.fromkeys([*own, *self._rocm("lib"), *listed, *usual]))

    def _rocm(self, below: str) -> list[Path]:
        chosen = self.environment.get("ROCM_PATH")
        roots = [Path(chosen)] if chosen else []
        roots += [Path(path) for path in sorted(glob.glob(f"{glob.escape(str(self.root))}/opt/rocm*"))]
        return [root / below for root in roots]

    def _usr(self, pattern: str) -> list[Path]:
        return [path for path in sorted((self.root / "usr").glob(pattern), reverse=True) if path.is_dir()]


def _package(name: str) -> FoundPart:
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return FoundPart(name, "", "")
    return FoundPart(name, found.version, str(found.locate_file("")))


def _version(path: str) -> str:
    """What a compiler says of itself first that looks like a version."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\d+\.\d+(?:\.\d+)*", done.stdout)
    return match[0] if match else ""


def _read_needed_libraries(path: Path) -> str:
    """Names of the libraries that one asks for."""
    try:
        with path.open("rb") as file:
            dynamic = ELFFile(file).get_section_by_name(".dynamic")
            tags: Iterator[Any] = dynamic.iter_tags("DT_NEEDED") if isinstance(dynamic, DynamicSection) else iter(())
            return " ".join(tag.needed for tag in tags)
    except (OSError, ELFError):
        return THUNK  # unknown: the older way is looked for
