"""A program on a fetched release of ROCm: how it is started.

In: a command, the environment that it is to have, a release. Out: the command line and environment that make it one of
the release. Invariant: the program itself is not changed. It runs by the release's own loader (ld.so(8)), with the
release's libc and libraries before the machine's: the release may be of a newer Debian than the machine, and a newer
libc runs programs of an older one, not the other way. So do all processes that it starts (host/loader).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence

from luthier_py.base.errors import Invalid
from luthier_py.host.absent import absent_libraries
from luthier_py.host.loader import command_by_loader, loader_library
from luthier_py.host.releases.fetched import FetchedRelease, releases_folder
from luthier_py.host.releases.table import RELEASES

_LOADER, _LIBRARIES = "LUTHIER_LOADER", "LUTHIER_LIBRARIES"


def start_on(
    release: FetchedRelease, command: Sequence[str], environment: Mapping[str, str]
) -> tuple[Sequence[str], dict[str, str]]:
    """``command`` by the release's loader, and its environment; what the kernel starts otherwise stays as it is.
    Libraries are those of LD_LIBRARY_PATH, of the release, and stand-ins. Invalid where the machine's programs need a
    newer libc."""
    _check_libc(release)
    libraries = os.pathsep.join([*map(str, release.folders), str(absent_libraries())])
    preloaded = " ".join(filter(None, (str(loader_library()), environment.get("LD_PRELOAD"))))
    given = {**environment, "LD_PRELOAD": preloaded, _LOADER: str(release.loader), _LIBRARIES: libraries}
    path = shutil.which(command[0], path=environment.get("PATH"))
    return path and command_by_loader(path, command, given) or command, given


def without_release(environment: Mapping[str, str]) -> dict[str, str]:
    """What an `exec` around this one has put there is taken out."""
    ours = f"{releases_folder()}{os.sep}"
    kept = {name: value for name, value in environment.items()
            if name not in (_LOADER, _LIBRARIES) and not value.startswith(ours)}
    library = loader_library().name
    preloaded = [path for path in kept.pop("LD_PRELOAD", "").split() if not path.endswith(f"/{library}")]
    places = [place for place in kept.get("PATH", "").split(os.pathsep) if not place.startswith(ours)]
    return kept | {"PATH": os.pathsep.join(places)} | ({"LD_PRELOAD": " ".join(preloaded)} if preloaded else {})


def _check_libc(release: FetchedRelease) -> None:
    theirs, ours = release.versions.get("libc6", ""), os.confstr("CS_GNU_LIBC_VERSION") or ""
    if theirs and _number(theirs) < _number(ours.partition(" ")[2]):
        raise Invalid(f"{release.name} has libc {theirs}, and this machine's programs are made for {ours}; take a "
                      f"newer release: {', '.join(RELEASES)}")


def _number(version: str) -> list[int]:
    """The first two numbers of a libc's version."""
    return [int(part) for part in version.partition("-")[0].split(".")[:2] if part.isdigit()]
