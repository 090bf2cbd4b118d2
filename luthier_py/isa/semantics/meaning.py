"""What a row of the semantics is, and the register of all rows.

In: declarations from scalar, vector, memory, lds, matrix and control. Out: :func:`meaning`, the
row of an operation. Most rows are a signature and a function of values; what a function of
values cannot say (memory, control flow, crossing lanes) is data, and its reader acts on it.

Signatures list operand types, then ``->``, then result types, in the order of the instruction's
source and destination operands:

    u32 i16 f64 ...  an operand of that type; where an encoding has no such operand, see below
    2f16 2f32        packed: with packed results the function maps over the elements, else it gets a tuple
    2u8              the bytes of a half of a register
    raw              u32, and bits of modifiers say something else than abs, neg and op_sel
    mix              f32, or a half of a register as f16, by op_sel (the MIX instructions)
    zmix             the same, of whose halves denormals are zeros, whatever MODE says
    bmix             f32, or a half of a register as bf16
    b                a lane's bit of a mask: src2 or VCC as source, sdst or VCC as result
    vcc              a lane's bit of VCC, whatever the operands are
    exec scc m0      that register; ``exec`` has the width of the other operands
    old              the destination's value before, at its width

An operand that an encoding does not have is the destination's old value (v_fmac) or VCC (v_addc).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from luthier_py.base.records import dataclass, replace
from luthier_py.isa.semantics.algebra import BOOL, Kind, Type, Value

Results = tuple[Value, ...]
Compute = Callable[..., Any]

_KINDS = {"u": Kind.UINT, "i": Kind.SINT, "f": Kind.FLOAT}


@dataclass(frozen=True, slots=True)
class SignaturePart:
    """One operand or result of a signature."""

    name: str          # the word of the signature
    type: Type
    count: int = 1     # elements, if packed

    @property
    def special(self) -> bool:
        """A register that the signature names, not an operand."""
        return self.name in ("exec", "scc", "m0", "old", "vcc")

    @property
    def mixed(self) -> bool:
        """f32, or narrower, as the instruction says."""
        return self.name in ("mix", "zmix", "bmix")


@cache
def slot(word: str) -> SignaturePart:
    """A word of a signature, parsed; KeyError or ValueError for what is none. The types of exec and old have width
    0."""
    if word in ("b", "vcc", "scc"):
        return SignaturePart(word, BOOL)
    if word in ("exec", "old"):
        return SignaturePart(word, Type(Kind.UINT, 0))
    if word == "m0":
        return SignaturePart(word, Type(Kind.UINT, 32))
    if word in ("mix", "zmix", "bmix"):
        return SignaturePart(word, Type(Kind.FLOAT, 32))
    if word == "raw":
        return SignaturePart(word, Type(Kind.UINT, 32))
    letter = word.lstrip("0123456789")
    count = word[: len(word) - len(letter)]
    return SignaturePart(word, Type(_KINDS[letter[0]], int(letter[1:])), int(count or 1))


@dataclass(frozen=True, slots=True)
class Signature:
    """The operands that a meaning takes and the results that it gives; the module says in which order."""

    sources: tuple[SignaturePart, ...]
    results: tuple[SignaturePart, ...]


@cache
def signature(text: str) -> Signature:
    """The signature in a text such as "u32 u32 -> u32 scc"; the same object for the same text."""
    sources, results = text.split("->")
    return Signature(tuple(map(slot, sources.split())), tuple(map(slot, results.split())))


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A scalar instruction that maps values to values."""

    signature: Signature
    compute: Compute


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """A vector instruction that does the same in each lane, and looks at no other lane.

    ``saturating`` replaces ``compute`` under the clamp modifier for integers; floats are clamped by the code that
    writes the result, unless ``clamps`` is false. ``flushes``: denormals are flushed if MODE says so. ``whole``:
    packed results are not mapped over; the function gets tuples and gives one. ``loses``: for each source the format
    whose denormals ``compute`` takes as zeros, or "".
    """

    signature: Signature
    compute: Compute
    saturating: Compute | None = None
    flushes: bool = True
    whole: bool = False
    clamps: bool = True
    loses: tuple[str, ...] = ()

    @property
    def packed(self) -> bool:
        """Whether the function is mapped over elements."""
        return not self.whole and any(slot.count > 1 for slot in self.signature.results)


@dataclass(frozen=True, slots=True)
class Situation:
    """What a meaning may depend on beside its operands."""

    field: Callable[[str], int]
    """A field of the instruction by its name; 0 if it has none."""
    fnuz_floats: bool = False
    """Of the target: formats of 8 bits without infinity and -0."""
    keeps_finite: bool = False
    """MODE.FP16_OVFL: finite numbers that overflow become the largest one."""
    ieee: bool = True
    """MODE.IEEE: of a minimum a signalling NaN is the result."""
    numbers_win: bool = False
    """Of the target: a minimum of a number and any NaN is the number, and there is no MODE.IEEE."""
    first_nan: bool = False
    """Of the target: a minimum of two quiet NaN is the first one, not the second."""
    half_products_flush: bool = False
    """Of the target: denormals of f16 are zeros in dot products."""
    dots_keep_denormals: bool = False
    """Of the target: those of f32 and bf16 are not, as they are elsewhere."""


PLAIN = Situation(lambda name: 0)


@dataclass(frozen=True, slots=True, eq=False)
class Variants:
    """A row that is another one in each situation. All of them have the same signature, and are Lanes, or Scalar."""

    of: Callable[[Situation], Lanes | Scalar]
    looks_at_all: Situation = PLAIN
    of_nan: bool = False
    """What becomes of NaN is all that differs."""

    @property
    def typical(self) -> Lanes | Scalar:
        """One that looks at every source."""
        return self.of(self.looks_at_all)


@dataclass(frozen=True, slots=True, eq=False)
class Dual:
    """Two vector instructions, each of which reads its sources before either writes (see isa/encoding/dual)."""

    rows: tuple[Any, Any]
    """Of X and Y, each as it would be alone: Lanes, or Variants."""


Meaning = Any  # Scalar, Lanes, Variants, or one of the data rows of control, memory, lds, matrix

_ROWS: dict[str, Meaning] = {}


def declare(names: str, row: Meaning) -> None:
    """``row`` is the meaning of each operation in ``names`` (words)."""
    for name in names.split():
        if name in _ROWS:
            raise ValueError(f"two meanings for {name}")
        _ROWS[name] = row


def scalar(names: str, text: str, compute: Compute) -> None:
    """Declare a Scalar row for each operation in ``names`` (words); ``text`` is its signature."""
    declare(names, Scalar(signature(text), compute))


def lanes(names: str, text: str, compute: Compute, saturating: Compute | None = None, flushes: bool = True) -> None:
    """Declare a Lanes row for each operation in ``names`` (words); ``text`` is its signature, the rest is as in
    Lanes."""
    declare(names, Lanes(signature(text), compute, saturating, flushes))


def variants(names: str, text: str, of: Callable[[Situation], Compute]) -> None:
    """Variants with one signature."""
    made = signature(text)
    declare(names, Variants(lambda situation: Lanes(made, of(situation))))


def by_nan(names: str, text: str, of: Callable[[Situation], Compute], kind: type[Lanes] | type[Scalar]) -> None:
    """Variants of ``kind`` for what becomes of NaN; the same row wherever that is the same."""
    made = signature(text)

    @cache
    def row(ieee: bool, numbers_win: bool, first_nan: bool) -> Lanes | Scalar:
        return kind(made, of(replace(PLAIN, ieee=ieee, numbers_win=numbers_win, first_nan=first_nan)))

    declare(names, Variants(lambda situation: row(situation.ieee, situation.numbers_win, situation.first_nan),
                            of_nan=True))


def rows() -> dict[str, Meaning]:
    """All rows by OpInfo.base: the dictionary itself, in which those of modules that are not imported yet are
    missing."""
    return _ROWS
