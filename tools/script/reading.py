"""A script's text to probes and actions, by Python's own parser; nothing of it is executed.

In: a text. Out: parsed statements by probe, with their places. Invariant: what is not of the language is a Misread that
shows the line and the place in it; docs/one-liners.md has the language.

    script := probe {newline probe}    probe := head ["if" condition] ":" actions    head := on("filter") | entry | ...

A probe is no statement of Python, so its head is made one before the parser sees it: ``on(x) if y: z`` is read as
``if (on(x),  y): z``. Places are those of the text that was written.
"""

from __future__ import annotations

import ast
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from textwrap import dedent
from typing import NoReturn

from luthier_py.base.errors import Misread, did_you_mean
from luthier_py.rewrite.tool.chosen.filters import WORDS

AT_INSTRUCTIONS = ("on", "before", "after")
ELSEWHERE = ("launch", "entry", "exit", "block", "branch", "loop")
HEADS = (*AT_INSTRUCTIONS, *ELSEWHERE)
OUTSIDE = ("begin", "end")  # of all that runs
_ALONE = (*ELSEWHERE, *OUTSIDE)
_OPENING = "if ("
_QUOTED_OR_BREAK = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|#(?:(?!\\n)[^\n])*|(\\n)""")


@dataclass(frozen=True, slots=True)
class Head:
    """Where a probe's head is in the text: rows from 1, columns from 0. ``condition``: of its ``if``, if it has one."""

    start: tuple[int, int]
    colon: tuple[int, int]
    condition: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class ReadProbe:
    """``head``: the word; ``where``: the text in its parentheses, if it has some."""

    head: str
    where: ast.Constant | None
    condition: ast.expr | None
    body: Sequence[ast.stmt]


@dataclass(frozen=True)
class ScriptText:
    """A user's script. ``\\n`` outside of quotes begins a new line, as a newline does: options are one line."""

    written: str
    origin: str = "script"

    @cached_property
    def text(self) -> str:
        """In lines, without what all of them begin with."""
        lines = _QUOTED_OR_BREAK.sub(lambda found: "\n" if found[1] else found[0], self.written)
        return dedent(lines.expandtabs(4)).strip("\n").rstrip()

    def refuse(self, where: ast.AST | tuple[int, int], message: str) -> NoReturn:
        row, column = where if isinstance(where, tuple) else (getattr(where, "lineno", 1), self._column(where))
        lines = self.text.split("\n") or [""]
        line = lines[min(row, len(lines)) - 1]
        shown = f"    {line}\n    {' ' * min(column, len(line))}^"
        raise Misread(f"{self.origin}, line {row}, column {column + 1}: {message}\n{shown}")

    def suggest(self, where: ast.AST, name: str, known: Iterable[str], what: str) -> NoReturn:
        """Refuse a name that is none, with the one that is nearest."""
        names = sorted(known)
        hint = did_you_mean(name, names) or f"; known are {', '.join(names)}"
        self.refuse(where, f"{name} is no {what} here{hint}")

    def of(self, node: ast.AST) -> str:
        """The text of a node, as it was written."""
        start, end = self._place(node.lineno, node.col_offset), self._place(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        lines = self.text.split("\n")[start[0] - 1 : end[0]]
        lines[-1] = lines[-1][: end[1]]
        lines[0] = lines[0][start[1]:]
        return " ".join(line.strip() for line in lines)

    def probes(self) -> Iterator[ReadProbe]:
        heads = self._heads
        if not heads:
            self.refuse((1, 0), """it is empty; write a probe and what to do there, as in on("memory"): count()""")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what Python reads, and some day will not
                tree = ast.parse(self._rewritten)
        except SyntaxError as error:
            place = self._place(error.lineno or 1, max((error.offset or 1) - 1, 0))
            word = re.match(r"\w*", self.text.split("\n")[place[0] - 1][place[1]:])
            if word and word[0] in WORDS:  # and a word of Python: global
                self._no_text(place, word[0])
            self.refuse(place, f"this is no Python: {error.msg}")
        except (ValueError, RecursionError, MemoryError) as error:  # zero bytes, or too deep
            self.refuse((1, 0), f"Python cannot read this: {error}")
        for head, node in zip(heads, tree.body, strict=True):
            assert isinstance(node, ast.If)
            yield self._probe(head, node)

    def _probe(self, head: Head, node: ast.If) -> ReadProbe:
        test, condition = node.test, None
        if head.condition is not None:
            if not isinstance(test, ast.Tuple) or len(test.elts) != 2:
                self.refuse(head.condition, "here should be one condition")
            test, condition = test.elts
        if isinstance(test, ast.Name) and test.id in _ALONE:
            return ReadProbe(test.id, None, condition, node.body)
        if not isinstance(test, ast.Call) or not isinstance(test.func, ast.Name):
            name = test.id if isinstance(test, ast.Name) else self.of(test)
            if name in AT_INSTRUCTIONS:
                self.refuse(test, f'{name} says where, as in {name}("memory & load") or {name}("global_load_*")')
            self._no_probe(test, name)
        if test.func.id not in AT_INSTRUCTIONS:
            if test.func.id in _ALONE:
                self.refuse(test, f"{test.func.id} takes nothing; write {test.func.id}:")
            self._no_probe(test, test.func.id)
        for each in test.args:
            if isinstance(each, ast.Name) and each.id in WORDS:
                self._no_text(each, each.id)
        if len(test.args) != 1 or test.keywords or not _is_text(test.args[0]):
            self.refuse(test, f'{test.func.id} takes one text, a filter (docs/filters.md) or an opcode, as in '
                              f'{test.func.id}("global_load_*")')
        assert isinstance(test.args[0], ast.Constant)
        return ReadProbe(test.func.id, test.args[0], condition, node.body)

    def _no_probe(self, where: ast.expr, name: str) -> NoReturn:
        if name in WORDS:
            self._no_text(where, name)
        self.suggest(where, name, (*HEADS, *OUTSIDE), "probe")

    def _no_text(self, where: ast.AST | tuple[int, int], word: str) -> NoReturn:
        self.refuse(where, f'{word} is a word of filters, and a filter is a text: on("{word}")')

    @cached_property
    def _heads(self) -> list[Head]:
        found, tokens = list[Head](), self._tokens
        at, begins = 0, True
        while at < len(tokens):
            token = tokens[at]
            if begins and token.start[1] == 0 and token.string and token.type not in (
                    tokenize.COMMENT, tokenize.NL, tokenize.INDENT):
                head, at = self._head(tokens, at)
                found.append(head)
            begins = tokens[at].type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
            at += 1
        return found

    @cached_property
    def _tokens(self) -> Sequence[tokenize.TokenInfo]:
        tokens, opened = list[tokenize.TokenInfo](), list[tuple[int, int]]()
        try:
            for token in tokenize.generate_tokens(StringIO(f"{self.text}\n").readline):
                tokens.append(token)
                if token.type == tokenize.OP and token.string in "([{":
                    opened.append(token.start)
                elif token.type == tokenize.OP and token.string in ")]}" and opened:
                    opened.pop()
        except tokenize.TokenError as error:
            self.refuse(opened[-1] if opened else (error.args[1][0], 0), "this is left open")
        except IndentationError as error:
            self.refuse((error.lineno or 1, 0), "this line is indented as no line before it")
        return tokens

    def _head(self, tokens: Sequence[tokenize.TokenInfo], first: int) -> tuple[Head, int]:
        """A head, and the token that ends it."""
        depth, condition = 0, None
        for at in range(first, len(tokens)):
            token = tokens[at]
            depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
            if depth < 0:
                self.refuse(token.start, "this closes nothing")
            if depth == 0 and token.string == "if" and condition is None:
                condition = token.start
            if depth == 0 and token.string == ":":
                return Head(tokens[first].start, token.start, condition), at
            if token.type == tokenize.NEWLINE:
                break
        self.refuse(tokens[first].start, 'a probe ends with a colon, and says behind it what to do, as in '
                                         'on("memory"): count(by=line)')

    @cached_property
    def _rewritten(self) -> str:
        lines = self.text.split("\n")
        for head in reversed(self._heads):
            for (row, column), old, new in ((head.colon, "", ")"), (head.condition or head.start, "if", ", "),
                                            (head.start, "", _OPENING)):
                if old and head.condition is None:
                    continue
                line = lines[row - 1]
                lines[row - 1] = line[:column] + new + line[column + len(old):]
        return "\n".join(lines)

    def _place(self, row: int, offset: int) -> tuple[int, int]:
        """Where something is in the text, of which the parser says where it is in what it was given; in characters."""
        lines = self._rewritten.split("\n")
        line = lines[row - 1] if row <= len(lines) else ""
        column = len(line.encode()[:offset].decode(errors="ignore"))
        opened = sum(len(_OPENING) for head in self._heads if head.start[0] == row and column > head.start[1])
        column -= min(opened, column)
        closed = sum(head.colon[0] == row and column > head.colon[1] for head in self._heads)
        return row, column - closed

    def _column(self, node: ast.AST) -> int:
        return self._place(getattr(node, "lineno", 1), getattr(node, "col_offset", 0))[1]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
