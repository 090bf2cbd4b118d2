"""A study file that is wrong gives one line with the key; two runs are the same exactly if their contents are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from luthier_py.base.errors import Invalid
from luthier_py.features.study.cells import cells_of
from luthier_py.features.study.keys import LARGEST_BYTES
from luthier_py.features.study.spec import Figure, Quantity, read_study

PROGRAM = '[[program]]\ncommand = ["sh"]\n'
TOOL = '[[tool]]\ntool = "instr_count"\n'
CAMPAIGN = '[[campaign]]\nname = "c"\n'
FIGURE = '[[figure]]\nname = "f"\n'
TABLE = '[[table]]\ntool = "instr_count"\nitems = "a"\ncolumns = []\n'


def read(folder: Path, text: str):
    (folder / "s.toml").write_text(text)
    return read_study(folder / "s.toml")


WRONG = [
    ("a = ", "no TOML"),
    ("", "program: a study needs at least one"),
    ("repeat = 0\n" + PROGRAM, "repeat: give a whole number from 1 on, not 0"),
    ('repeat = "2"\n' + PROGRAM, "repeat: give a whole number from 1 on, not '2'"),
    ("repeat = true\n" + PROGRAM, "repeat: give a whole number from 1 on, not True"),
    ("title = 3\n" + PROGRAM, "title: give a text, not 3"),
    ('title = ""\n' + PROGRAM, "title: give a text, not ''"),
    ("timeout = true\n" + PROGRAM, "timeout: give a number above 0, not True"),
    ('timeout = "1"\n' + PROGRAM, "timeout: give a number above 0, not '1'"),
    ("timeout = 0\n" + PROGRAM, "timeout: give a number above 0, not 0"),
    ("bare = 1\n" + PROGRAM, "bare: give true or false, not 1"),
    ("devices = 3\n" + PROGRAM, "devices: give a list of texts, not 3"),
    ("repeats = 2\n" + PROGRAM, "repeats: there is no such key; there are bare, campaign, devices,"),
    ('folder = "nowhere"\n' + PROGRAM, "nowhere is no folder"),
    ("program = 3", "program: write [[program]]"),
    ("[[program]]\n", "program[0].command: is missing"),
    ("[[program]]\ncommand = []", "program[0].command: give a program"),
    (PROGRAM + "[[program]]\ncommand = [1]", "program[1].command: give a list of texts, not [1]"),
    (PROGRAM + "arguments = [1]", "program[0].arguments: give a list of lists of texts"),
    (PROGRAM + "arguments = []", "program[0].arguments: give a list of lists of texts"),
    ("devices = []\n" + PROGRAM, "devices: name at least one"),
    (PROGRAM + "environment = [1]", "program[0].environment: give a table of texts and numbers"),
    ('stacks = ["cuda"]\n' + PROGRAM, "stacks: there is no cuda; there are luthier, rocm"),
    ("stacks = []\n" + PROGRAM, "stacks: name at least one"),
    (PROGRAM + 'environment = { LUTHIER_STACK = "rocm" }', "program[0].environment: LUTHIER_STACK is not a program's"),
    (PROGRAM + TOOL + 'level = "gpu"', "tool[0].level: there is no gpu; there are auto, hip, hsa"),
    (PROGRAM + "argument = 1", "program[0].argument: there is no such key"),
    (PROGRAM + TOOL + "option = 1", "tool[0].option: there is no such key"),
    (PROGRAM + TOOL + FIGURE + "parts = {}\nbar = 1", "figure[0].bar: there is no such key"),
    (PROGRAM + TOOL + TABLE + "row = 1", "table[0].row: there is no such key"),
    (PROGRAM + PROGRAM, "program: two are called sh"),
    (PROGRAM + '[[tool]]\ntool = "no_such"', "tool[0].tool: no tool is called no_such"),
    (PROGRAM + '[[tool]]\ntool = "x.py"', "x.py: no such tool file"),
    (PROGRAM + TOOL + "options = { no = 1 }", "tool[0].options: tool instr_count has no option no"),
    (PROGRAM + TOOL + 'name = "bare"', "tool[0].name: bare is the program without a tool"),
    (PROGRAM + TOOL + TOOL, "tool: two are called instr_count"),
    (PROGRAM + CAMPAIGN, "devices: faults are judged by the emulator: write emulator:TARGET, not gpu"),
    (PROGRAM + CAMPAIGN + 'models = ["melt"]', "campaign[0].models: model 'melt' is none; choose some of flip,"),
    (PROGRAM + CAMPAIGN + "options = { when = 3 }", "campaign[0].options: option WHEN: a campaign draws that"),
    (PROGRAM + CAMPAIGN + 'results = ["out"]', "campaign[0].results: out: write {folder}/out"),
    (PROGRAM + CAMPAIGN + 'check = "true"\nresults = ["-"]', "campaign[0].check: tells whether results are right"),
    (PROGRAM + CAMPAIGN + "part = 0", "campaign[0].part: give a whole number from 1 on"),
    (PROGRAM + TOOL + FIGURE, "figure[0].parts: is missing"),
    (PROGRAM + TOOL + FIGURE + 'parts = { a = "b" }', "figure[0].parts.a: `b`: write TOOL:METRIC"),
    (PROGRAM + TOOL + FIGURE + 'parts = { a = "x:y" }', "tools are instr_count"),
    (PROGRAM + TOOL + FIGURE + f'parts = {{ a = "{" / ".join(["instr_count:n"] * 3)}" }}', "divides more than once"),
    (PROGRAM + TOOL + FIGURE + 'parts = {}\nbars = ["x"]', "figure[0].bars: there is no x; there are program,"),
    (PROGRAM + TOOL + FIGURE + 'parts = {}\nprograms = ["x"]', "figure[0].programs: there is no x; there are sh"),
    (PROGRAM + TOOL + '[[figure]]\nname = "../f"\nparts = {}', "figure[0].name: give letters"),
    (PROGRAM + TOOL + '[[table]]\ntool = "x"\nitems = "a"\ncolumns = []', "table[0].tool: there is no x"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_errors_name_the_key(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid) as raised:
        read(tmp_path, text)
    line = str(raised.value)
    assert message in line and line.startswith(str(tmp_path / "s.toml")) and "\n" not in line


def test_what_a_figure_is_where_nothing_is_said_of_it(tmp_path: Path) -> None:
    [figure] = read(tmp_path, PROGRAM + TOOL + FIGURE + 'parts = { a = "instr_count:n / instr_count:m.k" }').figures
    assert figure == Figure(
        name="f", title="f", unit="", bars=("program", "arguments"), share=False, stack=True, programs=("sh",),
        parts={"a": (Quantity("instr_count", "n"), Quantity("instr_count", "m.k"))},
    )  # fmt: skip


def test_every_combination(tmp_path: Path) -> None:
    head = 'repeat = 2\nbare = true\ndevices = ["gpu", "emulator:gfx906"]\n'
    first = PROGRAM + 'arguments = [["1"], ["2", "3"]]\n'
    second = PROGRAM + 'name = "b"\narguments = { small = ["4"] }\n'
    cells = cells_of(read(tmp_path, head + first + second + TOOL))
    assert len({cell.identity for cell in cells}) == len(cells) == 2 * 3 * 2 * 2
    assert {(cell.program, cell.arguments) for cell in cells} == {("sh", "1"), ("sh", "2 3"), ("b", "small")}
    assert {cell.run["device"] for cell in cells} == {None, "emulator:gfx906"}
    assert [cell.repeat for cell in cells] == [0] * 12 + [1] * 12, "what is compared runs close together"


def test_stacks_are_of_emulated_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the key, the shell's LUTHIER_STACK says which."""
    head = 'devices = ["gpu", "emulator:gfx906"]\n'
    both = 'stacks = ["luthier", "rocm"]\n'
    cells = cells_of(read(tmp_path, head + both + PROGRAM))
    assert len({cell.group for cell in cells}) == 3
    runs = [(cell.device, cell.stack) for cell in cells]
    assert runs == [("gpu", ""), ("emulator:gfx906", "luthier"), ("emulator:gfx906", "rocm")]
    for stack in ("", "luthier", "rocm"):
        monkeypatch.setenv("LUTHIER_STACK", stack)
        runs = [(cell.stack, cell.run["stack"]) for cell in cells_of(read(tmp_path, head + PROGRAM))]
        assert runs == [("", None), (stack or "luthier",) * 2]


def test_levels_of_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LUTHIER_LEVEL", raising=False)
    head = 'devices = ["emulator:gfx906"]\nstacks = ["rocm"]\nbare = true\n'
    hsa = TOOL + 'level = "hsa"\nname = "below"\n'
    cells = cells_of(read(tmp_path, head + PROGRAM + TOOL + hsa))
    assert [(cell.tool, cell.run["level"]) for cell in cells] == [
        ("bare", None), ("instr_count", "auto"), ("below", "hsa"),
    ]  # fmt: skip
    assert len({cell.identity for cell in cells}) == 3
    with pytest.raises(Invalid, match="tool below: level hsa: the emulator's HIP runtime has no HSA below it"):
        cells_of(read(tmp_path, head.replace("rocm", "luthier") + PROGRAM + hsa))


def identity(folder: Path, text: str) -> str:
    [cell] = cells_of(read(folder, text))
    return cell.identity


def test_identity_is_by_content(tmp_path: Path) -> None:
    script = '[[program]]\ncommand = ["sh", "script"]\n'
    (tmp_path / "script").write_text("exit 0")
    (tmp_path / "t.py").write_text("from luthier_py import Option, Tool\nclass T(Tool):\n    n = Option(0)\n")
    first = identity(tmp_path, script)
    (tmp_path / "same").write_text("exit 0")
    assert identity(tmp_path, script.replace("script", "same")) == first, "another name"
    assert identity(tmp_path, script + 'name = "label"\n') == first, "another label"
    assert identity(tmp_path, "timeout = 1\n" + script) == first, "how long it may take"
    others = {
        identity(tmp_path, script + 'arguments = [["x"]]\n'),
        identity(tmp_path, script + "environment = { N = 1 }\n"),
        identity(tmp_path, 'devices = ["emulator:gfx906"]\n' + script),
        identity(tmp_path, script + TOOL),
        identity(tmp_path, script + TOOL.replace("instr_count", "t.py")),
        identity(tmp_path, script + TOOL.replace("instr_count", "t.py") + "options = { n = 1 }\n"),
    }
    (tmp_path / "script").write_text("exit 1")
    others.add(identity(tmp_path, script))
    assert len(others | {first}) == 8


def test_identity_is_of_the_shell_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the shell sets and changes a run; where libraries are found matters on ROCm alone."""
    emulated = 'devices = ["emulator:gfx906"]\n'
    ours, rocm = ('stacks = ["luthier"]\n' + emulated + PROGRAM, 'stacks = ["rocm"]\n' + emulated + PROGRAM)
    first = identity(tmp_path, ours), identity(tmp_path, rocm)
    assert first[0] != first[1]
    monkeypatch.setenv("LD_LIBRARY_PATH", "/another/rocm/lib")
    assert identity(tmp_path, ours) == first[0] and identity(tmp_path, rocm) != first[1]
    monkeypatch.setenv("LUTHIER_TIME_LIMIT", "3")
    assert identity(tmp_path, ours) != first[0]


def test_an_edited_tool_is_another_tool(tmp_path: Path) -> None:
    text = "from luthier_py import Tool\nclass T(Tool):\n    'T.'\n"
    (tmp_path / "t.py").write_text(text)
    (tmp_path / "u.py").write_text(text + "    x = 1\n")
    tool = PROGRAM + '[[tool]]\ntool = "t.py"\n'
    assert identity(tmp_path, tool) != identity(tmp_path, tool.replace("t.py", "u.py"))


def test_a_tool_that_wants_options_is_the_file_that_they_name_too(tmp_path: Path) -> None:
    script = tmp_path / "counts"
    tool = PROGRAM + f'[[tool]]\ntool = "script"\noptions = {{ file = "{script}" }}\n'
    found = set()
    for text in ("memory", "lds"):
        script.write_text(f'on("{text}"): count()')
        found.add(identity(tmp_path, tool))
    assert len(found) == 2


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="program x: there is no program no-such"):
        cells_of(read(tmp_path, '[[program]]\nname = "x"\ncommand = ["no-such"]\n'))


def test_files_without_an_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"#" * (LARGEST_BYTES + 1))
    for path, said in ((tmp_path / "pipe", "is a pipe, no regular"), (Path("/dev/zero"), "is a device")):
        with pytest.raises(Invalid, match=said):
            read_study(path)
    with pytest.raises(OSError, match="larger"):
        read_study(tmp_path / "large")


def test_a_campaign_is_runs_of_its_parts(tmp_path: Path) -> None:
    """A longer one has those of a shorter one, but for a part that was cut; other faults are other runs."""
    def runs(more: str) -> list[tuple[str, int, int]]:
        study = read(tmp_path, f'devices = ["emulator:gfx90a"]\nrepeat = 3\n{PROGRAM}{CAMPAIGN}part = 40\n{more}')
        cells = cells_of(study)
        assert {(cell.tool, cell.run["level"]) for cell in cells} == {("c", None)}
        return [(cell.identity, cell.run["faults"]["first"], cell.run["faults"]["faults"]) for cell in cells]

    short, long = runs("faults = 100"), runs("faults = 160")
    assert [run[1:] for run in short] == [(0, 40), (40, 40), (80, 20)]
    assert long[:2] == short[:2] and [run[1:] for run in long[2:]] == [(80, 40), (120, 40)]
    assert not {run[0] for run in runs("faults = 100\nseed = 2")} & {run[0] for run in short}
