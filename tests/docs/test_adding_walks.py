"""The walks of docs/adding are followed from their pages alone: files are written, commands are typed, and what these
print is what the page shows. What a walk first takes away is there again when it ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from linked import check_links
from walks import ROOT, Write, changed, copy_tree, steps, touched

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


def follow(page: str, folder: Path) -> bool:
    """Whether the walk writes the files that the page says; AssertionError at a step that is not as the page has it."""
    found = steps(page)
    for step in found:
        step.carry_out(folder)
    return {step.path for step in found if isinstance(step, Write) and step.counts} == touched(page)


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
    assert follow(page, tmp_path)
    assert changed(tmp_path, *ALSO.get(name, ())) == (set() if name in RESTORED else touched(page))


def test_pages_link_what_is_there() -> None:
    index = (FOLDER / "README.md").read_text("utf-8")
    check_links((ROOT / "CONTRIBUTING.md").read_text("utf-8"), ROOT)
    check_links((ROOT / "docs" / "architecture.md").read_text("utf-8"))
    check_links(index, FOLDER)
    for page in PAGES.values():
        check_links(page.read_text("utf-8"), page.parent)
        assert f"({os.path.relpath(page, FOLDER)})" in index


SMALL = """\
You touch 1 file:

* `words.txt`: a line

<!-- into: words.txt after: "one" -->
In `words.txt`, below `one`:

```text
two
```

```console
$ cat words.txt
one
two
...
```
"""


@pytest.mark.parametrize(("old", "new"), [
    ("", ""), ("two\n...", "three\n..."), ("one\ntwo\n...", "...\nfour"), ("touch 1 file", "touch 2 files"),
    ('after: "one"', 'after: "e"'), ('after: "one"', 'after: "five"'), ("In `words.txt`", "Then"),
    ("<!-- into: words.txt after: \"one\" -->\n", ""), ("into: words.txt after: \"one\"", "file: words.txt"),
    ("* `words.txt`", "* `other.txt`"), ("into: words.txt after", "into: words.txt instead of"),
])
def test_what_a_page_has_wrong_is_seen(old: str, new: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("one\nthree\n")
    try:
        right = follow(SMALL.replace(old, new, 1), tmp_path)
    except AssertionError:
        right = False
    assert right == (not old)
