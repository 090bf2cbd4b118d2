"""Which instructions: one small language for tools (``Mutator.instrs``), options and the command line (``INSTRUMENT``).

In: a text. Out: a Filter, and what it says of an instruction of a program. Invariant: what is not of the language is
refused with the place in the text. docs/filters.md has the language; its words are the tables here.

    filter := each {"|" each}          each := part {"&" part}          part := "!" part | "(" filter ")" | fact
    fact := word | number-name (= != < <= > >=) number | number-name = number..number | text-name (= !=) pattern
          | place-name (= !=) file:line | place-name (= !=) file:line-line
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from luthier_py.base.errors import Invalid, did_you_mean
from luthier_py.base.records import dataclass
from luthier_py.isa import AccessKind, InstructionClass, OpFlag, Space
from luthier_py.rewrite.tool.records.sources import Interval, Sources

if TYPE_CHECKING:
    from luthier_py.program.analysis import SourceLine
    from luthier_py.program.ir import Function, Instr, Program


def narrow_filter(chosen: str, wanted: str) -> str:
    """The filter of what both choose; ``chosen`` may be none at all."""
    return f"({chosen}) & ({wanted})" if chosen else wanted


class Looked:
    """An instruction of a program, as filters look at it."""

    def __init__(self, instr: Instr, function: Function, sources: Sources) -> None:
        self.instr, self.function, self.sources = instr, function, sources

    @cached_property
    def spaces(self) -> Space:
        """Memory that it may touch."""
        memory = self.instr.memory
        return Space.NONE if memory is None else memory.spaces

    @property
    def depth(self) -> int:
        """How many loops it is in."""
        return self.sources.depth(self.instr)

    @property
    def source(self) -> SourceLine | None:
        """Where it comes from."""
        return self.sources.lines.at(self.instr.pc)


Test: TypeAlias = Callable[[Looked], bool]


def _is_class(wanted: InstructionClass) -> Test:
    return lambda looked: looked.instr.kind is wanted


def _touches(space: Space) -> Test:
    return lambda looked: space in looked.spaces


def _does(wanted: AccessKind) -> Test:
    return lambda looked: looked.instr.memory is not None and looked.instr.memory.kind is wanted


def _width(looked: Looked) -> int:
    memory = looked.instr.memory
    return 0 if memory is None else memory.total_bytes or 0


WORDS: dict[str, Test] = {
    **{each.value: _is_class(each) for each in InstructionClass},
    "memory": lambda looked: looked.instr.memory is not None,
    "global": _touches(Space.GLOBAL), "lds": _touches(Space.LDS), "scratch": _touches(Space.SCRATCH),
    "scalar": _touches(Space.SCALAR), "gds": _touches(Space.GDS), "flat": _touches(Space.GLOBAL | Space.SCRATCH),
    "load": _does(AccessKind.LOAD), "store": _does(AccessKind.STORE), "atomic": _does(AccessKind.ATOMIC),
    "float": lambda looked: looked.instr.flops > 0,
    "conditional": lambda looked: bool(looked.instr.op.flags & OpFlag.CONDITIONAL),
    "loop": lambda looked: looked.depth > 0,
}
"""Facts that hold or do not: classes, memory that may be touched, what is done there."""
NUMBERS: dict[str, Callable[[Looked], int]] = {
    "width": _width,
    "flops": lambda looked: looked.instr.flops,
    "depth": lambda looked: looked.depth,
    "index": lambda looked: looked.instr.at,
    "pc": lambda looked: looked.instr.pc,
    "line": lambda looked: 0 if looked.source is None else looked.source.line,
}
TEXTS: dict[str, Callable[[Looked], Iterable[str]]] = {
    "opcode": lambda looked: looked.instr.op.mnemonics,
    "function": lambda looked: [looked.function.name],
    "file": lambda looked: ["" if looked.source is None else looked.source.file],
    "inlined": lambda looked: looked.sources.names(looked.instr),
}
"""Facts that may have several texts, of which one must be like the pattern."""
PLACES: dict[str, Callable[[Looked, Interval], bool]] = {
    "lines": lambda looked, interval: looked.sources.is_of(looked.instr, interval),
    "loop": lambda looked, interval: looked.sources.in_loop_of(looked.instr, interval),
}
"""Facts about lines of the source; a fact without lines is a word."""
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
    "=": operator.eq,
}
_OF_SOURCE = re.compile(r"\b(line|file|inlined|lines|loop)\s*(=|!=|<|>)")
_SHOWN = 20  # characters of what is wrong


@dataclass(frozen=True, slots=True)
class Filter:
    """A text, and what it asks."""

    text: str
    test: Test

    def of(self, program: Program) -> Callable[[Instr], bool]:
        """Whether it chooses an instruction of ``program``."""

        sources = Sources(program)
        return lambda instr: self.test(Looked(instr, program.function_of(instr), sources))


def parse_filter(text: str) -> Filter:
    """The filter that ``text`` says; Invalid shows the place that is wrong."""
    return Filter(text, _FilterText(text).whole())


def asks_for_lines(text: str) -> bool:
    """Whether a filter has facts that an object without line tables cannot answer."""
    return _OF_SOURCE.search(text) is not None


def compile_filter(text: str, program: Program) -> Callable[[Instr], bool]:
    """Whether the filter that ``text`` says chooses an instruction; where it is empty all are chosen."""
    return parse_filter(text).of(program) if text else lambda instr: True


class _FilterText:
    """Reads a text from left to right (mutable: ``at`` is how far)."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def whole(self) -> Test:
        test = self.either()
        if self.at < len(self.text):
            self.refuse("here should be & or |, or the end")
        return test

    def either(self) -> Test:
        parts = [self.each()]
        while self.took("|"):
            parts.append(self.each())
        return parts[0] if len(parts) == 1 else lambda looked: any(part(looked) for part in parts)

    def each(self) -> Test:
        parts = [self.part()]
        while self.took("&"):
            parts.append(self.part())
        return parts[0] if len(parts) == 1 else lambda looked: all(part(looked) for part in parts)

    def part(self) -> Test:
        if self.took("!"):
            inner = self.part()
            return lambda looked: not inner(looked)
        if self.took("("):
            inner = self.either()
            if not self.took(")"):
                self.refuse("here should be )")
            return inner
        return self.fact()

    def fact(self) -> Test:
        start = self.at
        name = self.accept(r"[A-Za-z_]\w*")
        if name in NUMBERS:
            return self.number(NUMBERS[name])
        if name in TEXTS:
            return self.pattern(TEXTS[name])
        if name in PLACES and (name not in WORDS or self.text.startswith(("=", "!="), self.at)):
            return self.place(PLACES[name])
        if name in WORDS:
            return WORDS[name]
        known = [*dict.fromkeys((*WORDS, *NUMBERS, *TEXTS, *PLACES))]
        self.at = start
        if not name:
            self.refuse("here should be a fact, such as memory, width >= 8 or opcode = v_*")
        self.refuse(f"{name} is unknown" + (did_you_mean(name, known) or f"; known are {', '.join(known)}"))

    def number(self, of: Callable[[Looked], int]) -> Test:
        sign = self.accept("<=|>=|==|!=|<|>|=")
        if not sign:
            self.refuse("here should be one of = != < <= > >=, and a number")
        low = self.integer()
        if sign in ("=", "==") and self.took(".."):
            high = self.integer()
            return lambda looked: low <= of(looked) <= high
        compare = _COMPARISONS[sign]
        return lambda looked: compare(of(looked), low)

    def integer(self) -> int:
        digits = self.accept(r"0[xX][0-9a-fA-F]+|\d+")
        if not digits:
            self.refuse("here should be a number")
        return int(digits, 0) if digits[:2].lower() == "0x" else int(digits)

    def pattern(self, of: Callable[[Looked], Iterable[str]]) -> Test:
        equal, wanted = self.equal_to("a pattern", "a pattern; * stands for anything")
        return lambda looked: any(fnmatchcase(text, wanted) for text in of(looked)) == equal

    def place(self, of: Callable[[Looked, Interval], bool]) -> Test:
        start = self.at
        equal, wanted = self.equal_to("lines of a file", "lines of a file, as in kernel.hip:22-50")
        interval = Interval.of(wanted)
        if interval is None:
            self.at = self.text.index(wanted, start)
            self.refuse("here should be lines of a file, as in kernel.hip:22-50 or kernel.hip:22")
        return lambda looked: of(looked, interval) == equal

    def equal_to(self, what: str, example: str) -> tuple[bool, str]:
        """Whether it is to be so or not, and the text behind the sign."""
        sign = self.accept("==|!=|=")
        if not sign:
            self.refuse(f"here should be = or !=, and {what}")
        wanted = self.accept(r"[^\s&|()!]+")
        if not wanted:
            self.refuse(f"here should be {example}")
        return sign != "!=", wanted

    def accept(self, expression: str) -> str:
        """What comes next, if it is that; "" if not."""
        found = re.compile(expression).match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        self.space()
        return found[0]

    def took(self, sign: str) -> bool:
        self.space()
        there = self.text.startswith(sign, self.at)
        self.at += len(sign) * there
        self.space()
        return there

    def space(self) -> None:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1

    def refuse(self, message: str) -> NoReturn:
        left = self.text[self.at : self.at + _SHOWN]
        place = f"at {left!r}" if left else "at the end"
        raise Invalid(f"filter {self.text!r}, character {self.at + 1}, {place}: {message}")
