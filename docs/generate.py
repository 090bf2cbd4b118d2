"""Writes the pages of docs that are made from the code: `PAGES`.

In: the installed package. Out: Markdown. Invariant: the same code gives the same pages; `make docs` writes them, and
tests/docs/test_reference.py says when they are not those of the code.
"""

from __future__ import annotations

import ast
import difflib
import enum
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import luthier_py
from luthier_py import intrinsics
from luthier_py.features.coverage.report import page as coverage_page
from luthier_py.host.hip import table
from luthier_py.isa import instruction_set, targets
from luthier_py.isa.timing.cycles import RDNA1, SOURCES, cycle_model
from luthier_py.rewrite.tool import Scalar
from luthier_py.rewrite.tool.chosen import filters

FOLDER = Path(__file__).parent

# What authors meet beyond the names of the package itself: module, names.
SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Tools", ("Tool", "Several", "Option", "COUNT_WARP_LEVEL", "EXCLUDE_PRED_OFF", "Variable", "Element",
               "WaveVariable", "LookupTable", "Channel", "LaunchParameter", "LAUNCH_NUMBER", "LaunchVariable",
               "Allocations", "LiveAllocation", "LaunchResult", "Selection", "as_data", "json_text")),
    ("Where hooks go", ("Mutator", "Edge", "Loop", "Stretch", "Region", "Counting", "Counted", "Following", "Hook")),
    ("What hooks are given", ("Computed",)),
    ("Device code", ("hook", "device", "Hooks", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64",
                     "f16", "bf16", "f32", "f64", "bool_", "ptr", "lds", "scratch", "Lane", "array", "asm",
                     "channel")),
    ("The program", ("Program", "Kernel", "Function", "Block", "Ending", "Instr", "CallSite", "lift")),
    ("Questions about a program", ("Facts", "Definitions", "Reaching", "block_graph", "call_graph", "dominators",
                                   "post_dominators", "trip_count", "Frame", "Frames", "source_frames", "LineRange",
                                   "line_ranges", "MissingWait", "missing_waits")),
    ("Instructions and registers", ("Inst", "Operand", "OperandKind", "OpInfo", "Space", "InstructionClass",
                                    "MemoryAccess", "AddressForm", "AccessKind", "OpFlag", "Reg", "RegFile", "RegSet",
                                    "sgpr", "vgpr",
                                    "EXEC", "VCC", "SCC", "M0")),
    ("Scripts", ("load", "CodeObject", "KernelRecord", "KernelArg", "instrument", "Instrumented", "attach", "Attached",
                 "show", "load_ipython_extension", "study_table", "LuthierError")),
)  # fmt: skip
ARGUMENTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Operands", ("source", "destination")),
    ("Memory", ("address", "bounds", "access_bytes", "access_kind")),
    ("Lanes and branches", ("active_lanes", "taken_lanes")),
    ("The launch", ("kernel_argument", "workgroup_id", "workitem_id", "workgroup_size", "grid_size", "lds_size",
                    "wave_in_group", "workgroup_in_launch", "wave_in_launch", "workitem_in_launch", "hardware_register",
                    "Entry")),
    ("Numbers", ("site_id", "opcode_id")),
    ("Of your own", ("computed",)),
)  # fmt: skip
ARGUMENTS_ABOUT = """# What hooks are given

Made from the code by `make docs`. `Mutator.before`, `after` and their kin take one argument for each parameter:

* a Python number: a constant of the call;
* a register (`sgpr(4, 2)`, `vgpr(0)`, `sgpr(SCC)`) or an operand (`instr.inst["src0"]`): its value at the place;
* a `Variable`, or an element of one: its address, for a `ptr` parameter; a `WaveVariable`: its value;
* a `LaunchParameter`: its number; a `LaunchVariable`: the address of its first element, or with `.own` of
  the wave's, work-group's or work-item's own;
* what the functions on this page make.

What is one value for the wave fits a `Lane` parameter as well: each lane has the same.

```python
from luthier_py import Lane, Mutator, Tool, Variable, access_bytes, address, hook, ptr, u32, u64, workitem_id
from luthier_py.intrinsics import atomic_max

@hook
def widest(top: ptr[u64], where: Lane[u64], size: u32, x: Lane[u32]) -> None:
    if x < 32:
        atomic_max(top, where + size)

class Top(Tool):  # the end of the highest access to global memory, by work-items below 32
    top = Variable(u64)

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function, where="vector_memory & global"):
                m.before(instr, widest, self.top, address(instr), access_bytes(instr), workitem_id("x"))
```"""


def arguments() -> str:
    """docs/arguments.md"""
    parts = [ARGUMENTS_ABOUT]
    for title, names in ARGUMENTS:
        parts.append(f"## {title}")
        parts += [entry(name) for name in names]
    return "\n\n".join(parts) + "\n"


FILTERS = """# Filters

Made from the code by `make docs`. A filter says which instructions; tools and users say it alike:

    m.instrs(function, where="memory & width >= 8")                      # in a tool
    luthier run ... -t TOOL -O "INSTRUMENT=global & load & !loop"        # for any tool
    INSTRUMENT="line = 10..20 & opcode = *_f32*" luthier exec -t TOOL -- ./app
    luthier exec -t TOOL --lines kernel.hip:22-50 -- ./app               # INSTRUMENT="lines = kernel.hip:22-50"

`INSTRUMENT` leaves out what it does not choose, whatever the tool asks for; calls at entries and exits stay, but for
kernels of which it chooses nothing: these are left alone, and the verdict names them. A tool
that counts whole blocks counts what is chosen of each, and a loop is chosen where an instruction of its header's block
is. Launches and kernels are chosen by `START_GRID_NUM`, `LUTHIER_KERNELS` and their kin.

`&`, `|` and `!` combine facts, `!` before `&` before `|`; parentheses group. A fact is

* a word: {words};
* a number and what it is compared with (`= != < <= > >=`, or `= 4..16` for a range, ends included): {numbers};
* a text and a pattern (`=` or `!=`; `*` stands for anything, `?` for a letter, `[ab]` for one of some): {texts};
* a place in the source (`=` or `!=`, and a file with a line, `kernel.hip:22`, or lines, `kernel.hip:22-50`): {places}.

`global`, `lds`, `scratch`, `scalar`, `gds` and `flat` hold where an instruction may touch such memory. `width` is in
bytes for each lane, 0 of what accesses no memory; `depth` is how many loops an instruction is in; `index` counts in its
function; `line` and `file` are those of the source, 0 and empty where the object has no line tables; `opcode` is the
whole mnemonic (`v_add_f32_e32`). [regions.md](regions.md) has what `lines`, `loop` and `inlined` mean. Numbers may be
hexadecimal. What cannot be read is refused, with its place.
"""


def filter_page() -> str:
    """docs/filters.md"""
    words, numbers, texts, places = (", ".join(f"`{name}`" for name in table) for table in (
        filters.WORDS, filters.NUMBERS, filters.TEXTS, filters.PLACES))
    return FILTERS.format(words=words, numbers=numbers, texts=texts, places=places)


def reference() -> str:
    """docs/reference.md"""
    parts = ["# Reference", "Made from the code by `make docs`; [arguments.md](arguments.md) "
             "has what hooks can be given. Names come from `luthier_py`, intrinsics from "
             "`luthier_py.intrinsics`."]
    for title, names in SECTIONS:
        parts.append(f"## {title}")
        parts += [entry(name) for name in names]
    parts.append("## Intrinsics\n\nOf `luthier_py.intrinsics`; called in device code only.")
    parts += ["\n".join(f"* `{name}{intrinsic_signature(name)}`: {summary(getattr(intrinsics, name).__doc__)}"
                        for name in intrinsics.__all__)]
    return "\n\n".join(parts) + "\n"


EDITS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("What there is", (
        "functions", "instrs", "blocks", "stretches", "runs", "regions", "counting", "edges", "loops", "calls",
        "components", "spare_scalars")),
    ("Calls at instructions, blocks, entries and exits", (
        "before", "after", "at_block", "at_stretch", "at_region", "at_counted", "at_entry", "at_exit")),
    ("Calls on ways between blocks and at loops", ("at_edge", "at_loop_entry", "at_back_edge", "at_loop_exit")),
    ("Other instructions", ("insert", "remove", "change", "replace", "skip_if")),
)


def edits() -> str:
    """docs/edits.md"""
    mutator = luthier_py.Mutator
    parts = ["# Edits", "What a tool may ask for in `instrument(self, m)`. Made by `make docs` from the docstrings of "
             "`Mutator`; [reference.md](reference.md) has every name, [arguments.md](arguments.md) what hooks can be "
             "given.", inspect.getdoc(mutator) or ""]
    turns = importlib.import_module("luthier_py.rewrite.tool.edits").Turn
    comments = dict(fields(turns))
    parts.append("The order of kinds, in a table:\n\n| | calls at one point |\n|---|---|\n" + "\n".join(
        f"| {number} | {comments[name][1]} |" for number, name in enumerate(turns.__members__, 1)))
    for title, names in EDITS:
        parts.append(f"## {title}")
        for name in names:
            method = getattr(mutator, name)
            parts.append(f"### `{name}{signature(method)}`\n\n{inspect.getdoc(method)}")
    return "\n\n".join(parts) + "\n"


def entry(name: str) -> str:
    value = getattr(luthier_py, name)
    if inspect.isclass(value):
        return "\n\n".join(filter(None, [f"### `{name}`", about(name, value), members(value)]))
    if inspect.isfunction(value):
        return f"### `{name}{signature(value)}`\n\n{about(name, value)}"
    return f"### `{name}`\n\n{about(name, value)}"


def about(name: str, value: Any) -> str:
    """What it is, in at least one line; empty if the code does not say."""
    if isinstance(value, Scalar):
        kind = "A condition" if value.bits == 1 else f"{value.kind.name.capitalize()}, {value.bits} bits"
        return f"{kind}; a type of device code."
    if isinstance(value, luthier_py.Option):
        return f"An option of every tool that counts: {value.help}."
    if isinstance(value, int):
        return f"Index of the register among the scalar registers, as the ISA numbers them: {int(value)}."
    inherited = isinstance(value, type) and not vars(value).get("__doc__")  # Enum's own text, say
    text = "" if inherited else inspect.getdoc(value) or ""
    own = not re.match(rf"{name}\(", text)  # what dataclasses write for themselves
    return text if own else ""


def members(cls: type) -> str:
    """A line for each public member; fields with the comment that they have in the code."""
    if issubclass(cls, enum.Enum):
        comments = dict(fields(cls))
        return "\n".join(f"* `{name}`{said(comments.get(name, ('', ''))[1])}" for name in cls.__members__)
    lines = [f"* `{name}: {kind}`{said(comment)}" for name, (kind, comment) in fields(cls) if kind]
    for name, value in everything(cls).items():
        if name.startswith("_") and name not in ("__init__", "__getitem__"):
            continue
        plain = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if isinstance(plain, property):
            lines.append(f"* `{name}`{said(summary(plain.__doc__))}")
        elif inspect.isfunction(plain) and not (name == "__init__" and not plain.__doc__):
            shown = {"__init__": cls.__name__, "__getitem__": "[...]"}.get(name, name)
            lines.append(f"* `{shown}{signature(plain)}`{said(summary(plain.__doc__))}")
    return "\n".join(lines)


def everything(cls: type) -> dict[str, Any]:
    """What a class has, and before it what bases of ours do that tools cannot import: parts of it in other files."""
    parts = [base for base in cls.__mro__ if base is cls or base.__module__.startswith("luthier_py.")
             and base.__name__ not in luthier_py.__all__]
    return {name: value for part in reversed(parts) for name, value in vars(part).items()}


def fields(cls: type) -> Iterator[tuple[str, tuple[str, str]]]:
    """Annotated or assigned names of a class body: the type, and the comment behind or the text below."""
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return
    lines, body = source.splitlines(), ast.parse(source).body[0].body  # type: ignore[attr-defined]
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name, kind = node.target.id, as_imported(ast.unparse(node.annotation))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, kind = node.targets[0].id, ""
        else:
            continue
        comment = lines[node.end_lineno - 1].partition("  #")[2].strip() if node.end_lineno else ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            comment = summary(str(after.value.value))
        if not name.startswith("_"):
            yield name, (kind, comment)


def signature(function: Callable[..., Any]) -> str:
    made = inspect.signature(function)
    shown = [p for p in made.parameters.values() if p.name not in ("self", "cls")]
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(made.replace(parameters=shown)))  # annotations are texts
    return as_imported(text)


def as_imported(annotation: str) -> str:
    """Without the modules by which the package names what authors import from luthier_py."""
    return re.sub(r"\b(?:ir|analysis)\.(?=[A-Z])", "", annotation)


def intrinsic_signature(name: str) -> str:
    stub = ast.parse(Path(intrinsics.__file__).with_suffix(".pyi").read_text("utf-8"))
    node = next(node for node in stub.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return f"({ast.unparse(node.args)}) -> {ast.unparse(node.returns) if node.returns else 'None'}"


def summary(text: str | None) -> str:
    """The first paragraph in one line."""
    return " ".join((text or "").strip().partition("\n\n")[0].split())


def said(text: str) -> str:
    return f": {text}" if text else ""


def coverage() -> str:
    """docs/coverage.md"""
    parts = [
        "# What the emulator covers",
        "Made from the code by `make docs`; `luthier coverage TARGET` says the same of one target, a line for each "
        "operation that is not exact (`--match` for others). Every operation of every table is one of four things. "
        "*Exact*: manuals leave nothing open, and "
        "results are compared bit for bit with a second reader of the manuals, in Python integers and fractions "
        "(`tests/reference`), or in the files of tests below. *Exact but for a NaN's bits*: the same, but that which "
        "NaN arithmetic makes is open. *Implementation-defined*: manuals leave more open, and devices may differ: the "
        "emulator gives one of the results that they allow. *Refused*: a kernel with it is instrumented, proved and "
        "linked as any other, but the emulator does not run it: when a wave comes to its function, an error names "
        "kernel, address, instruction, the reason and what to do. Where lanes of one instruction store to one place, "
        "which of them stays is open as well, but that is a matter of addresses.",
        "`luthier coverage -- ./app` says for a run what of it was exact, and whether anything that was not decided "
        "a branch, an address or a mask ([the tool](../tools/exactness/README.md)).",
    ]
    return "\n\n".join([*parts, *filter(None, coverage_page(targets()))]) + "\n"


def time_model() -> str:
    """docs/time-model.md"""
    models = list(dict.fromkeys(map(cycle_model, targets())))
    parts = [
        "# The numbers of the cycle model",
        "In cycles; [what becomes of them](time.md). Made from `luthier_py/isa/timing/cycles.py` by `make docs`. "
         "Sources are "
        "listed below.",
        "## Targets\n\n" + "\n".join(
            f"* {model.name}: " + " ".join(row.name for row in targets() if cycle_model(row) is model)
            for model in models),
        "## Instructions\n\nHow long one holds its SIMD, and when its result can be read, for a wave of 64 on GCN and "
        "CDNA, of 32 on RDNA; a wave of 64 holds RDNA's vector units twice as long.",
        "\n".join(["| | " + " | ".join(model.name for model in models) + " |", "|---" * (len(models) + 1) + "|",
                   *(f"| {work.value} | " + " | ".join(
                       f"{model.work[work].held}, {model.work[work].ready} ({model.work[work].source})"
                       for model in models) + " |" for work in RDNA1.work)]),
        "## Everything else\n\nLatencies are beside the cycles that an access takes to be served.",
        "\n".join(["| | " + " | ".join(model.name for model in models) + " |", "|---" * (len(models) + 1) + "|",
                   *(f"| {words} | " + " | ".join(_cell(getattr(model, name)) for model in models) + " |"
                     for name, words in MODEL_ROWS.items())]),
        "## Sources\n\n" + "\n".join(f"* {name}: {text}" for name, text in SOURCES.items()),
    ]
    return "\n\n".join(parts) + "\n"


MODEL_ROWS = {
    "step": "from an instruction of a wave to its next, at least",
    "matrix_rates": "matrix operations of a SIMD in a cycle",
    "passes": "passes of a matrix in blocks (CDNA 1 and 2: of each), by its rows",
    "matrix_extra": "from the end of a matrix instruction to another that reads its result",
    "lds_latency": "latency of LDS", "memory_latency": "latency of vector memory",
    "scalar_latency": "latency of scalar memory", "lds_bytes": "bytes of LDS that a wave gets in a cycle",
    "memory_bytes": "bytes of vector memory in a cycle",
    "line_bytes": "bytes of a line, of which one is looked up in a cycle",
    "address_lanes": "lanes whose addresses are looked at in a cycle", "sources": "sources", "assumed": "assumed",
}


def _cell(value: Any) -> str:
    return " ".join(f"{key}:&nbsp;{number}" for key, number in value.items()) if isinstance(value, dict) else str(value)


def hip() -> str:
    """docs/hip.md"""
    rows = table.functions()
    counts = [sum(row.implemented and not refused(row) for row in rows), sum(refused(row) for row in rows)]
    parts = [
        "# HIP's functions on the emulator's runtime",
        "Made by `make docs` from `luthier_py/host/hip/functions.txt` and the conformance cases: every name "
        "that the library exports, since which HIP, what is checked of its arguments before it is entered (the "
        "error in parentheses, otherwise `hipErrorInvalidValue`; pointers that are not named here must not be "
        "null), and the files of `tests/conformance` whose cases call it. What depends on more than one argument "
        "is checked by the function itself. *unsafe*: not while a capture forbids it; *legacy*: not while a "
        "stream is captured that waits for the default stream; *recorded*: captured with its stream; *cold*: "
        "needs no device; *bare*: leaves the last error as it is; *images*: refused, since no device has images. "
        "A refused function returns "
        "`hipErrorNotSupported`. "
        f"Implemented: {counts[0]}; the same for the thread's own default stream, or under another name: "
        f"{len(rows) - sum(counts)}; refused: {counts[1]}.",
    ]
    lines = ["| function | since | | checked | cases |", "|---|---|---|---|---|"]
    calls = conformance_calls()
    for row in sorted(rows, key=lambda row: row.name.lower()):
        other = row.alias_of or row.thread_form_of
        kind = f"as `{other}`" if other else "refused" if refused(row) else ""
        checked = "" if other else "; ".join(checks_of(row))
        cases = ", ".join(name for name, words in calls.items() if row.name in words)
        since = row.version.removeprefix("hip_")
        lines.append(f"| `{row.name}` | {since} | {kind} | {checked} | {cases} |")
    return "\n\n".join([*parts, "\n".join(lines)]) + "\n"


def refused(row: table.Function) -> bool:
    return not (row.implemented or row.alias_of or row.thread_form_of) or table.Word.IMAGES in row.words


def checks_of(row: table.Function) -> Iterator[str]:
    """What functions.txt says of its arguments, in words."""
    if not row.checked:
        return
    optional = [p.name for p in row.parameters or () if p.optional]
    for p in row.parameters or ():
        why = f" ({ERROR_NAMES[p.error]})" if p.error not in (0, table.INVALID_VALUE) else ""
        if p.test == "device":
            yield f"`{p.name}`: a device{why}"
        elif p.test.startswith("&"):
            yield f"`{p.name}`: no flags but {p.test[1:]}{why}"
        elif p.test:
            yield f"`{p.name}`: {p.test.replace('..', ' to ').replace('|', ', ')}{why}"
        elif p.handle and not p.optional:
            yield f"`{p.name}`: alive{why}"
    if optional:
        yield "may be null: " + ", ".join(f"`{name}`" for name in optional)
    yield from (f"*{word.value}*" for word in table.Word if word in row.words)


ERROR_NAMES = {
    int(number): name
    for number, name, *_ in (line.split(" ", 2) for line in (table.HERE / "errors.txt").read_text("utf-8").splitlines())
    if number.isdigit()
}


def conformance_calls() -> dict[str, frozenset[str]]:
    """The names that each file of conformance cases has in it."""
    files = sorted((FOLDER.parent / "tests" / "conformance").glob("*.hip"))
    return {file.stem: frozenset(re.findall(r"\w+", file.read_text("utf-8"))) for file in files}


PASSES = {
    "clone": "A copy of the function. On the left the address of each instruction in the original; what depends on an "
             "address has become symbolic.",
    "inline_calls": "The calls that the tool recorded, each as the fragment that its hook was compiled to: `*` is the "
                    "hook's code, `+` what stands around it.",
    "look_up": "Before an indirect call, a search for the clone of its target.",
    "prologue": "What a wave does once, when it starts.",
    "wait_states": "Waits and wait states between the application's instructions and inserted ones.",
    "relax": "Branches that do not reach go through islands.",
    "clauses": "Clauses that something was put into are dissolved.",
}
"""The passes behind which the pipeline shows each clone, in order."""


def passes() -> str:
    """vector_add under instr_count: its clone behind the first pass, and what each other pass changes of it."""
    from luthier_py.rewrite.inject.text import format_clone

    obj = luthier_py.load((FOLDER.parent / "tests" / "data" / "vector_add.co").read_bytes(), "vector_add.co")
    isa = instruction_set(obj.target, 64)
    shown: dict[str, str] = {}
    luthier_py.instrument(obj.data, "instr_count", "vector_add.co", seen=lambda name, clone: shown.setdefault(
        name, format_clone(isa, clone)) and clone)
    assert shown.keys() == PASSES.keys()
    parts = ["# One kernel after each pass", "Made from the code by `make docs`: `vector_add` of the samples under "
             "`instr_count`, which adds the length of each block that runs to a counter in two scalar registers, and "
             "that to a variable where a wave ends. What the passes are for is in [rewriting](rewriting.md)."]
    before: list[str] = []
    for name, about in PASSES.items():
        lines = shown[name].splitlines()
        if not before:
            parts += [f"## {name}", about, f"```text\n{shown[name].rstrip()}\n```"]
        elif lines != before:
            parts += [f"## {name}", about, changes(before, lines, 1)]
        else:
            said, given, made = golden(name)
            parts += [f"## {name}", f"{about} Here it has nothing to do; in another function (`tests/golden/passes/"
                      f"{name}.golden`): {said[0].lower()}{said[1:]}", changes(given, made, 2)]
        before = lines
    return "\n\n".join(parts) + "\n"


def changes(before: list[str], after: list[str], around: int) -> str:
    """As a block; ``around``: lines that are the same, beside those that are not."""
    found = [*difflib.unified_diff(before, after, lineterm="", n=around)][2:]
    lines = ("..." if line.startswith("@@") else line for line in found)
    return "\n".join(["```diff", *lines, "```"])


def golden(name: str) -> tuple[str, list[str], list[str]]:
    """What a golden of a pass says of itself, the clone that it gives, and what its CHECK lines have of that one."""
    text = (FOLDER.parent / "tests" / "golden" / "passes" / f"{name}.golden").read_text("utf-8")
    given = [line for line in text.splitlines() if line and line[0] != ";"]
    said = " ".join(re.findall(r"^; (?!RUN|CHECK)(.*)", text, re.MULTILINE))
    places = {line.strip(): place for place, line in enumerate(given)}
    made: list[str] = []
    last = -1  # of the given lines, which stand in the clone, too
    for follows, line in re.findall(r"^; CHECK(-NEXT)?: (.*)", text, re.MULTILINE):
        place = places.get(line)
        if place is not None:
            made += given[last + 1 : place] if made and not follows else []
            last = place
        made.append(given[place] if place is not None else line if line[0] == "." else f"  {line}")
    return said, given[places[made[0].strip()] : last + 1], made


PAGES: dict[str, Callable[[], str]] = {
    "architecture/passes.md": passes,
    "reference.md": reference, "edits.md": edits, "arguments.md": arguments,
    "filters.md": filter_page, "coverage.md": coverage, "hip.md": hip, "time-model.md": time_model,
}


if __name__ == "__main__":
    for page, make in PAGES.items():
        (FOLDER / page).write_text(make(), "utf-8")
