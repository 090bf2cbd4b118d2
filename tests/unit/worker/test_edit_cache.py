"""What a tool said before: recalled only where it would say the same, and with the same reports."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from recalling import Author, authoring, cached_edits, made_by

from luthier_py.host.worker.instrument import patching
from luthier_py.host.worker.instrument.patching import Copy
from luthier_py.rewrite.tool import LaunchResult, Tool, load_tool
from luthier_py.rewrite.tool.origin import origin_of


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
    author.helper(2)
    return author.tool()


def another_environment(author: Author) -> Tool:
    author.monkeypatch.setenv("COUNTING_EVERY", "3")
    return author.tool()


def another_state(author: Author) -> Tool:
    tool = author.tool()
    tool.reported = 1  # type: ignore[attr-defined]
    return tool


def another_global(author: Author) -> Tool:
    tool = author.tool()
    tool.instrument.__globals__["FACTOR"] = 5  # type: ignore[attr-defined]
    return tool


def another_closure(author: Author) -> Tool:
    tool = author.tool()
    tool.bump = tool.instrument.__globals__["outer"](3)  # type: ignore[attr-defined]
    return tool


def read_at_import(used: str) -> Change:
    """What a tool's module has read when it was imported, kept in ``used``."""

    def change(author: Author) -> Tool:
        author.tool(body=used)  # its module is new, or the next is not
        (author.folder / "limit.txt").write_text("2")
        return author.tool(body=used)

    return change


CHANGES: dict[str, Change] = {
    "hidden global": read_at_import(""),
    "given": lambda author: author.tool(every=1),
    "whether there is output": lambda author: author.tool(LUTHIER_OUTPUT="results.csv"),
    "source": lambda author: author.tool(instrument="assert m.kernels"),
    "helper": another_helper,
    "option": lambda author: author.tool(every=2),
    "common option": lambda author: author.tool(INSTR_BEGIN=1),
    "environment": another_environment,
    "state": another_state,
    "global": another_global,
    "closure": another_closure,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_changed_is_asked_for_again(author: Author, change: Change) -> None:
    made_by(author.tool())
    assert not cached_edits(made_by(change(author)))
    assert cached_edits(made_by(change(author)))


def test_closures_are_told_apart(author: Author) -> None:
    keys = set()
    for amount in (3, 4):
        tool = author.tool()
        tool.bump = tool.instrument.__globals__["outer"](amount)  # type: ignore[attr-defined]
        found = origin_of(tool)
        assert found is not None
        keys.add(found.key)
    assert len(keys) == 2


def test_files_that_are_declared(author: Author, tmp_path: Path) -> None:
    reading = {"instrument": "self.every * int(self.reads('sites.txt').read_text())"}
    assert not cached_edits(made_by(author.tool(**reading))) and cached_edits(made_by(author.tool(**reading)))
    (author.folder / "sites.txt").write_text("2")
    assert not cached_edits(made_by(author.tool(**reading))) and cached_edits(made_by(author.tool(**reading)))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "sites.txt").write_text("2")
    author.monkeypatch.chdir(elsewhere)  # the same name is another file there
    assert not cached_edits(made_by(author.tool(**reading)))


def test_a_declared_file_that_changes_meanwhile(author: Author) -> None:
    reading = {"instrument": "path = self.reads('sites.txt'); path.read_text(); path.write_text('2')"}
    assert not cached_edits(made_by(author.tool(**reading))) and not cached_edits(made_by(author.tool(**reading)))


def test_folders_that_are_declared(author: Author) -> None:
    folder = author.folder / "sites"
    folder.mkdir()
    reading = {"instrument": "assert len(list(self.reads('sites').iterdir())) < 2"}
    assert not cached_edits(made_by(author.tool(**reading))) and cached_edits(made_by(author.tool(**reading)))
    (folder / "one").write_text("1")
    assert not cached_edits(made_by(author.tool(**reading))) and cached_edits(made_by(author.tool(**reading)))
    (folder / "one").write_text("2")
    assert not cached_edits(made_by(author.tool(**reading)))


KEPT = {
    "attribute of a function": "marked.limit = {}",
    "closure": "kept = limiting({})",
    "lanes of a hook": "kept = hook(lanes=('one', 'active')[{} == 1])(marked)",
    "base": "class Kept((Tool, Variable)[{} == 1]): pass",
    "default": "def first(self, limit={}): return limit",
    "cached": "kept = __import__('functools').cache(limiting({}).first)",
}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT.keys())
def test_what_functions_hold_counts(author: Author, kept: str) -> None:
    origins = [origin_of(author.tool(body=kept.format(f"int('{limit}')"))) for limit in (1, 2, 2)]
    keys = [found.key for found in origins if found is not None]
    assert len(keys) == 3 and keys[0] != keys[1] == keys[2]


def test_a_source_that_changed_since_it_was_imported(author: Author) -> None:
    early, late = author.tool(), author.tool()
    assert origin_of(early) is not None
    author.helper(2)
    assert cached_edits(made_by(late)) is False and not cached_edits(made_by(author.tool()))
    assert origin_of(author.tool(body="open(helping.__file__, 'a').write('#')")) is None


def test_names_that_are_no_text(author: Author) -> None:
    name = os.fsdecode(b"caf\xe9")
    (author.folder / name).write_text("1")
    reading = {"instrument": f"self.reads({name!r}).read_text()"}
    assert not cached_edits(made_by(author.tool(**reading))) and cached_edits(made_by(author.tool(**reading)))


def test_modules_in_an_archive(author: Author) -> None:
    with zipfile.ZipFile(author.folder / "lib.zip", "w") as archive:
        archive.writestr("zipped.py", "STEP = 1\n")
    author.monkeypatch.setattr(sys, "path", [str(author.folder / "lib.zip"), *sys.path])
    tool = author.tool(body="import zipped")
    sys.modules.pop("zipped")
    assert origin_of(author.tool(body="import zipped")) is None and origin_of(tool) is None


def test_a_module_that_is_imported_late(author: Author) -> None:
    author.write("late.py", "STEP = 1\n")
    importing = {"instrument": "import late"}
    assert not cached_edits(made_by(author.tool(**importing))) and cached_edits(made_by(author.tool(**importing)))
    author.write("late.py", "STEP = 22\n")
    assert not cached_edits(made_by(author.tool(**importing))) and cached_edits(made_by(author.tool(**importing)))


@pytest.mark.parametrize("value", ("open(__file__)", "__import__('threading').Lock()", "(n for n in ())"))
def test_state_without_a_key(author: Author, value: str) -> None:
    tool = author.tool(body=f"kept = {value}")
    assert origin_of(tool) is None and not cached_edits(made_by(tool))


def test_a_tool_without_a_file() -> None:
    script = (
        "from luthier_py import Tool\nfrom luthier_py.rewrite.tool.origin import origin_of\n"
        "class Mine(Tool):\n    pass\nprint(origin_of(Mine()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"


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


CPP = 'hooks = __import__("luthier_py").Hooks.from_hip("own.hip")'
USES = "for kernel in m.kernels: m.at_exit(kernel, {}.flush)"


def test_hooks_in_cpp_are_recalled_while_their_sources_are_the_same(
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

    def made(body: str, instrument: str) -> Copy:
        return made_by(author.tool(body, instrument))

    first, second = (made(CPP, USES.format("self.hooks")) for _ in range(2))
    assert not cached_edits(first) and cached_edits(second) and first.made == second.made
    assert [variable.name for variable in second.variables] == ["Counting.total", "own.flushed"]
    author.write("own.h", "#define STEP 2\n")
    third = made(CPP, USES.format("self.hooks"))
    assert not cached_edits(third) and third.made != first.made
    late = CPP + "; " + USES.format("hooks").replace("for kernel in m.kernels: ", "kernel = m.kernels[0]; ")
    assert not any(cached_edits(made("", late)) for _ in range(2))
