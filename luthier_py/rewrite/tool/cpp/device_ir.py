"""The parts of a module's LLVM text: what each symbol is, and what it needs.

In: the text that LLVM prints. Out: DeviceIr. Invariant: every line that defines something is in one of its parts; text
in quotes is never taken for a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from luthier_py.base.records import dataclass
from luthier_py.rewrite.llvm_text.modules import read_module, rows_of_annotations, string_of
from luthier_py.rewrite.llvm_text.names import symbols_in

DEPTH_MARK = "luthier.depth:"


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
        module = read_module(text)
        return cls(module.symbols, module.attributes, module.nodes)

    def defines(self, symbol: str) -> bool:
        """Whether it is here with what it is, and not only named."""
        text = self.symbols.get(symbol, "declare ")
        return not text.startswith("declare ") and " external " not in text.partition("\n")[0]

    def uses(self, symbol: str) -> set[str]:
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
        rows = rows_of_annotations(self.symbols.get("llvm.global.annotations", ""))
        return tuple(Annotation(symbol, self._string(text), self._string(file), line)
                     for symbol, text, file, line in rows)

    @property
    def depths(self) -> Mapping[str, Depth]:
        """Depths of functions that may call themselves, as far as is declared."""
        found = ((each.symbol, each.text.removeprefix(DEPTH_MARK), each.line) for each in self.annotations
                 if each.text.startswith(DEPTH_MARK))
        return {symbol: Depth(int(levels), line) for symbol, levels, line in found if levels.isdigit() and int(levels)}

    def _string(self, symbol: str) -> str:
        return string_of(self.symbols.get(symbol, ""))

    @cached_property
    def _used(self) -> Mapping[str, set[str]]:
        return {name: self.symbols.keys() & set(symbols_in(text)) for name, text in self.symbols.items()}
