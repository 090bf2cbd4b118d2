"""docs/comparison.md: the tests, pages and sources that it names are there, each cell has one or says it has none."""

from __future__ import annotations

import re

from linked import DOCS, check_links, linked_tests, links

PAGE = (DOCS / "comparison.md").read_text("utf-8")
OURS = "Luthier-py"
NOTE = re.compile(r"^\[\^(\d+)\]: (.+)$", re.MULTILINE)
USE = re.compile(r"\[\^(\d+)\](?!:)")


def tables() -> list[list[list[str]]]:
    """The cells of each table, its headings first, without the line below these."""
    found = re.findall(r"(?:^\|.*\|\n)+", PAGE, re.MULTILINE)
    split = [[[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()] for table in found]
    return [[head, *rows] for head, _, *rows in split]


def test_what_is_linked_is_there() -> None:
    check_links(PAGE)


def test_tests_are_named_with_their_files() -> None:
    linked = linked_tests(PAGE)
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
