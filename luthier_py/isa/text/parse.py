"""Assembly text to pieces: tokens with columns, and what a register, number or name says.

In: one line in LLVM's syntax. Out: Line (mnemonic, operands, modifiers) and, operand by operand, Spelled.
Invariant: every piece has its column, so that an error points at what is wrong; nothing here depends on an opcode.
"""

from __future__ import annotations

import re
from functools import cache

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass
from luthier_py.isa.model.registers import Reg, RegFile
from luthier_py.isa.model.target import Target
from luthier_py.isa.text.printer import SOURCES
from luthier_py.isa.text.register_names import special_names


class BadText(Invalid):
    """Invalid text, with the column (from 0) of what is wrong."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(f"column {column + 1}: {message}")
        self.column = column


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a line of assembly; ``column`` counts from 0, in the whole line."""

    text: str
    column: int


@dataclass(frozen=True, slots=True)
class WrittenLine:
    """One instruction: VOPD has the operands of both its halves."""

    mnemonic: str                # "x :: y" for VOPD
    operands: tuple[Token, ...]
    modifiers: tuple[Token, ...]
    rest: Token                  # all behind the mnemonic


OPENING, CLOSING = "([", ")]"
COMMENT = re.compile(r"\s*(;|//).*$")


def split(text: str, column: int, separator: str) -> list[Token]:
    """Pieces between ``separator`` (" " takes any blanks) that is outside brackets and quotes."""
    pieces: list[Token] = []
    depth, start, quoted = 0, 0, False
    for place, letter in enumerate([*text, separator]):
        if letter == '"':
            quoted = not quoted
        depth += (letter in OPENING) - (letter in CLOSING)
        if letter == separator and place == len(text) or letter == separator and not depth and not quoted:
            piece = text[start:place]
            blank = len(piece) - len(piece.lstrip())
            if piece.strip() or separator != " ":
                pieces.append(Token(piece.strip(), column + start + blank))
            start = place + 1
    return pieces


def parse_line(text: str) -> WrittenLine:
    """BadText when there is no mnemonic or an operand is missing."""
    body = COMMENT.sub("", text).replace("\t", " ")
    halves = body.split("::")
    names, operands, modifiers = [], [], []
    column = 0
    for half in halves:
        found = re.match(r"\s*([A-Za-z_]\w*)(.*)$", half, re.S)
        if found is None:
            raise BadText("an instruction is expected", column)
        names.append(found.group(1).lower())
        rest = Token(found.group(2), column + found.start(2))
        pieces = split(rest.text, rest.column, ",") if rest.text.strip() else []
        for piece in pieces:
            words = split(piece.text, piece.column, " ")
            if not words:
                raise BadText("an operand is missing", piece.column)
            operands.append(words[0])
            modifiers += words[1:]
        column += len(half) + 2
    return WrittenLine(" :: ".join(names), tuple(operands), tuple(modifiers), Token(rest.text.strip(), rest.column))


@dataclass(frozen=True, slots=True)
class Spelled:
    """What an operand's text says, before it is matched to an operand of the row."""

    token: Token
    reg: Reg | None = None
    source: int | None = None           # encoding of a special source
    number: int | float | None = None
    literal: int = 0                    # 32 or 64: lit() or lit64(), no inline constant
    negate: bool = False
    absolute: bool = False
    extend: bool = False
    half: str = ""                      # "l" or "h" of a 16-bit operand

    @property
    def high(self) -> bool:
        """Whether the text names the upper half of a register, as ``v1.h`` does."""
        return self.half == "h"


WRAPPERS = re.compile(r"(neg|abs|sext)\((.*)\)$")
REGISTER = re.compile(r"([sva]|ttmp)(?:(\d+)|\[(\d+)(?::(\d+))?\])(\.[lh])?$")
LITERALS = re.compile(r"lit(64)?\((.*)\)$")
INTEGER = re.compile(r"-?(0[xX][0-9a-fA-F]+|(?P<octal>0[0-7]*)|[1-9]\d*)$")
FLOAT = re.compile(r"-?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?$")


def spell(target: Target, token: Token) -> Spelled:
    """BadText for what is no register, number or name of this target."""
    text = token.text
    if (found := WRAPPERS.match(text)) is not None:
        inner = spell(target, Token(found.group(2), token.column + found.start(2)))
        negate, absolute, extend = (found.group(1) == name for name in ("neg", "abs", "sext"))
        return _with(inner, token, negate, absolute, extend)
    if len(text) > 2 and text[0] == text[-1] == "|":
        return _with(spell(target, Token(text[1:-1], token.column + 1)), token, absolute=True)
    if text.startswith("-") and not FLOAT.match(text) and not INTEGER.match(text):
        return _with(spell(target, Token(text[1:], token.column + 1)), token, negate=True)
    if (found := LITERALS.match(text)) is not None:
        given = Token(found.group(2), token.column + found.start(2))
        is_float = FLOAT.match(given.text) and not INTEGER.match(given.text)
        return Spelled(token, number=float(given.text) if is_float else integer(given),
                       literal=64 if found.group(1) else 32)
    if (found := REGISTER.match(text)) is not None:
        return Spelled(token, reg=_register(target, found, token), half=(found.group(5) or "")[1:])
    if INTEGER.match(text):
        return Spelled(token, number=integer(token))
    if FLOAT.match(text):
        return Spelled(token, number=float(text))
    named = names(target).get(text.lower())
    if named is None:
        raise BadText(f"{text!r} is no register, constant or name of {target.name}", token.column)
    return Spelled(token, reg=named) if isinstance(named, Reg) else Spelled(token, source=named)


def _with(inner: Spelled, token: Token, negate: bool = False, absolute: bool = False, extend: bool = False) -> Spelled:
    return Spelled(token, inner.reg, inner.source, inner.number, inner.literal, inner.negate or negate,
                   inner.absolute or absolute, inner.extend or extend, inner.half)


def _register(target: Target, found: re.Match[str], token: Token) -> Reg:
    prefix, single, first, last = found.group(1), found.group(2), found.group(3), found.group(4)
    start = int(single or first)
    dwords = int(last) - start + 1 if last else 1
    if dwords < 1 or dwords > 32:
        raise BadText(f"{token.text} is no range of registers", token.column)
    if prefix == "ttmp":
        return Reg(RegFile.SGPR, target.first_ttmp + start, dwords)
    return Reg(RegFile("sva".index(prefix)), start, dwords)


@cache
def names(target: Target) -> dict[str, Reg | int]:
    """Special registers, and sources that are not registers (their operand encodings)."""
    found: dict[str, Reg | int] = {name: code for code, name in SOURCES.items()}
    for index, name in special_names(target).items():
        found[name] = Reg(RegFile.SGPR, index)
        if name.endswith("_lo"):
            found[name.removesuffix("_lo")] = Reg(RegFile.SGPR, index, 2)
    if target.null_encoding is not None:
        found["null"] = target.null_encoding
    return found


def integer(token: Token) -> int:
    """A number in decimal, hexadecimal or, after a 0, octal, as llvm-mc reads it, with or without a minus; BadText for
    what is none."""
    found = INTEGER.match(token.text)
    if not found:
        raise BadText(f"an integer is expected, not {token.text!r}", token.column)
    return int(token.text, 8 if found["octal"] else 0)


def integers(token: Token) -> list[int]:
    """``[1,0,1]``"""
    if not (token.text.startswith("[") and token.text.endswith("]")):
        raise BadText(f"a list in brackets is expected, not {token.text!r}", token.column)
    return [integer(part) for part in split(token.text[1:-1], token.column + 1, ",")]
