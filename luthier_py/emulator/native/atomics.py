"""Support functions for atomics: what differs between them, beside atomics.c.

In: a name ``luthier_<addresses>_atomic_<modify>_<type>`` (addresses as in accesses.c; type u, i, f, n, p or b and the
bits; s and r behind them: denormals of sources, and of results, are flushed). Out: LLVM IR of a function (wave, exec,
base, addresses, data, second, result, site), which calls atomics.c with what is constant, and of what it leaves in
memory, as the semantics say it.
"""

from __future__ import annotations

from enum import IntEnum, auto

from luthier_py.emulator.vector_regions.emitter import Emitter, LlvmOps
from luthier_py.isa.semantics.algebra import F16, U64, Kind, Type, Value
from luthier_py.isa.semantics.memory import Modify, add_packed, apply_modify_flushing, extreme_number


class HostStep(IntEnum):
    """What hosts have one operation for, of any width."""

    NONE = 0
    ADD = auto()
    SUB = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    SWAP = auto()
    COMPARE_SWAP = auto()


FLOAT_LETTERS = "fnpb"
"""Kinds of operations, by their first letter, that are on floats."""
_KINDS = {"u": Kind.UINT, "i": Kind.SINT, "f": Kind.FLOAT, "n": Kind.FLOAT}
_CALL = [("ptr", "%wave"), ("i64", "%exec"), ("i64", "%base"), *(
    ("ptr", f"%{name}") for name in ("addresses", "data", "second", "result", "site"))]


def atomic_function(name: str) -> str:
    """The definitions."""
    _, addresses, _, *words, kind = name.split("_")
    modify, letter, bits = Modify["_".join(words).upper()], kind[0], int(kind[1:3])
    step = HostStep.__members__.get(modify.name, HostStep.NONE) if letter == "u" else HostStep.NONE
    emitter = Emitter()
    constants = bits // 8, int(step), int(letter in FLOAT_LETTERS)
    done = emitter.call("i1", f"{addresses}_atomic", [*_CALL, *(("i32", str(number)) for number in constants)])
    emitter.emit(f"ret i1 {done}")
    emitter.define(f"i1 @{name}({', '.join(f'{type} {value}' for type, value in _CALL)})")
    emitter.emit(f"ret i64 {_apply(LlvmOps(emitter), modify, kind, bits).to(U64).ref}")
    emitter.define("i64 @new_value(i64 %old, i64 %data, i64 %second) alwaysinline")
    return emitter.module()


def _apply(ops: LlvmOps, modify: Modify, kind: str, bits: int) -> Value:
    """The new value of %old, %data and %second, which have so many ``bits``."""
    letter, flushes = kind[0], ("s" in kind[3:], "r" in kind[3:])
    bare, typed = Type(Kind.UINT, bits), Type(_KINDS.get(letter, Kind.UINT), bits)
    old, data, second = (ops.value(U64, f"%{name}").to(bare).as_(typed) for name in ("old", "data", "second"))
    if letter == "n":
        return extreme_number(modify, old, data).as_(bare)
    if letter == "p":  # at once, for which hosts have instructions
        halves = LlvmOps(ops.emitter, 2)
        both = [halves.let(F16, f"bitcast i32 {each.ref} to <2 x half>") for each in (old, data)]
        return ops.let(bare, f"bitcast <2 x half> {(both[0] + both[1]).ref} to i32")
    if letter == "b":
        return add_packed(letter, old, data)
    return apply_modify_flushing(modify, old, data, second, flushes).as_(bare)
