"""Code that people install: every instruction of it decoded, printed as LLVM prints it, and encoded back.

Set LUTHIER_ROCM_LIBRARIES as test_elf_real.py says; LUTHIER_ROCM_MEGABYTES of code are taken from each library.
"""

from __future__ import annotations

import mmap
import os
from collections import Counter

import pytest
from isa_agreement import ROOM, agreement

from luthier_py.errors import LuthierError
from luthier_py.isa import InstructionSet, instruction_set
from luthier_py.loader import CodeObject, load, unbundle

LIBRARIES = [path for path in os.environ.get("LUTHIER_ROCM_LIBRARIES", "").split(":") if path]
MEGABYTES = float(os.environ.get("LUTHIER_ROCM_MEGABYTES", "20"))

pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(not LIBRARIES, reason="LUTHIER_ROCM_LIBRARIES names no library"),
]


class Corpus:
    """Distinct instructions by target and wave size."""

    def __init__(self) -> None:
        self.distinct: dict[InstructionSet, set[bytes]] = {}
        self.counts: Counter[str] = Counter()

    def add(self, obj: CodeObject) -> None:
        wave_sizes = {kernel.descriptor.wave_size for kernel in obj.kernels} & set(obj.target.wave_sizes)
        isa = instruction_set(obj.target, wave_sizes.pop() if len(wave_sizes) == 1 else None)
        self.counts["objects"] += 1
        for symbol in obj.symbols:
            if symbol.type.name == "FUNC" and symbol.size:
                self._add(isa, obj.read(symbol.address, symbol.size))

    def _add(self, isa: InstructionSet, code: bytes) -> None:
        scan = isa.scan(code)
        self.counts["bytes"] += len(code)
        self.counts["instructions"] += len(scan)
        self.counts["not decoded"] += int((scan.rows < 0).sum())
        found = self.distinct.setdefault(isa, set())
        found.update(code[offset:offset + size] for offset, size in
                     zip(scan.offsets.tolist(), scan.sizes.tolist(), strict=True))


def corpus(path: str) -> Corpus:
    found = Corpus()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        stride = max(1, int(len(data) / (MEGABYTES * 5e6)))
        for place, member in enumerate(unbundle(data, path)):
            if place // 16 % stride:  # sixteen in a row: one of each target
                continue
            try:
                found.add(load(member.data))
            except LuthierError as error:
                found.counts[f"not loaded: {error}"] += 1
            if found.counts["bytes"] > MEGABYTES * 1e6:
                break
    return found


@pytest.mark.parametrize("path", LIBRARIES, ids=os.path.basename)
def test_every_instruction(path: str, require_tool) -> None:
    found = corpus(path)
    print(path, dict(found.counts))
    assert found.counts["objects"] and not found.counts["not decoded"]
    for isa, distinct in found.distinct.items():
        words = [word.ljust(ROOM, b"\0") for word in sorted(distinct)]
        compared = agreement(require_tool("llvm-mc-22"), isa.target.name, isa.wave_size, words)
        changed = [word for word in distinct if _encoded_again(isa, word) != word]
        print(isa.target.name, isa.wave_size, len(words), "distinct,", compared.text, "equal,",
              dict(compared.soft + compared.defects),  len(changed), "with other don't-care bits")
        assert compared.exact, compared.differences[:10]
        assert compared.both_accept + sum(compared.soft.values()) == len(words)
        assert len(changed) < 0.02 * len(words), [isa.text(isa.decode(word)) for word in changed[:10]]


def _encoded_again(isa: InstructionSet, word: bytes) -> bytes:
    inst = isa.decode(word)
    return isa.encode(inst.op, inst.fields, inst.literal)
