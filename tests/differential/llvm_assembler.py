"""LLVM's assembler as an oracle: many lines at once, each with its bytes or refused with LLVM's reason."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

ERROR = re.compile(r"<stdin>:(\d+):\d+: error: (.*)")
ENCODING = re.compile(r"encoding: \[(.*?)\]")


class Line(NamedTuple):
    code: bytes | None  # None: refused
    error: str = ""


def assemble(tool: str, cpu: str, features: str, texts: Sequence[str]) -> list[Line]:
    """What the llvm-mc ``tool`` makes of each line; a line of several instructions, or of none, counts as refused."""
    listing = "\n".join(f"L{number}:\n{text}" for number, text in enumerate(texts))
    command = [tool, "-triple=amdgcn", f"-mcpu={cpu}", f"-mattr={features}", "-show-encoding"]
    done = subprocess.run(command, input=listing, capture_output=True, text=True)
    errors = {int(line) // 2 - 1: reason for line, reason in reversed(ERROR.findall(done.stderr))}
    made = {int(part.split(":")[0]): ENCODING.findall(part)
            for part in re.split(r"(?m)^L(?=\d+:$)", done.stdout)[1:]}
    return [_line(made.get(number, []), errors.get(number, "")) for number in range(len(texts))]


def _line(encodings: list[str], error: str) -> Line:
    if error or len(encodings) != 1 or "A" in encodings[0]:  # A: a fixup, for a name that LLVM takes for a symbol
        return Line(None, error or "not one instruction")
    return Line(bytes(int(byte, 16) for byte in encodings[0].split(",")))
