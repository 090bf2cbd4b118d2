"""What LLVM's MCInstrDesc says of every instruction of our tables: LLVM's own binary truth, as test data.

``python tests/differential/instruction_descriptions.py`` makes the data again: it compiles the C++ program beside it
against libLLVM (Debian: llvm-22-dev), asks it about every record, and compresses the answer. The data is derived
from LLVM 22.1.8, under the Apache License v2.0 with LLVM Exceptions (see NOTICE).
"""

from __future__ import annotations

import lzma
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from luthier_py.isa.generate.tablegen import load

HERE = Path(__file__).parent
PROGRAM = HERE / "instruction_descriptions.cpp"
DATA = HERE / "instruction_descriptions.tsv.xz"


class RegisterOperand(NamedTuple):
    written: bool
    files: str        # any of A, S, V, sorted
    bits: int
    tied: int | None  # the operand that it must equal


class Description(NamedTuple):
    """One MCInstrDesc."""

    size_bytes: int
    flags: frozenset[str]
    target_flags: int                        # TSFlags
    implicit_reads: tuple[str, ...]
    implicit_writes: tuple[str, ...]
    registers: tuple[RegisterOperand, ...]   # explicit register operands
    branches: bool                           # has a branch target


@cache
def descriptions() -> dict[str, Description]:
    """By name of the record."""
    lines = lzma.decompress(DATA.read_bytes()).decode().splitlines()
    return {name: _parsed(*columns) for name, *columns in (line.split("\t") for line in lines)}


def _parsed(size: str, flags: str, target_flags: str, reads: str, writes: str, operands: str) -> Description:
    named = operands.split()
    return Description(
        int(size), frozenset(flags.split()), int(target_flags, 16), tuple(reads.split()), tuple(writes.split()),
        tuple(_register(operand) for operand in named if operand[1] not in "-"), any(o.endswith("b") for o in named))


def _register(text: str) -> RegisterOperand:
    kind, _, tied = text[1:].partition("=")
    files = kind.rstrip("0123456789")
    return RegisterOperand(text[0] == "d", files, int(kind[len(files):]), int(tied) if tied else None)


def records() -> list[str]:
    """Names of all records that rows come from, and of their pseudo instructions, which say what these leave open."""
    tablegen = load()
    return sorted(tablegen.instructions.keys() | tablegen.pseudos.keys())


def ask_llvm(compiler: str, llvm_config: str) -> str:
    """The data's text, from libLLVM."""
    asked = [llvm_config, "--cxxflags", "--ldflags", "--libs"]
    flags = subprocess.run(asked, check=True, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "descriptions"
        subprocess.run([compiler, "-std=c++17", "-O1", PROGRAM, *flags.stdout.split(), "-o", program], check=True)
        answer = subprocess.run([program], input="\n".join(records()), check=True, capture_output=True, text=True)
    return answer.stdout


if __name__ == "__main__":
    DATA.write_bytes(lzma.compress(ask_llvm("clang++-22", "llvm-config-22").encode(), preset=9 | lzma.PRESET_EXTREME))
