"""What a result may differ in from device to device, by the meaning of the instruction, and where it comes from.

In: a row of the tables. Out: :class:`DefinedByImplementation`: what the manuals leave open of its results (one row of
:class:`ImplementationDefined` for each thing that they do, with the source), and for each result the sources that such
a difference passes from. Invariant: it follows from the primitives that the meaning is made of; no opcode is named. A
choice or a comparison that the meaning makes inside, of a value that it approximates itself, is documented as such
(V_DIV_SCALE) and free of nothing."""

from __future__ import annotations

from enum import Enum
from functools import cache

from luthier_py.base.records import dataclass
from luthier_py.isa.encoding.instruction import OpFlag, OpInfo
from luthier_py.isa.model.target import Target
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.algebra import Kind, Prim, Type, Value
from luthier_py.isa.semantics.control import Action
from luthier_py.isa.semantics.corners import corners
from luthier_py.isa.semantics.images import ImageAtomic
from luthier_py.isa.semantics.lds import ExchangeTwo, FromLds, LaneCount
from luthier_py.isa.semantics.matrix import Matrix, MixedMatrix, SparseMatrix
from luthier_py.isa.semantics.meaning import Dual, Lanes, Meaning, Scalar, Variants
from luthier_py.isa.semantics.memory import Atomic, Modify, ScalarAtomic
from luthier_py.isa.semantics.readers import binding
from luthier_py.isa.semantics.wave_matrices import WaveMatrix, WaveMixedMatrix


class ImplementationDefined(Enum):
    """Its value: what is open, and which source leaves it open."""

    NEAR = ("within one unit in the last place (f64: 2**29 units)",
            "AMD Instinct CDNA3 ISA, 12.8: \"1ULP accuracy\"; RDNA4 ISA, 16.8")
    SUM = ("order and roundings of a sum of products inside",
           "no manual says them: AMD Instinct CDNA3 ISA, 7; RDNA3 ISA, 7.9 and 16.10")
    INSIDE = ("a rounding before the last one",
              "no manual says whether there is one: AMD Instinct MI200 ISA, 12.10 (V_FMA_MIXLO_F16)")
    TURN = ("which lane or wave comes first",
            "memory has no order of them: AMDGPUUsage, \"Memory Model\"")
    OUTSIDE = ("the time, the place where a wave runs, or what its surroundings answer",
               "AMD Instinct MI200 ISA, 12.6 (S_MEMTIME), 5.8 (hardware registers); RDNA3 ISA, 16.3 (S_SENDMSG_RTN)")
    DENORMAL = ("which denormals are zeros, if MODE does not keep all (of a sum in memory: in any MODE)",
                "sources disagree (sums of f32 in memory: LLVM, pull request 96443, CDNA3 ISA, 10.3.1) or measured one "
                "MODE alone (halves of V_FMA_MIX: LLVM, pull request 205101), or there are none")
    CORNER = ("corners: some operands, or settings of MODE", "isa/semantics/corners.py has a source for each")
    NAN = ("sign and payload of a NaN that arithmetic makes",
           "AMD Instinct CDNA3 ISA, 12.8: \"NAN\"; MI200 ISA, 9.5.3: \"QNAN\", without bits")

    @property
    def what(self) -> str:
        """What is open, in words for a report."""
        return self.value[0]

    @property
    def source(self) -> str:
        return self.value[1]


VALUES = frozenset(ImplementationDefined) - {ImplementationDefined.NAN}
"""Those that a comparison of floats can see; a NaN's bits it cannot."""
NONE = frozenset[int]()


@dataclass(frozen=True, slots=True)
class OpenResult:
    """Of one result: its own implementation-defined results, and the sources (by name) whose value, or bits of a NaN,
    it is made of."""

    name: str
    own: frozenset[ImplementationDefined]
    of_values: frozenset[str]
    of_nans: frozenset[str]


@dataclass(frozen=True, slots=True)
class DefinedByImplementation:
    """Of an instruction's results. ``results``: where operands are known by name; else all reads pass to all writes.
    ``left``: of what it leaves in memory."""

    own: frozenset[ImplementationDefined]
    results: tuple[OpenResult, ...] | None = None
    left: frozenset[ImplementationDefined] = frozenset()


@dataclass(frozen=True, slots=True)
class _Made:
    """What a value is made of: numbers of sources."""

    own: frozenset[ImplementationDefined] = frozenset()
    of_values: frozenset[int] = NONE
    of_nans: frozenset[int] = NONE
    summed: bool = False  # the result of an addition, perhaps with denormals flushed


_NEAR = frozenset({Prim.DIV, Prim.SQRT, Prim.EXP2, Prim.LOG2, Prim.SIN, Prim.COS, Prim.TANH})
_ARITHMETIC = _NEAR | {Prim.ADD, Prim.SUB, Prim.MUL, Prim.FMA, Prim.FLOOR, Prim.CEIL, Prim.TRUNC, Prim.RINT}
_KEEP = frozenset({Prim.SELECT, Prim.BITS, Prim.AND})
_COMPARISONS = frozenset({Prim.EQ, Prim.NE, Prim.LT, Prim.LE, Prim.UNORDERED})


class _Traced:
    """Ops whose values remember what they were made of."""

    def constant(self, type: Type, value: int | float) -> Value:
        return Value(self, type, _Made())

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        made: list[_Made] = [operand.ref for operand in operands]  # type: ignore[misc]
        own = frozenset[ImplementationDefined]().union(
            *(each.own for each in (made[1:] if prim is Prim.SELECT else made))
        )
        of_nans = NONE.union(*(each.of_nans for each in made))
        floats = bool(operands) and operands[0].type.kind is Kind.FLOAT
        if prim in _COMPARISONS:
            own, of_nans = frozenset(), NONE if floats else of_nans
        elif prim is Prim.CONVERT and floats and type.kind is not Kind.FLOAT:
            own, of_nans = own - {ImplementationDefined.NAN}, NONE
        elif type.kind is Kind.FLOAT:
            own |= self._new(prim, type, operands, made)
        adds = prim in (Prim.FMA, Prim.ADD) and type.kind is Kind.FLOAT
        summed = adds or prim in _KEEP and any(each.summed for each in made)
        return Value(self, type, _Made(own, NONE.union(*(each.of_values for each in made)), of_nans, summed))

    def _new(self, prim: Prim, type: Type, operands: tuple[Value, ...],
             made: list[_Made]) -> set[ImplementationDefined]:
        found = {ImplementationDefined.NEAR} if prim in _NEAR else set()
        found |= {ImplementationDefined.NAN} if prim in _ARITHMETIC else set()
        if prim is Prim.FMA and made[2].summed:
            found.add(ImplementationDefined.SUM)
        if prim is Prim.CONVERT and made[0].summed and type.bits < operands[0].type.bits:
            found.add(ImplementationDefined.INSIDE)
        return found


@cache
def implementation_defined(op: OpInfo) -> DefinedByImplementation:
    """Nothing for an operation without a meaning."""
    row = find_meaning(op)
    if isinstance(row, Variants):
        row = row.typical
    if isinstance(row, (Lanes, Scalar)):
        results = _find_open_results(op, row)
        return DefinedByImplementation(frozenset[ImplementationDefined]().union(*(each.own for each in results)),
                                       results)
    if isinstance(row, Dual):
        return DefinedByImplementation(_dual(row))
    atomic = row.atomic if isinstance(row, ScalarAtomic) else row
    if isinstance(atomic, Atomic | ImageAtomic):
        left = _find_atomic_choices(atomic)
        return DefinedByImplementation(
            left | ({ImplementationDefined.TURN} if OpFlag.ATOMIC_RETURN in op.flags else set()), None, left
        )
    if isinstance(inner := getattr(row, "row", None), Lanes):  # an operation on registers that are found otherwise
        return DefinedByImplementation(
            frozenset[ImplementationDefined]().union(*(made.own for made in _trace_computation(inner)))
        )
    exchanged = isinstance(row, ExchangeTwo)
    return DefinedByImplementation(_of_data(row), None, frozenset({ImplementationDefined.TURN} if exchanged else ()))


def open_on(op: OpInfo, target: Target) -> frozenset[ImplementationDefined]:
    """What is open on this target, or in some MODE, beside what `implementation_defined` says of all."""
    row = find_meaning(op)
    row = row.typical if isinstance(row, Variants) else row
    if isinstance(row, Lanes):
        mixes = any(slot.name == "mix" for slot in row.signature.sources)
        found = mixes or OpFlag.DOT in op.flags and row.signature.results[0].type.bits == 16
    else:
        sums = isinstance(row, Atomic) and (row.modify, row.kind, row.bits) == (Modify.ADD, "f", 32)
        found = sums and OpFlag.LDS not in op.flags and target.generation == 9
    corner = {ImplementationDefined.CORNER} if corners(op.base, target.generation) else set()
    return frozenset(corner | {ImplementationDefined.DENORMAL} if found else corner)


def _dual(row: Dual) -> frozenset[ImplementationDefined]:
    halves = [half.typical if isinstance(half, Variants) else half for half in row.rows]
    return frozenset[ImplementationDefined]().union(*(made.own for half in halves for made in _trace_computation(half)))


def _find_open_results(op: OpInfo, row: Lanes | Scalar) -> tuple[OpenResult, ...]:
    sources = binding.sources(op, row)

    def names(numbers: frozenset[int]) -> frozenset[str]:
        return frozenset(sources[number] for number in numbers)

    return tuple(OpenResult(name, made.own, names(made.of_values), names(made.of_nans))
                 for name, made in zip(binding.results(op, row), _trace_computation(row), strict=True))


@cache
def _trace_computation(row: Lanes | Scalar) -> list[_Made]:
    """Of each result."""
    ops, width = _Traced(), binding.width(row)
    packed = isinstance(row, Lanes) and row.packed

    def make_source(number: int) -> object:
        slot = row.signature.sources[number]
        made = _Made(frozenset(), frozenset({number}), frozenset({number}))
        value = Value(ops, slot.type if slot.type.bits else width, made)
        return (value,) * slot.count if slot.count > 1 and not packed else value

    results = row.compute(*map(make_source, range(len(row.signature.sources))))
    found = [_join_parts(each) for each in (results if isinstance(results, tuple) else (results,))]
    return found if len(found) == len(row.signature.results) else [_join_parts(results)]


def _join_parts(result: object) -> _Made:
    """One for all elements of a packed result."""
    if isinstance(result, Value):
        assert isinstance(result.ref, _Made)
        return result.ref
    assert isinstance(result, (tuple, list))
    parts = [_join_parts(each) for each in result]
    return _Made(frozenset[ImplementationDefined]().union(*(each.own for each in parts)),
                 NONE.union(*(each.of_values for each in parts)), NONE.union(*(each.of_nans for each in parts)))


def _of_data(row: Meaning) -> frozenset[ImplementationDefined]:
    """Of rows that are no functions of values."""
    if isinstance(row, Action):
        return frozenset({ImplementationDefined.OUTSIDE} if row in _ASKS else ())
    if isinstance(row, (Matrix, MixedMatrix, SparseMatrix, WaveMatrix, WaveMixedMatrix)):
        whole = getattr(row, "outcome", "") == "i32" or getattr(getattr(row, "matrix", row), "kind", "") == "i8"
        return frozenset() if whole else frozenset({ImplementationDefined.SUM, ImplementationDefined.NAN})
    return frozenset({ImplementationDefined.TURN} if isinstance(row, (ExchangeTwo, FromLds, LaneCount)) else ())


_ASKS = frozenset({Action.GETREG, Action.CLOCK, Action.WALL_CLOCK, Action.SENDMSG_RTN})
# Whose order does not matter for what is left: sums modulo 2**n, extremes, logic.
_COMMUTE = frozenset({Modify.ADD, Modify.SUB, Modify.MIN, Modify.MAX, Modify.AND, Modify.OR, Modify.XOR})


def _find_atomic_choices(row: Atomic | ImageAtomic) -> frozenset[ImplementationDefined]:
    """What an atomic leaves open of memory: sums of floats are rounded in some order."""
    if row.modify is Modify.ADD and row.kind in "fpb":
        return frozenset({ImplementationDefined.TURN, ImplementationDefined.NAN})
    return frozenset() if row.modify in _COMMUTE else frozenset({ImplementationDefined.TURN})
