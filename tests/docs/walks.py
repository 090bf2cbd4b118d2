"""A worked walk of docs/adding, followed by its page alone.

In: a page. A comment that readers do not see stands above each block of code and says what to do with it:

    <!-- file: path -->                      the block is that file, which is new
    <!-- scratch: path -->                   the same, of a file that is none of the project's
    <!-- into: path after: "text" -->        the block comes behind the one line of that file that has the text;
                                             `before:` and `instead of:` likewise

and a block of the kind `console` has commands behind `$`, each with what it prints; a line `...` stands for any lines.
Out: the walk's steps in order, and the files that the page says it touches. Invariant: whatever a step does not find as
the page has it is an AssertionError.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = "luthier_py", "tools", "intrinsics", "tests/data"
_STEP = re.compile(
    r'^<!-- (?P<kind>file|scratch|into): (?P<path>\S+?)(?: (?P<where>after|before|instead of): "(?P<anchor>.*)")? -->\n'
    r"(?P<words>(?:(?!```|<!--).*\n)*)```\w+\n(?P<text>(?s:.*?))^```$|^```console\n(?P<console>(?s:.*?))^```$",
    re.MULTILINE)
_TOUCHED = re.compile(r"^You touch (\d+) files?:\n\n((?:\* .*\n)+)", re.MULTILINE)
_CHANGING = re.compile(r" in [\d.]+s( \([\d:]+\))?$|(?<=instrumented) in [\d.]+ s, \d+ from cache$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Write:
    """``where``: of the line with ``anchor`` the text goes; "" for a whole new file."""

    path: str
    text: str
    where: str = ""
    anchor: str = ""
    counts: bool = True

    def carry_out(self, folder: Path) -> None:
        file = folder / self.path
        if not self.where:
            assert not file.exists(), f"{self.path} is there already"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.text)
            return
        lines = file.read_text().splitlines(keepends=True)
        found = [at for at, line in enumerate(lines) if self.anchor in line]
        assert len(found) == 1, f"{self.path} has {self.anchor!r} in {len(found)} lines"
        first = found[0] + (self.where == "after")
        lines[first : found[0] + (self.where != "before")] = [self.text]
        file.write_text("".join(lines))


@dataclass(frozen=True, slots=True)
class Command:
    """A shell's line, and what it prints on either stream."""

    line: str
    output: str

    def carry_out(self, folder: Path) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            self.line, shell=True, cwd=folder, env={**os.environ, "PATH": path, "PYTHONPATH": str(folder)}, text=True,
            timeout=600, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        wanted = "(?s:.*)".join(map(re.escape, _settle(self.output).split("...\n")))
        assert re.fullmatch(wanted, _settle(done.stdout)), f"$ {self.line}\n{done.stdout}"


def _settle(text: str) -> str:
    """Without how long it took, and blanks that nobody sees."""
    return _CHANGING.sub("", text).strip("\n") + "\n"


def steps(page: str) -> list[Write | Command]:
    """What the page has one do. Each file is named in words, too, above its block."""
    found: list[Write | Command] = []
    blocks = list(_STEP.finditer(page))
    for block in blocks:
        if block["console"] is not None:
            typed = re.split(r"^\$ ", block["console"], flags=re.MULTILINE)[1:]
            found += [Command(*each.split("\n", 1)) for each in typed]
            continue
        assert f"`{block['path']}`" in block["words"], block[0]
        found.append(Write(block["path"], block["text"], block["where"] or "", block["anchor"] or "",
                           block["kind"] != "scratch"))
    assert len(re.findall("^```$", page, re.MULTILINE)) == len(blocks), "a block is no step"
    return found


def touched(page: str) -> set[str]:
    """The files that the page says one touches, as many as it says."""
    [(count, lines)] = _TOUCHED.findall(page)
    files = re.findall(r"^\* `([^`]+)`", lines, re.MULTILINE)
    assert len(files) == len(set(files)) == int(count), "the page counts its files wrong"
    return set(files)


def copy_tree(folder: Path, *more: str) -> None:
    """What walks change and run; compiled modules come along."""
    for part in (*PARTS, *more):
        source, place = ROOT / part, folder / part
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(source, place)


def changed(folder: Path, *more: str) -> set[str]:
    """Files of such a copy that are others than the project's, or none of them."""
    paths = (path for part in (*PARTS, *more) for path in (folder / part, *(folder / part).rglob("*")))
    files = [path.relative_to(folder) for path in paths if path.is_file() and path.suffix != ".pyc"]
    return {file.as_posix() for file in files
            if not (ROOT / file).is_file() or (ROOT / file).read_bytes() != (folder / file).read_bytes()}
