"""What device code prints and asserts: texts that the host has, and values that come through a separate channel.

In: the source of a function of device code. Out: what each ``print`` and ``assert`` in it says, as a template of
Python's `format`, by a number that device and host work out alike. Invariant: all templates of a function are known
here as soon as it is marked as device code, whether or not it is compiled in this process.
"""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any
from zlib import crc32

from luthier_py.base.late_modules import np
from luthier_py.base.records import dataclass
from luthier_py.rewrite.tool.hooks.author_types import u32, u64
from luthier_py.rewrite.tool.records.channel import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_VALUES = 6
BITS_OF_KIND = 4
PRINTING = "#printed"
"""Name of the parameter that takes the channel, in hooks that print."""


class ValueKind(IntEnum):
    """How a value is to be read, which comes as 64 bits."""

    UNSIGNED = 0
    SIGNED = 1
    SINGLE = 2
    DOUBLE = 3
    BOOL = 4


class Printed:
    """One line of one lane."""

    message: u32
    kinds: u32
    lane: u32
    v0: u64
    v1: u64
    v2: u64
    v3: u64
    v4: u64
    v5: u64


PRINTED = Channel(Printed, name="luthier.printed")


@dataclass(frozen=True, slots=True)
class SaidText:
    """``template``: for str.format. ``fails``: it is what an assertion says that does not hold."""

    template: str
    fails: bool = False

    @property
    def number(self) -> int:
        """The key of `MESSAGES`, 32 bits, which records have as ``message``."""
        return crc32(f"{self.fails} {self.template}".encode())


TOO_DEEP = SaidText("a function calls itself deeper than the {1} levels that line {0} of its source declares",
                    fails=True)
MESSAGES: dict[int, SaidText] = {TOO_DEEP.number: TOO_DEEP}


def line_of(record: Any) -> str:
    """What a record says."""
    message = MESSAGES.get(int(record["message"]), SaidText("(a text that is not known here) {} {} {} {} {} {}"))
    values = [_value(int(record[f"v{at}"]), int(record["kinds"]) >> BITS_OF_KIND * at & (1 << BITS_OF_KIND) - 1)
              for at in range(MOST_VALUES)]
    text = message.template.format(*values)
    return f"{text} [lane {record['lane']}]" if message.fails else text


def failures(records: NDArray[Any]) -> Iterator[str]:
    """What assertions say in these records."""
    numbers = [number for number, message in MESSAGES.items() if message.fails]
    for record in records[np.isin(records["message"], numbers)]:
        yield line_of(record)


def _value(bits: int, kind: int) -> Any:
    if kind == ValueKind.SIGNED:
        return bits - (bits >> 63 << 64)
    if kind == ValueKind.SINGLE:
        return np.uint32(bits & 0xFFFFFFFF).view(np.float32)
    if kind == ValueKind.DOUBLE:
        return float(np.uint64(bits).view(np.float64))
    return bool(bits) if kind == ValueKind.BOOL else bits


def make_print_message(node: ast.Call) -> tuple[SaidText, list[ast.expr]]:
    """What a call of print says, and its values; ValueError for what device code cannot print."""
    if node.keywords:
        raise ValueError("print takes no keywords in device code; each call is a line")
    template, values = _join_parts(node.args)
    return SaidText(template), values


def make_assert_message(node: ast.Assert, file: str, line: int) -> tuple[SaidText, list[ast.expr]]:
    """What is said where an assertion does not hold; ``line``: of the file, where the statement is."""
    said, values = _join_parts([] if node.msg is None else [node.msg])
    text = _escape_braces(f"{Path(file).name}:{line}: assertion failed: {ast.unparse(node.test)}")
    return SaidText(f"{text}: {said}" if said else text, fails=True), values


def _join_parts(parts: Iterable[ast.expr]) -> tuple[str, list[ast.expr]]:
    texts, values = [], list[ast.expr]()
    for part in parts:
        pieces = part.values if isinstance(part, ast.JoinedStr) else [part]
        texts.append("".join(_piece(piece, values) for piece in pieces))
    if len(values) > MOST_VALUES:
        raise ValueError(f"{len(values)} values are too many for one line; {MOST_VALUES} at most")
    return " ".join(texts), values


def _piece(node: ast.expr, values: list[ast.expr]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _escape_braces(node.value)
    if not isinstance(node, ast.FormattedValue):
        values.append(node)
        return "{!s}"  # what print does; in an f-string it is format, which says more digits of a float
    spec = node.format_spec
    parts = spec.values if isinstance(spec, ast.JoinedStr) else []
    if node.conversion != -1 or not all(isinstance(part, ast.Constant) for part in parts):
        raise ValueError("only {value} and {value:format}, with a constant format, can be printed by device code")
    values.append(node.value)
    text = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
    return f"{{:{text}}}" if text else "{}"


def _escape_braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def learn(function: FunctionType) -> None:
    """Know what a function may print; what makes no sense is said when it is compiled."""
    if not _may_print(function):
        return
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):
        return
    for node in ast.walk(tree):
        try:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                message, _ = make_print_message(node)
            elif isinstance(node, ast.Assert):
                message, _ = make_assert_message(node, function.__code__.co_filename, first + node.lineno - 1)
            else:
                continue
        except ValueError:
            continue
        MESSAGES[message.number] = message


def prints(function: object, around: dict[str, Any], seen: frozenset[object] = frozenset()) -> bool:
    """Whether a function or one that it calls may print, or calls itself, which is reported where it exceeds its
    depth; ``around``: names that it sees."""
    if not isinstance(function, FunctionType) or function in seen:
        return False
    if _may_print(function):
        return True
    found: list[Any] = [around.get(name) for name in function.__code__.co_names + function.__code__.co_freevars]
    modules = [each for each in found if isinstance(each, ModuleType)]
    found += [getattr(module, name, None) for module in modules for name in function.__code__.co_names]
    if any(getattr(type(each), "may_go_too_deep", None) and each.may_go_too_deep for each in found):
        return True
    inner = (each.function for each in found if hasattr(type(each), "function"))  # hooks and device functions
    return any(prints(each, each.__globals__, seen | {function}) for each in inner if isinstance(each, FunctionType))


def _may_print(function: FunctionType) -> bool:
    code = function.__code__
    return "print" in code.co_names or "AssertionError" in code.co_names or _asserts(function)


def _asserts(function: FunctionType) -> bool:
    """Python has an instruction for what assert raises."""
    return any(each.opname == "LOAD_ASSERTION_ERROR" or each.argval is AssertionError
               for each in dis.get_instructions(function))
