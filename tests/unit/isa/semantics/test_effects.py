"""Effects of every row of every target against the row's meaning: equal, or explained.

What a row without a meaning reads and writes is compared with the other rows of its operation: other encodings, other
targets. Registers of the address of flat and scratch memory are no part of the meaning, and not compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import pytest

from luthier_py.isa import Access, OpFlag, OpInfo, Target, instruction_set, target, targets, vgpr
from luthier_py.isa.encoding.decode import Decoder
from luthier_py.isa.encoding.table import Records, Row, load_table
from luthier_py.isa.model.registers import EXEC, M0, MODE, SCC, VCC, RegSet
from luthier_py.isa.semantics import rows
from luthier_py.isa.semantics.cdna4 import TransposedLoad
from luthier_py.isa.semantics.control import Action
from luthier_py.isa.semantics.lds import Permute
from luthier_py.isa.semantics.meaning import Lanes, Variants
from luthier_py.isa.semantics.readers.effects import collect_effects

REGISTERS = {"vcc": 3 << VCC, "exec": 3 << EXEC, "scc": 1 << SCC, "m0": 1 << M0, "mode": 1 << MODE}
V = vgpr


class Case(NamedTuple):
    target: Target
    op: OpInfo


class Difference(NamedTuple):
    aspect: str                 # an operand's name, "reads", "writes", "keeps", "width of" an operand
    table: frozenset[str]       # what only the table says
    meaning: frozenset[str]     # what only the meaning says


def names(registers: RegSet) -> set[str]:
    return {name for name, mask in REGISTERS.items() if registers.sgpr & mask}


def differences(op: OpInfo) -> Iterator[Difference]:
    found = collect_effects(op, rows()[op.base])
    pairs: list[tuple[str, set[str], set[str]]] = [
        ("reads", names(op.implicit_reads), found.reads), ("writes", names(op.implicit_writes), found.writes),
        ("keeps", {"all"} if op.partial else set(), {"all"} if found.keeps else set()),
    ]
    for operand in op.operands:
        if operand.dwords or operand.kind == "kimm":
            pairs.append((operand.name, directions(operand.access),
                          directions(found.operands.get(operand.name, Access.NONE))))
        if operand.name in found.dwords and operand.dwords:
            pairs.append((f"width of {operand.name}", {str(operand.dwords)}, {str(found.dwords[operand.name])}))
    for aspect, table, meaning in pairs:
        if table != meaning:
            yield Difference(aspect, frozenset(table - meaning), frozenset(meaning - table))


def directions(access: Access) -> set[str]:
    return {str(direction.name) for direction in (Access.READ, Access.WRITE) if direction in access}


@dataclass(frozen=True)
class Explanation:
    """Why the table is right, though the meaning says something else."""

    aspects: tuple[str, ...]
    holds: Callable[[Case, Difference], bool]
    why: str


def more(*registers: str, of: Callable[[Case], bool]) -> Callable[[Case, Difference], bool]:
    """Only the table names registers, and only these: it says too much, which costs a register and is never wrong."""
    return lambda case, found: not found.meaning and found.table <= set(registers) and of(case)


def based(*prefixes: str) -> Callable[[Case], bool]:
    return lambda case: case.op.base.startswith(prefixes)


def narrow(case: Case) -> bool:
    row = rows()[case.op.base]
    row = row.typical if isinstance(row, Variants) else row
    return isinstance(row, Lanes) and row.signature.results[0].type.bits <= 16


def inserts_a_byte(case: Case) -> bool:
    row = rows()[case.op.base]
    return isinstance(row, Variants) and "old" in {slot.name for slot in row.typical.signature.sources}


COMPARES_WITHOUT_SOURCES = ("V_CMP_F_", "V_CMP_T_", "V_CMP_TRU_", "V_CMPX_F_", "V_CMPX_T_", "V_CMPX_TRU_")
WITHOUT_RESULT = (Action.NOTHING, Action.SENDMSG)
EXPLANATIONS = (
    Explanation(("reads",), more("exec", "m0", of=lambda case: rows()[case.op.base] in WITHOUT_RESULT),
                "waits, messages and cache control have no effect on results; LLVM keeps them in their place so"),
    Explanation(("reads",), more("exec", "mode", of=lambda case: OpFlag.MATRIX in case.op.flags),
                "LLVM gives MFMA what all VALU reads; the manual says that it takes all lanes (CDNA2 ISA, 7.1)"),
    Explanation(("reads",), more("m0", of=lambda case: case.target.generation == 8 and case.op.format == "DS"),
                "gfx8 compares LDS addresses with M0; meanings are those of gfx9, where nothing is compared"),
    Explanation(("reads",), more("mode", of=based("V_DIV_FIXUP_", "V_PK_MAX_NUM_BF16", "V_PK_MIN_NUM_BF16")),
                "LLVM gives all floats MODE; this one makes no denormal and does not round"),
    Explanation(("reads",), lambda case, found: not found.table and found.meaning == {"mode"} and based(
                "V_CVT_F32_UBYTE", "V_CVT_OFF_F32_I4", "V_CVT_PKNORM_")(case),
                "exact, or all the same for denormals"),
    Explanation(("reads",), lambda case, found: not found.table and found.meaning == {"mode"} and based(
                "V_CVT_FLR_I32_F32", "V_CVT_RPI_I32_F32", "V_MINIMUM", "V_MAXIMUM", "S_MINIMUM_", "S_MAXIMUM_",
                "V_PK_MINIMUM", "V_PK_MAXIMUM", "V_CVT_PK_BF16_F32",
                "V_CVT_PK_F16_F32", "V_CVT_PK_FP8_F16", "V_CVT_PK_BF8_F16", "V_CVT_SR_FP8_F16",
                "V_CVT_SR_BF8_F16")(case),
                "LLVM says that MODE does not matter, the manuals do not say it; nothing is moved over writes of MODE"),
    Explanation(("src0", "src1"),
                lambda case, found: found.table == {"READ"} and based(*COMPARES_WITHOUT_SOURCES)(case),
                "always true, or never: the hardware still reads"),
    Explanation(("sdst", "sbase", "soffset", "sdata", "vaddr", "saddr"), lambda case, found: found.table == {"READ"} and
                rows()[case.op.base] is Action.NOTHING,
                "what is waited for, or brought into a cache: nothing to compute with"),
    Explanation(("sdst",), lambda case, found: case.op.base.startswith("S_MOVRELD_"),
                "the register written is sdst + M0: any (errata.WRITES_ANY)"),
    Explanation(("vdst",), lambda case, found: case.op.base.startswith("V_MOVREL"),
                "the same of vdst + M0"),
    Explanation(("reads",), more("m0", of=lambda case: based("DS_BPERMUTE_FI_B32")(case) or "_SRC2_" in case.op.base),
                "LLVM gives them what DS instructions of gfx8 read"),
    Explanation(("writes",), lambda case, found: found.meaning == {"vcc"} and not found.table and
                case.target.generation >= 10 and case.op.base.startswith("V_CMPX_"),
                "from gfx10 on V_CMPX writes EXEC alone (RDNA ISA, VOPC)"),
    Explanation(("reads",), more("m0", of=based("CLUSTER_LOAD_")),
                "it names work-groups that share the fetch, which changes nothing that this one gets"),
    Explanation(("keeps",), lambda case, found: found.table == {"all"} and narrow(case),
                "which results of 16 bits leave the other half alone is the target's matter (errata.KEEPS_HIGH_HALF)"),
    Explanation(("reads",), more("mode", of=based("V_CVT_SCALEF32_")),
                "FP16_OVFL says what becomes of numbers that are too large: part of the situation of a meaning"),
    Explanation(("keeps",), lambda case, found: found.table == {"all"} and inserts_a_byte(case),
                "the meaning reads the old value itself, and says which byte is another"),
    Explanation(("vdst",), lambda case, found: found.meaning == {"READ"} and not found.table and case.op.partial and
                inserts_a_byte(case),
                "a record that says only that bits stay: as good as a read (Inst.partial_writes)"),
    Explanation(("keeps",), lambda case, found: found.table == {"all"} and based(
                "V_CVT_I32_I16", "V_CVT_U32_U16", "V_CVT_PK_F32_FP8", "V_CVT_PK_F32_BF8", "V_CVT_PK_F16_FP8",
                "V_CVT_PK_F16_BF8", "V_CVT_SCALEF32_F32_", "V_CVT_SCALEF32_PK_F32_", "V_CVT_SCALEF32_PK_F16_",
                "V_CVT_SCALEF32_PK_BF16_")(case),
                "LLVM's records of the forms with halves say that of any destination; results have 32 bits here"),
    Explanation(("vdst",), lambda case, found: found.table == {"READ"} and case.op.partial and narrow(case),
                "the half that stays"),
    Explanation(("width of vdst",), lambda case, found: "_w64_" in case.op.record and isinstance(
                rows()[case.op.base], TransposedLoad),
                "the forms for waves of 64 lanes, which give each lane half as much; the emulator refuses them"),
    Explanation(("keeps",), lambda case, found: found.table == {"all"} and case.op.base.startswith("V_PERMLANE"),
                "rows change places: rows that no active lane takes part in stay"),
)


@cache
def cases() -> list[Case]:
    """Every distinct row that has a meaning, for each wave size, with one of its targets per generation."""
    seen, found = set(), []
    for where in targets():
        for wave_size in where.wave_sizes:
            table = load_table(where.name, wave_size)
            decoder = Decoder(where, wave_size, table)
            for number, row in enumerate(table.rows):
                key = (row, wave_size, where.generation)
                if row.base in rows() and key not in seen:
                    seen.add(key)
                    found.append(Case(where, decoder.format(number).op))
    return found


def test_every_row_does_what_its_meaning_says() -> None:
    unexplained: list[str] = []
    used: set[Explanation] = set()
    for case in cases():
        for found in differences(case.op):
            explanation = next((e for e in EXPLANATIONS if found.aspect in e.aspects and e.holds(case, found)), None)
            if explanation is None:
                unexplained.append(f"{case.target.name} {case.op.record}: {found.aspect}: only the table says "
                                   f"{sorted(found.table)}, only the meaning {sorted(found.meaning)}")
            else:
                used.add(explanation)
    assert not unexplained, f"{len(unexplained)} differences:\n" + "\n".join(unexplained[:40])
    assert not [explanation.why for explanation in EXPLANATIONS if explanation not in used]


def test_all_meanings_are_compared() -> None:
    """But for those of operations that no target has."""
    compared = {case.op.base for case in cases()}
    assert len(cases()) > 20_000
    assert len(rows().keys() - compared) < len(rows()) // 20, sorted(rows().keys() - compared)


def test_what_was_wrong() -> None:
    """Accumulators that the records do not tie, and a VCC that an encoded destination replaces."""
    gfx90a, gfx900, gfx1030 = (instruction_set(target(name)) for name in ("gfx90a", "gfx900", "gfx1030"))
    for made in gfx90a.make("v_pk_fmac_f16", V(1), V(2), V(3)), gfx90a.make("v_cvt_pkaccum_u8_f32", V(1), V(2), V(3)):
        assert V(1) in made.reads and V(1) in made.writes
    compare = gfx900.parse("v_cmp_class_f32_sdwa s[4:5], v1, v2 src0_sel:DWORD src1_sel:DWORD")
    assert str(compare.writes) == "s[4:5]"
    assert V(9) in gfx1030.parse("v_swaprel_b32 v1, v2").writes  # any register: M0 says which
    failing = gfx1030.parse("image_load v[0:4], v[5:6], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D tfe")
    assert str(failing.partial_writes) == "v[0:4]"
    assert str(gfx900.parse("buffer_load_dword v[1:2], off, s[4:7], 0 tfe").partial_writes) == "v[1:2]"


@pytest.mark.parametrize("wrong", ["v_mac_f32_e32", "v_fmac_f32_e32", "v_addc_co_u32_e32", "s_cmov_b32"])
def test_a_missing_read_is_found(wrong: str) -> None:
    """As LLVM would say it without the tie, or without the implicit register."""
    op = next(case.op for case in cases() if case.op.mnemonic == wrong)
    assert not list(differences(op))
    written = tuple(replace(operand, access=Access.WRITE) if operand.name in ("vdst", "sdst") else operand
                    for operand in op.operands)
    assert list(differences(replace(op, operands=written, implicit_reads=RegSet())))


class Said(NamedTuple):
    """What a row says of its results, and of registers that it does not name."""

    results: frozenset[tuple[str, int]]
    reads: frozenset[str]
    writes: frozenset[str]


def said(row: Row, records: Records) -> Said:
    kept = Access.READ.value if row.partial else 0
    results = ((operand.name, operand.access | kept) for operand in records.shape(row.shape)
               if Access.WRITE in Access(operand.access))
    reads, writes = (frozenset(name.removesuffix("_LO") for name in records.registers[number])
                     for number in (row.reads, row.writes))
    return Said(frozenset(results), reads, writes)


def kind_of(row: Row, records: Records) -> tuple[object, ...]:
    """What may differ within an operation: whether it returns, and how many sources it names."""
    operands = records.shape(row.shape)
    sources = sum(operand.name.startswith(("src", "vsrc")) for operand in operands)
    return row.base, bool(OpFlag.ATOMIC_RETURN & OpFlag(row.flags)), sources, row.partial


def test_rows_of_one_operation_agree() -> None:
    records = load_table("gfx90a", 64).records
    said_by: dict[tuple[object, ...], dict[Said, str]] = {}
    for line in records.row_lines:
        row = Row(*json.loads(line))
        if row.base not in rows():
            said_by.setdefault(kind_of(row, records), {}).setdefault(said(row, records), row.record)
    assert len(said_by) > 500
    assert not {str(key[0]): list(found.values()) for key, found in said_by.items() if len(found) > 1}


def test_dual_instructions_read_what_they_accumulate_to() -> None:
    records = load_table("gfx90a", 64).records
    halves = 0
    for row in (Row(*json.loads(line)) for line in records.row_lines):
        if not row.base.startswith("V_DUAL_"):
            continue
        accesses = {operand.name: Access(operand.access) for operand in records.shape(row.shape)}
        for half, operation in zip("XY", row.base.removeprefix("V_DUAL_").split("_X_"), strict=True):
            accumulates = operation.startswith(("FMAC_", "DOT2C_"))
            assert (Access.READ in accesses[f"vdst{half}"]) == accumulates, row.record
            halves += accumulates
    assert halves > 50


def test_permutations_and_swaps_are_covered() -> None:
    """The data rows that no value function stands behind."""
    assert {row for row in rows().values() if isinstance(row, Permute)} == set(Permute)
