"""LLVM's text of a module, taken apart: what each symbol is, and what it needs.

In: the text that LLVM prints. Out: DeviceIr. Invariant: every line that defines something is in one of its parts; text
in quotes is never taken for a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

DEPTH_MARK = "luthier.depth:"
SYMBOL = re.compile(r'@("[^"]*"|[-\w$.]+)')
_QUOTED = r'"[^"]*"'
_DEFINITION = re.compile(r"^define [^\n]*\{\n.*?^\}\n", re.MULTILINE | re.DOTALL)
_TYPE = re.compile(rf"^(%(?:{_QUOTED}|[-\w$.]+)) = type (.*)\n", re.MULTILINE)
_LOCAL = re.compile(rf"%(?:{_QUOTED}|[-\w$.]+)")
_NUMBERED = re.compile(rf"({_QUOTED})|([!#])(\d+)\b")
_NODE = re.compile(r"^!(\d+) = (?:distinct )?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Depth:
    """What is declared of a function that calls itself: how many of its calls may be unfinished. ``line``: where."""

    levels: int
    line: int


@dataclass(frozen=True, slots=True)
class Annotation:
    """What C++ says of a function by ``annotate``, and where."""

    symbol: str
    text: str
    file: str
    line: int


@dataclass(frozen=True)
class DeviceIr:
    """``symbols``: definitions and declarations by name, without the @ and quotes where there are some."""

    symbols: Mapping[str, str]
    attributes: Mapping[int, str]
    nodes: Mapping[int, str]

    @classmethod
    def parse(cls, text: str) -> DeviceIr:
        """A module from the text that LLVM prints of it; structures lose their names. ``attributes`` and ``nodes``
        (metadata) are by their numbers."""
        text = _without_names_of_types(text)
        functions = _DEFINITION.findall(text)
        lines = _DEFINITION.sub("", text).splitlines(keepends=True)
        found = [*functions, *(line for line in lines if line.startswith(("@", "declare ")))]
        attributes = re.findall(r"^attributes #(\d+) = \{ (.*) \}$", text, re.MULTILINE)
        return cls(
            {_name(text): text for text in found},
            {int(number): words for number, words in attributes},
            {int(number): node for number, node in _NODE.findall(text)},
        )

    def defines(self, symbol: str) -> bool:
        """Whether it is here with what it is, and not only named."""
        text = self.symbols.get(symbol, "declare ")
        return not text.startswith("declare ") and " external " not in text.partition("\n")[0]

    def uses(self, symbol: str) -> frozenset[str]:
        """What it names itself."""
        return self._used[symbol]

    def collect_reachable(self, symbol: str) -> list[str]:
        """The symbol and all that it needs, in the order of the text."""
        found, todo = {symbol}, [symbol]
        while todo:
            new = self._used[todo.pop()] - found
            found |= new
            todo += new
        return [name for name in self.symbols if name in found]

    @cached_property
    def annotations(self) -> tuple[Annotation, ...]:
        """The rows of llvm.global.annotations; empty where the module has none."""
        listed = re.sub(r"^\S+ = [^\[]*\[.*?\] \[", "", self.symbols.get("llvm.global.annotations", ""))
        rows = re.findall(r'@("[^"]*"|[-\w$.]+)[^@]*@([-\w$.]+)[^@]*@([-\w$.]+), i32 (\d+)', listed)
        return tuple(Annotation(unquote_name(symbol), self._string(text), self._string(file), int(line))
                     for symbol, text, file, line in rows)

    @property
    def depths(self) -> Mapping[str, Depth]:
        """Of functions that may call themselves, as far as is declared."""
        found = ((each.symbol, each.text.removeprefix(DEPTH_MARK), each.line) for each in self.annotations
                 if each.text.startswith(DEPTH_MARK))
        return {symbol: Depth(int(levels), line) for symbol, levels, line in found if levels.isdigit() and int(levels)}

    def _string(self, symbol: str) -> str:
        found = re.search(r'c"(.*)\\00"', self.symbols.get(symbol, ""))
        return re.sub(r"\\([0-9A-F]{2})", lambda code: chr(int(code[1], 16)), found[1]) if found else ""

    @cached_property
    def _used(self) -> Mapping[str, frozenset[str]]:
        return {name: frozenset(unquote_name(each) for each in SYMBOL.findall(text)) & self.symbols.keys()
                for name, text in self.symbols.items()}


def unquote_name(name: str) -> str:
    """A name of LLVM's without its quotes, if it has some."""
    return name.strip('"')


def renumber_metadata(text: str, by: int) -> str:
    """With all numbers of attributes and metadata ``by`` higher."""
    return _NUMBERED.sub(lambda found: found[1] or f"{found[2]}{int(found[3]) + by}", text)


def numbers(text: str, mark: str) -> set[int]:
    """Of attributes (#) or metadata (!)."""
    return {int(number) for _, found, number in _NUMBERED.findall(text) if found == mark}


def _without_names_of_types(text: str) -> str:
    """Structures by what is in them: LLVM gives a name to one module only."""
    bodies = dict(_TYPE.findall(text))

    def body(found: re.Match[str]) -> str:
        return _LOCAL.sub(body, bodies[found[0]]) if found[0] in bodies else found[0]

    return _LOCAL.sub(body, _TYPE.sub("", text))


def _name(text: str) -> str:
    found = SYMBOL.search(text)
    return unquote_name(found[1]) if found is not None else ""
