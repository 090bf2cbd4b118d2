"""A program is given a release of ROCm: by the release's loader, with its libraries first. The release of these tests
has the loader and libc of this machine, and one library that the machine has not."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE

from luthier_py.base.errors import Invalid
from luthier_py.features.settings.stack import release_of
from luthier_py.host.releases.fetched import FetchedRelease, find_fetched_release

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
    subprocess.run([require_tool("cc"), "-shared", "-fPIC", f"-Wl,-soname,{library.name}", "-o", library,
                    tmp_path / "answer.c"], check=True)
    program = folder / "unpacked/usr/bin/only-here"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{ASKS}\n")
    program.chmod(0o755)
    (folder / "status").write_text("Package: libhsa-runtime64-1\nVersion: 6.4.3\nStatus: install ok installed\n\n")
    monkeypatch.setenv("LUTHIER_RELEASES", str(folder.parent))
    found = find_fetched_release("rocm-6.4")
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


@pytest.mark.parametrize("line", [f"#!{sys.executable}", f"#!{sys.executable} -I", "#!/usr/bin/env python-of-test"],
                         ids=["interpreter", "with an argument", "env"])
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
    again = f"cd {tmp_path}; exec 3<.; ./where; cd /; {tmp_path}/where"
    assert executed("rocm-6.4", "sh", "-c", again).stdout == expected * 2
    inner = ("import os, sys\nos.chdir('/')\nassert os.path.samefile(os.readlink('/proc/self/exe'), sys.executable)\n"
             "if len(sys.argv) == 1: os.execv('/proc/self/exe', [sys.executable, __file__, 'again'])\n"
             "print(sys.argv[1])\n")
    (tmp_path / "inner.py").write_text(inner)
    assert executed("rocm-6.4", sys.executable, str(tmp_path / "inner.py")).stdout == "again\n"
    here = "import os, sys; os.chdir(sys.argv[1]); os.execv('where', ['where'])"
    assert executed("rocm-6.4", sys.executable, "-c", here, str(tmp_path)).stdout == expected


def test_an_exec_inside_another_has_its_own(release: FetchedRelease) -> None:
    program = "import os; print([name for name in os.environ if name.startswith(('LUTHIER_L', 'ROCM_', 'ROCBLAS'))])"
    words = [sys.executable, "-c", "from luthier_py.cli import main; main()", "exec", "--device", "emulator:gfx90a",
             "--stack", "luthier", "--", sys.executable, "-c", program]
    assert executed("rocm-6.4", *words).stdout == "['ROCM_PATH']\n"


def test_a_libc_that_is_too_old(release: FetchedRelease) -> None:
    old = "Package: libc6\nVersion: 2.17-3\nStatus: install ok installed\n\n"
    (release.root.parent / "status").write_text(old)
    done = executed("rocm-6.4", "true")
    assert done.returncode == 2 and "has libc 2.17-3, and this machine's programs are made for glibc" in done.stderr


WAYS = """
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int answer(void);
int main(int count, char **words)
{
    extern char **environ;
    char *way = words[1], *program = words[2], *child[] = {"child", "there", 0};
    if (strcmp(way, "there") == 0)
        return printf("%s %d\\n", words[0], answer()) < 0;
    pid_t pid;
    int status = -1;
    if (strcmp(way, "posix_spawn") == 0 ? posix_spawn(&pid, program, 0, 0, child, environ)
        : strcmp(way, "posix_spawnp") == 0 ? posix_spawnp(&pid, "ways", 0, 0, child, environ) : (pid = vfork(), 0))
        return 2;
    if (!pid) {
        if (strcmp(way, "execve") == 0) execve(program, child, environ);
        if (strcmp(way, "execv") == 0) execv(program, child);
        if (strcmp(way, "execvp") == 0) execvp("ways", child);
        if (strcmp(way, "execvpe") == 0) execvpe("ways", child, environ);
        if (strcmp(way, "execl") == 0) execl(program, "child", "there", (char *)0);
        if (strcmp(way, "execlp") == 0) execlp("ways", "child", "there", (char *)0);
        if (strcmp(way, "execle") == 0) execle(program, "child", "there", (char *)0, environ);
        _exit(3);
    }
    waitpid(pid, &status, 0);
    return count < 3 || status;
}
"""


@pytest.mark.parametrize("way", ["execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "posix_spawn",
                                 "posix_spawnp"])
def test_what_a_program_starts_has_it_too(
    release: FetchedRelease, way: str, tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    """The child is linked with a library that the release alone has."""
    (tmp_path / "ways.c").write_text(WAYS)
    program = tmp_path / "ways"
    subprocess.run([require_tool("cc"), "-o", program, tmp_path / "ways.c", release.libraries / "libofrelease.so.1"],
                   check=True)
    assert subprocess.run([program, "there"], capture_output=True).returncode == 127
    search = f"{tmp_path}:{os.environ['PATH']}"
    done = executed("luthier-6.4", str(program), way, str(program), PATH=search)
    assert (done.returncode, done.stdout, done.stderr) == (0, "child 42\n", "")


@pytest.mark.parametrize("command", [
    ["env", "A=b", sys.executable, "-c", ASKS, "word"], ["sh", "-c", '"$0" -c "$1" word', sys.executable, ASKS],
    [sys.executable, "-c", "import os, sys; os.system(sys.argv[1])", f"{sys.executable} -c \"{ASKS}\" word"],
    [sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)", sys.executable,
     "-c", ASKS, "word"],
])
def test_programs_that_run_others(release: FetchedRelease, command: list[str]) -> None:
    done = executed("rocm-6.4", *command)
    assert done.stdout == f"42 ['-c', 'word'] {sys.prefix}\n", done.stderr


def test_what_is_no_program_of_this_machine_stays_as_it_is(release: FetchedRelease, tmp_path: Path) -> None:
    """Kernels say why they do not start something."""
    for name, text in (("nothing", "text\n"), ("script", "#!/no/such/interpreter\n"), ("empty", ""), ("hash", "#!\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    inner = ("import subprocess, sys\nfor each in sys.argv[1:]:\n"
             "    try: subprocess.run([each])\n    except OSError as error: print(error.errno)")
    names = "nothing", "script", "empty", "hash", "none"
    words = [sys.executable, "-c", inner, *(str(tmp_path / name) for name in names)]
    assert executed("rocm-6.4", *words).stdout == executed("luthier", *words).stdout == "8\n2\n8\n8\n2\n"
    loop = tmp_path / "loop"
    loop.write_text(f"#!{loop}\n")
    loop.chmod(0o755)
    assert executed("rocm-6.4", *words[:3], str(loop)).stdout == executed("luthier", *words[:3], str(loop)).stdout != ""
    for word in ("nothing", "script"):  # as the first program, too
        given = str(tmp_path / word)
        assert executed("rocm-6.4", given).stderr == executed("luthier", given).stderr != ""


def test_what_is_no_program_is_said_as_without_it(release: FetchedRelease, tmp_path: Path) -> None:
    assert "there is no program nothing" in executed("rocm-6.4", "nothing").stderr
    assert executed("rocm-6.4", "env", "nothing").stderr == executed("luthier", "env", "nothing").stderr != ""
    assert executed("rocm-6.4", "sh", "-c", "exit 3").stderr == luthier(
        "exec", "--stack", "rocm-6.4", "--", "sh", "-c", "exit 3").stderr == ""


@pytest.mark.parametrize(("stack", "given", "expected"), [
    ("luthier-6.4", {}, "2097152"), ("luthier-6.4", {"LUTHIER_MEMORY_GRANULARITY": "1"}, "1"),
    ("luthier-6.4", {"LUTHIER_CHECK": "bounds"}, ""), ("luthier", {}, ""), ("rocm-6.4", {}, ""),
])
def test_libraries_may_read_behind_their_buffers(
    release: FetchedRelease, stack: str, given: dict[str, str], expected: str
) -> None:
    done = executed(stack, "sh", "-c", "echo $LUTHIER_MEMORY_GRANULARITY", **given)
    assert done.stdout == f"{expected}\n"


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
    monkeypatch.setattr("luthier_py.features.settings.stack.find_library", lambda name: None)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "nowhere"))
    assert release_of("rocm") == release and release_of("luthier") is None
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed/libhsa-runtime64.so.1").write_text("")
    assert release_of("rocm", [tmp_path / "installed"]) is None
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "installed"))
    assert release_of("rocm") is None and release_of("rocm-6.4") == release
