"""Links of pages: to other pages and their headings, and to tests by their names."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


def links(text: str) -> list[tuple[str, str]]:
    """Labels and targets, of this repository."""
    return [(label, target) for label, target in _LINK.findall(text) if "://" not in target]


def linked_tests(text: str) -> set[str]:
    return {label.strip("`") for label, target in links(text) if target.endswith(".py") and "/tests/" in target}


def check_links(page: str, folder: Path = DOCS) -> None:
    """What a page in docs, or in another ``folder``, links is there; a label that links a file of tests is a function
    in it."""
    for label, target in links(page):
        name, _, anchor = target.partition("#")
        file = folder / name
        assert file.is_file(), target
        assert not anchor or anchor in _anchors(file), target
        if file.suffix == ".py" and "/tests/" in target:
            assert label.strip("`") in _functions(file), f"{label} is not in {target}"


@cache
def _functions(file: Path) -> set[str]:
    return {node.name for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}


@cache
def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
