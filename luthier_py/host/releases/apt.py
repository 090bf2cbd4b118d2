"""Packages of a suite of Debian, unpacked into a folder beside what is installed.

In: suites, names of packages, a folder. Out: FOLDER/unpacked with usr in it, and each package's version. Invariant:
apt fetches every package and checks it by Debian's keys, but with a separate index and state, which list as installed
only the packages unpacked here: so all dependencies are unpacked too, libc and its loader included, and nothing on the
machine changes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from luthier_py.base.errors import Invalid, LuthierError, Unsupported, how_many
from luthier_py.base.records import dataclass
from luthier_py.base.storage import write_file

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
ROOT, STATUS = "unpacked", "status"
"""The folder of unpacked files, and the file that lists their packages for apt."""
_TOOLS = "apt-get", "dpkg-deb"
_OF_ROCM = (
    "amd-smi", "hipcc*", "libamd-*", "libamdhip*", "libhip*", "libhsa-*", "libmiopen*", "librccl*", "libroc*", "rocm*",
)  # fmt: skip
_FILE = re.compile(r"^'\S+' \S+ (\d+) ", re.MULTILINE)  # of apt-get --print-uris: where, file, bytes, digest
_VERSION = re.compile(r"^Package: (\S+)\n(?:.+\n)*?Version: (\S+)$", re.MULTILINE)
_MOST_LINES = 12


@dataclass(frozen=True, slots=True)
class Wanted:
    """``suites``: of Debian; ROCm's packages are from the first. ``mirror``: its address; None: the one that this
    machine's apt uses."""

    suites: Sequence[str]
    packages: Sequence[str]
    mirror: str | None = None


def versions_in(folder: Path) -> dict[str, str]:
    """Versions by package of what is unpacked there; empty until all is unpacked."""
    try:
        return dict(_VERSION.findall((folder / STATUS).read_text()))
    except OSError:
        return {}


def unpack(wanted: Wanted, folder: Path, tell: Callable[[str], None]) -> dict[str, str]:
    """Unpack and return versions by package; a FOLDER that has them all is left as it is. ``tell`` gets a line for each
    step. Unsupported where there is no apt, LuthierError with apt's messages where it fails."""
    versions = versions_in(folder)
    if set(wanted.packages) <= versions.keys():
        return versions
    for tool in _TOOLS:
        if shutil.which(tool) is None:
            raise Unsupported(f"there is no {tool}: packages are fetched on Debian and what derives from it")
    if not Path(KEYRING).exists():
        raise Unsupported(f"there is no {KEYRING}, by which packages are checked: apt install debian-archive-keyring")
    how = _configure_apt(wanted, folder)
    tell(f"reading the package lists of Debian {' and '.join(wanted.suites)}")
    _run("apt-get", *how, "-q", "update")
    listed = _run("apt-get", *how, "-q", "-y", "--print-uris", "install", *wanted.packages)
    sizes = list(map(int, _FILE.findall(listed)))
    archives = folder / "cache" / "archives"
    for left in archives.glob("*.deb"):
        left.unlink()  # of a fetch that was interrupted, perhaps of another version
    tell(f"fetching {how_many(len(sizes), 'package')}, {sum(sizes) / 1e9:.1f} GB, into {folder}")
    _run("apt-get", *how, "-y", "--download-only", "install", *wanted.packages, shown=sys.stderr.isatty())
    packages = sorted(archives.glob("*.deb"))
    tell(f"unpacking {how_many(len(packages), 'package')}")
    status = (folder / STATUS).read_text()
    (folder / STATUS).unlink()  # until all of it is there
    for package in packages:
        _run("dpkg-deb", "-x", str(package), str(folder / ROOT))
        status += f"{_run('dpkg-deb', '-f', str(package)).strip()}\nStatus: install ok installed\n\n"
    write_file(folder / STATUS, status.encode())
    for package in packages:
        package.unlink()
    return versions_in(folder)


def _configure_apt(wanted: Wanted, folder: Path) -> list[str]:
    """Write apt's files and return options that name them in place of the machine's."""
    mirror = wanted.mirror or _machines_mirror()
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    files = {
        "sources.list": "".join(f"deb [signed-by={KEYRING}] {mirror} {suite} main\n" for suite in wanted.suites),
        "preferences": f"Package: {' '.join(_OF_ROCM)}\nPin: release a={wanted.suites[0]}\nPin-Priority: 990\n",
    }
    for name, text in files.items():
        write_file(folder / name, text.encode())
    (folder / STATUS).touch()
    values = {
        "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-", "Dir::State": folder / "state",
        "Dir::Etc::preferences": folder / "preferences", "Dir::Etc::preferencesparts": "-",
        "Dir::State::status": folder / STATUS, "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root", "APT::Architecture": "amd64", "APT::Architectures": "amd64",
        "APT::Install-Recommends": "0", "Acquire::Languages": "none",
    }  # fmt: skip
    return [word for name, value in values.items() for word in ("-o", f"{name}={value}")]


def _machines_mirror() -> str:
    """Mirror of Debian's main archive."""
    listed = _run("apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)", "Created-By: Packages",
                  "Origin: Debian")
    found = [line.split()[0] for line in listed.splitlines() if line.split()[1:] == ["Debian"]]
    if not found:
        raise Invalid("apt knows no mirror of Debian here, or has not read its lists yet (apt-get update); give one by "
                      "--mirror, an address as sources.list(5) has it (www.debian.org/mirror/list)")
    return found[0]


def _run(*command: str, shown: bool = False) -> str:
    """Run and return the output; ``shown``: print it, with its progress, instead."""
    done = subprocess.run(command, stdout=sys.stderr if shown else subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:", "dpkg"))]
        words = "\n  ".join(said[-_MOST_LINES:]) or f"exit code {done.returncode}"
        raise LuthierError(f"{command[0]} failed; what was fetched before is kept, so try again:\n  {words}")
    return done.stdout or ""
