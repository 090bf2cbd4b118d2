"""The house in figures: how large its folders are, and what in its text costs the next reader time.

    python benchmarks/house.py [--of COMMIT] [--list MEASURE]

In: the sources of a commit, or of the working folder. Out: a table for each house, and one of measures; with --list,
the places behind one. Nothing is imported. Measures: see `MEASURES`.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
NATIVE = {".c", ".h", ".cpp", ".hpp", ".ll"}
MOST_PARAMETERS = 8
CALLED_BY_OTHERS = frozenset({"declare_command", "device", "hook"})  # decorators
IRREGULAR = frozenset(
    "begun born bound broken brought built bought caught chosen cut done drawn driven fed felt found foretold foreseen "
    "given gone grown heard held hidden kept known laid led left lent let lost made meant met overheard paid proven "
    "quit rebuilt redone rewritten said seen sent shaken shown shut sold spent split spoken spread stolen stood struck "
    "sworn taken taught thought thrown told torn undone understood unwoven won worn woven written".split())
NOT_PARTICIPLES = frozenset("bring embed exceed feed king need proceed ring seed shed sing speed spring string "
                            "succeed swing thing nothing anything everything something wing indeed red bed".split())
VERBS_TOO = frozenset("cut let quit shut split spread".split())
IR_LINE = re.compile(r"\s*(%[\w.{}]+ = |define |declare |store |br (i1|label)|ret |(tail )?call |switch i|"
                     r"[\w.{}]+:\s*$|unreachable|attributes #|@[\w.{}]+ = )")


@dataclass(frozen=True, slots=True)
class Source:
    path: Path  # below the root
    text: str
    tree: ast.Module

    @property
    def house(self) -> str:
        parts = self.path.parts
        return parts[1] if len(parts) > 2 else "(top)"


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: Source) -> Iterator[tuple[Function, ast.AST]]:
    """With what each is defined in."""
    for owner in ast.walk(source.tree):
        for node in ast.iter_child_nodes(owner):
            if isinstance(node, Function):
                yield node, owner


def at(source: Source, node: ast.AST, what: str) -> str:
    return f"{source.path}:{node.lineno} {what}"  # type: ignore[attr-defined]


def participle(name: str) -> bool:
    """Whether its first word is one, and none that is a verb as it stands."""
    first = re.split(r"_+", name.strip("_"))[0]
    if first in NOT_PARTICIPLES or first in VERBS_TOO:
        return False
    return first in IRREGULAR or bool(re.fullmatch(r"\w{2,}(ed|ing)", first))


def participles(sources: list[Source]) -> list[str]:
    """Functions so called; properties and fixed names of other libraries' interfaces are none."""
    return [at(source, node, node.name) for source in sources for node, _ in functions(source)
            if participle(node.name) and not _is_property(node) and not node.name.startswith("__")]


def _is_property(node: Function) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


def undescribed(sources: list[Source]) -> list[str]:
    """Public functions, methods and types without a docstring, but methods that one of a base class describes."""
    found = []
    described = {node.name for source in sources for node, _ in functions(source) if ast.get_docstring(node)}
    for source in sources:
        for owner in [source.tree, *(n for n in source.tree.body if isinstance(n, ast.ClassDef))]:
            if isinstance(owner, ast.ClassDef) and owner.name.startswith("_"):
                continue
            for node in owner.body:
                if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
                    continue
                inherited = isinstance(owner, ast.ClassDef) and owner.bases and node.name in described
                if not ast.get_docstring(node) and not inherited:
                    found.append(at(source, node, node.name))
    return found


def public(sources: list[Source]) -> int:
    return sum(isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_")
               for source in sources
               for owner in [source.tree, *(n for n in source.tree.body if isinstance(n, ast.ClassDef))]
               for node in owner.body)


def homonyms(sources: list[Source]) -> list[str]:
    """Types that are defined in two modules."""
    places: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(source.path))
    return [f"{name}: {', '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1]


def duplicates(sources: list[Source]) -> list[str]:
    """Functions of four statements or more that are the same but for names."""
    bodies: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        for node, _ in functions(source):
            if sum(isinstance(each, ast.stmt) for each in ast.walk(node)) > 4:
                bodies[_shape(node)].append(at(source, node, node.name))
    return [" = ".join(found) for found in bodies.values() if len(found) > 1]


def _shape(node: Function) -> str:
    names: dict[str, str] = {}
    text = [f"{type(each).__name__} {_called(each, names)}" for stmt in node.body for each in ast.walk(stmt)]
    return "\n".join(text)


def _called(node: ast.AST, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.setdefault(node.id, str(len(names)))
    if isinstance(node, ast.Attribute):
        return node.attr
    return repr(node.value) if isinstance(node, ast.Constant) else ""


def lines_of_ir(sources: list[Source]) -> list[str]:
    """Lines of LLVM IR in strings of Python."""
    found = []
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
                lines = [line for line in node.value.splitlines() if IR_LINE.match(line)]
                if len(lines) > 1 and any(re.search(r"\b(i1|i8|i32|i64|ptr|label|float)\b", line) for line in lines):
                    found += [at(source, node, line.strip()) for line in lines]
    return found


def many_parameters(sources: list[Source]) -> list[str]:
    """But of what click calls, and of code for the device."""
    return [at(source, node, node.name) for source in sources for node, owner in functions(source)
            if len([*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs]) - isinstance(owner, ast.ClassDef)
            > MOST_PARAMETERS and not CALLED_BY_OTHERS & {decorator_of(each) for each in node.decorator_list}]


def decorator_of(node: ast.expr) -> str:
    """Its name, without what it is of and what it is given."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


MEASURES: dict[str, Callable[[list[Source]], list[str]]] = {
    "participles": participles, "undescribed": undescribed, "homonyms": homonyms, "duplicates": duplicates,
    "ir": lines_of_ir, "parameters": many_parameters,
}


def read(root: Path) -> tuple[list[Source], Counter[str], Counter[str]]:
    """Python of the package; lines and files of each house, with those of native code."""
    sources, lines, files = [], Counter[str](), Counter[str]()
    for path in sorted((root / "luthier_py").rglob("*")):
        if path.is_symlink() or path.suffix not in {".py", *NATIVE} or "__pycache__" in path.parts:
            continue
        text = path.read_text()
        source = Source(path.relative_to(root), text, ast.parse(text if path.suffix == ".py" else ""))
        if path.suffix == ".py":
            sources.append(source)
        lines[source.house] += text.count("\n")
        files[source.house] += 1
    return sources, lines, files


def report(sources: list[Source], lines: Counter[str], files: Counter[str]) -> str:
    rows = ["| house | files | lines | median file | largest | median function | longest |",
            "|---|--:|--:|--:|--:|--:|--:|"]
    for house in [*sorted(lines), "all"]:
        here = [source for source in sources if house in (source.house, "all")]
        sizes = [source.text.count("\n") for source in here] or [0]
        lengths = [node.end_lineno - node.lineno + 1 for source in here for node, _ in functions(source)
                   if node.end_lineno] or [0]
        counts = (files.total(), lines.total()) if house == "all" else (files[house], lines[house])
        rows.append(f"| {house} | {counts[0]:,} | {counts[1]:,} | {median(sizes):.0f} | {max(sizes)} | "
                    f"{median(lengths):.0f} | {max(lengths)} |")
    named = sum(1 for source in sources for _ in functions(source))
    measures = {name: len(measure(sources)) for name, measure in MEASURES.items()}
    share = measures["participles"] / named
    rows += ["", "| measure | |", "|---|--:|",
             f"| functions | {named:,} |",
             f"| of them called by a participle | {measures['participles']:,} ({share:.1%}) |",
             f"| public names | {public(sources):,} |",
             f"| of them without a docstring | {measures['undescribed']:,} |",
             f"| types of one name in two modules | {measures['homonyms']:,} |",
             f"| groups of equal functions | {measures['duplicates']:,} |",
             f"| lines of LLVM IR in strings | {measures['ir']:,} |",
             f"| functions of more than {MOST_PARAMETERS} parameters | {measures['parameters']:,} |"]
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", metavar="COMMIT", help="instead of the working folder")
    parser.add_argument("--list", choices=MEASURES, help="the places that one measure counts")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = ROOT
        if words.of:
            root = Path(folder)
            packed = subprocess.run(["git", "-C", str(ROOT), "archive", words.of, "luthier_py"], check=True,
                                    stdout=subprocess.PIPE).stdout
            with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
                tar.extractall(root, filter="data")
        found = read(root)
    if words.list:
        sys.stdout.write("\n".join(MEASURES[words.list](found[0])) + "\n")
    else:
        print(report(*found))


if __name__ == "__main__":
    main()
