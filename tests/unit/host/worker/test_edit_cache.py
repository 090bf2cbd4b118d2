"""What a tool recorded before: taken from the cache while everything is the same that it declares to depend on."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from recalling import Author, authoring, cached_edits, made_by

from luthier_py.base.errors import ToolError
from luthier_py.host.worker.instrument import patching
from luthier_py.host.worker.instrument.patching import Copy
from luthier_py.rewrite.tool import LaunchResult, Tool, load_tool, tools
from luthier_py.rewrite.tool import edit_key as module
from luthier_py.rewrite.tool.edit_key import edit_key


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Author]:
    with authoring(tmp_path, monkeypatch) as writing:
        yield writing


def test_nothing_changed(author: Author) -> None:
    first, second = made_by(author.tool()), made_by(author.tool())
    assert not cached_edits(first) and cached_edits(second)
    assert second.made == first.made and second.program_variables == first.program_variables
    assert [str(variable) for variable in second.variables] == [str(variable) for variable in first.variables]
    assert [[kernel.name for kernel in copy.program().kernels] for copy in (first, second)] == [["reduce"]] * 2


def test_reports_are_the_same(author: Author) -> None:
    """Variables are the tool's own, by which it asks for what was counted."""
    made_by(author.tool())
    tool = author.tool()
    copy = made_by(tool)
    result = LaunchResult(0, "reduce", (1, 1, 1), (1, 1, 1), {v.name: bytes([7] + 7 * [0]) for v in copy.variables})
    assert cached_edits(copy) and copy.variables == tool.variables and tool.report(result) == {"total": 7}


Change = Callable[[Author], Tool]


def another_helper(author: Author) -> Tool:
    author.write("helping.py", "STEP = 2 \n")
    return author.tool()


def another_environment(author: Author) -> Tool:
    author.monkeypatch.setenv("COUNTING_EVERY", "3")
    return author.tool()


CHANGES: dict[str, Change] = {
    "given": lambda author: author.tool(every=1),
    "whether there is output": lambda author: author.tool(LUTHIER_OUTPUT="results.csv"),
    "source": lambda author: author.tool(instrument="assert m.kernels"),
    "helper": another_helper,
    "option": lambda author: author.tool(every=2),
    "common option": lambda author: author.tool(INSTR_BEGIN=1),
    "environment": another_environment,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_changed_is_asked_for_again(author: Author, change: Change) -> None:
    made_by(author.tool())
    assert not cached_edits(made_by(change(author)))
    assert cached_edits(made_by(change(author)))


def test_where_output_goes_changes_nothing(author: Author) -> None:
    made_by(author.tool(LUTHIER_OUTPUT="first.csv"))
    assert cached_edits(made_by(author.tool(LUTHIER_OUTPUT="second.csv")))


@pytest.mark.parametrize("body", ("cacheable = False", "del cacheable"))
def test_a_tool_that_does_not_say_so_is_asked_each_time(author: Author, body: str) -> None:
    first, second = made_by(author.tool(body)), made_by(author.tool(body))
    assert not cached_edits(second) and second.cached and second.made == first.made


def test_a_derived_tool_says_so_for_itself() -> None:
    """It may depend on more."""
    derived = type("Derived", (type(load_tool("instr_count")),), {})
    assert load_tool("instr_count").cacheable and not derived.cacheable


def test_a_source_that_is_not_declared_does_not_count(author: Author) -> None:
    made_by(author.tool("sources = ()"))
    author.write("helping.py", "STEP = 2 \n")
    assert cached_edits(made_by(author.tool("sources = ()")))


@pytest.mark.parametrize("changed", ("tables/sites.txt", "tables/deep/more.txt", "limits.txt"))
def test_files_and_folders_among_the_sources(author: Author, tmp_path: Path, changed: str) -> None:
    """Their paths count from the class's file."""
    for name in ("tables/sites.txt", "tables/deep/more.txt", "limits.txt"):
        author.write(name, "1")
    author.monkeypatch.chdir(tmp_path)
    body = "sources = 'tables', 'limits.txt'"
    assert not cached_edits(made_by(author.tool(body))) and cached_edits(made_by(author.tool(body)))
    author.write(changed, "22")
    assert not cached_edits(made_by(author.tool(body))) and cached_edits(made_by(author.tool(body)))


def test_a_source_that_is_not_there(author: Author) -> None:
    with pytest.raises(ToolError, match=r"nowhere\.txt: it is one of a tool's `sources`, and is not there"):
        made_by(author.tool("sources = 'nowhere.txt',"))


def test_a_package_counts_whole(author: Author) -> None:
    code = "from luthier_py import Tool\nfrom .steps import STEP\nclass Steps(Tool):\n    cacheable = True\n" \
           "    def instrument(self, m):\n        assert STEP and m.kernels\n"
    author.write("mine/__init__.py", code)

    def made(step: int) -> Copy:
        author.write("mine/steps.py", f"STEP = {step}\n")
        return made_by(author.load(author.folder / "mine"))

    assert [cached_edits(made(step)) for step in (1, 1, 22, 22)] == [False, True, False, True]


def test_a_package_counts_whole_for_classes_in_packages_of_it(author: Author) -> None:
    """The class's own folder is not all that it imports from."""
    author.write("outer/__init__.py", "from .inner.steps import Steps\n")
    author.write("outer/inner/__init__.py", "")
    author.write("outer/inner/steps.py", "from luthier_py import Tool\nfrom ..helper import STEP\nclass Steps(Tool):\n"
                                         "    cacheable = True\n    def instrument(self, m):\n        assert STEP\n")

    def made(step: int) -> Copy:
        author.write("outer/helper.py", f"STEP = {step}\n")
        for name in [name for name in sys.modules if name.partition(".")[0] == "outer"]:
            del sys.modules[name]
        return made_by(author.load(author.folder / "outer"))

    assert [cached_edits(made(step)) for step in (1, 1, 22, 22)] == [False, True, False, True]


def test_one_source_needs_no_comma(author: Author) -> None:
    with pytest.raises(ToolError, match=r"nowhere\.txt: it is one of a tool's `sources`, and is not there"):
        made_by(author.tool("sources = 'nowhere.txt'"))


def test_bases_count_with_what_they_declare(author: Author) -> None:
    author.write("limits.txt", "1")
    author.write("helping.py", "from luthier_py import Tool\nclass Base(Tool):\n    sources = 'limits.txt',\n")
    derived = author.write("derived.py", "import helping\nclass Derived(helping.Base):\n    cacheable = True\n"
                                         "    def instrument(self, m): pass\n")
    keys = {edit_key(author.load(derived))}
    author.write("limits.txt", "22")
    keys.add(edit_key(author.load(derived)))
    author.write("helping.py", (author.folder / "helping.py").read_text() + "STEP = 2\n")
    keys.add(edit_key(author.load(derived)))
    assert len(keys) == 3 and None not in keys


def test_a_source_that_changed_since_the_process_began(author: Author) -> None:
    tool = author.tool()
    assert edit_key(tool) is not None
    path = author.write("helping.py", "STEP = 22\n")
    author.monkeypatch.setattr(module, "_STARTED_NS", path.stat().st_ctime_ns)
    assert edit_key(tool) is None and not cached_edits(made_by(tool))
    assert not cached_edits(made_by(author.tool()))


def test_files_that_are_read(author: Author, tmp_path: Path) -> None:
    reading = {"instrument": "self.every * int(self.reads('sites.txt').read_text())"}
    assert not cached_edits(made_by(author.tool(**reading))) and cached_edits(made_by(author.tool(**reading)))
    (author.folder / "sites.txt").write_text("2")
    assert not cached_edits(made_by(author.tool(**reading))) and cached_edits(made_by(author.tool(**reading)))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "sites.txt").write_text("2")
    author.monkeypatch.chdir(elsewhere)  # the same name is another file there
    assert not cached_edits(made_by(author.tool(**reading)))


def test_a_file_that_changes_while_it_is_read(author: Author) -> None:
    reading = {"instrument": "path = self.reads('sites.txt'); path.read_text(); path.write_text('2')"}
    assert not cached_edits(made_by(author.tool(**reading))) and not cached_edits(made_by(author.tool(**reading)))


def test_folders_that_are_read(author: Author) -> None:
    folder = author.folder / "sites"
    folder.mkdir()
    reading = {"instrument": "assert len(list(self.reads('sites').iterdir())) < 2"}
    assert not cached_edits(made_by(author.tool(**reading))) and cached_edits(made_by(author.tool(**reading)))
    (folder / "one").write_text("1")
    assert not cached_edits(made_by(author.tool(**reading))) and cached_edits(made_by(author.tool(**reading)))
    (folder / "one").write_text("2")
    assert not cached_edits(made_by(author.tool(**reading)))


def test_names_that_are_no_text(author: Author) -> None:
    name = os.fsdecode(b"caf\xe9")
    (author.folder / name).write_text("1")
    reading = {"instrument": f"self.reads({name!r}).read_text()"}
    assert not cached_edits(made_by(author.tool(**reading))) and cached_edits(made_by(author.tool(**reading)))


def test_modules_in_an_archive(author: Author) -> None:
    with zipfile.ZipFile(author.folder / "lib.zip", "w") as archive:
        archive.writestr("zipped.py", "STEP = 1\n")
    author.monkeypatch.setattr(sys, "path", [str(author.folder / "lib.zip"), *sys.path])
    tool = author.tool("import zipped; sources = zipped,")
    sys.modules.pop("zipped")
    assert edit_key(tool) is None


def test_a_tool_without_a_file() -> None:
    script = (
        "from luthier_py import Tool\nfrom luthier_py.rewrite.tool.edit_key import edit_key\n"
        "class Mine(Tool):\n    cacheable = True\nprint(edit_key(Mine()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"


@pytest.mark.parametrize("notes", ("m.facts", "lambda: 0"))
def test_notes_that_cannot_be_kept(author: Author, notes: str) -> None:
    assert not any(cached_edits(made_by(author.tool(notes=notes))) for _ in range(2))


def test_notes_that_name_the_program(author: Author) -> None:
    first = "m.functions()[0]"
    notes = f"m.program, {first}, {first}.blocks[0], {first}.blocks[0].instrs[1], self.total, self"
    made_by(author.tool(notes=notes))
    tool = author.tool(notes=notes)
    copy = made_by(tool)
    program, function, block, instr, total, itself = copy.notes()
    assert cached_edits(copy) and copy.notes() is copy.notes()
    assert function in program.functions and block in function.blocks and program.block_of(instr) == block
    assert instr.pc == block.instrs[1].pc and total is tool.variables[0] and itself is tool


def test_every_tool_of_this_package_says_so() -> None:
    assert not [name for name, tool in tools().items() if tool.__module__.startswith("luthier_py.") and
                not tool.cacheable]


@pytest.mark.parametrize("name", ("instr_count", "opcode_histogram", "lds_bank_conflicts"))
def test_tools_of_this_package(author: Author, name: str) -> None:
    first, second = made_by(load_tool(name), "bitonic_sort"), made_by(load_tool(name), "bitonic_sort")
    assert cached_edits(second) and second.made == first.made
    memory = {variable.name: bytes(at % 7 for at in range(variable.size_bytes)) for variable in second.variables}
    reports = [
        load_tool(name).report(LaunchResult(0, "bitonic_sort", (1, 1, 1), (64, 1, 1), memory, notes=copy.notes()))
        for copy in (first, second)
    ]
    assert reports[0] == reports[1]


def test_another_installation(author: Author) -> None:
    made_by(author.tool())
    author.monkeypatch.setattr(patching, "installation", lambda: "another version")
    assert not cached_edits(made_by(author.tool()))


def test_hooks_in_cpp(
    author: Author, require_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LUTHIER_CLANG", require_tool("clang++-22"))
    source = """#include <luthier/hooks.h>
#include "own.h"
__device__ unsigned long flushed;
LUTHIER_HOOK(one) void flush() { luthier::atomic_add(&flushed, STEP); }
"""
    author.write("own.hip", source)
    author.write("own.h", "#define STEP 1\n")

    def made() -> Copy:
        return made_by(author.tool(
            "hooks = __import__('luthier_py').Hooks.from_hip('own.hip'); sources = 'own.hip', 'own.h'",
            "for kernel in m.kernels: m.at_exit(kernel, self.hooks.flush)"))

    first, second = made(), made()
    assert not cached_edits(first) and cached_edits(second) and first.made == second.made
    assert [variable.name for variable in second.variables] == ["Counting.total", "own.flushed"]
    author.write("own.h", "#define STEP 22\n")
    third = made()
    assert not cached_edits(third) and third.made != first.made
