"""Whole objects: every line of llvm-objdump, decoded, printed, encoded and assembled by us.

In: the lines of objects of one instruction set. Out: Compared. Invariant: what stands twice is compared once and
counted twice; bytes that we make differently count as equal only where LLVM's assembler makes the same of the line.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from isa_agreement import features_of, normal
from llvm_assembler import assemble

from luthier_py.base.errors import LuthierError
from luthier_py.isa import InstructionSet
from luthier_py.samples.build import OPTIONS

LINE = re.compile(r"\s+(\S.*?)\s*// [0-9A-F]+: ((?:[0-9A-F]{8} ?)+)")
NOT_READ = (".long", "<unknown>")  # by LLVM


class Line(NamedTuple):
    text: str
    code: bytes


@dataclass
class Compared:
    """How many lines agree; ``differences`` are not explained."""

    lines: int = 0
    distinct: int = 0
    not_read: int = 0          # by LLVM, nor by us
    refused: int = 0           # read as an instruction that neither assembler takes: zeros between functions, and what
                               # a newer compiler may do
    other_bits: int = 0        # don't-care bits on which LLVM's assembler and ours agree, but not the maker
    text: int = 0
    encoded: int = 0           # encode(decode(bytes)) == bytes
    assembled: int = 0         # parse(text) == bytes
    differences: list[str] = field(default_factory=list)


def compiled(compiler: str, source: Path, isa: InstructionSet, folder: Path) -> Path:
    """A sample kernel, compiled for another target and wave size."""
    options = [option for option in OPTIONS if not option.startswith(("--offload-arch", "-mcode-object-version"))]
    if len(isa.target.wave_sizes) > 1:
        options.append("-mwavefrontsize64" if isa.wave_size == 64 else "-mno-wavefrontsize64")
    made = folder / f"{source.stem}-{isa.target.name}-{isa.wave_size}.co"
    options += [f"--offload-arch={isa.target.name}", "-mcode-object-version=6"]
    subprocess.run([compiler, *options, source.name, "-o", str(made)], cwd=source.parent, check=True)
    return made


def lines_of(objdump: str, path: Path, isa: InstructionSet) -> Iterator[Line]:
    """What llvm-objdump prints of a code object."""
    command = [objdump, "-d", f"--mattr={features_of(isa)}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for found in map(LINE.match, done.stdout.splitlines()):
        if found is not None:
            yield Line(normal(found.group(1)), b"".join(int(word, 16).to_bytes(4, "little")
                                                        for word in found.group(2).split()))


def compare(tool: str, isa: InstructionSet, counts: Counter[Line]) -> Compared:
    """Lines and how often they stand there, with the llvm-mc ``tool`` to say which bits do not matter."""
    found = Compared(sum(counts.values()), len(counts))
    doubts = [line for line, count in counts.items() if not _is_equal(found, isa, line, count)]
    for line, made in zip(doubts, assemble(tool, isa.target.name, features_of(isa), [line.text for line in doubts]),
                          strict=True):
        ours = _parsed(isa, line.text)
        encoded = _encoded(isa, line.code)
        if made.code is not None and made.code == ours and encoded in (made.code, line.code):
            found.other_bits += counts[line]
            found.encoded += counts[line]
            found.assembled += counts[line]
        elif made.code is ours is None and (encoded == line.code or not any(line.code)):
            found.refused += counts[line]
        else:
            found.differences.append(f"{line.text}: {line.code.hex()}, assembled by LLVM {made.code!r}, "
                                     f"by us {ours!r}, encoded {encoded!r}")
    return found


def _is_equal(found: Compared, isa: InstructionSet, line: Line, count: int) -> bool:
    """Count a line; whether there is nothing more to say about it."""
    try:
        inst = isa.decode(line.code)
    except LuthierError as error:
        if line.text.startswith(NOT_READ):
            found.not_read += count
        else:
            found.differences.append(f"{line.text}: {line.code.hex()} refused: {error}")
        return True
    text = normal(isa.text(inst))
    if (text, inst.raw) != (line.text, line.code):
        found.differences.append(f"{line.text}: {line.code.hex()} ours {text!r}")
        return True
    found.text += count
    if isa.encode(inst.op, inst.fields, inst.literal) != line.code or _parsed(isa, line.text) != line.code:
        return False
    found.encoded += count
    found.assembled += count
    return True


def _encoded(isa: InstructionSet, code: bytes) -> bytes:
    inst = isa.decode(code)
    return isa.encode(inst.op, inst.fields, inst.literal)


def _parsed(isa: InstructionSet, text: str) -> bytes | None:
    try:
        return isa.parse(text).raw
    except LuthierError:
        return None
