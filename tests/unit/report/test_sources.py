"""Which source files a page shows: only texts below the folder, whatever a code object names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from luthier_py.report.sources import LARGEST_BYTES, MOST_LINES, SourceFolder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    below = tmp_path / "project"
    (below / "src").mkdir(parents=True)
    (below / "src" / "a.hip").write_text("one\ntwo\n")
    (tmp_path / "secret").write_text("secret\n")
    return below


def test_files_below_the_folder_are_shown(folder: Path) -> None:
    sources = SourceFolder(folder)
    for name in ("src/a.hip", "src/../src/a.hip", str(folder / "src" / "a.hip")):
        source = sources.source(name)
        assert source.lines == ("one", "two") and not source.missing
        assert [source.line(number) for number in (-1, 0, 1, 2, 3)] == ["", "", "one", "two", ""]


def test_the_folder_may_be_a_link(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "link").symlink_to(folder)
    assert SourceFolder(folder.parent / "link").source("src/a.hip").lines
    assert SourceFolder(folder.parent / "link").source(str(folder / "src/a.hip")).lines
    monkeypatch.chdir(folder)
    assert SourceFolder(Path(".")).source(str(folder / "src/a.hip")).lines


def made(folder: Path, kind: str) -> str:
    """A name that leads to what must not be read."""
    secret, path = folder.parent / "secret", folder / kind
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "linked folder":
        path.symlink_to(folder.parent)
        return f"{kind}/secret"
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device link":
        path.symlink_to("/dev/zero")
    elif kind == "large":
        path.write_bytes(b"x" * (LARGEST_BYTES + 1))
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(1 << 32)
    elif kind == "long":
        path.write_text("\n" * (MOST_LINES + 1))
    elif kind == "binary":
        path.write_bytes(b"text\0text")
    elif kind == ".hidden/key":
        path.parent.mkdir()
        path.write_text("secret")
    elif kind == "src":
        pass
    else:
        return kind
    return kind


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("../secret", "not below"), ("/etc/passwd", "not below"), ("/dev/zero", "not below"),
        ("link", "not below"), ("linked folder", "not below"), ("device link", "not below"), ("pipe", "regular"),
        ("src", "regular"), ("large", "larger than"), ("sparse", "larger than"), ("long", "more than"),
        ("binary", "not a text"), (".hidden/key", "hidden"), ("nothing", "No such file"), ("src/a.hip/x", "Not a dir"),
        ("a\0b", "null"), ("x" * 5000, "too long"),
    ],
)  # fmt: skip
def test_everything_else_is_not(folder: Path, kind: str, why: str) -> None:
    source = SourceFolder(folder).source(made(folder, kind))
    assert source.lines == () and why in source.missing
