"""What a tool said before: recalled only where it would say the same, and with the same reports."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from luthier_py.loader import load
from luthier_py.samples import sample
from luthier_py.tool import LaunchResult, Tool, load_tool, origin
from luthier_py.tool.origin import origin_of
from luthier_py.worker import patching
from luthier_py.worker.patching import Copy, patch

TOOL = """
import helping
from luthier_py import Mutator, Option, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add

FACTOR = 1
SEEN = []

def outer(amount):
    @hook(lanes="one")
    def bump(total: ptr[u64]) -> None:
        atomic_add(total, u64(amount))
    return bump

class Counting(Tool):
    total = Variable(u64)
    every = Option(1, env="COUNTING_EVERY")
    {body}

    def __init__(self, **options):
        super().__init__(**options)
        self.reported = 0

    @hook(lanes="one")
    def bump(total: ptr[u64]) -> None:
        atomic_add(total, u64(FACTOR))

    def instrument(self, m: Mutator):
        {instrument}
        for function in m.functions():
            for instr in m.instrs(function)[:: self.every * helping.STEP]:
                m.before(instr, self.bump, self.total)
        return {notes}
"""


class Author:
    """Writes a tool beside its helper, and loads both afresh, as another process would."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        self.helper(1)
        (folder / "sites.txt").write_text("1")

    def helper(self, step: int) -> None:
        (self.folder / "helping.py").write_text(f"STEP = {step}\n")

    def tool(self, body: str = "", instrument: str = "pass", notes: str = "None", **options: object) -> Tool:
        path = self.folder / "counting.py"
        path.write_text(TOOL.format(body=body, instrument=instrument, notes=notes))
        for name in ("helping", "late"):
            self.monkeypatch.delitem(sys.modules, name, raising=False)
        sys.dont_write_bytecode = True
        return load_tool(str(path), options)


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Author]:
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setattr(origin, "_is_installed", lambda path: not path.startswith(str(folder)))  # no test's module
    monkeypatch.chdir(folder)
    yield Author(folder, monkeypatch)
    sys.modules.pop("helping", None)


def made_by(tool: Tool, name: str = "reduce") -> Copy:
    code = sample(name).path.read_bytes()
    return patch(code, tool, load(code).kernels[0].name)


def recalled(copy: Copy) -> bool:
    return "lift" not in copy.seconds


def test_nothing_changed(author: Author) -> None:
    first, second = made_by(author.tool()), made_by(author.tool())
    assert not recalled(first) and recalled(second)
    assert second.made == first.made and second.program_variables == first.program_variables
    assert [str(variable) for variable in second.variables] == [str(variable) for variable in first.variables]


def test_reports_are_the_same(author: Author) -> None:
    """Variables are the tool's own, by which it asks for what was counted."""
    made_by(author.tool())
    tool = author.tool()
    copy = made_by(tool)
    result = LaunchResult(0, "reduce", (1, 1, 1), (1, 1, 1), {v.name: bytes([7] + 7 * [0]) for v in copy.variables})
    assert recalled(copy) and copy.variables == tool.variables and tool.report(result) == {"total": 7}


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


CHANGES: dict[str, Change] = {
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
    assert not recalled(made_by(change(author)))
    assert recalled(made_by(change(author)))


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
    assert not recalled(made_by(author.tool(**reading))) and recalled(made_by(author.tool(**reading)))
    (author.folder / "sites.txt").write_text("2")
    assert not recalled(made_by(author.tool(**reading))) and recalled(made_by(author.tool(**reading)))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "sites.txt").write_text("2")
    author.monkeypatch.chdir(elsewhere)  # the same name is another file there
    assert not recalled(made_by(author.tool(**reading)))


def test_a_module_that_is_imported_late(author: Author) -> None:
    late = author.folder / "late.py"
    late.write_text("STEP = 1\n")
    importing = {"instrument": "import late"}
    assert not recalled(made_by(author.tool(**importing))) and recalled(made_by(author.tool(**importing)))
    late.write_text("STEP = 22\n")
    assert not recalled(made_by(author.tool(**importing))) and recalled(made_by(author.tool(**importing)))


@pytest.mark.parametrize("tool", (
    {"body": "cacheable = False"},
    {"instrument": "print('looking')"},
    {"instrument": "open('sites.txt').read()"},
    {"instrument": "__import__('os').system('true')"},
    {"instrument": "self.functions = len(m.functions())"},
    {"instrument": "SEEN.append(1)"},
    {"instrument": "type(self).count = getattr(type(self), 'count', 0) + 1"},
    {"notes": "m.facts"},
    {"notes": "lambda: 0"},
), ids=lambda tool: "-".join((*tool.keys(), *tool.values())))  # fmt: skip
def test_what_cannot_be_known_is_asked_each_time(author: Author, tool: dict[str, str]) -> None:
    first, second = made_by(author.tool(**tool)), made_by(author.tool(**tool))
    assert not recalled(second) and second.cached and second.made == first.made


@pytest.mark.parametrize("value", ("open(__file__)", "__import__('threading').Lock()", "(n for n in ())"))
def test_state_without_a_key(author: Author, value: str) -> None:
    tool = author.tool(body=f"kept = {value}")
    assert origin_of(tool) is None and not recalled(made_by(tool))


def test_a_tool_without_a_file() -> None:
    script = (
        "from luthier_py import Tool\nfrom luthier_py.tool.origin import origin_of\n"
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
    assert recalled(copy) and copy.notes() is copy.notes()
    assert function in program.functions and block in function.blocks and program.block_of(instr) == block
    assert instr.pc == block.instrs[1].pc and total is tool.variables[0] and itself is tool


@pytest.mark.parametrize("name", ("instr_count", "opcode_histogram", "lds_bank_conflicts"))
def test_tools_of_this_package(author: Author, name: str) -> None:
    first, second = made_by(load_tool(name), "bitonic_sort"), made_by(load_tool(name), "bitonic_sort")
    assert recalled(second) and second.made == first.made
    memory = {variable.name: bytes(at % 7 for at in range(variable.size_bytes)) for variable in second.variables}
    reports = [
        load_tool(name).report(LaunchResult(0, "bitonic_sort", (1, 1, 1), (64, 1, 1), memory, notes=copy.notes()))
        for copy in (first, second)
    ]
    assert reports[0] == reports[1]


def test_another_installation(author: Author) -> None:
    made_by(author.tool())
    author.monkeypatch.setattr(patching, "installation", lambda: "another version")
    assert not recalled(made_by(author.tool()))
