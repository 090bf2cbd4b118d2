"""``python -m luthier_py.isa.generate.reduce AMDGPU.json``: LLVM's records, reduced to what the generator reads.

In: the output of ``llvm-tblgen --dump-json AMDGPU.td`` (half a gigabyte; records/README.md says how to get it).
Out: ``records/records.json.xz``. Invariant: a copy, not an interpretation. Nothing is renamed or decided
here but which records and fields are left out, so that a new LLVM needs no thought at this step.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

from luthier_py.isa.generate.tablegen import RECORDS, decoder_order
from luthier_py.isa.model.target import targets

TableJson = dict[str, Any]
BEHAVIOUR = ("mayLoad", "mayStore", "hasSideEffects", "isTerminator", "IsSingle")
# Fields of InstSI that are stored, and their bits in TSFlags (SIInstrFormats.td).
FLAGS = {
    "SALU": 0, "VALU": 1, "SOP1": 2, "SOP2": 3, "SOPC": 4, "SOPK": 5, "SOPP": 6, "VOP1": 7, "VOP2": 8, "VOPC": 9,
    "VOP3": 10, "VOP3P": 12, "VINTRP": 13, "SDWA": 14, "DPP": 15, "TRANS": 16, "MUBUF": 17, "MTBUF": 18, "SMRD": 19,
    "MIMG": 20, "VIMAGE": 21, "VSAMPLE": 22, "EXP": 23, "FLAT": 24, "DS": 25, "LDSDIR": 28, "VINTERP": 29,
    "VOPD3": 30, "VM_CNT": 32, "EXP_CNT": 33, "LGKM_CNT": 34, "ASYNC_CNT": 41, "TENSOR_CNT": 38, "Gather4": 37,
    "VOP3_OPSEL": 42, "IsPacked": 49, "FlatGlobal": 51, "FlatScratch": 56, "IsMAI": 54, "IsDOT": 55,
    "IsAtomicNoRet": 57, "IsAtomicRet": 58, "IsWMMA": 59, "IsSWMMAC": 63, "GWS": 62,
}
REGISTER_CLASSES = ("S16ImmOperand", "RegisterOperand", "RegisterClass", "RegClassByHwMode")
IMAGE = ("Gather4", "NumExtraArgs", "Gradients", "G16", "Coordinates", "LodOrClampOrMip", "BVH", "A16")


def reduce_records(dump: TableJson) -> TableJson:
    """What records.json.xz holds."""
    processors = {dump[name]["Name"]: dump[name] for name in dump["!instanceof"]["ProcessorModel"]}
    features: dict[str, list[str]] = {}
    names = [row.name for row in targets()]
    for name in names:
        for feature in processors[name]["Features"]:
            _close(dump, feature["def"], features)
    spaces = {space for name in names for space in decoder_order(
        _collect_implied_features([_plain(f["def"]) for f in processors[name]["Features"]], features))}
    real = {name: record for name in dump["!instanceof"]["InstSI"]
            if _is_real(record := dump[name]) and (record["Size"], record["DecoderNamespace"]) in spaces}
    pseudos = _pseudos(dump)
    instructions = {name: _instruction(record, pseudos) for name, record in sorted(real.items())}
    used = sorted({kept["pseudo"] for kept in instructions.values() if "pseudo" in kept})
    kinds = sorted({kind for kept in instructions.values() for _, kind in kept["In"] + kept["Out"]})
    conditions = sorted({name for kept in instructions.values() for name in kept["Predicates"]})
    return {
        "llvm": "22.1.8", "tsflags": {str(bit): name for name, bit in FLAGS.items()},
        "processors": {name: [_plain(f["def"]) for f in processors[name]["Features"]] for name in names},
        "features": features,
        "predicates": {name: _condition(dump[name]["AssemblerCondDag"]) for name in conditions
                       if dump[name].get("AssemblerMatcherPredicate") and dump[name].get("AssemblerCondDag")},
        "operands": {name: _operand(dump[name]) for name in kinds if name in dump},
        "images": {name: _fields(dump[name], IMAGE) for name in dump["!instanceof"]["MIMGBaseOpcode"]},
        "image_sizes": _image_sizes(dump),
        "pseudos": {name: _common(dump[name]) for name in used},
        "instructions": instructions,
    }


def _plain(feature: str) -> str:
    return feature.removeprefix("Feature")


def _close(dump: TableJson, feature: str, found: dict[str, list[str]]) -> None:
    if _plain(feature) not in found:
        implied = [implied["def"] for implied in dump[feature]["Implies"]]
        found[_plain(feature)] = [_plain(name) for name in implied]
        for name in implied:
            _close(dump, name, found)


def _collect_implied_features(pending: list[str], features: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    while pending:
        if (feature := pending.pop()) not in found:
            found.add(feature)
            pending += features[feature]
    return found


def _is_real(record: TableJson) -> bool:
    return bool(record.get("Inst")) and not any(record.get(key) for key in (
        "isPseudo", "isCodeGenOnly", "isAsmParserOnly"))


def _pseudos(dump: TableJson) -> dict[str, str]:
    """PseudoInstr, the key that real instructions name, to the pseudo's own name."""
    found: dict[str, str] = {}
    for name in dump["!instanceof"]["InstSI"]:
        record = dump[name]
        if record.get("isPseudo") and record.get("PseudoInstr"):
            found.setdefault(record["PseudoInstr"], name)
    return found


def _common(record: TableJson) -> TableJson:
    kept: TableJson = {"Constraints": record.get("Constraints") or "",
                  "flags": [flag for flag in FLAGS if record.get(flag) == 1]}
    kept.update((key, record[key]) for key in BEHAVIOUR if record.get(key) is not None)
    return kept


def _instruction(record: TableJson, pseudos: dict[str, str]) -> TableJson:
    mask = value = 0
    fields: dict[str, list[tuple[int, int]]] = {}
    for bit, content in enumerate(record["Inst"]):
        if isinstance(content, int):
            mask, value = mask | 1 << bit, value | content << bit
        elif content is not None and content["kind"] in ("varbit", "var"):  # else an expression that says "any"
            fields.setdefault(content["var"], []).append((bit, content.get("index", 0)))
    kept = {
        **_common(record),
        "In": _list_operands(record["InOperandList"]),
        "Out": _list_operands(record["OutOperandList"]),
        "AsmString": record["AsmString"],
        "DecoderNamespace": record["DecoderNamespace"],
        **{key: [entry["def"] for entry in record[key]] for key in ("Defs", "Uses", "Predicates")},
        "Size": record["Size"],
        "mask": mask,
        "value": value,
        "fields": {name: _segments(bits) for name, bits in fields.items()},
        "TSFlags": [bit for bit, is_set in enumerate(record["TSFlags"]) if is_set],
    }
    if (pseudo := pseudos.get(record.get("PseudoInstr") or "")) is not None:
        kept["pseudo"] = pseudo
    if "MIMGEncoding" in record and isinstance(record["MIMGEncoding"], dict):
        kept["image"] = [record["BaseOpcode"]["def"], record["MIMGEncoding"]["def"], *_dwords(record)]
    return kept


def _list_operands(operands: TableJson) -> list[list[str]]:
    return [[name, kind["def"] if isinstance(kind, dict) and "def" in kind else str(kind)]
            for kind, name in operands["args"]]


def _segments(bits: list[tuple[int, int]]) -> list[list[int]]:
    """Runs of [first bit of the encoding, width, first bit of the field]."""
    runs: list[list[int]] = []
    for bit, index in sorted(bits):
        if runs and bit == runs[-1][0] + runs[-1][1] and index == runs[-1][2] + runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([bit, 1, index])
    return runs


def _operand(record: TableJson) -> TableJson:
    registers = record.get("RegClass")
    return {
        "DecoderMethod": record.get("DecoderMethod") or "", "PrintMethod": record.get("PrintMethod") or "printOperand",
        "OperandType": record.get("OperandType") or "OPERAND_REGISTER",
        "RegClass": registers["def"] if isinstance(registers, dict) else record["!name"],
        "superclasses": [name for name in record["!superclasses"] if name in REGISTER_CLASSES],
    }


def _condition(dag: TableJson) -> list[Any]:
    return [dag["operator"]["def"], *(_condition(argument) if argument.get("kind") == "dag" else _plain(argument["def"])
                                      for argument, _ in dag["args"])]


def _number(value: Any) -> Any:
    return sum(bit << place for place, bit in enumerate(value)) if isinstance(value, list) else value


def _fields(record: TableJson, names: tuple[str, ...]) -> TableJson:
    return {name: _number(record[name]) for name in names}


def _dwords(record: TableJson) -> list[int]:
    return [_number(record["VDataDwords"]), _number(record["VAddrDwords"])]


def _image_sizes(dump: TableJson) -> dict[str, list[list[int]]]:
    """[dwords of data, dwords of addresses] that exist for "operation encoding" (LLVM's getMIMGOpcode)."""
    found: dict[str, set[tuple[int, ...]]] = {}
    for name in dump["!instanceof"]["MIMG_Base"]:
        record = dump[name]
        if isinstance(record.get("MIMGEncoding"), dict) and not record.get("isPseudo"):
            key = f"{record['BaseOpcode']['def']} {record['MIMGEncoding']['def']}"
            found.setdefault(key, set()).add(tuple(_dwords(record)))
    return {key: [list(pair) for pair in sorted(pairs)] for key, pairs in sorted(found.items())}


def _dump(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def main(arguments: list[str]) -> int:
    """Read the dump that is the only argument and write RECORDS; the exit status, 2 for another number of arguments."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    reduced = reduce_records(json.loads(Path(arguments[0]).read_bytes()))
    entries = (f"{_dump(key)}:{{\n" + ",\n".join(f"{_dump(k)}:{_dump(v)}" for k, v in value.items()) + "}"
               if isinstance(value, dict) else f"{_dump(key)}:{_dump(value)}" for key, value in reduced.items())
    text = "{" + ",\n".join(entries) + "}\n"  # a line per entry: readable differences once unpacked
    RECORDS.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
