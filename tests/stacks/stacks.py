"""Releases of ROCm as programs are built for them.

In: a release's name. Out: its headers and libraries, fetched at first use. Invariant: programs are linked as on a
machine that has this ROCm installed; `luthier exec --stack RELEASE` gives them its libraries.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from luthier_py.host.releases.apt import Wanted
from luthier_py.host.releases.fetched import FetchedRelease, fetch_release
from luthier_py.host.releases.table import RELEASES

OPENMP_LIBRARIES = Path("/usr/lib/llvm-19/lib")
TO_BUILD = "libhsa-runtime-dev", "opencl-c-headers"
DEVICE_LIBRARIES = "rocm-5.2"


@dataclass(frozen=True, slots=True)
class Needs:
    """``code_object``: the newest version that its HIP loads; ``abi``: of libamdhip64.so."""

    code_object: int
    abi: int
    libraries: tuple[str, ...] = ()


NEEDS = {
    "rocm-7.2": Needs(6, 7, (*RELEASES["rocm-7.2"].libraries, "libhipcub-dev", "librocprim-dev", "librocthrust-dev")),
    "rocm-6.4": Needs(6, 6, RELEASES["rocm-6.4"].libraries),
    "rocm-5.7": Needs(5, 5, ("librocfft0", "librocrand1")),
    "rocm-5.2": Needs(4, 5, ("librocrand1",)),
}


@dataclass(frozen=True, slots=True)
class Stack:
    needs: Needs
    fetched: FetchedRelease

    @property
    def root(self) -> Path:
        return self.fetched.root

    @property
    def libraries(self) -> Path:
        return self.fetched.libraries

    @property
    def headers(self) -> Path:
        return self.root / "usr" / "include"

    def versions(self) -> str:
        """What it is of ROCm, by its packages."""
        names = {"HIP": f"libamdhip64-{self.needs.abi}", "ROCr": "libhsa-runtime64-1", "libhsakmt": "libhsakmt1"}
        found = ((what, self.fetched.versions.get(name)) for what, name in names.items())
        return ", ".join(f"{what} {version.split('-')[0].split('+')[0]}" for what, version in found if version)


def fetch(name: str, *packages: str) -> FetchedRelease:
    release = RELEASES[name]
    return fetch_release(release, Wanted(release.suites, packages), lambda line: print(line, file=sys.stderr))


def stack_called(name: str) -> Stack:
    needs = NEEDS[name]
    return Stack(needs, fetch(name, *RELEASES[name].runtime, *needs.libraries, *TO_BUILD))
