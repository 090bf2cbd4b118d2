"""Whether floats of a hook compute as it was compiled for: the float bits of MODE where it runs.

In: functions that call each other, descriptors of kernels, instructions that move a field of MODE. Out: the float bits
that the application has everywhere, as far as they are known, and terms. Invariant: a bit is known only where every
kernel starts with it and no instruction writes it; code that is not known keeps to the ABI, which forbids it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from luthier_py.binary.loader import KernelDescriptor
from luthier_py.isa import MODE, Inst, Target
from luthier_py.isa.properties.vector_modes import (
    BANKS,
    compute_written_mode_bits,
    decode_mode_field,
    field_bits,
    float_bits,
)
from luthier_py.isa.semantics.control import Action
from luthier_py.proof.code import Body
from luthier_py.proof.meanings import UNKNOWN, Term
from luthier_py.proof.now import Now

PLAIN = 0x3F0
"""What LLVM compiles hooks for (SIDefines.h, SIModeRegisterDefaults): rounding, in 3:0, to nearest even, denormals, in
7:4, not flushed, DX10_CLAMP and IEEE, in 9:8, on, FP16_OVFL, in 23, off."""


class FloatMode(NamedTuple):
    """MODE, and those bits of it that are known."""

    value: int
    known: int


UNKNOWN_MODE = FloatMode(0, 0)


def float_modes(
    target: Target, bodies: Sequence[Body], groups: Iterable[Sequence[int]],
    kernels: Mapping[int, Sequence[KernelDescriptor]],
) -> list[FloatMode]:
    """Modes by function; ``groups``: numbers of those that may call each other; ``kernels``: by where they start."""
    found = [UNKNOWN_MODE] * len(bodies)
    for group in groups:
        starts = [each.mode(target) for k in group for each in kernels.get(bodies[k].address, ())]
        writers = (code.insts[kind] for code in (bodies[k].code for k in group)
                   for kind in code.match(compute_written_mode_bits).nonzero()[0].tolist())
        written = reduce(or_, map(compute_written_mode_bits, writers), 0)
        if starts:
            differ = reduce(or_, (each ^ starts[0] for each in starts))
            for k in group:
                found[k] = FloatMode(starts[0], ~(differ | written))
    return found


def computes_in(target: Target, application: FloatMode, wanted: int | None, now: Now) -> bool:
    """Whether floats compute as ``wanted`` (None: as the application has it); ``application``: what that is."""
    if wanted is None:
        return _set_fields(now.get(MODE)) == {}
    value, known = _mode_now(application, now)
    return not float_bits(target) & (value ^ wanted | ~known)


def leaves_mode(target: Target, application: FloatMode, insts: Iterable[Inst], now: Now) -> bool:
    """Whether all that these write to MODE is what it has there, as where LLVM is not sure that it does: bits of their
    field, and those that say which registers vector operands mean, where the numbers have to be 0."""
    value, known = _mode_now(application, now)
    for inst in insts:
        if not inst.writes.sgpr >> MODE & 1:
            continue
        field, number = decode_mode_field(inst), inst.find("imm")
        if field is None or number is None or number.value & BANKS and target.vector_banks:
            return False
        bits = field_bits(field)
        if bits & (~known | value ^ number.value * (bits & -bits)):
            return False
    return True


def _mode_now(application: FloatMode, now: Now) -> FloatMode:
    fields = _set_fields(now.get(MODE))
    if fields is None:
        return UNKNOWN_MODE
    value, known = application
    for field, number in fields.items():
        bits = field_bits(field)
        value, known = value & ~bits | number * (bits & -bits), known | bits
    return FloatMode(value, known)


def evaluate_mode_access(target: Target, inst: Inst, row: Action, now: Now) -> dict[int, Term]:
    """Evaluate a field of MODE that is saved, ("mode", field), and fields that are set and put back: of MODE the term
    has these with their numbers, ("mode but", (field, number), ...). No number has bits beside its field, and none is
    put back above bit 0 where a target takes bits of it for what vector operands mean (LLVM,
    FeatureSetregVGPRMSBFixup)."""
    field, fields = decode_mode_field(inst), _set_fields(now.get(MODE))
    if field is None or fields is None:
        return {}
    bits, inside = field_bits(field), {each for each in fields if not field_bits(each) & ~field_bits(field)}
    reg = None if row is Action.SETREG_IMM else inst["sdst"].reg
    if row is Action.GETREG:
        touched = any(field_bits(each) & bits for each in fields)
        return {} if reg is None or touched else {reg.index: ("mode", field)}
    left = {each: number for each, number in fields.items() if each not in inside}
    first = (bits & -bits).bit_length() - 1
    if target.vector_banks and first and bits >> first & BANKS:
        return {}
    number = now.get(reg.index) if reg is not None else inst["imm"].value if row is Action.SETREG_IMM else UNKNOWN
    if number != ("mode", field):
        if not isinstance(number, int) or number > bits // (bits & -bits):
            return {}
        left[field] = number
    if any(field_bits(each) & bits for each in left if each != field) or field in left and bits & ~float_bits(target):
        return {}
    return {MODE: ("mode but", *sorted(left.items())) if left else ("reg", MODE)}


def _set_fields(term: Term) -> dict[int, int] | None:
    """What inserted code has set of MODE; None if that is not known."""
    if term == ("reg", MODE):
        return {}
    return dict(term[1:]) if isinstance(term, tuple) and term[0] == "mode but" else None
