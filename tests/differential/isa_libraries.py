"""Code objects inside host libraries that people install, as lines of llvm-objdump by instruction set.

In: a library and how much of its code to take. Out: Corpus. Invariant: of an object that is
taken every function is in it.
"""

from __future__ import annotations

import mmap
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from isa_objects import Line, lines_of

from luthier_py.base.errors import LuthierError
from luthier_py.binary.loader import CodeObject, load, unbundle
from luthier_py.isa import InstructionSet, instruction_set

IN_A_ROW = 16  # objects: one of each target that the library was compiled for


@dataclass
class Corpus:
    objects: int = 0
    code_bytes: int = 0
    not_loaded: int = 0
    not_scanned: int = 0  # dwords in functions that `scan` takes for no instruction
    lines: dict[InstructionSet, Counter[Line]] = field(default_factory=dict)

    def add(self, objdump: str, obj: CodeObject, data: bytes | memoryview) -> None:
        sizes = {kernel.descriptor.wave_size for kernel in obj.kernels} & set(obj.target.wave_sizes)
        isa = instruction_set(obj.target, sizes.pop() if len(sizes) == 1 else None)
        self.objects += 1
        for symbol in obj.symbols:
            if symbol.type.name == "FUNC" and symbol.size:
                self.code_bytes += symbol.size
                self.not_scanned += int((isa.scan(obj.read(symbol.address, symbol.size)).rows < 0).sum())
        with tempfile.NamedTemporaryFile(suffix=".co") as file:
            file.write(data)
            file.flush()
            self.lines.setdefault(isa, Counter()).update(lines_of(objdump, Path(file.name), isa))


def corpus(objdump: str, path: str, megabytes: float) -> Corpus:
    """So many megabytes of code, spread over the library at ``path``."""
    found = Corpus()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        stride = max(1, int(len(data) / (megabytes * 5e6)))
        for place, member in enumerate(unbundle(data, path)):
            if place // IN_A_ROW % stride:
                continue
            try:
                found.add(objdump, load(member.data), member.data)
            except LuthierError:
                found.not_loaded += 1
            if found.code_bytes > megabytes * 1e6:
                break
    return found
