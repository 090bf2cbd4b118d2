"""Releases of ROCm are fetched by apt, into a folder: an apt-get and a dpkg-deb that are scripts say what they were
asked for, and packages are folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE

from luthier_py.base.errors import Invalid, LuthierError, Unsupported
from luthier_py.host.releases import apt
from luthier_py.host.releases.apt import Wanted, unpack
from luthier_py.host.releases.fetched import fetch_release, find_fetched_release, list_fetched_releases, releases_folder
from luthier_py.host.releases.table import RELEASES, release_called

APT = r"""#!/bin/sh
echo "$@" >> "$ASKED"
case "$*" in
*indextargets*) printf 'somewhere:/security Debian-Security\nsomewhere:/debian Debian\n' ;;
*--print-uris*) printf "'u1' a.deb 1500000000 SHA256:1\n'u2' b.deb 500000000 SHA256:2\n" ;;
*--download-only*)
    if [ -n "$BROKEN" ]; then echo "E: Unable to locate package nothing" >&2; exit 100; fi
    for word in "$@"; do case "$word" in Dir::Cache=*) cache=${word#*=} ;; esac; done
    for word in "$@"; do last=$word; [ -z "$on" ] || echo "$word" > "$cache/archives/$word.deb"
        [ "$word" != install ] || on=1; done ;;
esac
"""
DPKG = r"""#!/bin/sh
case "$1" in
-x) mkdir -p "$3/usr/share" "$3/usr/lib/x86_64-linux-gnu" "$3/usr/include/hip" "$3/usr/include/linux"
    echo smi > "$3/usr/lib/x86_64-linux-gnu/librocm_smi64.so.7"; cp "$2" "$3/usr/share" ;;
-f) printf 'Package: %s\nSource: all\nVersion: 1.0-2\nDescription: a package\n of two lines\n' "$(cat "$2")" ;;
esac
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("apt-get", APT), ("dpkg-deb", DPKG)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.setenv("LUTHIER_RELEASES", str(tmp_path / "releases"))
    (tmp_path / "keys").write_text("")
    monkeypatch.setattr(apt, "KEYRING", str(tmp_path / "keys"))
    return lambda: (tmp_path / "asked").read_text().splitlines()


def test_packages_are_unpacked_and_what_is_there_stays(tmp_path: Path, asked: Callable[[], list[str]]) -> None:
    said: list[str] = []
    found = unpack(Wanted(("new", "old"), ("libone", "libtwo")), tmp_path / "here", said.append)
    assert found == {"libone": "1.0-2", "libtwo": "1.0-2"}
    unpacked = (tmp_path / "here/unpacked/usr/share").iterdir()
    assert sorted(path.name for path in unpacked) == ["libone.deb", "libtwo.deb"]
    assert not list((tmp_path / "here/cache/archives").glob("*.deb"))
    assert any("2 packages, 2.0 GB" in line for line in said)
    sources = (tmp_path / "here/sources.list").read_text().splitlines()
    assert [line.split()[2:] for line in sources] == [["somewhere:/debian", suite, "main"] for suite in ("new", "old")]
    assert "Pin: release a=new\n" in (tmp_path / "here/preferences").read_text()
    assert all(f"Dir::State::status={tmp_path}/here/status" in line for line in asked()[1:])
    before = len(asked())
    assert unpack(Wanted(("new",), ("libtwo",)), tmp_path / "here", said.append) == found and len(asked()) == before
    found = unpack(Wanted(("new",), ("libthree",)), tmp_path / "here", said.append)
    assert set(found) == {"libone", "libtwo", "libthree"}
    status = (tmp_path / "here/status").read_text()
    assert status.count("Status: install ok installed\n\nPackage: ") == 2  # apt knows what it need not fetch again


def test_a_mirror_is_taken_as_given(tmp_path: Path, asked: Callable[[], list[str]]) -> None:
    unpack(Wanted(("new",), ("libone",), "elsewhere:/debian"), tmp_path / "here", str)
    assert "elsewhere:/debian new main" in (tmp_path / "here/sources.list").read_text()
    assert not any("indextargets" in line for line in asked())


def test_what_apt_says_is_said(
    tmp_path: Path, asked: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKEN", "1")
    with pytest.raises(LuthierError, match="apt-get failed(.|\n)*E: Unable to locate package nothing"):
        unpack(Wanted(("new",), ("nothing",)), tmp_path / "here", str)
    assert apt.versions_in(tmp_path / "here") == {}
    monkeypatch.delenv("BROKEN")
    unpack(Wanted(("new",), ("libone",)), tmp_path / "here", str)
    (tmp_path / "tools/dpkg-deb").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(LuthierError, match="dpkg-deb failed"):
        unpack(Wanted(("new",), ("libtwo",)), tmp_path / "here", str)
    assert apt.versions_in(tmp_path / "here") == {}  # what is half unpacked is not there
    monkeypatch.setattr(apt, "KEYRING", str(tmp_path / "none"))
    with pytest.raises(Unsupported, match="apt install debian-archive-keyring"):
        unpack(Wanted(("new",), ("one",)), tmp_path / "here", str)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unsupported, match="there is no apt-get"):
        unpack(Wanted(("new",), ("one",)), tmp_path / "here", str)


def test_the_command(asked: Callable[[], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = [sys.executable, "-c", "from luthier_py.host.releases import apt; "
            f"apt.KEYRING = {str(tmp_path / 'keys')!r}\n"
            "from luthier_py.cli import main; main()", "fetch"]

    def fetch(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*main, *words], capture_output=True, text=True, timeout=PATIENCE)

    done = fetch()
    assert done.returncode == 0 and done.stdout.count("not here") == len(RELEASES)
    done = fetch("rocm-7.2", "librocblas5")
    assert done.returncode == 0 and "--stack rocm-7.2" in done.stderr and not done.stdout
    here = find_fetched_release("rocm-7.2")
    assert here is not None and set(here.versions) == {*RELEASES["rocm-7.2"].runtime, "librocblas5"}
    assert [each.name for each in list_fetched_releases()] == ["rocm-7.2"]
    home = tmp_path / "releases/rocm-7.2/rocm"
    assert (home / "lib").resolve() == here.libraries.resolve()
    assert [path.name for path in (home / "include").iterdir()] == ["hip"]
    also = [folder for folder in here.folders if (folder / "librocm_smi64.so.1").exists()]
    assert [(folder / "librocm_smi64.so.1").read_text() for folder in also] == ["smi\n"]
    [facts] = [row for row in json.loads(fetch("--json").stdout)["releases"] if row["name"] == "rocm-7.2"]
    assert facts["folder"] == str(tmp_path / "releases/rocm-7.2") and "librocfft0" in facts["missing"]
    assert "did you mean rocm-7.2" in fetch("7.2").stderr
    done = fetch("rocm-7.1")
    assert done.returncode == 2 and "did you mean rocm-7.2" in done.stderr
    monkeypatch.setenv("LUTHIER_RELEASES", str(tmp_path / "asked" / "below"))
    assert "names another folder" in fetch("rocm-6.4").stderr


def test_one_fetches_at_a_time(asked: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Wanted(("sid",), ("libone",))
    inner: list[str] = []

    def tell(line: str) -> None:
        with pytest.raises(Invalid, match="another process fetches rocm-6.4"):
            fetch_release(RELEASES["rocm-6.4"], wanted, str)
        inner.append(line)

    assert fetch_release(RELEASES["rocm-6.4"], wanted, tell).versions == {"libone": "1.0-2"} and len(inner) == 3


def test_folders_that_the_loader_would_split(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LUTHIER_RELEASES", f"{tmp_path}/a:b")
    with pytest.raises(Invalid, match="LUTHIER_RELEASES names another"):
        find_fetched_release("rocm-6.4")
    monkeypatch.setenv("LUTHIER_RELEASES", "here")
    monkeypatch.chdir(tmp_path)
    assert releases_folder() == tmp_path / "here"


def test_releases_are_found_by_name() -> None:
    assert release_called("rocm-6.4").suites == ("sid",)
    with pytest.raises(Invalid, match=f"there are {', '.join(RELEASES)}"):
        release_called("rocm")
    with pytest.raises(Invalid):
        find_fetched_release("../rocm-6.4")
