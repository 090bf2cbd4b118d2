"""Damaged tool files: built-in tools and those of the documents with tokens changed, and tools with random hooks."""

from __future__ import annotations

import ast
import io
import random
import re
import tokenize
import traceback
from functools import cache
from pathlib import Path

from fuzzer import Case, Fuzzer
from random_hooks import random_tool

from luthier_py.base.errors import LuthierError
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("instr_count", "opcode_histogram", "none", "mov_replace", "branch_edges")
DOCUMENTS = ("README.md", "docs/tutorial.md", "docs/device-python.md")
SAMPLES = ("vector_add", "device_call", "histogram")
ODD = ("0", "-1", "1 << 64", "0.5", "None", "True", "''", "[]", "()", "{}", "lambda: 0", "...", "x", "self", "not", "-",
       "**", "@", ":=", "await", "yield", "raise", "return", "global", "del", "u8", "i32", "f16", "f64", "bool_",
       "Lane",
       "\0", "\x0c", "\\", "\u202e", "\U0001f600", "'", "'''", "#", "if", "for", "import os", "class")
TRIES = 10
SKIPPED = (tokenize.ENCODING, tokenize.ENDMARKER, tokenize.COMMENT)


@cache
def sources() -> tuple[str, ...]:
    """Whole tools, each of which is a file by itself: what it imports from beside it, it names in full."""
    found = [re.sub(r"^from \.(\w+) import", rf"from luthier_py.tools.{name}.\1 import",
                    (ROOT / "tools" / name / "__init__.py").read_text(), flags=re.M) for name in TOOLS]
    for path in DOCUMENTS:
        text = (ROOT / path).read_text()
        fenced = re.findall(r"```python\n(.*?)```", text, re.S)
        indented = re.findall(r"(?:^(?:    .*)?\n)+", text, re.M)
        pieces = [*fenced, *(re.sub(r"^    ", "", piece, flags=re.M) for piece in indented)]
        found += [piece for piece in pieces if "(Tool)" in piece and "import" in piece and "from_hip" not in piece]
    return tuple(found)


@cache
def tokens() -> tuple[str, ...]:
    """Whatever stands in the sources, once each."""
    found = set(ODD)
    for source in sources():
        found |= {token.string for token in _tokens(source) if token.string.strip()}
    return tuple(sorted(found))


def _tokens(source: str) -> list[tokenize.TokenInfo]:
    try:
        found = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    return [token for token in found if token.type not in SKIPPED and token.string]


def _make(rng: random.Random) -> Case:
    how = rng.choice(SAMPLES)
    text = random_tool(rng) if rng.random() < 0.5 else _damaged(rng)
    for _ in range(TRIES):
        if _is_python(text) or rng.random() < 0.1:
            break
        text = random_tool(rng) if rng.random() < 0.5 else _damaged(rng)
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if rng.random() < 0.03 and data:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return Case(bytes(data), how)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _damaged(rng: random.Random) -> str:
    text = rng.choice(sources())
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = _edited(rng, text)
    return text


def _edited(rng: random.Random, text: str) -> str:
    """One token taken away, doubled, or replaced by another."""
    found = _tokens(text)
    if not found:
        return text
    token = rng.choice(found)
    lines = text.splitlines(keepends=True)
    (row, start), (_, end) = token.start, token.end
    if token.start[0] != token.end[0] or row > len(lines):
        return text
    new = rng.choice(("", token.string + " " + token.string, rng.choice(found).string, rng.choice(tokens()),
                      rng.choice(tokens()), rng.choice(ODD)))
    lines[row - 1] = lines[row - 1][:start] + new + lines[row - 1][end:]
    return "".join(lines)


def _trial(case: Case, folder: Path) -> None:
    path = folder / "fuzzed.py"
    path.write_bytes(case.data)
    try:
        instrument(sample(case.how).path.read_bytes(), load_tool(str(path)), keep_going=True)
    except LuthierError:
        raise
    except Exception as error:
        if not _its_own(error, path):
            raise


def _its_own(error: Exception, path: Path) -> bool:
    """Whether the tool's own Python raised, rather than what it called of the package."""
    places = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    known = [place for place in places if place == str(path) or "/luthier_py/" in place]
    return known[-1:] == [str(path)]


def _prepare(folder: Path) -> None:
    for source in sources():
        for name in SAMPLES:
            _trial(Case(source.encode(), name), folder)


FUZZER = Fuzzer("tools", _make, _trial, _prepare)
