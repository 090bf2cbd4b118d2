"""The house rules that a machine can check: which room may import which, and how files are kept.

In: the text of the repository; nothing is imported. docs/architecture.md says why.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from source_tree import (
    BUILT_INS,
    PACKAGE,
    ROOT,
    circles,
    constant,
    imports,
    module_of,
    modules_below,
    name_of,
    product,
    reached,
    room_of,
    sources,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOMS = (
    "exports names errors llvm storage releases isa clang loader proof ir analysis runtime emulator tool jit "
    "claim_check inject link pipeline report worker session cli"
).split()
EMULATOR_ROOMS = (
    "options records memory reading vector_regions native waves instructions translation watching code launches devices"
).split()
DEVICES = {"runtime", "emulator"}
REWRITER = {"tool", "jit", "claim_check", "inject", "link"}
PROOF = {"proof", "names", "errors", "isa", "loader"}  # all that it believes
YARDSTICKS = {"columns", "hazard_patterns", "hazards", "instruction", "legal", "mitigated_hazards", "private_buffers",
              "registers", "scan", "semantics", "side_effects", "vector_modes", "waitcnt", "wave_registers"}
"""Modules of isa by which the proof judges: each says what code means, with sources; none says what is put into it."""
MAKES_CODE = {"make", "parse", "assemble", "waits"}  # methods of an InstructionSet
MAINTAINERS = {"luthier_py.isa.generate"}  # packages that only a checkout has
IMPORT_NAMES = {"hip-python": "hip", "pyelftools": "elftools"}
# Types that have a name in two modules, each with why; whoever can rename one takes its line away.
TWINS = {
    **dict.fromkeys(("Device", "Effects", "Kind", "Lanes", "Operand", "Scalar", "Signature", "Type", "Value"),
                    "what a hook's author writes is not what the machine has; authors' names stay"),
}
FUNCTION_TWINS = {"header", "main", "rows_of"}
"""Public functions of one name in one room; none is exported by the room."""
PRIVATE_WORDS = frozenset(
    "afar birth born carrier cured debt debts flight foreseen foretell foretold freedom freedoms gate gates "
    "glue heard hollow inslot keeper listening orphan outsider owed progression recall resting seam seams ticket "
    "tickets twin weave woven".split())
"""Instead of which docs/glossary.md has AMD's, LLVM's and the literature's."""
FILE_LINES = 400
FUNCTION_LINES = 60


def rooms_imported(path: Path) -> Iterator[str]:
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "luthier_py":
            yield parts[1] if len(parts) > 1 else "luthier_py"


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def distributions(*groups: list[str]) -> list[str]:
    """Names without versions and extras of requirements."""
    return [re.split(r"[<>=!~ \[;]", requirement)[0] for group in groups for requirement in group]


def test_every_module_is_in_a_known_room() -> None:
    assert {room_of(path) for path in sources("luthier_py")} - {""} <= set(ROOMS)


def test_rooms_import_only_rooms_to_their_left() -> None:
    wrong = []
    for path in sources("luthier_py"):
        room = room_of(path)
        allowed = set(ROOMS[: ROOMS.index(room) + 1] if room else ROOMS)
        if room in REWRITER:
            allowed -= DEVICES
        if room == "proof":
            allowed = PROOF
        wrong += [f"{name_of(path)} imports {other}" for other in rooms_imported(path) if other not in allowed]
    assert wrong == []


def test_the_proof_judges_by_nothing_that_makes_copies() -> None:
    """A wrong instruction that is put into a copy would be right by what put it there."""
    wrong = []
    for path in sources("luthier_py/proof"):
        parts = [name.split(".") for name in imports(path) if name.startswith("luthier_py.isa.")]
        modules = {each[2] for each in parts if (PACKAGE / "isa" / f"{each[2]}.py").exists()
                   or (PACKAGE / "isa" / each[2]).is_dir()}
        calls = {node.func.attr for node in ast.walk(ast.parse(path.read_text()))
                 if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}
        wrong += [f"{name_of(path)} uses {each}" for each in (*sorted(modules - YARDSTICKS),
                                                              *sorted(calls & MAKES_CODE))]
    assert wrong == []


def test_rooms_of_the_emulator_import_only_rooms_to_their_left() -> None:
    places = {path: path.relative_to(PACKAGE / "emulator").parts for path in sources("luthier_py/emulator")}
    assert {parts[0] for parts in places.values()} == {"__init__.py", *EMULATOR_ROOMS}
    wrong = []
    for path, (room, *rest) in places.items():
        allowed = EMULATOR_ROOMS[: EMULATOR_ROOMS.index(room) + 1] if rest else EMULATOR_ROOMS
        seen = {name.split(".")[2] for name in imports(path) if name.startswith("luthier_py.emulator.")}
        wrong += [f"{name_of(path)} imports {other}" for other in seen if other not in allowed]
    assert wrong == []


def test_no_module_imports_itself_in_a_circle() -> None:
    """Inside rooms, too; imports for types only and those inside functions count as all others."""
    paths = {module_of(path): path for path in product()}
    uses = {}
    for module, path in paths.items():
        names = {name if name in paths else name.rpartition(".")[0] for name in imports(path)}
        uses[module] = names & paths.keys() - {module}
    assert circles(uses) == []


def rooms_that_decide(starts: list[str], without: set[str]) -> set[str]:
    return {name.split(".")[1] for name in reached(starts, without) if "." in name}


def test_what_is_kept_depends_on_the_sources_of_all_rooms_that_make_it() -> None:
    """A room that decides what a kept translation is, and is not in its key, would leave stale ones."""
    rooms = constant("luthier_py/emulator/options/translator.py", "ROOMS")
    folders = [f"luthier_py/emulator/{room}" for room in ("translation", "native", "vector_regions", "instructions")]
    writers = [name for folder in folders for name in modules_below(folder)]
    text = {"luthier_py.emulator.reading.text"}  # says which bytes there are, and they are in the key
    assert rooms_that_decide(writers, text) <= {*rooms, "exports", "names", "storage", "loader"}
    asked = {name.rpartition(".")[0] for folder in folders for path in sources(folder) for name in imports(path)}
    of_loader = {name for name in asked if name.startswith("luthier_py.loader")}
    assert {name.partition(".")[2].replace(".", "/") for name in of_loader} <= {*rooms}


def test_circles_are_found() -> None:
    uses = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a", "f"}, "f": {"e"}}
    assert circles(uses) == [["b", "c"], ["e", "f"]]


def defined(path: Path) -> Iterator[tuple[str, bool]]:
    """Names of types, aliases of types and public functions of a module, and whether it is a function."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            yield node.name, False
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, True
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and re.match(r"[A-Z]\w*[a-z]", target.id):
                yield target.id, False


def test_one_name_stands_for_one_thing() -> None:
    """Types in all rooms but the proof, which shares none with what it judges; functions inside one."""
    types: dict[str, set[str]] = {}
    functions: dict[tuple[str, str], set[str]] = {}
    for path in sources("luthier_py"):
        for name, is_function in defined(path):
            if is_function:
                functions.setdefault((room_of(path), name), set()).add(name_of(path))
            elif room_of(path) != "proof":
                types.setdefault(name, set()).add(name_of(path))
    found = {name: places for name, places in types.items() if len(places) > 1}
    assert {name: places for name, places in found.items() if name not in TWINS} == {} and TWINS.keys() <= found.keys()
    twins = {key: places for key, places in functions.items() if len(places) > 1}
    assert {key: places for key, places in twins.items() if key[1] not in FUNCTION_TWINS} == {}
    assert FUNCTION_TWINS <= {name for _, name in twins}


def test_architecture_page_names_rooms_and_files_that_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert f"    {' '.join(ROOMS)}\n" in page and f"    {' '.join(EMULATOR_ROOMS)}\n" in page
    folders = {path.relative_to(PACKAGE).parts[0] for path in sources("luthier_py")}
    paths = re.findall(r"`((?:\w+/)+\w+(?:\.(?:py|c|txt))?)`", page)
    named = {name: name if "." in name else f"{name}.py" for name in paths if name.split("/")[0] in folders}
    gone = [name for name, file in named.items() if not (PACKAGE / file).exists() and not (PACKAGE / name).exists()]
    assert named and gone == []


def test_built_ins_come_in_by_entry_points_only() -> None:
    wrong = []
    for path in sources("luthier_py"):
        tops = {name.split(".")[0] for name in imports(path)} & {"tests", *BUILT_INS}
        rooms = {room for room in rooms_imported(path) if room in BUILT_INS}
        strings = {name for name in BUILT_INS if f"luthier_py.{name}." in path.read_text()}
        wrong += [f"{name_of(path)} knows {name}" for name in tops | rooms | strings]
    assert wrong == []


def test_only_llvm_uses_llvmlite_binding() -> None:
    users = {name_of(path) for path in product() for name in imports(path) if name.startswith("llvmlite.binding")}
    assert users <= {"luthier_py/llvm.py"}


def test_targets_are_named_in_isa_only() -> None:
    """Code, strings and comments: a fact about a target is a row of isa.target."""
    outside = [path for path in sources("luthier_py") if room_of(path) != "isa"]
    assert [name_of(path) for path in outside if re.search(r"gfx\d", path.read_text(), re.IGNORECASE)] == []


@cache
def instruction_names() -> frozenset[str]:
    """Mnemonics and names of operations, of all targets."""
    header, *lines = gzip.decompress((PACKAGE / "isa" / "tables" / "records.json.gz").read_bytes()).decode().split("\n")
    rows = [json.loads(line) for line in lines[json.loads(header)["shapes"] :]]
    mnemonics = {re.split(r"\W", row[1])[0] for row in rows}
    return frozenset(mnemonics | {re.sub(r"_(e32|e64|dpp|sdwa)$", "", name) for name in mnemonics} |
                     {row[2] for row in rows})


def names_instructions(tree: ast.Module) -> Iterator[str]:
    """Strings that are names of instructions, or beginnings of some."""
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    families = re.compile(r"(S|V|DS|GLOBAL|FLAT|BUFFER|SCRATCH|IMAGE)_([A-Z0-9_]*_)?")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            if node.value in instruction_names() or families.fullmatch(node.value):
                yield f"{node.lineno}: {node.value}"


def takes_names_apart(tree: ast.Module) -> Iterator[str]:
    """Uses of an operation's name other than as a whole: compared, cut, or asked for its beginning."""
    for node in ast.walk(tree):
        used: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            used = [node.left, *node.comparators]
        elif isinstance(node, ast.Attribute | ast.Subscript):
            used = [node.value]
        for each in used:
            if isinstance(each, ast.Attribute) and each.attr in ("base", "mnemonic") and \
                    isinstance(each.value, ast.Attribute | ast.Name) and \
                    getattr(each.value, "attr", getattr(each.value, "id", "")) == "op":
                yield f"{node.lineno}: {ast.unparse(node)}"


TEXT_FOR_USERS = {"s_trap"}  # a fault's name


def test_instructions_are_named_in_isa_only() -> None:
    """What a room asks of an instruction is a flag or a field of its row, or its meaning; texts may show its name."""
    wrong = []
    for path in sources("luthier_py"):
        if room_of(path) == "isa":
            continue
        tree = ast.parse(path.read_text())
        found = [*names_instructions(tree), *takes_names_apart(tree)]
        wrong += [f"{name_of(path)}:{each}" for each in found if each.split(": ", 1)[1] not in TEXT_FOR_USERS]
    assert wrong == []


def test_names_of_instructions_are_found() -> None:
    code = 'x = isa.make("s_mov_b32", 1)\ny = inst.op.base.startswith("V_CMP")\nz = op.base == y, "V_MFMA_", "s_none"'
    tree = ast.parse(code)
    assert [each.split(": ")[1] for each in names_instructions(tree)] == ["s_mov_b32", "V_MFMA_"]
    assert len(list(takes_names_apart(tree))) == 2


def test_names_say_what_a_thing_is() -> None:
    vague = re.compile(r"utils?$|utilit|helper|manager|misc", re.IGNORECASE)
    wrong = [name_of(path) for path in (*product(), *sources("tests")) if vague.search(path.stem)]
    for path in product():
        classes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef))
        wrong += [f"{name_of(path)}: {node.name}" for node in classes if vague.search(node.name)]
    assert wrong == []


def words_of(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)}


def test_names_have_the_words_of_the_glossary() -> None:
    wrong = []
    for path in product():
        with path.open("rb") as file:
            names = {token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.NAME}
        wrong += [f"{name_of(path)}: {name}" for name in sorted(names) if words_of(name) & PRIVATE_WORDS]
    assert wrong == [] and words_of("_settleSeams_OWED") == {"settle", "seams", "owed"}


def test_files_are_short() -> None:
    files = {*product(), *sources("tests", "benchmarks")}
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in files}
    assert {name: length for name, length in lengths.items() if length > FILE_LINES} == {}


def test_functions_are_short() -> None:
    """Tests may list cases at length; the product has tables for that."""
    wrong = {}
    for path in product():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
                length = node.end_lineno - node.lineno + 1
                if length > FUNCTION_LINES:
                    wrong[f"{name_of(path)}:{node.lineno} {node.name}"] = length
    assert wrong == {}


def test_modules_say_what_they_are_for() -> None:
    files = [path for path in product() if path.read_text().strip()]
    assert [name_of(path) for path in files if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_everything_is_caught_only_at_the_edge() -> None:
    """``except Exception`` hides bugs anywhere else than where a command ends, where a tool's file is run, at the
    edge of a running program, and where a thread keeps what a tool raised for its caller."""
    broad = re.compile(r"except( Exception| BaseException)?( as \w+)?:")
    assert {name_of(path) for path in sources("luthier_py") if broad.search(path.read_text())} <= {
        "luthier_py/cli/ending.py", "luthier_py/report/live.py", "luthier_py/session/receiving.py",
        "luthier_py/tool/discover.py", "luthier_py/worker/error_boundary.py",
    }


def test_nothing_is_left_for_later_and_no_machine_is_named() -> None:
    banned = re.compile("|".join(("TO" "DO", "FIX" "ME", "X" "XX", "/wo" "rk/", "/tm" "p/", "/ro" "ot/")))
    texts = {ROOT / "pyproject.toml", ROOT / "Makefile", ROOT / ".ci" / "run", *ROOT.glob("*.md"), *product()}
    for folder in ("docs", "benchmarks", "tests", "tools", "intrinsics"):
        texts |= {*(ROOT / folder).rglob("*.md"), *sources(folder)}
    assert [name_of(path) for path in sorted(texts) if banned.search(path.read_text())] == []


def test_every_package_folder_is_installed() -> None:
    roots = {"luthier_py": "luthier_py", **{f"luthier_py.{name}": folder for name, folder in BUILT_INS.items()}}
    folders = {
        ".".join((package, *path.parent.relative_to(ROOT / folder).parts))
        for package, folder in roots.items()
        for path in (ROOT / folder).rglob("*.py")
    }
    listed = set(project()["tool"]["setuptools"]["packages"])
    assert sorted(folders - MAINTAINERS - listed) == [], "to add to pyproject.toml"
    assert sorted(listed - folders) == [], "to remove from pyproject.toml"


def test_every_import_is_a_declared_dependency() -> None:
    declared = project()["project"]
    extras = declared["optional-dependencies"]
    of_users = [extra for name, extra in extras.items() if name != "test"]
    names = distributions(declared["dependencies"], *of_users)
    known = {*sys.stdlib_module_names, "luthier_py", *(IMPORT_NAMES.get(name, name) for name in names)}
    used = {name.split(".")[0]: name_of(path) for path in product() for name in imports(path)}
    assert {name: path for name, path in used.items() if name not in known} == {}


def test_every_dependency_is_imported() -> None:
    used = {name.split(".")[0] for path in product() for name in imports(path)}
    names = distributions(project()["project"]["dependencies"])
    assert [name for name in names if IMPORT_NAMES.get(name, name) not in used] == []


def test_every_dependency_has_a_reason() -> None:
    declared = project()["project"]
    names = distributions(declared["dependencies"], *declared["optional-dependencies"].values())
    reasons = (ROOT / "docs" / "dependencies.md").read_text()
    assert [name for name in names if f"| {name} |" not in reasons] == []
