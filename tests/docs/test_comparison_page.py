"""docs/comparison.md: the tests, pages and sources that it names are there, each cell has one or says it has none."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "comparison.md").read_text("utf-8")
OURS = "Luthier-py"
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
NOTE = re.compile(r"^\[\^(\d+)\]: (.+)$", re.MULTILINE)
USE = re.compile(r"\[\^(\d+)\](?!:)")


def tables() -> list[list[list[str]]]:
    """The cells of each table, its headings first, without the line below these."""
    found = re.findall(r"(?:^\|.*\|\n)+", PAGE, re.MULTILINE)
    split = [[[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()] for table in found]
    return [[head, *rows] for head, _, *rows in split]


def links(text: str) -> list[tuple[str, str]]:
    return [(label, target) for label, target in LINK.findall(text) if "://" not in target]


@cache
def functions(file: Path) -> set[str]:
    return {node.name for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}


@cache
def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_what_is_linked_is_there() -> None:
    for label, target in links(PAGE):
        name, _, anchor = target.partition("#")
        file = DOCS / name
        assert file.is_file(), target
        assert not anchor or anchor in anchors(file), target
        if file.suffix == ".py":
            assert label.strip("`") in functions(file), f"{label} is not in {target}"


def test_tests_are_named_with_their_files() -> None:
    linked = {label.strip("`") for label, target in links(PAGE) if target.endswith(".py")}
    assert len(linked) > 40 and set(re.findall(r"\btest_\w+\b(?!\.py)", PAGE)) == linked


def test_notes_are_numbered_as_they_come() -> None:
    text = PAGE[:PAGE.index("\n[^1]: ")]
    used = list(dict.fromkeys(map(int, USE.findall(text))))
    assert used == [int(number) for number, _ in NOTE.findall(PAGE)] == list(range(1, len(used) + 1))
    sources = [source for _, source in NOTE.findall(PAGE)]
    assert len(set(sources)) == len(sources)


def test_every_cell_has_a_test_a_page_or_a_source() -> None:
    first = [row[0] for row in tables()[0]]
    assert len(tables()) == 6 and len(set(first)) == len(first) == 11
    for head, *rows in tables():
        assert [head[0], *(row[0] for row in rows)] == first
        for name, *cells in rows:
            assert len(cells) == len(head) - 1, name
            for cell in cells:
                told = links(cell) if name == OURS else USE.findall(cell) or "not known" in cell
                assert told, f"{name}: {cell}"
                assert name != OURS or "not known" not in cell


def test_our_cost_is_what_was_measured() -> None:
    lines = (DOCS.parent / "benchmarks" / "overhead.md").read_text("utf-8").splitlines()
    row = next(line for line in lines if "geometric" in line)
    measured = [cell.strip() for cell in row.split("|")[3:6]]
    [cell] = [row[-1] for row in tables()[-1] if row[0] == OURS]
    assert re.findall(r"\d\.\d\d", cell) == measured
