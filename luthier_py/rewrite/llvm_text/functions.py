"""Functions in LLVM's text: headers, blocks, calls, private memory.

In: the text of a function, or a line of it. Out: its parts, or the text with some of them changed. Invariant: what is
put together again of the parts is the function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from luthier_py.base.records import dataclass, replace
from luthier_py.rewrite.llvm_text.names import WORD, TextArgument, llvm_type, quote_name, split_at_commas, unquote_name

_LABEL = re.compile(rf"^({WORD}):", re.MULTILINE)
_FIRST_LABEL = re.compile(rf"(?:{WORD}):[^\n]*\n")
_HEADER = re.compile(rf"define (?P<before>.*?)@(?P<name>{WORD})\((?P<parameters>.*)\)[^()]*\{{")
_CALL = re.compile(
    rf"^(?P<result> *(?:%\S+ = )?)(?P<before>(?:(?:tail|notail|musttail) )?call [^@\n]*?)@(?P<callee>{WORD})"
    r"\((?P<arguments>.*)\)(?P<after>[^()\n]*)$", re.MULTILINE)
_CALLED = re.compile(rf"\bcall [^@\n]*@({WORD})\(")
_ALLOCA = re.compile(r"^ *(?P<name>%\S+) = alloca (?P<type>.*?)(?:, align (?P<align>\d+))?, addrspace\(5\)$")
_FREEZE = re.compile(r"^ *(%\S+) = freeze (.*?) (%\S+)$")
_RETURN = re.compile(r"^ *ret (.*)$")
_DERIVED = re.compile(r"^ *(%[-\w$.]+) = (?:addrspacecast|getelementptr [^%]*,) ptr(?: addrspace\(5\))? (%[-\w$.]+)"
                      r"(?:(?:, i\d+ \d+)*| to ptr)$")
_ELEMENT_OF = re.compile(r"^( *)(%\S+) = getelementptr ([^\n]*?), ptr (%[^\s,]+), ([^\n]*)$", re.MULTILINE)
_CAST = re.compile(r"^ *(%\S+) = addrspacecast ptr addrspace\((\d+)\) (%\S+) to ptr$", re.MULTILINE)
_ASSEMBLY = re.compile(r'(\basm (?:sideeffect |alignstack |inteldialect |unwind )*)"([^"]*)"')
_PHI = re.compile(r"^ *%\S+ = phi .*$", re.MULTILINE)
_FROM_BLOCK = re.compile(rf", %({WORD})(?= \])")
_EXPRESSION = re.compile(
    r"\b(getelementptr|addrspacecast|ptrtoint|inttoptr|bitcast|trunc|add|sub)((?: (?:inbounds|nusw|nuw|nsw))*) "
    r"\(((?:addrspace\(\d+\)|[^()%])*%(?:addrspace\(\d+\)|[^()])*)\)")


# -- functions -------------------------------------------------------------------------------------


@dataclass(slots=True)
class TextFunction:
    """A function's parts. ``blocks``: lines by label, the entry first; types are empty where a structure is in
    memory."""

    name: str
    header: str
    gives: str
    parameters: list[tuple[str, str]]  # type and name
    blocks: dict[str, list[str]]

    @classmethod
    def read(cls, text: str) -> TextFunction:
        """One in which each value and each block has a name, and that has no blocks else."""
        header, _, body = text.partition("\n")
        name, gives, parameters = read_header(text)
        blocks: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in body.splitlines()[:-1]:
            label = label_of(line)
            if label:
                lines = blocks[label] = []
            elif line.strip():
                lines.append(line)
        return cls(name, header, gives, parameters, blocks)

    @property
    def lines(self) -> Iterator[str]:
        """The lines of all blocks."""
        return (line for lines in self.blocks.values() for line in lines)


def read_header(text: str) -> tuple[str, str, list[tuple[str, str]]]:
    """Name, type of what it gives, types and names of its parameters, of a definition."""
    found = _HEADER.match(text)
    assert found is not None
    parameters = [(llvm_type(each), each.rpartition(" ")[2]) for each in split_at_commas(found["parameters"])]
    return unquote_name(found["name"]), llvm_type(found["before"]), parameters


def label_of(line: str) -> str:
    """The label that a line is, as LLVM writes it; "" for any other line."""
    found = _LABEL.match(line)
    return found[1] if found is not None else ""


def body_of(text: str) -> tuple[int, int]:
    """Where the first instruction is in a module with one function, and where its last one ends."""
    begin = text.index("{\n", text.index("\ndefine ")) + 2
    label = _FIRST_LABEL.match(text, begin)
    return begin if label is None else label.end(), text.index("\n}\n", begin)


def insert_at_start(text: str, lines: str) -> str:
    """A module with one function, in which it begins with these lines."""
    begin, _ = body_of(text)
    return text[:begin] + lines + text[begin:]


def without_expressions(body: str) -> str:
    """Instructions in which constants are made of values, which LLVM does not read: what was one becomes an
    instruction at their beginning."""
    made: dict[str, str] = {}
    while found := _EXPRESSION.search(body):
        instruction = f"{found[1]}{found[2]} {found[3]}"
        name = made.setdefault(instruction, f"%address{len(made)}")
        body = body[: found.start()] + name + body[found.end() :]
    return "".join(f"  {name} = {instruction}\n" for instruction, name in made.items()) + body


def rename_sources(text: str, names: Mapping[str, str]) -> str:
    """The text with other labels of the blocks that values of phis come from."""
    return _PHI.sub(lambda phi: _FROM_BLOCK.sub(lambda found: f", %{names[found[1]]}", phi[0]), text)


# -- instructions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextCall:
    """``start``: up to its words, which `before` are; ``result``: a name, "" for none."""

    start: str
    before: str
    callee: str
    arguments: tuple[TextArgument, ...]
    after: str

    @property
    def result(self) -> str:
        """The name of its result; "" where it has none."""
        return self.start.partition("=")[0].strip()

    def of(self, callee: str, *arguments: TextArgument) -> TextCall:
        """A call of another function, with these arguments in the place of as many."""
        return replace(self, callee=callee, arguments=(*arguments, *self.arguments[len(arguments) :]))

    def __str__(self) -> str:
        return f"{self.start}{self.before}@{quote_name(self.callee)}({', '.join(map(str, self.arguments))}){self.after}"


@dataclass(frozen=True, slots=True)
class TextAlloca:
    """Memory of a function's own. ``type``: with the number of elements behind a comma, where that is no constant."""

    name: str
    type: str
    align: int


@dataclass(frozen=True, slots=True)
class TextFreeze:
    """A value that is another one, whatever that is."""

    name: str
    type: str
    value: str


def read_freeze(line: str) -> TextFreeze | None:
    """What a freeze gives; None for any other line."""
    found = _FREEZE.match(line)
    return TextFreeze(found[1], found[2], found[3]) if found is not None else None


def read_return(line: str) -> str:
    """Type and value of what a function gives, or void, where a line ends it; "" for any other line."""
    found = _RETURN.match(line)
    return found[1] if found is not None else ""


@dataclass(frozen=True, slots=True)
class TextElement:
    """A pointer worked out from another one (getelementptr). ``into``: words and the type behind them."""

    start: str
    name: str
    into: str
    type: str
    pointer: str
    rest: str

    def __str__(self) -> str:
        return f"{self.start}{self.name} = getelementptr {self.into}, {self.type} {self.pointer}, {self.rest}"


def rewrite_elements(text: str, change: Callable[[TextElement], object]) -> str:
    """A text in which pointers to elements, of memory that may be any, are what ``change`` makes of them."""

    def rewrite(found: re.Match[str]) -> str:
        return str(change(TextElement(found[1], found[2], found[3], "ptr", found[4], found[5])))

    return _ELEMENT_OF.sub(rewrite, text)


def find_pointer_casts(text: str, space: int) -> dict[str, str]:
    """Pointers to memory that may be any, each with that of a certain one that it was made of."""
    return {name: own for name, number, own in _CAST.findall(text) if int(number) == space}


def find_derived_pointers(line: str) -> list[tuple[str, str]]:
    """Where a line works out a pointer from another one by numbers alone: both; else nothing."""
    return _DERIVED.findall(line)


def read_call(line: str) -> TextCall | None:
    """A call of a function that is named; None for any other line."""
    found = _CALL.match(line)
    return _call(found) if found is not None else None


def _call(found: re.Match[str]) -> TextCall:
    arguments = tuple(map(TextArgument.read, split_at_commas(found["arguments"])))
    return TextCall(found["result"], found["before"], unquote_name(found["callee"]), arguments, found["after"])


def read_alloca(line: str) -> TextAlloca | None:
    """An alloca in private memory; None for any other line."""
    found = _ALLOCA.match(line)
    return TextAlloca(found["name"], found["type"], int(found["align"] or 1)) if found is not None else None


def rewrite_calls(text: str, callee: str, change: Callable[[TextCall], object]) -> str:
    """A text in which calls of a function are what ``change`` makes of them."""
    if f"@{callee}(" not in text:
        return text
    return _CALL.sub(lambda found: str(change(_call(found))) if found["callee"] == callee else found[0], text)


def find_callees(text: str) -> list[str]:
    """What is called by name, in order."""
    return [unquote_name(name) for name in _CALLED.findall(text)]


def assembly_in(text: str) -> list[str]:
    """Texts of inline assembly, in order."""
    return [found[2] for found in _ASSEMBLY.finditer(text)]


def without_assembly(text: str, start: str) -> str:
    """The text without inline assembly that begins so."""
    return _ASSEMBLY.sub(lambda found: f'{found[1]}""' if found[2].startswith(start) else found[0], text)
