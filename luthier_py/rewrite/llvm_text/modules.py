"""Modules in LLVM's text: what they define and declare, variables, metadata.

In: a module. Out: its parts, or the module with some of them changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from luthier_py.base.records import dataclass
from luthier_py.rewrite.llvm_text.names import WORD, rename_values, symbol_of, unquote_name

_FUNCTION = re.compile(rf"^define [^\n]*@({WORD})\(.*?^\}}\n", re.MULTILINE | re.DOTALL)
_ATTRIBUTES_OF_FUNCTION = re.compile(r"^(define [^\n]*\)(?: (?:local_)?unnamed_addr)?)([^\n()]*\{)$", re.MULTILINE)
_NOT_FOR_INLINING = re.compile(r'"[^"]*"(?:="[^"]*")?|\b(?:noinline|optnone)\b')
_STRUCTURE = re.compile(rf"^(%(?:{WORD})) = type (.*)\n", re.MULTILINE)
_LINKAGE = "private internal available_externally linkonce weak linkonce_odr weak_odr dso_local hidden protected"
_LINKED = re.compile(rf"^(define|@\S+ =)(?: (?:{_LINKAGE.replace(' ', '|')})(?= ))*")
_COMDAT = re.compile(r",? comdat(?:\(\S+\))?(?=[ ,\n])")
_GLOBAL = re.compile(rf"^@({WORD}) = (?P<words>[^@\n]*?)\b(?P<kind>global|constant) (?P<value>.*)$", re.MULTILINE)
_NO_DATA = re.compile(r", (?:comdat(?:\([^)]*\))?|![\w.]+ !\d+|section \"[^\"]*\"|align \d+)")
_BEFORE_ROWS = re.compile(r"^\S+ = [^\[]*\[.*?\] \[")
_ANNOTATION = re.compile(rf"@({WORD})[^@]*@([-\w$.]+)[^@]*@([-\w$.]+), i32 (\d+)")
_STRING = re.compile(r'c"(.*)\\00"')
_NUMBERED = re.compile(r'("[^"]*")|([!#])(\d+)\b')
_NODE = re.compile(r"^!(\d+) = (?:distinct )?(.*)$", re.MULTILINE)
_FURTHER = re.compile(r", !(\d+)\b")
_FIELD = re.compile(r'(\w+): ("[^"]*"|![0-9]+|[^,()]+)')
_ELEMENT = re.compile(r"!(\d+)|(null)")
_LOCATED = re.compile(r"!dbg !(\d+)")
_LOCATIONS = re.compile(r"^ *#dbg_\w+\(.*\)\n|,? !dbg !\d+", re.MULTILINE)
_GROUP = re.compile(r"^attributes #(\d+) = \{ (.*) \}$", re.MULTILINE)


# -- modules ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextModule:
    """``symbols``: definitions and declarations by name, in order; ``attributes``, ``nodes`` (metadata): by number."""

    symbols: dict[str, str]
    attributes: dict[int, str]
    nodes: dict[int, str]


def read_module(text: str) -> TextModule:
    """Structures lose their names: LLVM gives a name to one module only."""
    structures = dict(_STRUCTURE.findall(text))

    def body(name: str) -> str:
        return rename_values(structures[name], body) if name in structures else name

    text = rename_values(_STRUCTURE.sub("", text), body)
    functions = [found[0] for found in _FUNCTION.finditer(text)]
    lines = _FUNCTION.sub("", text).splitlines(keepends=True)
    found = [*functions, *(line for line in lines if line.startswith(("@", "declare ")))]
    return TextModule(
        {symbol_of(each): each for each in found},
        {int(number): words for number, words in _GROUP.findall(text)},
        {int(number): node for number, node in _NODE.findall(text)},
    )


def functions_of(text: str, names: Collection[str] | None = None) -> list[tuple[str, str]]:
    """Names and texts of the functions that a module defines, or of some of them."""
    found = ((unquote_name(each[1]), each[0]) for each in _FUNCTION.finditer(text))
    return [(name, function) for name, function in found if names is None or name in names]


def rewrite_functions(text: str, names: Collection[str], change: Callable[[str], str]) -> str:
    """A module in which functions are what ``change`` makes of them."""
    return _FUNCTION.sub(lambda found: change(found[0]) if unquote_name(found[1]) in names else found[0], text)


def without_declarations(text: str, names: Collection[str]) -> str:
    """A module that does not declare these."""
    return "".join(line for line in text.splitlines(keepends=True)
                   if not (line.startswith("declare ") and symbol_of(line) in names))


def add_attribute(text: str, attribute: str, start: str = "define ") -> str:
    """All functions whose text begins so have it."""

    def add(found: re.Match[str]) -> str:
        has = not found[0].startswith(start) or f" {attribute}" in found[2]
        return found[0] if has else f"{found[1]} {attribute}{found[2]}"

    return _ATTRIBUTES_OF_FUNCTION.sub(add, text)


def remove_attribute(text: str, attribute: str) -> str:
    """No function of a text has it."""
    return _ATTRIBUTES_OF_FUNCTION.sub(lambda found: found[1] + found[2].replace(f" {attribute}", "", 1), text)


def attributes_for_inlining(words: str) -> str:
    """Those of a group that code keeps in a function of another target: none in quotes, none that forbids inlining."""
    return _NOT_FOR_INLINING.sub("", words)


def make_internal(text: str) -> str:
    """A definition that only its module sees."""
    head, line, rest = text.partition("\n")
    return _LINKED.sub(r"\1 internal", _COMDAT.sub("", head + line)) + rest


# -- variables and constants -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextVariable:
    """``words``: between its name and what it is; ``data``: type and value, without alignment, section and metadata."""

    name: str
    words: str
    constant: bool
    data: str

    @property
    def space(self) -> int:
        """The number of the memory that it is in."""
        found = re.search(r"addrspace\((\d+)\)", self.words)
        return int(found[1]) if found is not None else 0

    @property
    def external(self) -> bool:
        """Whether others give it its value before it is used."""
        return "externally_initialized" in self.words


def read_variable(text: str) -> TextVariable | None:
    """A variable or constant by its definition; None for other symbols."""
    found = _GLOBAL.match(text)
    if found is None:
        return None
    return TextVariable(unquote_name(found[1]), found["words"], found["kind"] == "constant",
                        _NO_DATA.sub("", found["value"].strip()))


def variables_of(text: str) -> list[tuple[TextVariable, str]]:
    """Those of a module, with their lines."""
    lines = (found[0] for found in _GLOBAL.finditer(text))
    return [(variable, line) for line in lines if (variable := read_variable(line)) is not None]


def string_of(text: str) -> str:
    """What a constant that ends with a zero says; "" where it says nothing."""
    found = _STRING.search(text)
    return re.sub(r"\\([0-9A-F]{2})", lambda code: chr(int(code[1], 16)), found[1]) if found is not None else ""


def rows_of_annotations(text: str) -> list[tuple[str, str, str, int]]:
    """Rows of the definition of llvm.global.annotations: what each row is about, constants with its text and its file,
    and its line."""
    rows = _ANNOTATION.findall(_BEFORE_ROWS.sub("", text))
    return [(unquote_name(symbol), words, file, int(line)) for symbol, words, file, line in rows]


# -- metadata --------------------------------------------------------------------------------------


def renumber_metadata(text: str, by: int) -> str:
    """The text with all numbers of attributes and metadata ``by`` higher."""
    return _NUMBERED.sub(lambda found: found[1] or f"{found[2]}{int(found[3]) + by}", text)


def numbers(text: str, mark: str) -> set[int]:
    """The numbers of attributes (#) or metadata (!)."""
    return {int(number) for _, found, number in _NUMBERED.findall(text) if found == mark}


def without_nodes(node: str, which: Callable[[int], bool]) -> str:
    """A node without those of the others that it names behind its first."""
    return _FURTHER.sub(lambda found: "" if which(int(found[1])) else found[0], node)


def without_locations(text: str) -> str:
    """The text without debug information of places in the source and of values."""
    return _LOCATIONS.sub("", text)


def locations_of(text: str) -> list[int]:
    """Numbers of the nodes that say what a text is in the source."""
    return [int(number) for number in _LOCATED.findall(text)]


def fields_of(node: str) -> dict[str, object]:
    """The fields of a node; references as numbers, texts without their quotes."""
    return {name: int(value[1:]) if value[:1] == "!" and value[1:].isdigit() else value.strip('" ')
            for name, value in _FIELD.findall(node)}


def elements_of(node: str) -> list[int | None]:
    """Numbers of what a tuple lists; None for null."""
    return [None if null else int(number) for number, null in _ELEMENT.findall(node)]
