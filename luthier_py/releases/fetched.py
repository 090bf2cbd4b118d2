"""A release of ROCm in a folder, and what makes a program one of it.

In: a folder. Out: a command line, variables of the environment. Invariant: the program itself is not changed. It runs
by the release's own loader (ld.so(8)), with the release's libc and libraries before the machine's: it may be of
a newer Debian than the machine, and a newer libc runs programs of an older one, not the other way. So do all processes
that it starts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from luthier_py.errors import Invalid
from luthier_py.releases.apt import ROOT, Wanted, unpack, versions_in
from luthier_py.releases.table import RELEASES, Release, release_called
from luthier_py.storage import data_folder

VARIABLE = "LUTHIER_RELEASES"
ALSO, HOME = "also", "rocm"
"""Beside `ROOT`: the folder of libraries by other names, and what /opt/rocm is with AMD's packages."""
_HEADERS = "amd_comgr", "CL", "hip", "hsa", "miopen", "rccl", "roc", "thrust"
HIPCC = "HIPCC_LINK_FLAGS_APPEND"
"""The machine's linker does not look for what the release's libraries need."""
_LOADER = "ld-linux-x86-64.so.2"
_FILES = {
    "ROCBLAS_TENSILE_LIBPATH": "rocblas/*/library",
    "HIPBLASLT_TENSILE_LIBPATH": "hipblaslt/library",
    "OCL_ICD_VENDORS": "../../../etc/OpenCL/vendors",
    **dict.fromkeys(("ROCM_HOME", "ROCM_PATH", "HIP_PATH"), "../../../../rocm"),
    "LUTHIER_HIP_INCLUDE": "../../../../rocm/include/hip/..",
    "HIP_CLANG_PATH": "../llvm-*/bin",
}
"""Where libraries find their files, below the folder of libraries: they look where a package would be installed."""
_APART = "blas", "lapack", "llama"  # what Debian's alternatives, or a program's RUNPATH, would lead to
_MOST_INTERPRETERS = 4  # execve(2)
_LONGEST_LINE = 256


@dataclass(frozen=True, slots=True)
class FetchedRelease:
    """``root``: the folder with usr in it. ``versions``: by package."""

    name: str
    root: Path
    versions: dict[str, str] = field(compare=False)

    @property
    def libraries(self) -> Path:
        return self.root / "usr" / "lib" / "x86_64-linux-gnu"

    @property
    def folders(self) -> list[Path]:
        """Of libraries. Those of a suite that has not merged /usr lie in /lib, too."""
        own = self.libraries, self.root / "lib" / "x86_64-linux-gnu", *(self.libraries / name for name in _APART)
        others = *sorted(self.root.glob("usr/lib/llvm-*/lib")), self.root.parent / ALSO
        return [folder for folder in (*own, *others) if folder.is_dir()]

    @property
    def loader(self) -> Path:
        found = next((folder / _LOADER for folder in self.folders if (folder / _LOADER).exists()), None)
        if found is None:
            raise Invalid(f"{self.root} has no {_LOADER}: remove it, and `luthier fetch {self.name}` again")
        return found

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Beside ``given``: where libraries find their files, unless it says so, and programs of packages behind all
        others."""
        found = {name: next(self.libraries.glob(pattern), None) for name, pattern in _FILES.items()}
        files = {name: os.path.normpath(path) for name, path in found.items() if path is not None and name not in given}
        linker = {} if HIPCC in given else {HIPCC: "-Wl,--allow-shlib-undefined"}
        return {**files, **linker, "PATH": f"{given.get('PATH', os.defpath)}{os.pathsep}{self.root / 'usr' / 'bin'}"}

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], last: Path, children: Path
    ) -> tuple[list[str], dict[str, str]]:
        """``command`` by this release's loader, and its environment; what is no program stays as it is. Libraries are
        those of LD_LIBRARY_PATH, of the release, and of ``last``; ``children`` is preloaded, which gives processes that
        the program starts the same (runtime/loader)."""
        program, *rest = _without_interpreters(command, environment.get("PATH"))
        path = shutil.which(program, path=environment.get("PATH"))
        if path is None:
            return list(command), dict(environment)
        libraries = os.pathsep.join([*map(str, self.folders), str(last)])
        first = environment.get("LD_LIBRARY_PATH")
        paths = f"{first}{os.pathsep}{libraries}" if first else libraries
        words = [str(self.loader), "--library-path", paths, "--argv0", program, path, *rest]
        preloaded = " ".join(filter(None, (str(children), environment.get("LD_PRELOAD"))))
        return words, {**environment, "LD_PRELOAD": preloaded, "LUTHIER_LOADER": str(self.loader),
                       "LUTHIER_LIBRARIES": libraries}


def releases_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """LUTHIER_RELEASES, or luthier/releases below the user's folder of data."""
    chosen = environment.get(VARIABLE)
    return Path(chosen) if chosen else data_folder(environment) / "releases"


def fetched(name: str, environment: Mapping[str, str] = os.environ) -> FetchedRelease | None:
    """A release that was fetched; Invalid if none is called so."""
    folder = releases_folder(environment) / release_called(name).name
    versions = versions_in(folder)
    return FetchedRelease(name, folder / ROOT, versions) if versions else None


def fetch_release(release: Release, wanted: Wanted, tell: Callable[[str], None]) -> FetchedRelease:
    """Fetch what of ``wanted`` is not here; ``tell`` gets a line for each step."""
    folder = releases_folder() / release.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        versions = unpack(wanted, folder, tell)
        _link(release, folder)
    except OSError as error:
        raise Invalid(f"{folder}: {error.strerror}; {VARIABLE} names another folder") from None
    return FetchedRelease(release.name, folder / ROOT, versions)


def _link(release: Release, folder: Path) -> None:
    """What is there, under the names that AMD's own packages have for it."""
    root = folder / ROOT
    libraries = FetchedRelease(release.name, root, {}).libraries
    links = {folder / name / path.name if name.endswith("/") else folder / name: path
             for name, here in release.also.items() for path in root.glob(here)}
    links |= {folder / HOME / "include" / path.name: path for path in (root / "usr" / "include").glob("*")
              if path.name.startswith(_HEADERS)}
    links |= {folder / HOME / name: root / "usr" / name for name in ("bin", "share/hip")}
    links[folder / HOME / "lib"] = libraries
    for place in root.glob("usr/lib/llvm-*/lib/clang/*/amdgcn"):
        links[folder / HOME / "amdgcn"] = place
    for link, place in links.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        if place.exists() and not link.is_symlink():
            link.symlink_to(os.path.relpath(place, link.parent))


def fetched_releases(environment: Mapping[str, str] = os.environ) -> Iterator[FetchedRelease]:
    """All that were fetched, the newest first."""
    for name in RELEASES:
        found = fetched(name, environment)
        if found is not None:
            yield found


def _without_interpreters(command: Sequence[str], search: str | None) -> list[str]:
    """What the kernel makes of a script (execve(2))."""
    words = list(command)
    for _ in range(_MOST_INTERPRETERS):
        path = shutil.which(words[0], path=search)
        try:
            with open(path or words[0], "rb") as file:
                line = file.read(_LONGEST_LINE).partition(b"\n")[0]
        except OSError:
            break
        if not line.startswith(b"#!"):
            break
        interpreter = [os.fsdecode(word.strip()) for word in line[2:].split(maxsplit=1)]
        words = [*interpreter, path or words[0], *words[1:]]
    return words
