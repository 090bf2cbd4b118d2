"""The C libraries: built without a warning, kept by content, with the real library's names and versions."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from luthier_py.base import c_libraries
from luthier_py.base.errors import Unsupported
from luthier_py.host.hip import ABI_MAJORS, runtime_folder, table
from luthier_py.host.hip.build import HERE, compile_for_majors
from luthier_py.host.native import build as native
from luthier_py.host.native.build import compile_sources
from luthier_py.host.preload import tool_library
from luthier_py.host.roctx import ROCTX_LIBRARIES


@pytest.fixture
def folder(require_tool: Callable[[str], str]) -> Path:
    require_tool("cc")
    return runtime_folder()


@pytest.fixture
def nothing_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this process has made where there was no cache, before."""
    monkeypatch.setattr(c_libraries, "_own_folder", cache(c_libraries._own_folder.__wrapped__))


@pytest.fixture
def quick_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_made: None) -> Path:
    """Takes all for compiled: where it is asked what becomes of a library. Its log: what it was called with."""
    log, compiler = tmp_path / "log", tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {log}\nfor last; do :; done\necho made > "$last"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    return log


def test_table_is_sound() -> None:
    rows = table.functions()
    names = [row.name for row in rows]
    assert len(names) == len(set(names)) and len(names) > 500
    known = {row.name for row in rows if row.implemented}
    assert {other for row in rows if (other := row.alias_of or row.thread_form_of)} <= known
    versions = [tuple(map(int, row.version.removeprefix("hip_").split("."))) for row in rows]
    assert versions == sorted(versions)


@pytest.mark.parametrize("major", ABI_MAJORS)
def test_exports(major: int, folder: Path, require_tool: Callable[[str], str]) -> None:
    """Exactly the table's functions, each under its version."""
    nm = require_tool("nm")
    library = folder / f"libamdhip64.so.{major}"
    lines = subprocess.run([nm, "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1] for line in lines.splitlines() if " T " in line}
    assert exported == {f"{row.name}@@{row.version}" for row in table.functions()}


def test_changes_of_executable_graphs_reach_the_twin(folder: Path, require_tool: Callable[[str], str]) -> None:
    """What is launched is the twin: a change that the tool does not meet would be lost."""
    command = [require_tool("nm"), "-D", "--defined-only", tool_library()]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    names = {row.name for row in table.functions()}
    changes = {name for name in names if re.fullmatch(r"hipGraphExec(\w+Set\w+|Update)", name)}
    assert len(changes) > 10 and changes <= {line.split()[-1] for line in lines}


def test_soname(folder: Path, require_tool: Callable[[str], str]) -> None:
    readelf = require_tool("readelf")
    for major in ABI_MAJORS:
        path = folder / f"libamdhip64.so.{major}"
        text = subprocess.run([readelf, "-d", path], capture_output=True, text=True, check=True).stdout
        assert f"[libamdhip64.so.{major}]" in text


def test_kept_by_content(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    assert runtime_folder() == folder
    odd = tool_library("a", 'x="2"\n')
    log = request.getfixturevalue("quick_compiler")
    assert tool_library("a", 'x="2"\n') == odd and not log.exists()
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert tool_library("a", "x=1").parent.name != odd.parent.name
    assert tool_library("a", "x=1").is_relative_to(tmp_path) and not list(temporary.iterdir())


@pytest.mark.parametrize("why", ["no folder", "full", "others may write"])
def test_a_cache_that_is_of_no_use(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], quick_compiler: Path
) -> None:
    """The library is made for this process, and that is said once."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(cache))
    if why == "no folder":
        cache.touch()
    elif why == "full":
        monkeypatch.setattr("shutil.copytree", no_space)
    else:
        cache.mkdir()
        cache.chmod(0o777)
    made = tool_library("none", why)
    assert made.is_file() and not made.is_relative_to(cache) and tool_library("none", why) == made
    said = capsys.readouterr().err
    assert said.startswith(f"luthier: working without the cache {cache}") and said.count("\n") == 1


def no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_library_that_others_could_have_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_compiler: Path
) -> None:
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path / "cache"))
    before = os.umask(0)
    try:
        made = tool_library("none", "others")
    finally:
        os.umask(before)
    parts = [tmp_path / "cache", *(tmp_path / "cache").rglob("*")]
    assert made in parts and not any(path.stat().st_mode & 0o077 for path in parts)
    made.chmod(0o722)
    assert tool_library("none", "others") != made


def test_a_damaged_library_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], quick_compiler: Path
) -> None:
    """An empty one, of a disk that was full or lost power, would end every program from then on."""
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path / "cache"))
    library = tool_library("none", "damaged")
    whole = library.read_bytes()
    assert library.is_relative_to(tmp_path / "cache") and whole
    for damage in (b"", whole[:-1] + b"!", None):
        library.unlink()
        library.mkdir() if damage is None else library.write_bytes(damage)
        assert tool_library("none", "damaged") == library and library.read_bytes() == whole
    assert capfd.readouterr().err == ""


def test_programs_with_more_rights_do_not_obey_the_environment() -> None:
    texts = {path.name: path.read_text() for path in HERE.glob("*.[ch]")}
    assert [name for name, text in texts.items() if re.search(r"(?<!secure_)getenv\(", text)] == []


@pytest.mark.parametrize("strict", ("", "1"))
def test_what_is_compiled(
    strict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_compiler: Path
) -> None:
    """Each source once, or once for each ABI where that matters to it; warnings are errors only where one asks."""
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("LUTHIER_WERROR", strict)
    folder = runtime_folder()
    lines = [line.split() for line in quick_compiler.read_text().splitlines()]
    sources = [Path(word).name for line in lines for word in line if word.endswith(".c")]
    twice = {"compiler.c", "graphs.c", "malloc.c", "pointers.c", "prepared_transfers.c", "properties.c"}
    assert {name for name in sources if sources.count(name) > 1} == twice
    linked = 2 * len(ABI_MAJORS) + len(ROCTX_LIBRARIES) + 1  # libamdhip64 and libhiprtc; that of the worker
    assert len([line for line in lines if "-shared" in line]) == linked
    assert all(("-Werror" in line) is bool(strict) for line in lines if "-c" in line)
    assert not list(folder.glob("*.o"))


def test_sources_of_one_name_in_two_rooms(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    """Their objects lie in one folder."""
    require_tool("cc")
    sources = [tmp_path / room / "same.c" for room in ("hip", "hiprtc")]
    for source in sources:
        source.parent.mkdir()
        source.write_text(f"int {source.parent.name}_function(void) {{ return 0; }}\n")
    separately = [compile_for_majors(tmp_path, [source])[7][0] for source in sources]
    for objects in (separately, compile_sources(tmp_path, sources)):
        assert len(objects) == 2
        for source, made in zip(sources, objects, strict=True):
            assert made.parent == tmp_path and f"{source.parent.name}_function".encode() in made.read_bytes()


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_made: None) -> None:
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(Unsupported, match="no-such-compiler.*apt install gcc"):
        runtime_folder()
    assert not list(tmp_path.rglob("*.so*"))


@pytest.mark.parametrize("cached", (True, False))
@pytest.mark.parametrize("name", ("a space", "a:colon", "a;semicolon", "$LIB", "${ORIGIN}", "tab\there", "plain"))
def test_the_loader_finds_libraries_whatever_the_cache_is_called(
    name: str, cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require_tool: Callable[[str], str],
    nothing_made: None,
) -> None:
    """And so in the folder for temporary files, where there is no cache."""
    require_tool("cc")
    (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path / name) if cached else "off")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path if cached else tmp_path / name))

    def compile_all(folder: Path) -> None:
        source = folder / "said.c"
        source.write_text("#include <stdio.h>\n__attribute__((constructor)) void said(void) { puts(\"loaded\"); }\n")
        c_libraries.link_library(folder / "said.so", native.compile_sources(folder, [source]))

    for _ in range(1 + cached):  # made, and found again
        folder = native.build("said", (), dict, compile_all)
        done = subprocess.run(["true"], env={"LD_PRELOAD": str(folder / "said.so"), "PATH": os.environ["PATH"]},
                              capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("loaded\n", "")
        assert tmp_path / name in folder.resolve().parents
