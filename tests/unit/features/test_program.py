"""What `luthier exec` says of programs that cannot be started, or below which nothing can be put, and of levels."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fat_binaries import bundle
from patience import PATIENCE

from luthier_py.base.errors import Invalid
from luthier_py.features.settings.levels import AUTO, HIP, HSA, choose_level
from luthier_py.features.settings.program import code_for_others, is_privileged, obstacles, program_path, search_folders
from luthier_py.rewrite.tool import Tool, load_tool
from luthier_py.samples import sample

DEVICE = "--device", "emulator:gfx90a"
Compile = Callable[..., Path]


def exec_(*arguments: str | Path, **environment: str) -> tuple[int, str]:
    """Exit code and stderr."""
    command = [sys.executable, "-c", "from luthier_py.cli import main; main()", "exec", *map(str, arguments)]
    settings = {**os.environ, "LUTHIER_DEVICE": "", "LUTHIER_STACK": "", "LUTHIER_LEVEL": "", **environment}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=settings)
    return done.returncode, done.stderr


@pytest.fixture
def compiled(tmp_path: Path, require_tool: Callable[[str], str]) -> Compile:
    """A program that does nothing, by options of the compiler."""

    def build(*options: str, source: str = "int main(void) { return 0; }\n") -> Path:
        text, program = tmp_path / "nothing.c", tmp_path / "nothing"
        text.write_text(source)
        subprocess.run([require_tool("cc"), text, "-o", program, *options], check=True)
        return program

    return build


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_there_is_nothing_to_start(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    script(tmp_path / "read-only", "#!/bin/sh\n", 0o644)
    for name, why in (
        (f"{tmp_path}/missing", "there is no program"), ("no-such-program", "there is no program"),
        (f"{tmp_path}", "is a folder"), (f"{tmp_path}/dangling", "is a link to nothing"),
        (f"{tmp_path}/read-only", "may not be executed: `chmod"),
    ):  # fmt: skip
        with pytest.raises(Invalid, match=why):
            program_path(name)


@pytest.mark.parametrize(("text", "why"), [
    ("echo\n", "nor a script whose first line names one"),
    ("#!/nonexistent/sh\n", "its first line names /nonexistent/sh, which is not there"),
])  # fmt: skip
def test_the_kernel_does_not_start_it(text: str, why: str, tmp_path: Path) -> None:
    code, err = exec_("--", script(tmp_path / "script", text))
    assert code == 2 and why in err


def test_a_static_program(compiled: Compile) -> None:
    """It runs, and nothing is observed; that is not a riddle."""
    code, err = exec_(*DEVICE, "-t", "instr_count", "--", compiled("-static"))
    assert code == 3 and "is linked statically" in err
    code, err = exec_("--", compiled("-static"))
    assert (code, err) == (0, "")


def test_a_script_is_judged_by_its_interpreter(tmp_path: Path, compiled: Compile) -> None:
    written = script(tmp_path / "script", f"#!{compiled('-static')}\n")
    assert any("is linked statically" in line for line in obstacles(written, True))
    assert not list(obstacles(script(tmp_path / "other", f"#!{compiled()}\n"), True))


def test_32_bits(compiled: Compile) -> None:
    bare = compiled("-m32", "-nostdlib", "-static", "-Wl,-e,main")
    assert ["is a program for i386 (32 bits)" in line for line in obstacles(bare, False)] == [True]


def test_other_rights(compiled: Compile) -> None:
    program = compiled()
    assert not is_privileged(program)
    if os.geteuid() == 0:
        os.chown(program, 65534, -1)
        program.chmod(0o4755)
    else:
        groups = [group for group in os.getgroups() if group != os.getgid()]
        if not groups:
            pytest.skip("neither root nor in a second group")
        os.chown(program, -1, groups[0])
        program.chmod(0o2755)
    assert is_privileged(program) and any("ignores LD_PRELOAD" in line for line in obstacles(program, False))


@pytest.mark.parametrize(("tags", "before"), [("--disable-new-dtags", True), ("--enable-new-dtags", False)])
def test_an_rpath_to_rocm(tags: str, before: bool, tmp_path: Path, compiled: Compile) -> None:
    """RUNPATH is looked at after LD_LIBRARY_PATH, so the emulator's runtime is found (ld.so(8))."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libamdhip64.so.6").touch()
    program = compiled(f"-Wl,{tags},-rpath,$ORIGIN/lib")
    assert search_folders(program) == [tmp_path / "lib"]
    assert any("has an RPATH" in line for line in obstacles(program, True)) is before
    assert not list(obstacles(program, False))


def test_hsa_where_there_is_none(tmp_path: Path, compiled: Compile) -> None:
    """Programs on HSA itself or OpenMP, on the emulator's HIP runtime."""
    compiled("-shared", "-fPIC", "-Wl,-soname,libhsa-runtime64.so.1").rename(tmp_path / "libhsa-runtime64.so.1")
    program = compiled("-Wl,--no-as-needed", f"-L{tmp_path}", "-l:libhsa-runtime64.so.1", "-Wl,-rpath,$ORIGIN")
    code, err = exec_(*DEVICE, "-t", "instr_count", "--", program)
    assert code == 3 and "uses libhsa-runtime64.so.1, and the emulator's HIP runtime has HIP alone: --stack rocm" in err


def test_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LUTHIER_LEVEL", raising=False)
    monkeypatch.delenv("LUTHIER_OWN_KERNELS", raising=False)
    tool: Tool = load_tool("instr_count")
    own: Tool = load_tool("instr_count", {"LUTHIER_OWN_KERNELS": "1"})
    assert [choose_level(level, False, tool) for level in (None, AUTO, HIP, HSA)] == [AUTO, AUTO, HIP, HSA]
    assert choose_level(None, False, own) == choose_level(HSA, False, own) == HSA  # no other sees them
    assert choose_level(None, True, own) == AUTO  # the emulator's HIP runtime has none
    for level, ours, with_tool, why in (
        ("cuda", False, tool, "level cuda is unknown; give auto, hip, hsa"), (HSA, False, None, "give one with -t"),
        (HSA, True, tool, "--stack rocm has"), (HIP, False, own, "only seen at level hsa"),
    ):  # fmt: skip
        with pytest.raises(Invalid, match=why):
            choose_level(level, ours, with_tool)
    monkeypatch.setenv("LUTHIER_LEVEL", HSA)
    assert (choose_level(None, False, tool), choose_level(HIP, False, tool)) == (HSA, HIP)
    assert choose_level(None, False, None) == HSA  # of the shell's variable nothing is said


def test_a_level_without_a_tool_is_wrong_usage() -> None:
    code, err = exec_(*DEVICE, "--level", "hsa", "--", "true")
    assert code == 2 and "give one with -t" in err


@pytest.mark.parametrize(("device", "said"), [
    ("emulator:gfx90a", []), ("emulator:gfx90a,emulator:gfx906*2", ["gfx906:sramecc+:xnack-"]),
    ("emulator:gfx1100,emulator:gfx1030", ["gfx1100", "gfx1030"]),
])
def test_code_for_other_devices(device: str, said: list[str], tmp_path: Path) -> None:
    """A program carries its code in a bundle, wherever that lies."""
    path = tmp_path / "program"
    path.write_bytes(b"\x7fELF" + bytes(4092) + bundle(
        *((f"hipv4-amdgcn-amd-amdhsa--{name}", sample("saxpy").path.read_bytes()) for name in ("gfx90a", "gfx908"))))
    assert list(code_for_others(path, device)) == [
        f"{path} has code for gfx90a, gfx908, and nothing that runs on {name}: compile it with --offload-arch="
        f"{name.partition(':')[0]}" for name in said]
    path.write_bytes(b"#!/bin/sh\n")
    assert list(code_for_others(path, device)) == list(code_for_others(tmp_path / "none", device)) == []
