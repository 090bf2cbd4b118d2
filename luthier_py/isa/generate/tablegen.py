"""LLVM's TableGen facts: processors, predicates, which records a target decodes, and in what order.

In: ``records/llvm-records.json.xz``, a reduced ``llvm-tblgen --dump-json AMDGPU.td`` of LLVM 22.1.8
(Apache-2.0 WITH LLVM-exception). Out: for a processor and wave size, its features and its real
instruction records with a priority. Invariant: nothing here knows about our tables.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parent / "records"
Record = dict[str, Any]


@dataclass(frozen=True)
class TableGen:
    """All records: ``instructions`` by name, other ``definitions`` by name."""

    instructions: dict[str, Record]
    definitions: dict[str, Record]
    processors: dict[str, Record]
    flag_bits: dict[int, str]  # TSFlags bit -> name

    @cached_property
    def pseudos(self) -> dict[str, str]:
        """PseudoInstr key -> the name of the pseudo, which carries what real records leave out."""
        found: dict[str, str] = {}
        for name, record in self.instructions.items():
            if record["isPseudo"] and record.get("PseudoInstr"):
                found.setdefault(record["PseudoInstr"], name)
        return found

    def pseudo_of(self, record: Record) -> tuple[str, Record] | None:
        name = self.pseudos.get(record.get("PseudoInstr") or "")
        return None if name is None else (name, self.instructions[name])

    def features(self, processor: str, wave_size: int) -> frozenset[str]:
        """Names of the subtarget features (without the "Feature" prefix), closed under implication."""
        pending = [f["def"] for f in self.processors[processor]["Features"]]
        closed: set[str] = set()
        while pending:
            feature = pending.pop()
            if feature not in closed:
                closed.add(feature)
                pending += [f["def"] for f in self.definitions[feature]["Implies"]]
        if not any(feature.startswith("FeatureWavefrontSize") for feature in closed):
            closed.add(f"FeatureWavefrontSize{wave_size}")
        if "FeatureGFX12Insts" in closed:
            closed.add("FeatureRealTrue16Insts")  # what compilers emit; LLVM's tools want it asked for
        return frozenset(feature.removeprefix("Feature") for feature in closed)

    def select(self, features: frozenset[str]) -> Iterator[tuple[str, Record]]:
        """The real records that a target with ``features`` decodes."""
        order = {key: index for index, key in enumerate(decoder_order(features))}
        for name, record in self.instructions.items():
            if record["isPseudo"] or record["isCodeGenOnly"] or record.get("isAsmParserOnly") or not record["Inst"]:
                continue
            if (record["Size"], record["DecoderNamespace"]) not in order:
                continue
            if all(self._holds(predicate, features) for predicate in record["Predicates"]):
                yield name, record

    def _holds(self, name: str, features: frozenset[str]) -> bool:
        predicate = self.definitions[name]
        condition = predicate.get("AssemblerCondDag")
        if not predicate.get("AssemblerMatcherPredicate") or condition is None:
            return True
        return _evaluate(condition, features)


def load() -> TableGen:
    data = json.loads(lzma.open(RECORDS / "llvm-records.json.xz").read())
    bits = json.loads((RECORDS / "tsflags.json").read_text())
    definitions: dict[str, Record] = data["D"]
    processors = {definitions[name]["Name"]: definitions[name] for name in data["io"]["ProcessorModel"]}
    return TableGen(data["I"], definitions, processors, {int(bit): name for bit, name in bits.items()})


def _evaluate(condition: Record, features: frozenset[str]) -> bool:
    values = [
        _evaluate(argument, features) if argument.get("kind") == "dag"
        else argument["def"].removeprefix("Feature") in features
        for argument, _ in condition["args"]
    ]
    operator = condition["operator"]["def"]
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
            ("FmaMixInsts" in have, "GFX9_DL"), (gfx940, "GFX940"), (gfx90a, "GFX90A"), (gfx9, "GFX8"), (gfx9, "GFX9"),
            *recent, (gfx11, "GFX11W64"), (gfx12, "GFX12W64"),
        ],
        4: [
            (gfx9, "GFX8"), (True, "AMDGPU"), (gfx9, "GFX9"), (gfx950, "GFX950"), (gfx90a, "GFX90A"),
            (gfx10_b, "GFX10_B"), recent[0], *recent[5:7], *recent[1:5],
        ],
    }
    return [(size, name) for size, tables in sized.items() for holds, name in tables if holds]
