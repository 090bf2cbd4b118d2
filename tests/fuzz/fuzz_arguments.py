"""Random command lines over odd files: every command, every option, values that fit and values that do not.

What must come of it: an end as the README has it. That is LuthierError or OSError,
which `luthier` tells in one line, or wrong usage as the command line library tells it; everything else would reach the
user as a traceback.
"""

from __future__ import annotations

import json
import random
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import click
from fuzz_bundles import bundle
from fuzzer import Case, Fuzzer
from object_mutations import mutated
from seed_objects import seeds

from luthier_py.base.errors import Invalid
from luthier_py.cli import app
from luthier_py.host.hip import runtime_folder
from luthier_py.host.preload import tool_library
from luthier_py.samples import sample

SKIPPED = ("demo",)  # takes no arguments worth a try
WORDS = ("", "-", "--", "x", "0", "1", "-1", "1,1,1", "2,3", "4", "1,2,3,4", "0,1,1", "4294967296", "1e9", "0x10",
         "99999999999999999999",
         "nan", "..", "../x", "/nonexistent/x", "a[/b]", "[red]", "\x1b[31m", "ä", "\udcff", "%p", "=", "a=b",
         "=1+1", "x" * 300, "*", "(")
FILES = ("good.co", "good.co", "good.co", "other.co", "bad.co", "odd.co", "bundle.hipfb", "empty", "folder",
         "missing", "text.txt", "tool.py",
         "broken.py", "study.toml", "broken.toml")
TOOLS = ("instr_count", "opcode_histogram", "none", "lds_bank_conflicts", "instr_count_bb", "tool.py",
         "tool.py:Count", "broken.py",
         "missing.py", "good.co", "nonsense", "folder")
OPTIONS = ("mode=block", "mode=instruction", "mode=x", "COUNT_WARP_LEVEL=0", "EXCLUDE_PRED_OFF=1",
           "LUTHIER_KERNELS=(", "LUTHIER_KERNELS=x",
           "INSTR_BEGIN=5", "INSTR_END=0", "START_GRID_NUM=-1", "TOOL_VERBOSE=1", "TOOL_VERBOSE=maybe",
           "LUTHIER_OUTPUT=out.csv", "x", "=", "")
DEVICES = ("emulator", "emulator:gfx90a", "emulator:gfx1100", "emulator:gfx942", "emulator:", "emulator:x", "hip",
           "hip:0", "")
SPECS = ("in:f32[64]=random:1", "inout:f32[64]=arange", "out:f32[64]", "u32=64", "f32=0.5", "i32=-1", "u32=-1",
         "u32=1e3", "in:f32[0]",
         "in:f32[-1]", "in:f32[99999999999999999999]", "in:u8[8]=file:good.co", "in:f32[8]=file:missing",
         "in:f32[8]=x", "f32=x",
         "in:q[8]", "x", "", "in:", "ptr=0", "in:f32[64]=zeros", "bytes=00", "u64=0xffffffffffffffff", "f16=1",
         "in:f64[4]=1,2,3,4")
PROGRAMS = (["true"], ["false"], ["sh", "-c", "exit 5"], ["missing"], ["./folder"], ["./text.txt"], [])
SAVED = {"-o": ("out.co", "folder", "missing/out", "good.co"), "--output": ("out.json", "out.csv", "out.txt",
                                                                            "out.x", "folder", "missing/out"),
         "--report": ("report", "good.co", "folder"), "--save": ("saved", "good.co"), "--jobs": ("1", "0", "x")}
GOOD_RUN = ["run", "good.co", "--kernel", "vector_add", "--grid", "1", "--block", "64", "in:f32[64]=random:1",
            "in:f32[64]=random:2",
            "out:f32[64]"]
TOOL = """from luthier_py import Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add
class Count(Tool):
    total = Variable(u64)
    @hook(lanes="one")
    def add(total: ptr[u64]) -> None:
        atomic_add(total, u64(1))
    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, self.add, self.total)
"""
STUDY = """repeat = 2
bare = true
devices = ["emulator:gfx90a"]

[[program]]
command = ["true"]
arguments = [["1"], ["2"]]

[[tool]]
name = "count"
tool = "instr_count"
options = { COUNT_WARP_LEVEL = 0 }
"""


def _make(rng: random.Random) -> Case:
    return Case(json.dumps({"arguments": _arguments(rng), "seed": rng.getrandbits(32)}).encode())


def _arguments(rng: random.Random) -> list[str]:
    root = click.Context(app)
    commands = {name: app.get_command(root, name) for name in app.list_commands(root)}
    if rng.random() < 0.4:
        arguments = [*GOOD_RUN[:2], *_options(rng, commands["run"], False), *GOOD_RUN[2:]]
    else:
        name = rng.choice([name for name in sorted(commands) if name not in SKIPPED])
        arguments = [name, *_of_command(rng, commands[name])]
    if rng.random() < 0.4:
        at = rng.randrange(1, len(arguments) + 1)
        odd = [rng.choice((*WORDS, *FILES, *SPECS, "--help", "--json", "-t", "-O", "--kernel"))]
        arguments[at : at + rng.randrange(2)] = rng.choice(([], odd, odd))
    return arguments


def _of_command(rng: random.Random, command: Any) -> list[str]:
    given = _options(rng, command, True)
    behind = [word for parameter in command.params if parameter.param_type_name == "argument"
              for word in _positional(rng, command.name, parameter)]
    if command.name == "study" and rng.random() < 0.9:
        given.append("--dry-run")
    return [*behind, *given] if rng.random() < 0.5 and command.name != "exec" else [*given, *behind]


def _options(rng: random.Random, command: Any, required: bool) -> list[str]:
    given = []
    for parameter in command.params:
        wanted = required if parameter.required else rng.random() < 0.2
        if parameter.param_type_name == "option" and wanted:
            name = rng.choice(parameter.opts)
            given += [name] if parameter.is_flag else [name, _value(rng, parameter.opts)]
    return given


def _positional(rng: random.Random, command: str, argument: Any) -> list[str]:
    if command == "exec":
        return ["--", *rng.choice(PROGRAMS)]
    if argument.nargs == -1:
        return [rng.choice(SPECS) for _ in range(rng.choice((0, 1, 3, 3)))]
    return [rng.choice(TOOLS if command == "build" else ("study.toml", "broken.toml") if command == "study" else FILES)]


def _value(rng: random.Random, names: list[str]) -> str:
    if rng.random() < 0.08:
        return rng.choice((*WORDS, *FILES))
    pools = {"--tool": TOOLS, "--option": OPTIONS, "--device": DEVICES, "--kernel": ("vector_add", "vector_add", "x",
                                                                                     ""),
             "--kernels": ("vec.*", "(", ""), "--grid": ("1", "2,2", "0", "1,1,1,1"), "--block": ("64", "1", "32,2",
                                                                                                  "1025", "0"), **SAVED}
    return rng.choice(next((pools[name] for name in names if name in pools), WORDS))


def _trial(case: Case, folder: Path) -> None:
    wanted = json.loads(case.data)
    if not isinstance(wanted, dict) or not all(isinstance(word, str) for word in wanted["arguments"]):
        raise Invalid("no arguments")
    _fill(folder, random.Random(wanted["seed"]))
    try:
        app(args=[word for word in wanted["arguments"] if "\0" not in word], prog_name="luthier", standalone_mode=False)
    except click.exceptions.Exit:
        return
    except (click.ClickException, click.Abort, OSError) as error:
        raise Invalid(type(error).__name__) from error


def _fill(folder: Path, rng: random.Random) -> None:
    """The files of FILES; what is odd is odd in another way each time."""
    good = sample("vector_add").path.read_bytes()
    contents = {
        "good.co": good, "other.co": rng.choice(seeds()).data, "bad.co": good[: rng.randrange(len(good))],
        "odd.co": mutated(rng),
        "bundle.hipfb": bundle(rng), "empty": b"", "text.txt": b"hello\n", "tool.py": TOOL.encode(),
        "broken.py": b"class X(\n", "study.toml": STUDY.encode(), "broken.toml": _damaged(rng, STUDY.encode()),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "folder").mkdir()


def _damaged(rng: random.Random, text: bytes) -> bytes:
    words = text.split(b" ")
    words[rng.randrange(len(words))] = rng.choice((b"", b"1", b"[]", b'"x"', b"{}", b"true", b"\xff", b"[[x]]\n",
                                                   b"-1", b"1979-05-27"))
    return b" ".join(words)


def _prepare(folder: Path) -> None:
    with (folder / "said").open("w") as said, redirect_stdout(said), redirect_stderr(said):
        _trial(Case(json.dumps({"arguments": [*GOOD_RUN, "-t", "instr_count", "--json"], "seed": 0}).encode()), folder)
    runtime_folder(), tool_library()  # a study compiles them once, which is not what its mutant costs


FUZZER = Fuzzer("arguments", _make, _trial, _prepare, divisible=False)
