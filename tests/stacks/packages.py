"""Packages of a Debian suite, unpacked into a folder and not installed: another release of ROCm beside this machine's.

In: suites, names of packages, a folder. Out: FOLDER/unpacked with usr in it, and each package's version. Invariant:
apt does it all, from the mirror that this machine's apt uses, but with an index and a state of its own in which nothing
is installed, so that all that a package depends on comes, too: libc and its loader, by which the programs are run.
"""

from __future__ import annotations

import getpass
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SECONDS = 1800
OF_ROCM = ("rocm*", "libroc*", "libhip*", "libamdhip*", "libhsa-*", "libamd-comgr*", "libmiopen*", "librccl*", "hipcc*")


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr}")
    return done.stdout


def mirror() -> str:
    """Of Debian's main archive."""
    lines = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)", "Created-By: Packages", "Origin: Debian")
    found = [line.split()[0] for line in lines.splitlines() if line.split()[1:] == ["Debian"]]
    if not found:
        raise RuntimeError("apt knows no mirror of Debian: is this Debian, and was `apt-get update` run?")
    return found[0]


def settings(folder: Path) -> list[str]:
    """What keeps this apt apart from the machine's."""
    values = {
        "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-", "Dir::State": folder / "state",
        "Dir::Etc::preferences": folder / "preferences", "Dir::Etc::preferencesparts": "-",
        "Dir::State::status": folder / "status", "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": getpass.getuser(), "APT::Architecture": "amd64", "APT::Architectures": "amd64",
        "APT::Install-Recommends": "0", "Acquire::Languages": "none",
    }  # fmt: skip
    return [word for name, value in values.items() for word in ("-o", f"{name}={value}")]


def preferences(suite: str) -> str:
    """ROCm's packages come from this suite, whatever another has."""
    return f"Package: {' '.join(OF_ROCM)}\nPin: release a={suite}\nPin-Priority: 990\n"


def unpack(suites: Sequence[str], wanted: Sequence[str], folder: Path) -> dict[str, str]:
    """Versions by package; ROCm's are those of the first of ``suites``. What was unpacked for these names stays as it
    is; without FOLDER it is fetched anew."""
    record = folder / "versions.json"
    if record.exists():
        versions: dict[str, str] = json.loads(record.read_text())
        if set(wanted) <= versions.keys():
            return versions
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    archive = mirror()
    lines = (f"deb [signed-by={KEYRING}] {archive} {suite} main\n" for suite in suites)
    (folder / "sources.list").write_text("".join(lines))
    (folder / "preferences").write_text(preferences(suites[0]))
    (folder / "status").write_text("")
    how = settings(folder)
    run("apt-get", *how, "-q", "update")
    run("apt-get", *how, "-q", "-y", "--download-only", "install", *wanted)
    versions = {}
    for package in sorted((folder / "cache" / "archives").glob("*.deb")):
        run("dpkg-deb", "-x", str(package), str(folder / "unpacked"))
        name, version = run("dpkg-deb", "-W", "--showformat", "${Package} ${Version}", str(package)).split()
        versions[name] = version
        package.unlink()
    record.write_text(json.dumps(versions, indent=1, sort_keys=True) + "\n")
    return versions
