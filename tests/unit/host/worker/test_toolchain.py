"""What hiprtc's compiler is found by, and what its device library is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from executables import executable

from luthier_py.base.errors import Unsupported
from luthier_py.host.hiprtc.linking import device_library
from luthier_py.isa import target
from luthier_py.rewrite.clang import search as clang_search
from luthier_py.rewrite.clang.library import constants, library_folder
from luthier_py.rewrite.clang.search import (
    CLANG,
    HEADERS,
    NO_COMPILER,
    NO_HEADERS,
    NO_LIBRARY,
    NO_LINKER,
    Search,
    Toolchain,
    processors,
)

ABLE = "#!/bin/sh\necho 'Available CPUs for this target:' >&2\nfor name in {}; do echo \"    $name\" >&2; done\n"


def headers_of(folder: Path, major: int) -> Path:
    (folder / "hip").mkdir(parents=True)
    (folder / "hip" / "hip_runtime.h").touch()
    (folder / "hip" / "hip_version.h").write_text(f"#define HIP_VERSION_MAJOR {major}\n#define HIP_VERSION_MINOR 2\n")
    return folder


def test_compilers_in_their_order(tmp_path: Path) -> None:
    """ROCm's, then the newest of the search path that knows the processor; one that names no processors is none."""
    folder, rocm = tmp_path / "bin", tmp_path / "opt" / "rocm-1" / "llvm" / "bin"
    old = executable(folder / "clang++-9", ABLE.format("gfxold gfxboth"))
    new = executable(folder / "clang++-10", ABLE.format("gfxnew gfxboth"))
    executable(folder / "clang++-11", "#!/bin/sh\nexit 1\n")
    search = Search(tmp_path, {"PATH": str(folder)})
    assert [search.compiler(name) for name in ("gfxold", "gfxboth", "gfxnew", "gfxother")] == [old, new, new, new]
    first = executable(rocm / "clang++", ABLE.format("gfxboth"))
    assert search.compiler("gfxboth") == first and search.compiler("gfxold") == old
    chosen = Search(tmp_path, {"PATH": str(folder), CLANG: "clang++-9"})
    assert chosen.compiler("gfxnew") == old


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clang_search, "_of_triton", lambda below: [])
    folder = tmp_path / "bin"

    def words(**environment: str) -> str:
        with pytest.raises(Unsupported) as raised:
            Search(tmp_path, {"PATH": str(folder), **environment}).toolchain("gfxboth")
        return str(raised.value)

    assert words() == NO_COMPILER
    assert "nowhere" in words(**{CLANG: "nowhere"})
    executable(folder / "clang++", ABLE.format("gfxboth"))
    assert words() == NO_LINKER
    (folder / "ld.lld").touch()
    assert words() == NO_HEADERS
    headers = headers_of(tmp_path / "usr" / "include", 6)
    assert words() == NO_LIBRARY
    library = tmp_path / "library"
    library.mkdir()
    for name in ("ocml.bc", "ockl.bc"):
        (library / name).touch()
    found = Search(tmp_path, {"PATH": str(folder), "HIP_DEVICE_LIB_PATH": str(library)}).toolchain("gfxboth")
    assert (found.headers, found.library, found.version) == (headers, library, (6, 2))


def test_headers_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, system = headers_of(tmp_path / "triton", 7), headers_of(tmp_path / "usr" / "include", 6)
    monkeypatch.setattr(clang_search, "_of_triton", lambda below: [own])
    assert Search(tmp_path, {}).headers() == own
    assert Search(tmp_path, {HEADERS: str(system)}).headers() == system
    rocm = headers_of(tmp_path / "opt" / "rocm" / "include", 5)
    assert Search(tmp_path, {}).headers() == rocm


def test_processors(require_tool: Callable[[str], str]) -> None:
    assert {"gfx90a", "gfx942"} <= processors(require_tool("clang++-22"))
    assert processors("/bin/true") == processors("/nonexistent") == frozenset()


def test_the_library_is_made_in_its_own_folder_and_in_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setenv("LC_ALL", "fr_FR.UTF-8")
    told = tmp_path / "told"
    compiler = executable(tmp_path / "clang++", f'#!/bin/sh\necho "$TMPDIR" "$LC_ALL" >{told}\nfor name in *.ll; do '
                                                'echo made >"${name%.ll}.bc"; done\n')
    (tmp_path / "given").mkdir()
    for name in ("ocml.bc", "ockl.bc"):
        (tmp_path / "given" / name).touch()
    folder = library_folder(Toolchain(compiler, tmp_path, tmp_path / "given", (6, 2)), "gfx90a", tmp_path / "made")
    assert told.read_text() == f"{folder} C\n"
    assert {path.stem for path in folder.glob("*.bc")} >= constants("gfx90a").keys()


@pytest.mark.parametrize("name, wave, number", [
    ("gfx803", "on", 8003), ("gfx90a", "on", 9010), ("gfx9-4-generic", "on", 9400), ("gfx1030", "off", 10300),
])  # fmt: skip
def test_what_the_device_library_is_told(name: str, wave: str, number: int, tmp_path: Path) -> None:
    """By files that the compiler's driver has names for."""
    version = f"oclc_isa_version_{name.removeprefix('gfx')}"
    assert f" i32 {number}\n" in constants(name)[version]
    for path in (f"oclc_wavefrontsize64_{state}" for state in ("on", "off")):
        (tmp_path / f"{path}.bc").touch()
    (tmp_path / f"{version}.bc").touch()
    taken = [Path(word).stem for word in device_library(tmp_path, target(name)) if word.endswith(".bc")]
    assert taken == [f"oclc_wavefrontsize64_{wave}", version]
