"""The walks of docs/adding are followed from their pages alone: files are written, commands are typed, and what these
print is what the page shows. What a walk first takes away is there again when it ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from linked import check_links
from walks import ROOT, Write, copy_tree, steps, touched

FOLDER = ROOT / "docs" / "adding"
PAGES = {page.stem: page for page in (*FOLDER.glob("*.md"), ROOT / "docs" / "new-rocm.md") if page.stem != "README"}
RESTORED = {"instruction", "target", "hip-function", "hazard"}
"""Walks that take away what is there, and bring it back."""
ALSO = {
    "instruction": ("tests", "pyproject.toml"), "intrinsic": ("docs/device-python.md",),
    "check": ("docs/output.schema.json",), "new-rocm": ("tests/stacks/stacks.py",),
}
"""What beside the product a walk needs."""
NEEDS = {"hip-function": "cc", "check": "cc", "intrinsic": "clang++-22"}
SLOW = {"target", "hip-function"}
"""They make all tables, and the HIP library, whose name in the cache has the folder in it that it is made from."""


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in sorted(PAGES)])
def test_a_walk(
    name: str, tmp_path: Path, require_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in NEEDS:
        require_tool(NEEDS[name])
    if name in SLOW:
        monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path / "cache"))
    page = PAGES[name].read_text("utf-8")
    copy_tree(tmp_path, *ALSO.get(name, ()))
    found = steps(page)
    for step in found:
        step.carry_out(tmp_path)
    files = {step.path for step in found if isinstance(step, Write) and step.counts}
    assert files == touched(page)
    if name in RESTORED:
        assert [path for path in files if (tmp_path / path).read_bytes() != (ROOT / path).read_bytes()] == []


def test_pages_link_what_is_there() -> None:
    index = (FOLDER / "README.md").read_text("utf-8")
    check_links((ROOT / "CONTRIBUTING.md").read_text("utf-8"), ROOT)
    check_links(index, FOLDER)
    for page in PAGES.values():
        check_links(page.read_text("utf-8"), page.parent)
        assert f"({os.path.relpath(page, FOLDER)})" in index
