"""Objects that were linked from several, with a metadata note of each (Tensile's libraries have hundreds)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled_samples import OPTIONS

from luthier_py.base.errors import Malformed
from luthier_py.binary.loader import load
from luthier_py.binary.loader.codeobject import find_metadata
from luthier_py.binary.loader.note import merge_metadata
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import FOLDER, sample

NAMES = "saxpy", "reduce", "transpose"


@pytest.fixture(scope="module")
def linked(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    clang, lld, folder = require_tool("clang-22"), require_tool("ld.lld-22"), tmp_path_factory.mktemp("linked")

    def run(*words: str | Path) -> None:
        subprocess.run(words, check=True)

    parts = [folder / f"{name}.o" for name in NAMES]
    for part in parts:
        text = part.with_suffix(".s")
        run(clang, *OPTIONS, "-O2", "-S", "--offload-arch=gfx90a", FOLDER / f"{part.stem}.hip", "-o", text)
        run(clang, "--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-c", text, "-o", part)
    run(lld, "-shared", "-z", "muldefs", *parts, "-o", folder / "all.co")
    return (folder / "all.co").read_bytes()


def kernels(data: bytes) -> list[str]:
    return [kernel.name for kernel in load(data).kernels]


def test_all_are_read(linked: bytes) -> None:
    found = find_metadata(load(linked).elf)
    assert found is not None and sum(note.is_metadata for note in found[1]) == len(NAMES)
    assert kernels(linked) == list(NAMES)
    assert load(linked).metadata["amdhsa.target"].endswith("gfx90a")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("apart", [False, True])
def test_each_is_counted(linked: bytes, name: str, apart: bool) -> None:
    """The copy's notes have all kernels and the new ones."""
    tool, launch = load_tool("instr_count", {}), launch_of(sample(name))
    device = EmulatorDevice(load(linked).target)
    stated = run_original(device, linked, launch).outputs
    counts = device.profile.counts
    made = instrument(linked, tool, apart=apart)
    new = [f"{each}.luthier" for each in NAMES]
    assert sorted(kernels(made.data)) == sorted(new if apart else [*NAMES, *new])
    after = run_instrumented(device, made, tool, launch)
    assert {n: data.tobytes() for n, data in after.outputs.items()} == {n: data.tobytes() for n, data in stated.items()}
    assert after.report["instructions"] == sum(counts.values())


ONE = {"amdhsa.version": [1, 2], "amdhsa.kernels": [{".name": "a"}]}


def test_documents_become_one() -> None:
    other = {"amdhsa.printf": ["1:1:4:%d"], "amdhsa.version": [1, 2], "amdhsa.kernels": [{".name": "b"}]}
    assert merge_metadata([ONE, other, {"amdhsa.version": [1, 2]}], "x") == {
        **other, "amdhsa.kernels": [{".name": "a"}, {".name": "b"}]}  # fmt: skip


@pytest.mark.parametrize(("other", "what"), [
    ({"amdhsa.version": [1, 1]}, "amdhsa.version"), ({"amdhsa.kernels": 7}, "amdhsa.kernels is a int")])  # fmt: skip
def test_documents_that_disagree(other: dict[str, object], what: str) -> None:
    with pytest.raises(Malformed, match=what):
        merge_metadata([ONE, other], "x")
