"""Conventions that a machine can check: names, lengths, docstrings, and what the distribution is made of.

In: the text of the repository; nothing is imported. docs/glossary.md has the words.
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

from source_tree import PACKAGE, ROOT, house_of, imports, name_of, product, sources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAINTAINERS = {"luthier_py.isa.generate"}  # packages that only a checkout has
IMPORT_NAMES = {"hip-python": "hip", "pyelftools": "elftools"}
# Types that have a name in two modules, each with why; whoever can rename one takes its line away.
TWINS = {
    **dict.fromkeys(("Device", "Effects", "Kind", "Lanes", "Operand", "Scalar", "Signature", "Type", "Value"),
                    "what a hook's author writes is not what the machine has; authors' names stay"),
}
FUNCTION_TWINS = {"main"}
"""Public functions of one name in one folder; none is exported by it."""
PRIVATE_WORDS = frozenset(
    "afar birth born carrier cured debt debts flight foreseen foretell foretold freedom freedoms gate gates "
    "glue heard hollow inslot keeper listening orphan outsider owed progression recall resting seam seams ticket "
    "tickets twin weave woven".split())
"""Instead of which docs/glossary.md has AMD's, LLVM's and the literature's."""
FILE_LINES = 400
MOST_PARAMETERS = 8
FUNCTION_LINES = 60


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def distributions(*groups: list[str]) -> list[str]:
    """Names without versions and extras of requirements."""
    return [re.split(r"[<>=!~ \[;]", requirement)[0] for group in groups for requirement in group]


def is_command(node: ast.FunctionDef) -> bool:
    """A command of `luthier`, whose function has the command's name."""
    calls = (each.func for each in node.decorator_list if isinstance(each, ast.Call))
    return any(isinstance(call, ast.Name) and call.id == "declare_command" for call in calls)


def defined(path: Path) -> Iterator[tuple[str, bool]]:
    """Names of types, aliases of types and public functions of a module, and whether it is a function."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            yield node.name, False
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            if not is_command(node):
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
                functions.setdefault((name_of(path.parent), name), set()).add(name_of(path))
            elif house_of(path) != "proof":
                types.setdefault(name, set()).add(name_of(path))
    found = {name: places for name, places in types.items() if len(places) > 1}
    assert {name: places for name, places in found.items() if name not in TWINS} == {} and TWINS.keys() <= found.keys()
    twins = {key: places for key, places in functions.items() if len(places) > 1}
    assert {key: places for key, places in twins.items() if key[1] not in FUNCTION_TWINS} == {}
    assert FUNCTION_TWINS <= {name for _, name in twins}


def test_data_classes_are_records() -> None:
    """Those of the standard library take a third of a start (base/records.py)."""
    wrong = [name_of(path) for path in sources("luthier_py") if "dataclasses.dataclass" in set(imports(path))]
    assert wrong == ["luthier_py/base/records.py"]


def test_targets_are_named_in_isa_only() -> None:
    """Code, strings and comments: a fact about a target is a row of isa/model/target.py."""
    outside = [path for path in sources("luthier_py") if house_of(path) != "isa"]
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
        if house_of(path) == "isa":
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


def test_functions_have_few_parameters() -> None:
    """But hooks and other code for the device, and what click calls."""
    wrong = []
    for path in sources("luthier_py"):
        for node in (each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.FunctionDef)):
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            others = re.search(r"\b(declare_command|device|hook)\b", " ".join(map(ast.unparse, node.decorator_list)))
            if len([name for name in names if name not in ("self", "cls")]) > MOST_PARAMETERS and not others:
                wrong.append(f"{name_of(path)}:{node.lineno} {node.name}")
    assert wrong == []


def test_modules_say_what_they_are_for() -> None:
    files = [path for path in product() if path.read_text().strip()]
    assert [name_of(path) for path in files if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_everything_is_caught_only_at_the_edge() -> None:
    """``except Exception`` hides bugs anywhere else than where a command ends, where a tool's file is run, at the
    edge of a running program, and where a thread keeps what a tool raised for its caller."""
    broad = re.compile(r"except( Exception| BaseException)?( as \w+)?:")
    assert {name_of(path) for path in sources("luthier_py") if broad.search(path.read_text())} <= {
        "luthier_py/features/commands/exit_codes.py", "luthier_py/features/run/receiving.py",
        "luthier_py/host/worker/error_boundary.py", "luthier_py/report/live.py", "luthier_py/rewrite/tool/discover.py",
    }


def test_nothing_is_left_for_later_and_no_machine_is_named() -> None:
    banned = re.compile("|".join(("TO" "DO", "FIX" "ME", "X" "XX", "/wo" "rk/", "/tm" "p/", "/ro" "ot/")))
    texts = {ROOT / "pyproject.toml", ROOT / "Makefile", ROOT / ".ci" / "run", *ROOT.glob("*.md"), *product()}
    for folder in ("docs", "benchmarks", "tests", "tools", "intrinsics"):
        texts |= {*(ROOT / folder).rglob("*.md"), *sources(folder)}
    assert [name_of(path) for path in sorted(texts) if banned.search(path.read_text())] == []


def test_every_folder_of_modules_is_installed() -> None:
    """setuptools takes those that are packages, but for what only a checkout has."""
    assert {name_of(path.parent) for path in product() if not (path.parent / "__init__.py").exists()} == set()
    assert set(project()["tool"]["setuptools"]["packages"]["find"]["exclude"]) == MAINTAINERS


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


def test_every_dependency_has_a_reason_and_bounds() -> None:
    """The versions on the page are those that an installation takes."""
    declared = project()["project"]
    wanted = sum(declared["optional-dependencies"].values(), declared["dependencies"])
    rows = [re.sub(r"(>=[\d.]+,<[\d.]+).*", r" | \1 |", requirement) for requirement in wanted]
    reasons = (ROOT / "docs" / "dependencies.md").read_text()
    assert [row for row in rows if f"| {row}" not in reasons or ">=" not in row] == []
