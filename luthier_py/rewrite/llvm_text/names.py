"""Names, types and arguments in LLVM's text.

Names of symbols are without @ and quotes, names of values have their %.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from luthier_py.base.records import dataclass

WORD = r'"[^"]*"|[-\w$.]+'
"""A name, as it is written behind % or @."""
_PLAIN = re.compile(r"[-\w$.]+")
_NOT_PLAIN = re.compile(r"[^-\w$.]")
_SYMBOL = re.compile(rf'c"[^"]*"|@({WORD})')
_VALUE = re.compile(rf"%({WORD})")
_TYPE = re.compile(r'(\bptr(?: addrspace\(\d+\))?|\[[^\]]*\]|<[^>]*>|\{.*\}|%"[^"]*"|%[-\w$.:]+|void|i\d+|float|'
                   r"double|half|bfloat)")  # fmt: skip
_POINTER = re.compile(r"ptr(?: addrspace\((\d+)\))?")
_ARRAY = re.compile(r"\[(\d+) x ([^\]]*)\]")
_IN_MEMORY = re.compile(r"\b(byref|byval|sret)\(")
_IN_PARENTHESES = r"(?:range|align|dereferenceable(?:_or_null)?|memory|captures|initializes|nofpclass)"
_NOT_OF_TYPE = re.compile(rf"\b{_IN_PARENTHESES}\([^)]*\)+")
_ATTRIBUTE = re.compile(
    r"(?:noundef|nonnull|signext|zeroext|inreg|readonly|readnone|writeonly|returned|noalias|nocapture|nofree|immarg|"
    rf"align \d+|{_IN_PARENTHESES}\([^()]*(?:\([^()]*\))*\)) ")


# -- names -----------------------------------------------------------------------------------------


def unquote_name(name: str) -> str:
    """A name of LLVM's without its quotes, if it has some."""
    return name.strip('"')


def quote_name(name: str) -> str:
    """A name as LLVM writes it behind % or @."""
    return name if _PLAIN.fullmatch(name) else f'"{name}"'


def plain_name(name: str) -> str:
    """A name that needs no quotes, made of one that may have them."""
    return _NOT_PLAIN.sub("_", unquote_name(name))


def symbols_in(text: str) -> Iterator[str]:
    """All symbols that are named, in order; what is inside a string is none."""
    return (unquote_name(name) for name in _SYMBOL.findall(text) if name)


def symbol_of(text: str) -> str:
    """The first that is named, as by a definition or declaration its own; "" for none."""
    return next(symbols_in(text), "")


def replace_symbols(text: str, values: Mapping[str, str]) -> str:
    """The text with values in the place of symbols."""
    return _SYMBOL.sub(lambda found: values.get(unquote_name(found[1] or ""), found[0]), text)


def values_in(text: str) -> list[str]:
    """Names of values, labels and structures."""
    return [found[0] for found in _VALUE.finditer(text)]


def rename_values(text: str, rename: Callable[[str], str]) -> str:
    """``rename``: what a name becomes."""
    return _VALUE.sub(lambda found: rename(found[0]), text)


# -- types and arguments ---------------------------------------------------------------------------


def split_at_commas(parameters: str) -> list[str]:
    """Split at commas that are in no brackets."""
    parts, depth = [""], 0
    for character in parameters:
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def llvm_type(text: str) -> str:
    """The first type in a text that begins with words of linkage, or continues with attributes; "" for a structure
    that is passed in memory."""
    if _IN_MEMORY.search(text):
        return ""
    found = _TYPE.search(_NOT_OF_TYPE.sub("", text))
    return found[0] if found is not None else ""


def pointer_space(type: str) -> int | None:
    """The number of the memory that a pointer points to, 0 where it has none; None for other types."""
    found = _POINTER.fullmatch(type)
    return int(found[1] or 0) if found is not None else None


def array_of(text: str) -> tuple[int, str] | None:
    """Length and type of the elements of an array, by whose type a text begins."""
    found = _ARRAY.match(text)
    return (int(found[1]), found[2]) if found is not None else None


@dataclass(frozen=True, slots=True)
class TextArgument:
    """``attributes``: each with a space behind it."""

    type: str
    attributes: str
    value: str

    @classmethod
    def read(cls, text: str) -> TextArgument:
        """One that a call gives."""
        type, attributes = llvm_type(text), ""
        value = text.removeprefix(type).strip()
        while (found := _ATTRIBUTE.match(value)) is not None:
            attributes, value = attributes + found[0], value[found.end() :]
        return cls(type, attributes, value)

    def __str__(self) -> str:
        return f"{self.type} {self.attributes}{self.value}"
