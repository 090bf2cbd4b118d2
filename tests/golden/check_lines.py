"""Text against CHECK lines: the little of LLVM's FileCheck that these tests need.

In: a check file and text. Out: nothing, or AssertionError that names the check. `CHECK:` finds its pattern in a
later line than the last match, `CHECK-NEXT:` in the next line, `CHECK-NOT:` in no line up to the next match. {{...}} is
a regular expression, blanks match any blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

CHECK = re.compile(r"CHECK(-NEXT|-NOT)?: *(.*?) *$")


@dataclass(frozen=True)
class Check:
    line: int
    kind: str
    pattern: re.Pattern[str]


def parse(script: str) -> Iterator[Check]:
    for number, line in enumerate(script.splitlines(), 1):
        match = CHECK.search(line)
        if match:
            yield Check(number, match[1] or "", _pattern(match[2]))


def _pattern(text: str) -> re.Pattern[str]:
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return re.compile("".join(
        part if i % 2 else re.sub(r"(\\ )+", r"\\s+", re.escape(part)) for i, part in enumerate(parts)
    ))


def check(script: str, text: str) -> None:
    lines = text.splitlines()
    at = 0
    forbidden: list[Check] = []
    for each in parse(script):
        if each.kind == "-NOT":
            forbidden.append(each)
            continue
        found = _find(each, lines, at)
        _refuse(forbidden, lines[at:found])
        forbidden, at = [], found + 1
    _refuse(forbidden, lines[at:])


def _find(each: Check, lines: list[str], at: int) -> int:
    last = at + 1 if each.kind == "-NEXT" else len(lines)
    for index in range(at, min(last, len(lines))):
        if each.pattern.search(lines[index]):
            return index
    here = lines[at] if at < len(lines) else "the end"
    raise AssertionError(f"check line {each.line}: /{each.pattern.pattern}/ not found from here on: {here}")


def _refuse(forbidden: list[Check], lines: list[str]) -> None:
    for each in forbidden:
        for line in lines:
            assert not each.pattern.search(line), f"check line {each.line}: /{each.pattern.pattern}/ is in: {line}"
