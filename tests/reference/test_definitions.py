"""Each plain meaning against a second definition of it, written from the manuals: `definitions`.

The emulator and the reference reader share a row's function, so what is wrong in it is wrong in both. Compared are
random operands and (`make test-reference`) those that tell steps of the row apart, for every row there is (targets have
them in common), in each of the ways in which MODE and targets treat NaN. A NaN's sign and payload are left out, and of
roots, reciprocals, powers, logarithms, sines and cosines one unit in the last place (2**29 of f64), as manuals do.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from luthier_py.isa.semantics import Lanes, Scalar, rows
from luthier_py.isa.semantics.algebra import BOOL, Kind, Type
from luthier_py.isa.semantics.meaning import SignaturePart, Situation, Variants
from reference import floats
from reference.algebra import PythonOps
from reference.defined_floats import How
from reference.definitions import definition
from reference.telling import Operands, telling, width_of
from reference.values import some

RANDOM = 60
PARTS = 8  # of all rows, to see how far it is
SEED = int(os.environ.get("LUTHIER_TEST_SEED", "1"))
TABLES = (0xCA, 0x96, 0x1E)  # of V_BITOP3
UNITS = {16: 1, 32: 1, 64: 1 << 29}

WITHOUT = frozenset("""
    V_COS_BF16 V_CVT_PK_BF8_F16 V_CVT_PK_BF8_F32 V_CVT_PK_FP8_F16 V_CVT_PK_FP8_F32 V_CVT_SCALEF32_F16_BF8
    V_CVT_SCALEF32_F16_FP8 V_CVT_SCALEF32_F32_BF8 V_CVT_SCALEF32_F32_FP8 V_CVT_SCALEF32_PK_BF16_BF8
    V_CVT_SCALEF32_PK_BF16_FP4 V_CVT_SCALEF32_PK_BF16_FP8 V_CVT_SCALEF32_PK_BF8_BF16 V_CVT_SCALEF32_PK_BF8_F16
    V_CVT_SCALEF32_PK_BF8_F32 V_CVT_SCALEF32_PK_F16_BF8 V_CVT_SCALEF32_PK_F16_FP4 V_CVT_SCALEF32_PK_F16_FP8
    V_CVT_SCALEF32_PK_F32_BF8 V_CVT_SCALEF32_PK_F32_FP4 V_CVT_SCALEF32_PK_F32_FP8 V_CVT_SCALEF32_PK_FP4_BF16
    V_CVT_SCALEF32_PK_FP4_F16 V_CVT_SCALEF32_PK_FP4_F32 V_CVT_SCALEF32_PK_FP8_BF16 V_CVT_SCALEF32_PK_FP8_F16
    V_CVT_SCALEF32_PK_FP8_F32 V_CVT_SCALEF32_SR_BF8_BF16 V_CVT_SCALEF32_SR_BF8_F16 V_CVT_SCALEF32_SR_BF8_F32
    V_CVT_SCALEF32_SR_FP8_BF16 V_CVT_SCALEF32_SR_FP8_F16 V_CVT_SCALEF32_SR_FP8_F32 V_CVT_SCALEF32_SR_PK_FP4_BF16
    V_CVT_SCALEF32_SR_PK_FP4_F16 V_CVT_SCALEF32_SR_PK_FP4_F32 V_CVT_SR_BF16_F32 V_CVT_SR_BF8_F16 V_CVT_SR_BF8_F32
    V_CVT_SR_F16_F32 V_CVT_SR_FP8_F16 V_CVT_SR_FP8_F32 V_DIV_FMAS_F32 V_DIV_FMAS_F64 V_DIV_SCALE_F32 V_DIV_SCALE_F64
    V_EXP_BF16 V_FMA_MIXHI_BF16 V_FMA_MIXLO_BF16 V_FMA_MIX_F32_BF16 V_LOG_BF16 V_RCP_BF16 V_RSQ_BF16 V_SIN_BF16
    V_SQRT_BF16 V_TANH_BF16
""".split())
"""Operations without a second definition: a list that may only become shorter. Of V_DIV_SCALE and V_DIV_FMAS what the
manuals write gives no right quotients (steps.py says where): test_float_corners compares whole divisions."""


def situations() -> Iterator[tuple[How, dict[str, int], Situation]]:
    for ieee, wins, table in ((True, False, TABLES[0]), (False, False, TABLES[1]), (False, True, TABLES[2])):
        signs = {"src0_modifiers": int(ieee), "src1_modifiers": int(wins)}
        fields = {"bitop3": table, **signs}
        how = How(ieee, wins, fnuz=not ieee and not wins, no_halves=ieee, keeps=wins)
        yield how, fields, Situation(lambda name, f=fields: f.get(name, 0), how.fnuz, ieee=ieee, numbers_win=wins,
                                     half_products_flush=ieee, dots_keep_denormals=wins)


def bases() -> dict[str, Lanes | Scalar | Variants]:
    """The rows of all targets: an operation has one."""
    return {base: row for base, row in rows().items() if isinstance(row, Lanes | Scalar | Variants)}


def drawn(row: Lanes | Scalar, saturating: bool, seed: str, thorough: bool) -> Iterator[Operands]:
    """For each source all of its elements; ``thorough``: telling ones, too."""
    known, generator = telling(row, saturating) if thorough else (), random.Random(f"{seed} {SEED}")
    packed = isinstance(row, Lanes) and row.packed
    for number, operands in enumerate(known):
        other = known[number - 1]
        yield tuple(a + b if packed else a for a, b in zip(operands, other, strict=True))
    slots = row.signature.sources
    alike = len({(_type(row, slot).bits, slot.count) for slot in slots}) == 1
    for number in range(RANDOM):
        found = tuple(tuple(_random(generator, _type(row, slot)) for _ in range(slot.count)) for slot in slots)
        yield (found[0],) * len(slots) if alike and number % 4 == 0 else found


def _type(row: Lanes | Scalar, slot: SignaturePart) -> Type:
    return slot.type if slot.type.bits else width_of(row)


def _random(generator: random.Random, type: Type) -> int:
    return some(generator, type) if type.bits in (8, 16, 32, 64) else generator.getrandbits(type.bits)


def by_row(row: Lanes | Scalar, saturating: bool, operands: Operands, lane: int) -> list[int]:
    """The results, of which each is one number."""
    compute = row.saturating if saturating and isinstance(row, Lanes) else row.compute
    assert compute is not None
    packed, ops = isinstance(row, Lanes) and row.packed, PythonOps()
    ops.lane = lane
    found: list[list[tuple[int, int]]] = []
    for element in range(len(operands[0]) if packed else 1):
        given = []
        for slot, bits in zip(row.signature.sources, operands, strict=True):
            values = tuple(ops.value(_type(row, slot), each) for each in bits)
            given.append(values[element] if packed else values if slot.count > 1 else values[0])
        results = compute(*given)
        results = results if isinstance(results, tuple) else (results,)
        if isinstance(row, Lanes) and row.whole:
            return [_joined([(value.ref, value.type.bits) for value in results])]
        found.append([(value.ref, value.type.bits) for value in results])
    return [_joined(list(parts)) for parts in zip(*found, strict=True)]


def _joined(parts: list[tuple[int, int]]) -> int:
    return sum(bits << width * at for at, (bits, width) in enumerate(parts))


def agree(row: Lanes | Scalar, near: bool, ours: list[int], theirs: object) -> bool:
    other = list(theirs) if isinstance(theirs, tuple) else [theirs]
    if len(other) != len(ours):
        return False
    for slot, a, b in zip(row.signature.results, ours, other, strict=True):
        type = _type(row, slot)
        count = slot.count if slot.type is not BOOL else 1
        for at in range(0, type.bits * count, type.bits):
            mask = (1 << type.bits) - 1
            if not _same(type, near, a >> at & mask, int(b) >> at & mask):
                return False
    return True


def _same(type: Type, near: bool, a: int, b: int) -> bool:
    if a == b or type.kind is not Kind.FLOAT:
        return a == b
    if floats.is_nan(a, type.bits) and floats.is_nan(b, type.bits):
        return True
    close = near and not floats.is_nan(a, type.bits) and not floats.is_nan(b, type.bits)
    return close and abs(a - b) <= UNITS[type.bits]


def differences(base: str, row: Lanes | Scalar | Variants, thorough: bool = False) -> Iterator[str]:
    for how, fields, situation in situations():
        rule = definition(base, how, fields)
        assert rule is not None
        own = row.of(situation) if isinstance(row, Variants) else row
        for saturating in (False, True):
            if saturating and (not isinstance(own, Lanes) or own.saturating is None):
                continue
            taken = rule.clamped if saturating else rule.rule
            for number, operands in enumerate(drawn(own, saturating, base, thorough)):
                ours = by_row(own, saturating, operands, number % 64)
                words = [sum(bits << _type(own, slot).bits * at for at, bits in enumerate(each))
                         for slot, each in zip(own.signature.sources, operands, strict=True)]
                theirs = None if taken is None else taken(*words, *([number % 64] if "MBCNT" in base else []))
                if not agree(own, rule.near, ours, theirs):
                    shown = theirs if isinstance(theirs, tuple) else (theirs,)
                    yield (f"{base}{' clamp' if saturating else ''} {how}: {[hex(word) for word in words]}: the row "
                           f"{[hex(x) for x in ours]}, the definition {[x if x is None else hex(x) for x in shown]}")
                    break
        if not isinstance(row, Variants):
            return


def compare(part: int, thorough: bool) -> None:
    known = {base: row for base, row in bases().items() if base not in WITHOUT}
    found = [text for base in sorted(known)[part::PARTS] for text in differences(base, known[base], thorough)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("part", range(PARTS))
def test_meanings_are_as_the_manuals_say(part: int) -> None:
    compare(part, thorough=False)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_each_step_at_its_edges(part: int) -> None:
    compare(part, thorough=True)


def test_each_operation_is_defined_or_listed() -> None:
    how, fields, _ = next(situations())
    assert {base for base in bases() if definition(base, how, fields) is None} == WITHOUT


@pytest.mark.parametrize(("base", "wrong"), [
    ("V_SUB_F32", "V_SUBREV_F32"), ("V_MED3_I32", "V_MED3_U32"), ("V_CMP_NLT_F16", "V_CMP_GE_F16"),
    ("S_BFE_I32", "S_BFE_U32"), ("V_MIN_F32", "V_MINIMUM_F32"), ("V_CVT_FLR_I32_F32", "V_CVT_I32_F32"),
    ("V_PK_MAD_I16", "V_PK_MAD_U16"), ("V_RSQ_F64", "V_RCP_F64"),
])
def test_another_meaning_is_seen(base: str, wrong: str) -> None:
    assert not list(differences(base, bases()[base]))
    assert list(differences(base, bases()[wrong]))
