"""Functions in LLVM's text, taken apart: parameters, blocks, calls.

In: text that LLVM has printed, in which each value has a name. Out: TextFunction. Invariant: what is put together again
of the parts is the function.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from luthier_py.rewrite.tool.cpp.declared import llvm_type, split_at_commas
from luthier_py.rewrite.tool.cpp.device_ir import unquote_name

FUNCTION = re.compile(r'^define [^\n]*@("[^"]*"|[-\w$.]+)\(.*?^\}\n', re.MULTILINE | re.DOTALL)
NAME = re.compile(r'%("[^"]*"|[-\w$.]+)')
LABEL = re.compile(r'^("[^"]*"|[-\w$.]+):', re.MULTILINE)
CALL = re.compile(r'^ *(?:(%\S+) = )?(?:(?:tail|notail|musttail) )?call [^@\n]*?@("[^"]*"|[-\w$.]+)\((.*)\)[^()]*$')
ALLOCA = re.compile(r"^ *(%\S+) = alloca (.*?)(?:, align (\d+))?, addrspace\(5\)$")
_ARGUMENT_ATTRIBUTE = re.compile(
    r"^(?:noundef|nonnull|signext|zeroext|inreg|readonly|returned|noalias|align \d+|"
    r"(?:captures|dereferenceable|dereferenceable_or_null|range|nofpclass|initializes)\([^()]*(?:\([^()]*\))*\)) ")


@dataclass(slots=True)
class TextFunction:
    """Taken apart. ``blocks``: lines by label, the entry first."""

    name: str
    header: str
    gives: str
    parameters: list[tuple[str, str]]  # type and name
    blocks: dict[str, list[str]]
    kept: frozenset[int] = frozenset()  # parameters that are the same at each level


def functions_of(text: str, names: frozenset[str]) -> list[tuple[str, str]]:
    """Names and texts of functions of a module."""
    return [(unquote_name(found[1]), found[0]) for found in FUNCTION.finditer(text) if unquote_name(found[1]) in names]


def symbol_of(function: str) -> str:
    """The name of a function, without quotes; the text begins with its ``define``."""
    found = FUNCTION.match(function)
    assert found is not None
    return unquote_name(found[1])


def rewrite_functions(text: str, names: frozenset[str], change: Callable[[str], str]) -> str:
    """A module in which functions are what ``change`` makes of them."""
    return FUNCTION.sub(lambda found: change(found[0]) if unquote_name(found[1]) in names else found[0], text)


def parse_function(text: str) -> TextFunction:
    """A function; types of parameters are empty where it takes a structure in memory."""
    header, _, body = text.partition("\n")
    start = header.index("(", header.index("@"))
    given = header[start + 1 : header.rindex(")")]
    parameters = [(llvm_type(each), each.rpartition(" ")[2]) for each in split_at_commas(given)]
    blocks: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in body.splitlines()[:-1]:
        found = LABEL.match(line)
        if found is not None:
            lines = blocks[found[1]] = []
        elif line.strip():
            lines.append(line)
    return TextFunction(symbol_of(text), header, llvm_type(header.partition("@")[0]), parameters, blocks)


def arguments(call: re.Match[str]) -> list[str]:
    """Values that a call gives, without their types."""
    values = []
    for given in split_at_commas(call[3]):
        value = given.removeprefix(llvm_type(given)).strip()
        while (found := _ARGUMENT_ATTRIBUTE.match(value)) is not None:
            value = value[found.end() :]
        values.append(value)
    return values


def names_in(text: str) -> list[str]:
    """Of values and labels."""
    return [found[0] for found in NAME.finditer(text)]
