"""A program is given a release of ROCm: by the release's loader, with its libraries first. The release of these tests
has the loader and libc of this machine, and one library that the machine has not."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE

from luthier_py.errors import Invalid
from luthier_py.releases.fetched import FetchedRelease, fetched
from luthier_py.session.stack import release_of

LOADER = Path("/lib64/ld-linux-x86-64.so.2")
ASKS = "import ctypes, sys; print(ctypes.CDLL('libofrelease.so.1').answer(), sys.argv, sys.prefix)"
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64" or not LOADER.exists(), reason="not Linux on x86-64")


@pytest.fixture
def release(tmp_path: Path, require_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> FetchedRelease:
    folder = tmp_path / "releases/rocm-6.4"
    libraries = folder / "unpacked/usr/lib/x86_64-linux-gnu"
    (libraries / "rocblas/4/library").mkdir(parents=True)
    shutil.copy(LOADER.resolve(), libraries / LOADER.name)
    (tmp_path / "answer.c").write_text("int answer(void) { return 42; }\n")
    library = libraries / "libofrelease.so.1"
    subprocess.run([require_tool("cc"), "-shared", "-fPIC", "-o", library, tmp_path / "answer.c"], check=True)
    program = folder / "unpacked/usr/bin/only-here"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{ASKS}\n")
    program.chmod(0o755)
    (folder / "versions.json").write_text(json.dumps({"libhsa-runtime64-1": "6.4.3"}))
    monkeypatch.setenv("LUTHIER_RELEASES", str(folder.parent))
    found = fetched("rocm-6.4")
    assert found is not None
    return found


def luthier(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from luthier_py.cli import main; main()", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **environment})


def executed(stack: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return luthier("exec", "--device", "emulator:gfx90a", "--stack", stack, "--", *words, **environment)


@pytest.mark.parametrize("stack", ["rocm-6.4", "luthier-6.4"])
def test_a_program_finds_its_libraries(release: FetchedRelease, stack: str) -> None:
    done = executed(stack, sys.executable, "-c", ASKS, "word")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"42 ['-c', 'word'] {sys.prefix}\n"
    assert subprocess.run([sys.executable, "-c", ASKS], capture_output=True).returncode == 1


@pytest.mark.parametrize("line", [f"#!{sys.executable}", f"#!{sys.executable} -I", "#!/usr/bin/env python-of-test"])
def test_a_script_is_given_it_too(release: FetchedRelease, line: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"{line}\n{ASKS}\n")
    script.chmod(0o755)
    (tmp_path / "python-of-test").symlink_to(sys.executable)
    done = executed("rocm-6.4", str(script), "word", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.stdout.startswith(f"42 ['{script}', 'word']"), done.stderr


def test_programs_of_its_packages_are_found_behind_all_others(release: FetchedRelease) -> None:
    assert executed("rocm-6.4", "only-here").stdout.startswith("42 ")
    assert "there is no program only-here" in executed("luthier", "only-here").stderr
    environment = release.environment({"PATH": "/a:/b", "ROCBLAS_TENSILE_LIBPATH": "mine"})
    assert environment["PATH"] == f"/a:/b:{release.root}/usr/bin" and "ROCBLAS_TENSILE_LIBPATH" not in environment
    assert release.environment({})["ROCBLAS_TENSILE_LIBPATH"] == str(release.libraries / "rocblas/4/library")


def test_a_program_is_told_its_own_file(release: FetchedRelease, require_tool: Callable[[str], str],
                                        tmp_path: Path) -> None:
    """HIP looks there for code objects; it gets no longer text, nor a byte behind it."""
    source, program = tmp_path / "where.c", tmp_path / "where"
    source.write_text("""
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    char whole[4096] = "", begun[8] = "1234567";
    long length = readlink("/proc/self/exe", whole, sizeof whole);
    printf("%s %d %ld %.4s|%s\\n", whole, whole[length], readlink("/proc/self/exe", begun, 4), begun, begun + 4);
}
""")
    subprocess.run([require_tool("cc"), "-O0", "-o", program, source], check=True)
    expected = f"{program} 0 4 {str(program)[:4]}|567\n"
    for stack in ("rocm-6.4", "luthier"):
        assert executed(stack, str(program)).stdout == expected
    assert executed("rocm-6.4", "sh", "-c", f"{program}; {program}").stdout == expected * 2


def test_what_a_program_starts_is_the_machines(release: FetchedRelease) -> None:
    inner = "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'print(6)'], capture_output=True))"
    done = executed("luthier-6.4", sys.executable, "-c", inner)
    assert "returncode=0" in done.stdout and "6\\n" in done.stdout


def test_what_is_no_program_is_said_as_without_it(release: FetchedRelease, tmp_path: Path) -> None:
    assert "there is no program nothing" in executed("rocm-6.4", "nothing").stderr
    (tmp_path / "text").write_text("no program\n")
    (tmp_path / "text").chmod(0o755)
    assert executed("rocm-6.4", str(tmp_path / "text")).returncode != 0


def test_a_release_that_is_not_here(release: FetchedRelease) -> None:
    done = executed("rocm-7.2", "true")
    assert done.returncode == 2 and "`luthier fetch rocm-7.2` brings it" in done.stderr
    assert "did you mean rocm-6.4" in executed("rocm-6.5", "true").stderr
    with pytest.raises(Invalid, match="luthier fetch"):
        release_of("luthier-5.2")
    (release.libraries / LOADER.name).unlink()
    assert "`luthier fetch rocm-6.4` again" in executed("rocm-6.4", "true").stderr


def test_an_installed_rocm_comes_before_a_fetched_one(
    release: FetchedRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luthier_py.session.stack.find_library", lambda name: None)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "nowhere"))
    assert release_of("rocm") == release and release_of("luthier") is None
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed/libhsa-runtime64.so.1").write_text("")
    assert release_of("rocm", [tmp_path / "installed"]) is None
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "installed"))
    assert release_of("rocm") is None and release_of("rocm-6.4") == release
