"""LLVM's TableGen facts: processors, predicates, which records a target decodes, and in what order.

In: ``records/records.json.xz``: what the generator needs of ``llvm-tblgen --dump-json AMDGPU.td`` of LLVM
22.1.8 (see records/README.md). Out: for a processor and wave size, its features and its real instruction
records. Invariant: nothing here depends on our tables.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import dataclass

RECORDS = Path(__file__).parent / "records" / "records.json.xz"
Record = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class TableGen:
    """The records file, as it is."""

    instructions: dict[str, Record]         # real instructions, those that can be decoded
    pseudos: dict[str, Record]              # what real records leave to their pseudo
    operands: dict[str, Record]             # operand and register classes that instructions name
    predicates: dict[str, list[Any]]        # name -> [operator, feature or nested condition, ...]
    implied: dict[str, list[str]]           # feature -> features that it implies
    processors: dict[str, list[str]]        # name -> features
    flag_bits: dict[int, str]               # TSFlags bit -> name
    images: dict[str, dict[str, int]]       # image operation -> what decides its operands' widths
    image_sizes: dict[str, list[list[int]]]  # "operation encoding" -> (data, address) dwords that exist

    def features(self, processor: str, wave_size: int) -> frozenset[str]:
        """Names of the subtarget features (without the "Feature" prefix), closed under implication."""
        if processor not in self.processors:
            raise Unsupported(f"LLVM's records have no processor {processor}: generate/records/README.md says of which "
                              "LLVM they are; take those of one that has it")
        pending = list(self.processors[processor])
        closed: set[str] = set()
        while pending:
            feature = pending.pop()
            if feature not in closed:
                closed.add(feature)
                pending += self.implied[feature]
        if not any(feature.startswith("WavefrontSize") for feature in closed):
            closed.add(f"WavefrontSize{wave_size}")
        if "GFX12Insts" in closed:
            closed.add("RealTrue16Insts")  # what compilers emit; LLVM's tools have it off by default
        return frozenset(closed)

    def select(self, features: frozenset[str]) -> Iterator[tuple[str, Record]]:
        """The real records that a target with ``features`` decodes."""
        spaces = set(decoder_order(features))
        holds = {name: _evaluate(condition, features) for name, condition in self.predicates.items()}
        for name, record in self.instructions.items():
            if (record["Size"], record["DecoderNamespace"]) in spaces and \
                    all(holds.get(predicate, True) for predicate in record["Predicates"]):
                yield name, record

    def pseudo_of(self, record: Record) -> tuple[str, Record] | None:
        """The pseudo instruction (name, record) that ``record`` was made from; None where LLVM has none."""
        name = record.get("pseudo")
        return None if name is None else (name, self.pseudos[name])


def load() -> TableGen:
    """Read and parse all of RECORDS, at each call."""
    data = json.loads(lzma.open(RECORDS).read())
    return TableGen(
        data["instructions"], data["pseudos"], data["operands"], data["predicates"], data["features"],
        data["processors"], {int(bit): name for bit, name in data["tsflags"].items()},
        data["images"], data["image_sizes"],
    )


def _evaluate(condition: list[Any], features: frozenset[str]) -> bool:
    operator, *arguments = condition
    values = [_evaluate(a, features) if isinstance(a, list) else a in features for a in arguments]
    if operator == "not":
        return not values[0]
    return all(values) if operator == "all_of" else any(values)


def decoder_order(features: Iterable[str]) -> list[tuple[int, str]]:
    """(instruction size, decoder namespace) in the order of AMDGPUDisassembler::getInstruction.

    The first match wins. This order is C++ in LLVM, hence hand-copied.
    """
    have = set(features)
    gfx12, gfx1250 = "GFX12Insts" in have, "GFX1250Insts" in have
    gfx11 = "GFX11Insts" in have and not gfx12
    gfx10 = "GFX10Insts" in have and "GFX11Insts" not in have
    gfx9 = "GFX9Insts" in have and "GFX10Insts" not in have
    gfx8 = "VolcanicIslands" in have or gfx9
    gfx950, gfx940, gfx90a = "GFX950Insts" in have, "GFX940Insts" in have, "GFX90AInsts" in have
    gfx10_b = "GFX10_BEncoding" in have
    recent = [
        (gfx10, "GFX10"), (gfx1250, "GFX1250"), (gfx1250, "GFX1250_FAKE16"), (gfx12, "GFX12"),
        (gfx12, "GFX12_FAKE16"), (gfx11, "GFX11"), (gfx11, "GFX11_FAKE16"),
    ]
    sized = {
        16: [(gfx1250, "GFX1250"), (gfx950, "GFX940")],
        12: [*recent[5:7], *recent[1:5], (gfx12, "GFX12W64")],
        8: [
            (gfx10_b, "GFX10_B"), ("UnpackedD16VMem" in have, "GFX80_UNPACKED"), (gfx950, "GFX950"),
            ("FmaMixInsts" in have, "GFX9_DL"), (gfx940, "GFX940"), (gfx90a, "GFX90A"), (gfx8, "GFX8"), (gfx9, "GFX9"),
            *recent, (gfx11, "GFX11W64"), (gfx12, "GFX12W64"),
        ],
        4: [
            (gfx8, "GFX8"), (True, "AMDGPU"), (gfx9, "GFX9"), (gfx950, "GFX950"), (gfx90a, "GFX90A"),
            (gfx10_b, "GFX10_B"), recent[0], *recent[5:7], *recent[1:5],
        ],
    }
    return [(size, name) for size, tables in sized.items() for holds, name in tables if holds]
