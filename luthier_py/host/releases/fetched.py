"""A release of ROCm in a folder: what is where.

In: a folder. Out: paths, variables of the environment. Invariant: a release is there if all that was requested is
unpacked, and one process at a time fetches into its folder.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass, field
from luthier_py.base.storage import data_folder
from luthier_py.host.releases.apt import ROOT, Wanted, unpack, versions_in
from luthier_py.host.releases.table import RELEASES, Release, release_called

VARIABLE = "LUTHIER_RELEASES"
ALSO, HOME = "also", "rocm"
"""Beside `ROOT`: the folder of libraries by other names, and what /opt/rocm is with AMD's packages."""
_HEADERS = "amd_comgr", "CL", "hip", "hsa", "miopen", "rccl", "roc", "thrust"
HIPCC = "HIPCC_LINK_FLAGS_APPEND"
"""The machine's linker does not look for what the release's libraries need."""
_SPLITTING = set(":;$\n")
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


@dataclass(frozen=True, slots=True)
class FetchedRelease:
    """``root``: the folder with usr in it. ``versions``: by package."""

    name: str
    root: Path
    versions: dict[str, str] = field(compare=False)

    @property
    def libraries(self) -> Path:
        """Debian's folder of libraries for x86-64, whether or not it is there."""
        return self.root / "usr" / "lib" / "x86_64-linux-gnu"

    @property
    def folders(self) -> list[Path]:
        """Of libraries. Those of a suite that has not merged /usr lie in /lib, too; a few packages put theirs beside
        the folder of the architecture, where Debian's loader looks as well."""
        own = self.libraries, self.root / "lib" / "x86_64-linux-gnu", *(self.libraries / name for name in _APART)
        others = self.root / "usr" / "lib", *sorted(self.root.glob("usr/lib/llvm-*/lib")), self.root.parent / ALSO
        return [folder for folder in (*own, *others) if folder.is_dir()]

    @property
    def loader(self) -> Path:
        """The release's own dynamic loader (ld.so(8)); Invalid where the folder has none."""
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


def releases_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """LUTHIER_RELEASES, or luthier/releases below the user's folder of data. Invalid where the loader's lists
    (ld.so(8)) could not have it."""
    chosen = environment.get(VARIABLE)
    folder = (Path(chosen) if chosen else data_folder(environment) / "releases").absolute()
    if set(str(folder)) & _SPLITTING:
        raise Invalid(f"{folder}: the loader splits its lists of folders there; {VARIABLE} names another one")
    return folder


def find_fetched_release(name: str, environment: Mapping[str, str] = os.environ) -> FetchedRelease | None:
    """A release that was fetched; Invalid if none is called so."""
    folder = releases_folder(environment) / release_called(name).name
    versions = versions_in(folder)
    return FetchedRelease(name, folder / ROOT, versions) if versions else None


def fetch_release(release: Release, wanted: Wanted, tell: Callable[[str], None]) -> FetchedRelease:
    """Fetch what of ``wanted`` is not here; ``tell`` gets a line for each step."""
    folder = releases_folder() / release.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Invalid(f"another process fetches {release.name}; try again when it has ended") from None
            versions = unpack(wanted, folder, tell)
            _link(release, folder)
    except OSError as error:
        raise Invalid(f"{error.filename or folder}: {error.strerror}; {VARIABLE} names another folder") from None
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
    for place in root.glob("usr/lib/llvm-*/bin/ld.lld"):  # with hipcc
        links[folder / HOME / "llvm"] = place.parents[1]
    for link, place in links.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        if place.exists() and not link.is_symlink():
            link.symlink_to(os.path.relpath(place, link.parent))


def list_fetched_releases(environment: Mapping[str, str] = os.environ) -> Iterator[FetchedRelease]:
    """All that were fetched, the newest first."""
    for name in RELEASES:
        found = find_fetched_release(name, environment)
        if found is not None:
            yield found
