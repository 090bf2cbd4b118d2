"""The committed bitcode is what the C beside it compiles to, with the records of layout, and says nothing of a host."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from luthier_py.base import llvm
from luthier_py.emulator.native import generate
from luthier_py.emulator.native.bitcode import FOLDER

FILES = sorted(path.name for path in FOLDER.glob("*.bc"))


def test_bitcode_was_made_of_these_sources_and_records() -> None:
    """`make native` writes it again."""
    assert (FOLDER / generate.MADE_OF).read_text() == generate.key_of_sources() + "\n"
    assert FILES == sorted(f"{source.stem}.{lanes}.bc" for source in generate.SOURCES.glob("*.c") for lanes in (32, 64))


def test_compiling_again_gives_the_same_bytes(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    version = subprocess.run([require_tool("clang-22"), "--version"], capture_output=True, text=True, check=True)
    if not version.stdout.startswith(generate.COMPILER):
        require_tool(generate.COMPILER)
    require_tool("opt-22")
    generate.compile_sources(tmp_path)
    made, kept = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in (tmp_path, FOLDER))
    assert made == kept


@pytest.mark.parametrize("name", FILES)
def test_bitcode_is_of_no_target(name: str) -> None:
    """Or the host's features would not be those of the code, and functions of two targets are not inlined."""
    text = llvm.bitcode_text((FOLDER / name).read_bytes())
    assert "target" not in text and "frame-pointer" not in text.partition("attributes #")[2].partition("!llvm")[0]
