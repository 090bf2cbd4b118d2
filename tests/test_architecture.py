"""The house rules that a machine can check: which house and room may import which.

In: the text of the repository. docs/architecture.md says why.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from source_tree import (
    PACKAGE,
    ROOT,
    circles,
    constant,
    house_of,
    imports,
    module_of,
    modules_below,
    name_of,
    product,
    reached,
    room_of,
    sources,
)

from luthier_py.emulator.records import layout

if sys.version_info >= (3, 11):
    pass
else:
    pass

HOUSES = "base isa binary proof program rewrite report emulator host features cli".split()
ROOMS = {
    "base": "exports late_modules records names errors llvm storage c_libraries",
    "isa": "model encoding text by_target columns semantics properties timing hazards build instead generate",
    "binary": "loader patch link",
    "program": "ir analysis",
    "rewrite": "clang llvm_text tool jit claim_check inject pipeline",
    "emulator": "interface options records memory reading vector_regions native waves instructions translation "
                "watching code launches devices",
    "host": "native releases loader absent roctx tool worker hiprtc hip preload hsa kfd serve",
    "features": "settings commands trace code explain campaign run exec replay coverage doctor fetch tools faults "
                "causal study budget compare demo notebook",
    "cli": "app",
}
"""Of each house, its rooms; houses and rooms import what stands to their left. Rooms of the others are files beside
each other."""
NEVER = {"emulator": {"rewrite", "report"}}
"""What a house does not import although it stands to its left: devices run original and rewritten objects alike."""
BELIEVED_BY_PROOF = "base.errors", "base.exports", "base.names", "base.records", "binary.loader", "isa", "proof"
"""It judges what those do who write code objects, and what patches say."""
YARDSTICKS = {
    "columns", "semantics", "encoding.instruction", "encoding.legal", "encoding.scan", "encoding.waitcnt",
    "hazards.mitigated", "hazards.patterns", "hazards.wait_states", "model.registers", "properties.private_buffers",
    "properties.side_effects", "properties.vector_modes", "properties.wave_registers",
}
"""Modules of isa by which the proof judges: each says what code means, with sources; none says what is put into it."""
MAKES_CODE = {"make", "parse", "assemble", "waits"}  # methods of an InstructionSet


def imported(path: Path, below: str) -> Iterator[str]:
    """The part behind ``below`` (a package) of each name that a file imports from there."""
    for name in imports(path):
        if name.startswith(f"{below}."):
            yield name.removeprefix(f"{below}.").split(".")[0]


def test_every_module_is_in_a_known_house_and_room() -> None:
    assert {house_of(path) for path in sources("luthier_py")} - {""} == set(HOUSES)
    for house, rooms in ROOMS.items():
        assert {room_of(path) for path in sources(f"luthier_py/{house}")} - {""} == set(rooms.split()), house


def test_houses_import_only_houses_to_their_left() -> None:
    wrong = []
    for path in sources("luthier_py"):
        house = house_of(path)
        allowed = set(HOUSES[: HOUSES.index(house) + 1] if house else HOUSES) - NEVER.get(house, set())
        wrong += [f"{name_of(path)} imports {other}" for other in imported(path, "luthier_py") if other in HOUSES
                  and other not in allowed]
    assert wrong == []


def test_rooms_import_only_rooms_to_their_left() -> None:
    wrong = []
    for house, words in ROOMS.items():
        rooms = words.split()
        for path in sources(f"luthier_py/{house}"):
            if room := room_of(path):
                allowed = rooms[: rooms.index(room) + 1]
                wrong += [f"{name_of(path)} imports {other}" for other in imported(path, f"luthier_py.{house}")
                          if other in rooms and other not in allowed]
    assert wrong == []


def test_the_proof_imports_nothing_that_it_judges() -> None:
    wrong = []
    for path in sources("luthier_py/proof"):
        names = {name.removeprefix("luthier_py.") for name in imports(path) if name.startswith("luthier_py.")}
        wrong += [f"{name_of(path)} imports {name}" for name in names
                  if not any(f"{name}.".startswith(f"{each}.") for each in BELIEVED_BY_PROOF)]
    assert wrong == []


def is_yardstick(name: str) -> bool:
    """Of a name below isa."""
    return any(name == each or name.startswith(f"{each}.") for each in YARDSTICKS)


def is_exported_by_isa(name: str) -> bool:
    """A name that the house's door has, and no module."""
    return "." not in name and not (PACKAGE / "isa" / name).is_dir() and not (PACKAGE / "isa" / f"{name}.py").exists()


def test_the_proof_judges_by_nothing_that_makes_copies() -> None:
    """A wrong instruction that is put into a copy would be right by what put it there."""
    wrong = []
    for path in sources("luthier_py/proof"):
        names = [name.removeprefix("luthier_py.isa.") for name in imports(path) if name.startswith("luthier_py.isa.")]
        modules = {name for name in names if not is_yardstick(name) and not is_exported_by_isa(name)}
        calls = {node.func.attr for node in ast.walk(ast.parse(path.read_text()))
                 if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}
        wrong += [f"{name_of(path)} uses {each}" for each in (*sorted(modules), *sorted(calls & MAKES_CODE))]
    assert wrong == []


def test_no_module_imports_itself_in_a_circle() -> None:
    """Inside rooms, too; imports for types only and those inside functions count as all others."""
    paths = {module_of(path): path for path in product()}
    uses = {}
    for module, path in paths.items():
        names = {name if name in paths else name.rpartition(".")[0] for name in imports(path)}
        uses[module] = names & paths.keys() - {module}
    assert circles(uses) == []


def paths_below(modules: Iterable[str]) -> set[str]:
    """Modules of the package as paths below it."""
    return {name.partition(".")[2].replace(".", "/") for name in modules if name != "luthier_py"}


def outside(paths: Iterable[str], *rooms: str) -> set[str]:
    """Those that are neither one of ``rooms`` nor in one."""
    return {path for path in paths if not any(f"{path}/".startswith(f"{room}/") for room in rooms)}


def test_what_is_kept_depends_on_the_sources_of_all_rooms_that_make_it() -> None:
    """A room that decides what a kept translation is, and is not in its key, would leave stale ones."""
    rooms = constant("luthier_py/emulator/options/translator.py", "ROOMS")
    folders = [f"luthier_py/emulator/{room}" for room in ("translation", "native", "vector_regions", "instructions")]
    writers = [name for folder in folders for name in modules_below(folder)]
    text = {"luthier_py.emulator.reading.text"}  # says which bytes there are, and they are in the key
    known = "base/exports", "base/late_modules", "base/names", "base/records", "base/storage"
    decide = paths_below(reached(writers, text))
    assert outside(decide - {"base", "binary"}, *rooms, *known, "binary/loader") == set()
    asked = {name.rpartition(".")[0] for folder in folders for path in sources(folder) for name in imports(path)}
    assert outside(paths_below(name for name in asked if name.startswith("luthier_py.binary.")), *rooms) == set()


def test_llvm_s_text_is_taken_apart_in_one_place() -> None:
    """Elsewhere no regular expression has words of LLVM's IR, but where the machine's own text has the same."""
    words = re.compile(r"addrspace|alloca|!dbg|define |declare |attributes #|\bphi\b|\bcall \b")
    folders = [f"luthier_py/{folder}" for folder in ("rewrite/tool", "rewrite/jit", "host/worker")]
    wrong = [f"{name_of(path)}:{node.lineno}" for path in sources(*folders)
             for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
             and isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.args
             and words.search(ast.unparse(node.args[0]))]
    assert wrong == []


def test_circles_are_found() -> None:
    uses = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a", "f"}, "f": {"e"}}
    assert circles(uses) == [["b", "c"], ["e", "f"]]


def test_architecture_pages_name_rooms_and_files_that_are_there() -> None:
    docs = ROOT / "docs"
    page = (docs / "architecture.md").read_text()
    assert f"    {' '.join(HOUSES)}\n" in page
    assert [house for house, rooms in ROOMS.items() if f"    {house}: {rooms}\n" not in page] == []
    assert f"    {ROOMS['emulator']}\n" in (docs / "architecture" / "emulator.md").read_text()
    for path in (docs / "architecture.md", *(docs / "architecture").glob("*.md")):
        names = re.findall(r"`((?:\w+/)+\w+(?:\.(?:py|c|txt))?)`", path.read_text())
        named = {name: name if "." in name else f"{name}.py" for name in names if name.split("/")[0] in HOUSES}
        assert [name for name, file in named.items()
                if not (PACKAGE / file).exists() and not (PACKAGE / name).exists()] == [], path.name


def test_the_picture_of_a_wave_has_the_offsets_of_its_record() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    offsets = [int(found) for found in re.findall(r"^ +(\d+) [┌├]", text, re.MULTILINE)]
    assert offsets == [0, 4 * layout.SCALARS, layout.WAVE_HEADER_BYTES] and layout.WAVE["pc"] == offsets[1]
