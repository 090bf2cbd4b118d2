"""Copies from the user's cache: the same as made now, made again when damaged, never met by another tool or kernel."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from luthier_py.binary.loader import load
from luthier_py.host.worker.instrument import patching
from luthier_py.host.worker.instrument.patching import Copy, pack, patch, unpack
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import SAMPLES

STAGES = {"jit", "inject", "link", "check"}
CODE = {sample.name: sample.path.read_bytes() for sample in SAMPLES}
ELSEWHERE = """
import sys
from pathlib import Path
from luthier_py.rewrite.tool import load_tool
from luthier_py.host.worker.instrument.patching import patch
print(patch(Path(sys.argv[1]).read_bytes(), load_tool(sys.argv[2]), sys.argv[3]).cached)
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def kernel_of(name: str) -> str:
    return load(CODE[name], name).kernels[0].name


def made_by(name: str, tool: str = "instr_count", **options: object) -> Copy:
    return patch(CODE[name], load_tool(tool, options), kernel_of(name))


@pytest.mark.parametrize("tool", ("instr_count", "opcode_histogram", "lds_bank_conflicts", "none"))
def test_kept_copies_are_those_that_were_made(tool: str) -> None:
    first, second = made_by("bitonic_sort", tool), made_by("bitonic_sort", tool)
    assert second.cached and second.made == first.made
    assert [v.name for v in second.variables] == [v.name for v in first.variables]
    assert second.program_variables == first.program_variables
    assert STAGES <= first.seconds.keys() and not STAGES & second.seconds.keys()


def test_another_process_finds_them(own_cache: Path) -> None:
    sample = next(sample for sample in SAMPLES if sample.name == "bitonic_sort")
    made_by(sample.name, "lds_bank_conflicts")
    command = [sys.executable, "-c", ELSEWHERE, str(sample.path), "lds_bank_conflicts", kernel_of(sample.name)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"
    assert len(list((own_cache / "copies").glob("*/*"))) == 1


def test_what_differs_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known = made_by("reduce")
    others = [
        made_by("reduce", "opcode_histogram"), made_by("reduce", COUNT_WARP_LEVEL=0), made_by("reduce_padded"),
        made_by("reduce", INSTR_BEGIN=1),
    ]  # fmt: skip
    monkeypatch.setattr(patching, "installation", lambda: "another version")
    others.append(made_by("reduce"))
    assert all("inject" in other.seconds for other in others)
    assert others[-1].made == known.made and all(other.made != known.made for other in others[:-1])


@pytest.mark.parametrize("damage", (lambda d: d[:-1], lambda d: b"", lambda d: d[:40] + b"x" + d[41:]))
def test_damage(damage: Callable[[bytes], bytes], own_cache: Path) -> None:
    first = made_by("vector_add")
    (path,) = (own_cache / "copies").glob("*/*")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    again = made_by("vector_add")
    assert "inject" in again.seconds and again.made == first.made and path.read_bytes() == whole


def test_packing() -> None:
    made = made_by("vector_add").made
    assert unpack(pack(made)) == made and made.cloned is not None
    left = replace(made, cloned=None)
    assert unpack(pack(left)) == left
