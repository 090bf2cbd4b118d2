"""Structures that the application has in private memory are read as its instructions read them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from test_near_pointers import JUDGED, OPTIONS, RUN_HERE, Read, ran

from luthier_py.intrinsics import atomic_add
from luthier_py.isa import AddressForm
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Hook, Lane, hook, ptr, scratch, u32, u64
from luthier_py.samples import sample


class Pair:
    first: u32
    second: u32


@hook
def whole(sums: ptr[u64], place: Lane[scratch[Pair]], dword: u32, number: u32) -> None:
    own = place[dword // 2]
    atomic_add(sums + number, u64(own.second if dword % 2 else own.first))


@hook
def member(sums: ptr[u64], place: Lane[scratch[Pair]], dword: u32, number: u32) -> None:
    atomic_add(sums + number, u64(place[dword // 2].second if dword % 2 else place[dword // 2].first))


@pytest.mark.parametrize("one", [whole, member], ids=lambda one: one.name)
@pytest.mark.parametrize("gpu", [*RUN_HERE, *JUDGED])
def test_in_private_memory(gpu: str, one: Hook, require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """Those targets that do not run here are proved only."""
    source, code = sample("scratch").path.with_suffix(".hip"), tmp_path / "scratch.co"
    subprocess.run([require_tool("clang-22"), *OPTIONS, f"--offload-arch={gpu}", source, "-o", code], check=True)
    tool = Read(AddressForm.SCRATCH, one)
    if gpu not in RUN_HERE:
        assert instrument(code.read_bytes(), tool).patched.kernels and tool.count > 0
        return
    report = ran("scratch", tool, code.read_bytes())
    assert report["before"] == report["after"] and any(report["before"])
