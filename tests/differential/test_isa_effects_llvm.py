"""Effects of every row of every target's table against LLVM's MCInstrDesc: equal, or explained.

`records.json.gz` holds the rows of all targets, each once, so this goes through all of them. What MCInstrDesc says is
test data (see instruction_descriptions); that LLVM still says so is checked where its library is installed.
"""

from __future__ import annotations

import json
import lzma
import os
from collections import Counter as Count
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import NamedTuple

import pytest
from instruction_descriptions import DATA, Description, ask_llvm, descriptions

from luthier_py.isa import Counter, OpFlag, Space, target
from luthier_py.isa.encoding import errata
from luthier_py.isa.encoding.instruction import Access
from luthier_py.isa.encoding.table import OperandClass, Records, Row, load_table
from luthier_py.isa.generate.tablegen import load

# Our flag, and the bit of TSFlags (SIDefines.h) or the flags of MCInstrDesc that say the same.
TARGET_FLAGS = {
    OpFlag.SALU: (0,), OpFlag.VALU: (1,), OpFlag.SDWA: (14,), OpFlag.DPP: (15,), OpFlag.TRANS: (16,),
    OpFlag.VMEM: (17, 18, 20, 21, 22, 24), OpFlag.SMEM: (19,), OpFlag.EXPORT: (23,), OpFlag.FLAT: (24,),
    OpFlag.PACKED: (49,), OpFlag.MATRIX: (54, 59, 63), OpFlag.DOT: (55,), OpFlag.ATOMIC: (57, 58),
    OpFlag.ATOMIC_RETURN: (58,),
}
COUNTERS = {
    "VM_CNT": (Counter.VM | Counter.VS | Counter.SAMPLE | Counter.BVH, 32), "EXP_CNT": (Counter.EXP, 33),
    "LGKM_CNT": (Counter.LGKM | Counter.KM, 34), "TENSOR_CNT": (Counter.TENSOR, 38), "ASYNC_CNT": (Counter.ASYNC, 41),
}
GLOBAL_WAVE_SYNC, DS = 62, 25
FILES = {"V": "V", "A": "A", "S": "S", "L": "S"}  # lds_direct is a scalar source
SIXTEEN = ("v16", "v16lo", "src16", "src16lo")
MASK = 64  # bits of a lane mask: MCInstrDesc has those of wave64


class Difference(NamedTuple):
    aspect: str
    theirs: object
    ours: object


def registers(row: Row, records: Records, access: Access) -> Count[tuple[str, int]]:
    """(files, bits) of the row's register operands."""
    found = []
    for operand in records.shape(row.shape):
        kind = records.classes[operand.class_number]
        if Access(operand.access) & access and kind.kind != "kimm":
            files = {FILES[file] for file in kind.files if file in FILES} or {"S"}
            found.append(("".join(sorted(files)), bits(kind)))
    return Count(found)


def bits(kind: OperandClass) -> int:
    if kind.kind in SIXTEEN:
        return 16
    return MASK if kind.kind in ("bool", "sdwavcc") else 32 * kind.dwords


def described(description: Description, written: bool) -> Count[tuple[str, int]]:
    return Count((r.files, r.bits) for r in description.registers if r.written == written)


@cache
def pseudos() -> dict[str, str]:
    return {name: record["pseudo"] for name, record in load().instructions.items() if "pseudo" in record}


def differences(row: Row, records: Records, llvm: Description) -> Iterator[Difference]:
    """Everything in which a row and MCInstrDesc are not the same."""
    flags = OpFlag(row.flags)
    pseudo = descriptions()[pseudos().get(row.record, row.record)]
    target_flags = llvm.target_flags | pseudo.target_flags
    pairs: list[tuple[str, object, object]] = [
        ("writes", described(llvm, True), registers(row, records, Access.WRITE)),
        ("reads", described(llvm, False), registers(row, records, Access.READ)),
        ("implicit reads", set(llvm.implicit_reads), set(records.registers[row.reads])),
        ("implicit writes", set(llvm.implicit_writes), set(records.registers[row.writes])),
        ("load", "mayLoad" in llvm.flags, OpFlag.MAY_LOAD in flags),
        ("store", "mayStore" in llvm.flags, OpFlag.MAY_STORE in flags),
        ("side effects", "hasSideEffects" in pseudo.flags, OpFlag.SIDE_EFFECTS in flags),
        ("terminator", "isTerminator" in llvm.flags, OpFlag.TERMINATOR in flags),
        ("never falls through", "isBarrier" in llvm.flags,
         OpFlag.TERMINATOR in flags and OpFlag.CONDITIONAL not in flags),
        ("call", "isCall" in llvm.flags, OpFlag.CALL in flags),
        ("return", "isReturn" in llvm.flags, OpFlag.END in flags),
        ("branch", "isBranch" in llvm.flags, bool(flags & (OpFlag.BRANCH | OpFlag.INDIRECT))),
        ("branch target", llvm.branches, any(
            records.classes[operand.class_number].kind == "branch" for operand in records.shape(row.shape))),
        ("GWS", target_flags >> GLOBAL_WAVE_SYNC & 1, int(OpFlag.GDS in flags)),
        ("LDS", target_flags >> DS & 1, int(bool(flags & (OpFlag.LDS | OpFlag.GDS)))),
    ]
    pairs += [(str(flag.name), any(target_flags >> bit & 1 for bit in places), flag in flags)
              for flag, places in TARGET_FLAGS.items()]
    pairs += [(name, bool(target_flags >> bit & 1), bool(Counter(row.counters) & counters))
              for name, (counters, bit) in COUNTERS.items()]
    return (Difference(*pair) for pair in pairs if pair[1] != pair[2])


@dataclass(frozen=True)
class Explanation:
    """Why a row is right to differ; the evidence is with the erratum that it names, or here."""

    aspects: tuple[str, ...]
    holds: Callable[[Row, Records, Description, Difference], bool]
    why: str
    names: frozenset[str] = frozenset()  # operations of the erratum, each of which must differ


def erratum(names: frozenset[str] | dict[str, object], *aspects: str) -> Explanation:
    chosen = frozenset(names)
    return Explanation(aspects, lambda row, *_: row.base in chosen, "errata", chosen)


def flagged(flag: OpFlag, *aspects: str, but: frozenset[str] = frozenset()) -> Explanation:
    return erratum(frozenset(n for n, flags in errata.FLAGS.items() if flag in flags) - but, *aspects)


def kept(row: Row, records: Records, llvm: Description, difference: Difference) -> bool:
    """Only old values of the destination are missing: effects_of reads them where modifiers, or op_sel, keep bits."""
    old = {(r.files, r.bits) for r in llvm.registers if r.tied is not None or r.written}
    old |= {("V", 16), ("V", 32)} if row.partial else set()
    left = Count(difference.theirs) - Count(difference.ours)  # type: ignore[call-overload]
    return (OpFlag.DPP in OpFlag(row.flags) or bool(row.partial)) and left.keys() <= old and \
        not Count(difference.ours) - Count(difference.theirs)  # type: ignore[call-overload]


ALWAYS = frozenset({"S_SETPC_B64", "S_SWAPPC_B64", "S_CALL_B64", "S_ENDPGM", "S_ENDPGM_SAVED",
                    "S_ENDPGM_ORDERED_PS_DONE", "S_ADD_PC_I64", "S_CODE_END"})  # LLVM and we agree
EXPLANATIONS = (
    Explanation(("reads",), kept, "whether DPP keeps the old value depends on its modifiers; a partial write reads it"),
    Explanation(("reads",), lambda row, *_: row.format == "DS" and OpFlag.GDS in OpFlag(row.flags),
                "GWS takes an aligned pair on gfx90a and reads its first register"),
    Explanation(("reads",), lambda row, *_: "BARRIER" in row.base and row.base.endswith("_IMM"),
                "the number of a barrier is an inline constant in a source field"),
    erratum(errata.READS_OWN_DESTINATION, "reads"),
    erratum(errata.READS_M0, "implicit reads"),
    erratum(errata.READS_MODE, "implicit reads"),
    erratum(errata.READS_EXEC, "implicit reads"),
    erratum(errata.LEAVES_SCC_ALONE & {"S_SETVSKIP"}, "implicit writes"),
    Explanation(("implicit writes",), lambda row, *_: row.format == "SDWA" and row.base.startswith("V_CMP"),
                "gfx8: the result operand of SDWA compares has no bits, it is VCC; later it has, and VCC stays"),
    Explanation(("writes",), lambda row, *_: row.format == "SDWA" and row.base.startswith("V_CMP"), "the same"),
    flagged(OpFlag.INDIRECT, "terminator", "never falls through", "branch", but=ALWAYS),
    flagged(OpFlag.INDIRECT | OpFlag.CALL, "branch"),
    flagged(OpFlag.ATOMIC, "ATOMIC", "ATOMIC_RETURN"),
    erratum(errata.COUNTERS, "LGKM_CNT"),
    Explanation(("ATOMIC",), lambda row, *_: OpFlag.MAY_LOAD not in OpFlag(row.flags),
                "LLVM marks wide LDS stores as atomic; nothing is read (DS_WRITE_B128)"),
    Explanation(("EXP_CNT",), lambda row, *_: bool(OpFlag.VMEM & OpFlag(row.flags)),
                "memory holds EXP_CNT on gfx6 only"),
    Explanation(("VALU",), lambda row, *_: bool(OpFlag.VMEM & OpFlag(row.flags)) and Space.LDS in Space(row.spaces),
                "LLVM gives loads to LDS the VALU bit, for its hazard recogniser (isLdsDma)"),
    Explanation(("MATRIX",), lambda row, *_: row.base in ("V_ACCVGPR_READ_B32", "V_ACCVGPR_WRITE_B32"),
                "they move one register, under EXEC; LLVM's IsMAI means the unit"),
    Explanation(("side effects",), lambda row, *_: row.record not in pseudos(),
                "a record without a pseudo: TableGen guesses that there may be some"),
)


def explain(row: Row, records: Records, llvm: Description, difference: Difference) -> Explanation | None:
    return next((e for e in EXPLANATIONS if difference.aspect in e.aspects and e.holds(row, records, llvm, difference)),
                None)


@cache
def all_rows() -> tuple[Records, list[Row]]:
    records = load_table("gfx90a", 64).records
    return records, [Row(*values) for values in json.loads(f"[{','.join(records.row_lines)}]")]


def test_every_row_is_equal_or_explained() -> None:
    records, rows = all_rows()
    unexplained, used = [], {explanation: set[str]() for explanation in EXPLANATIONS}
    for row in rows:
        llvm = descriptions()[row.record]
        for difference in differences(row, records, llvm):
            explanation = explain(row, records, llvm, difference)
            if explanation is None:
                unexplained.append(f"{row.record}: {': '.join(map(str, difference))}")
            else:
                used[explanation].add(row.base)
    assert not unexplained, f"{len(unexplained)} differences:\n" + "\n".join(unexplained[:40])
    for explanation, bases in used.items():
        assert bases, f"explains nothing: {explanation.why} ({explanation.aspects})"
        assert explanation.names <= bases, f"differ nowhere: {sorted(explanation.names - bases)}"


ERRATA = {name: value for name, value in vars(errata).items() if name.isupper()}


@pytest.mark.parametrize("name", ERRATA)
def test_errata_are_about_instructions_that_exist(name: str) -> None:
    _, rows = all_rows()
    assert set(ERRATA[name]) <= {row.base for row in rows}


def test_a_wrong_row_is_found() -> None:
    """One change of each aspect in a row that is right."""
    records, rows = all_rows()
    row = next(row for row in rows if row.record == "GLOBAL_ATOMIC_ADD_RTN_vi")
    llvm = descriptions()[row.record]
    assert not list(differences(row, records, llvm))
    for wrong, aspect in (
        (row._replace(flags=row.flags & ~OpFlag.MAY_STORE.value), "store"),
        (row._replace(flags=row.flags | OpFlag.TERMINATOR.value), "terminator"),
        (row._replace(counters=Counter.LGKM.value), "LGKM_CNT"),
        (row._replace(reads=records.registers.index([])), "implicit reads"),
        (row._replace(shape=next(r.shape for r in rows if r.record == "GLOBAL_ATOMIC_ADD_vi")), "writes"),
    ):
        found = [d for d in differences(wrong, records, llvm) if explain(wrong, records, llvm, d) is None]
        assert aspect in [difference.aspect for difference in found]


def test_every_target_has_rows_of_the_file() -> None:
    """All rows that any target has are among those that were compared."""
    records, rows = all_rows()
    known = {row.record for row in rows}
    for name, size in (("gfx803", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1250", 32)):
        assert {row.record for row in load_table(target(name).name, size).rows} <= known
        assert load_table(name, size).records is records


@pytest.mark.skipif(os.environ.get("LUTHIER_TEST_ISA") != "1", reason="takes LLVM's headers: make test-isa")
def test_llvm_still_says_so(require_tool) -> None:
    text = ask_llvm(require_tool("clang++-22"), require_tool("llvm-config-22"))
    assert lzma.decompress(DATA.read_bytes()).decode() == text


def test_nothing_is_unused_in_the_data() -> None:
    wanted = set(chain(pseudos(), pseudos().values(), load().instructions, load().pseudos))
    assert descriptions().keys() <= wanted
