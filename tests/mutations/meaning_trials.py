"""Which mutants of meanings the cases of the reference campaign tell from the meaning itself.

In: a target, a row of its table, a seed. Out: for each mutant what became of it. The emulator and the reference reader
are known to agree on the cases (that is what the campaign is about, and it is made sure of first). So it does not
matter on which side the mutant stands, and it stands in the reader, which needs no compiler; ``in_the_emulator`` puts
it into the translator instead. What no case tells is looked into: two functions with one normal form are the same;
those that give the same bits for every tuple of edge values tried are not told apart, and counted for themselves.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from luthier_py.emulator.translation import translate
from luthier_py.isa import EXEC, Inst, InstructionSet, OpInfo
from luthier_py.isa.semantics import Lanes, Scalar, find_meaning
from luthier_py.isa.semantics.algebra import Kind, Prim, Type, Value
from luthier_py.isa.semantics.floats import flush_denormals
from luthier_py.isa.semantics.images import ImageAtomic
from luthier_py.isa.semantics.lds import FromLds
from luthier_py.isa.semantics.meaning import Variants, signature
from luthier_py.isa.semantics.memory import Atomic, ScalarAtomic
from luthier_py.isa.semantics.scaled_floats import ManyConverted

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from meaning_calls import recorded, refs  # noqa: E402
from meaning_mutants import Mutant, mutants  # noqa: E402
from reference.algebra import PythonOps  # noqa: E402
from reference.batch import KERNEL_MODE, Batch  # noqa: E402
from reference.campaign import MODES  # noqa: E402
from reference.cases import Cases  # noqa: E402
from reference.memory import modified  # noqa: E402
from reference.reader import read, rule  # noqa: E402
from reference.values import some  # noqa: E402
from reference.vector import same  # noqa: E402
from reference.wave import LANES, M32, Fault, Wave  # noqa: E402
from reference.ways import focuses, mode_of, variants  # noqa: E402

TUPLES = 1000  # of edge values, for what no case tells
AGAIN = 4      # times as many cases, for fields that no case tells


class Fate(Enum):
    CAUGHT = "caught"
    STOPPED = "caught: an error ends it"
    SAME = "the same function"
    UNTOLD = "the same for all edge values"
    ALIVE = "alive"


@dataclass(frozen=True, slots=True)
class Trial:
    record: str
    what: str
    fate: Fate


def batches(isa: InstructionSet, op: OpInfo, seed: int) -> Iterator[Batch]:
    """Each case of the row, as the campaign makes them, in a program of its own."""
    cases = Cases(isa, f"{op.record} {seed}")  # type: ignore[arg-type]
    ways: list[tuple[Any, bool, dict[str, int]]] = [(*each, {}) for each in variants(op, every=True)]
    ways += [(None, False, given) for given in focuses(op)]
    for number, (overlap, varied, given) in enumerate(ways):
        batch = Batch(isa, seed + number, MODES[mode_of(given, number)])
        place = batch.place()
        assert place is not None
        case = cases.make(op, place, overlap, varied, given)
        if case is not None:
            batch.add(case)
            yield batch


def tried(isa: InstructionSet, op: OpInfo, seed: int, wanted: Callable[[Mutant], bool] = lambda each: True
          ) -> Iterator[Trial]:
    """What becomes of each mutant of the row."""
    row = find_meaning(op)
    left = [each for each in mutants(op, row) if wanted(each)]
    fates: dict[int, Fate] = {}
    told: list[set[tuple[Any, ...]]] = [set() for _ in left]
    for batch in batches(isa, op, seed):
        if len(fates) == len(left):
            break
        right, taken = recorded(batch)
        for number, mutant in enumerate(left):
            if number not in fates and taken.may_tell(mutant, told[number]):
                fate = outcome(batch, mutant, right)
                if fate is not None:
                    fates[number] = fate
    for number, mutant in enumerate(left):
        fate = fates.get(number)
        if fate is None:
            by_itself = mutant.change is not None or mutant.everywhere
            fate = _field(isa, op, mutant, seed) if by_itself else equivalence(row, mutant, seed)
        if fate is Fate.ALIVE and _lanes(row) is None and any(
                in_the_emulator(batch, mutant, setattr) for batch in batches(isa, op, seed)):
            fate = Fate.CAUGHT  # the reader has rules of its own, that do not look at each field of a row
        yield Trial(op.record, mutant.what, fate)


def _field(isa: InstructionSet, op: OpInfo, mutant: Mutant, seed: int) -> Fate:
    """Whether other cases tell what the campaign's do not."""
    for again in range(1, AGAIN):
        for batch in batches(isa, op, seed + 1000 * again):
            if outcome(batch, mutant, read(batch.wave(), batch.code)) is not None:
                return Fate.ALIVE
    return Fate.UNTOLD


def outcome(batch: Batch, mutant: Mutant, right: Wave) -> Fate | None:
    """None where this case does not tell."""
    wave = batch.wave()
    try:
        read(wave, batch.code, lambda wave, inst: step(wave, inst, batch.cases[0][0].inst, mutant))
    except (AssertionError, ArithmeticError, AttributeError, Fault, LookupError, TypeError, ValueError):
        return Fate.STOPPED
    return None if equal(right, wave) else Fate.CAUGHT


def step(wave: Wave, inst: Inst, subject: Inst, mutant: Mutant) -> None:
    """The subject by the mutant, everything else as it is."""
    if inst is not subject:
        rule(wave, inst, find_meaning(inst.op))
        return
    before = wave.mask(EXEC)
    if mutant.everywhere:
        wave.set_mask(EXEC, (1 << wave.size) - 1)
    rule(wave, inst if mutant.change is None else mutant.change(inst), mutant.row)
    if mutant.everywhere and not inst.writes.sgpr >> EXEC & 1:
        wave.set_mask(EXEC, before)


def equal(right: Wave, wrong: Wave) -> bool:
    """Whether the manual leaves open what differs."""
    if right.scalars != wrong.scalars and any(
            not same(right.free.get((0, index, 0)), right.scalar(index), wrong.scalar(index), (0, 0))  # type: ignore
            for index in {*right.scalars, *wrong.scalars}):
        return False
    if (right.memory, right.lds, right.scratch) != (wrong.memory, wrong.lds, wrong.scratch):
        return False
    return all(_rows(right, file, getattr(right, name), getattr(wrong, name))
               for file, name in ((1, "vgprs"), (2, "agprs")))


def _rows(right: Wave, file: int, ours: dict[int, list[int]], theirs: dict[int, list[int]]) -> bool:
    nothing = [0] * LANES
    for index in {*ours, *theirs}:
        first, second = ours.get(index, nothing), theirs.get(index, nothing)
        if first == second:
            continue
        for lane, (a, b) in enumerate(zip(first, second, strict=True)):
            free = right.free.get((file, index, lane))  # type: ignore[arg-type]
            whole = (0, 0)
            if a != b and free is not None and free.width == 64:
                low = index - free.shift // 32
                whole = tuple(rows.get(low, nothing)[lane] | rows.get(low + 1, nothing)[lane] << 32
                              for rows in (ours, theirs))  # type: ignore[assignment]
            if not same(free, a, b, whole):
                return False
    return True


# What no case tells.
_COMMUTES = frozenset({Prim.ADD, Prim.MUL, Prim.AND, Prim.OR, Prim.XOR, Prim.EQ, Prim.NE, Prim.UNORDERED, Prim.MIN,
                       Prim.MAX, Prim.ADD_SAT})


class _Form:
    """Ops whose values are normal forms: operands that commute are in one order."""

    def constant(self, type: Type, value: int | float) -> Value:
        return Value(self, type, ("constant", str(type), repr(value)))

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        refs = [operand.ref for operand in operands]
        if prim in _COMMUTES:
            refs.sort(key=repr)
        if prim is Prim.FMA:
            refs[:2] = sorted(refs[:2], key=repr)
        return Value(self, type, (prim.name, str(type), *refs))


def equivalence(row: Any, mutant: Mutant, seed: int) -> Fate:
    if isinstance(row, ScalarAtomic | FromLds) and isinstance(mutant.row, type(row)):
        row, mutant = row.atomic, replace(mutant, row=mutant.row.atomic)
    if isinstance(row, ImageAtomic) and isinstance(mutant.row, ImageAtomic):
        row, mutant = row.of(32), replace(mutant, row=mutant.row.of(32))
    if isinstance(row, Atomic) and isinstance(mutant.row, Atomic):
        return _same_atomic(row, mutant.row, seed)
    if isinstance(row, ManyConverted) and _moves_alike(row, mutant.row):
        row, mutant = _of_one(row), replace(mutant, row=_of_one(mutant.row))
    own, other = (_lanes(each) for each in (row, mutant.row))
    if own is None or other is None or own.signature is not other.signature:
        return Fate.ALIVE
    if isinstance(own, Lanes) and own.flushes != other.flushes:
        return _flushed_anyway(own, seed)
    functions = [(own.compute, other.compute)]
    if isinstance(own, Lanes) and own.saturating is not None and other.saturating is not None:
        functions.append((own.saturating, other.saturating))
    functions = [pair for pair in functions if pair[0] is not pair[1]]
    if all(_form(own, a) == _form(own, b) for a, b in functions):
        return Fate.SAME
    generator = random.Random(seed)
    for _ in range(TUPLES):
        bits = [[some(generator, _drawn(slot.type)) for _ in range(slot.count)] for slot in own.signature.sources]
        for a, b in functions:
            if not _agree(own, a, b, bits):
                return Fate.ALIVE
    return Fate.UNTOLD


def _moves_alike(row: ManyConverted, other: object) -> bool:
    """Whether numbers come from the same places, and go to the same."""
    def places(of: ManyConverted) -> tuple[object, ...]:
        return of.narrows, of.stochastic, of.operands, of.count, of.by_row, of.source_bits, of.result_bits

    return isinstance(other, ManyConverted) and places(row) == places(other)


def _same_atomic(row: Atomic, other: Atomic, seed: int) -> Fate:
    """What is left in memory; by the reader's own rule."""
    generator = random.Random(seed)
    if row.bits != other.bits or row.compare_first != other.compare_first:
        return Fate.ALIVE
    kind = Type(Kind.FLOAT if row.kind == "f" else Kind.UINT, row.bits)
    for _ in range(TUPLES):
        bits = [some(generator, kind) for _ in range(3)]
        if (modified(row, False, *bits) ^ modified(other, False, *bits)) & ((1 << row.bits) - 1):
            return Fate.ALIVE
    return Fate.UNTOLD


def _flushed_anyway(row: Lanes, seed: int) -> Fate:
    """Whether denormals of operands and results that are zeros change anything."""
    generator = random.Random(seed)

    def flushing(*values: Any) -> Any:
        found = row.compute(*(_zeroed(value) for value in values))
        return tuple(_zeroed(value) for value in found) if isinstance(found, tuple) else _zeroed(found)

    for _ in range(TUPLES):
        bits = [[some(generator, _drawn(slot.type)) for _ in range(slot.count)] for slot in row.signature.sources]
        if not _agree(row, row.compute, flushing, bits):
            return Fate.ALIVE
    return Fate.UNTOLD


def _zeroed(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_zeroed, value))
    return flush_denormals(value) if value.type.kind is Kind.FLOAT else value


def _lanes(row: Any) -> Any:
    row = row.typical if isinstance(row, Variants) else row
    return row if isinstance(row, Lanes | Scalar) else None


def _of_one(row: ManyConverted) -> Lanes:
    """What becomes of one number: the bits of it, the scale, the seed; without FP16_OVFL, and with it."""
    def convert(keeps_finite: bool) -> Callable[..., Value]:
        return lambda bits, scale, seed: row.convert(
            bits & ((1 << row.source_bits) - 1), scale, seed if row.stochastic else None, keeps_finite)

    return Lanes(signature("u32 u32 u32 -> u32"), convert(False), convert(True), flushes=False)


def _drawn(type: Type) -> Type:
    """A type that there are edge values of."""
    return type if type.bits in (8, 16, 32, 64) else Type(Kind.UINT, 64 if not type.bits else 8)


def _given(row: Any, ops: Any, refs: list[list[Any]]) -> list[Any]:
    wide = next((slot.type for slot in (*row.signature.results, *row.signature.sources) if slot.type.bits > 1), None)
    found = []
    for slot, each in zip(row.signature.sources, refs, strict=True):
        type = slot.type if slot.type.bits else wide
        assert type is not None
        values = [Value(ops, type, ref & ((1 << type.bits) - 1) if isinstance(ref, int) else ref) for ref in each]
        found.append(tuple(values) if slot.count > 1 and not (isinstance(row, Lanes) and row.packed) else values[0])
    return found


def _form(row: Any, compute: Any) -> Any:
    names = [[f"source {k}.{e}" for e in range(slot.count)] for k, slot in enumerate(row.signature.sources)]
    return refs(compute(*_given(row, _Form(), names)))


def _agree(row: Any, a: Any, b: Any, bits: list[list[int]]) -> bool:
    try:
        return bool(refs(a(*_given(row, PythonOps(), bits))) == refs(b(*_given(row, PythonOps(), bits))))
    except (AssertionError, ArithmeticError, KeyError, ValueError):
        return False


def in_the_emulator(batch: Batch, mutant: Mutant, patch: Callable[[Any, str, Any], None]) -> bool:
    """Whether the emulator with this mutant differs from the reader, or stops. ``patch``: of an object's attribute."""
    subject = batch.cases[0][0].inst
    own = translate.Translator._instruction

    def instruction(self: Any, inst: Inst) -> None:
        if inst.op is not subject.op or inst.raw != subject.raw:
            own(self, inst)
            return
        patch(translate, "find_meaning", lambda op: mutant.row)
        if mutant.everywhere:
            full = self.ops.constant(self.exec().type, -1)
            self.exec = lambda: full
        own(self, inst if mutant.change is None else mutant.change(inst))
        patch(translate, "find_meaning", find_meaning)
        if mutant.everywhere:
            del self.exec

    patch(translate.Translator, "_instruction", instruction)
    try:
        return bool(list(batch.differences()))
    except Exception:  # noqa: BLE001  (a mutant may break anything)
        return True
    finally:
        patch(translate.Translator, "_instruction", own)
        patch(translate, "find_meaning", find_meaning)


__all__ = ["KERNEL_MODE", "M32", "Fate", "Trial", "batches", "in_the_emulator", "tried"]
