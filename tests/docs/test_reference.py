"""The pages that are made from the code are those of this code, and leave nothing out."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

import pytest

import luthier_py
from luthier_py import Mutator, intrinsics
from luthier_py.features.coverage.report import coverage_facts
from luthier_py.isa import target

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["docs_generate"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

COVERAGE = pytest.param("coverage.md", marks=pytest.mark.slow)  # of every target
PAGES = ["reference.md", "edits.md", "arguments.md", "filters.md", COVERAGE, "hip.md", "time-model.md"]


@pytest.mark.core
@pytest.mark.parametrize("page", PAGES)
def test_pages_are_up_to_date(generator: ModuleType, page: str) -> None:
    assert (DOCS / page).read_text("utf-8") == generator.PAGES[page](), "run `make docs`"


@pytest.mark.core
@pytest.mark.parametrize("name", ["gfx90a", "gfx1100", "gfx1201"])
def test_coverage_of_a_target_is_up_to_date(name: str) -> None:
    """By its counts: whoever changes a meaning is told here that pages are to be made again."""
    facts = coverage_facts(target(name))
    row = next(line for line in (DOCS / "coverage.md").read_text("utf-8").splitlines()
               if line.startswith("|") and name in line.split(" | ")[0].strip("| ").split(", "))
    assert row.strip("| ").split(" | ")[1:] == [str(facts["operations"]), *map(str, facts["counts"].values())]


def test_every_public_name_is_in_the_reference(generator: ModuleType) -> None:
    listed = [name for _, names in (*generator.SECTIONS, *generator.ARGUMENTS) for name in names]
    assert len(listed) == len(set(listed)) and set(luthier_py.__all__) <= set(listed)
    text = (DOCS / "reference.md").read_text("utf-8")
    assert "Create a collection of name/value pairs" not in text  # what Python says of every enum
    assert all(f"* `{name}(" in text for name in intrinsics.__all__)
    assert all(f"* `{name}" in text for name in vars(Mutator) if not name.startswith("_"))


def test_every_method_of_the_mutator_is_on_the_page_of_edits(generator: ModuleType) -> None:
    listed = [name for _, names in generator.EDITS for name in names]
    methods = {name for name, _ in inspect.getmembers(Mutator, inspect.isfunction) if name[0] != "_"}
    assert sorted(listed) == sorted(methods - {"edits"})  # that one is for whoever runs a tool


@pytest.mark.core
def test_every_name_and_member_has_a_line(generator: ModuleType) -> None:
    silent = []
    for name in (name for _, names in (*generator.SECTIONS, *generator.ARGUMENTS) for name in names):
        value = getattr(luthier_py, name)
        silent += [] if generator.about(name, value) else [name]
        if inspect.isclass(value):
            silent += [f"{name}: {line}" for line in generator.members(value).splitlines()
                       if "(" in line.partition(":")[0] and "`: " not in line]  # fmt: skip
    silent += [name for name in intrinsics.__all__ if not getattr(intrinsics, name).__doc__]
    assert silent == []
