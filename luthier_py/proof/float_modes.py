"""Whether floats of a hook compute as it was compiled for: the float bits of MODE where it runs.

In: functions that call each other, descriptors of kernels, instructions that move a field of MODE. Out: the float bits
that the application has everywhere, if that is known, and terms. Invariant: they are known only where every kernel
starts with them and no instruction writes them; code that is not known keeps to the ABI, which forbids it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from luthier_py.isa import MODE, Inst, OpFlag
from luthier_py.isa.semantics import meaning
from luthier_py.isa.semantics.control import Action
from luthier_py.isa.vector_modes import FLOAT_BITS, MODE_REGISTER, float_field
from luthier_py.loader import KernelDescriptor
from luthier_py.proof.graph import Body
from luthier_py.proof.meanings import UNKNOWN, Term
from luthier_py.proof.now import Now

PLAIN = 0xF0
"""Rounding, in 3:0, to nearest even, denormals, in 7:4, kept: what LLVM compiles hooks for (SIDefines.h,
FP_ROUND_ROUND_TO_NEAREST, FP_DENORM_FLUSH_NONE)."""
_ALL = MODE_REGISTER | FLOAT_BITS - 1 << 11  # the field of all float bits
_SETS = (Action.SETREG, Action.SETREG_IMM)


def float_modes(
    bodies: Sequence[Body], groups: Iterable[Sequence[int]], kernels: Mapping[int, Sequence[KernelDescriptor]]
) -> list[int | None]:
    """By function; ``groups``: numbers of those that may call each other; ``kernels``: by where they start."""
    found: list[int | None] = [None] * len(bodies)
    for group in groups:
        starts = {_bits(each) for k in group for each in kernels.get(bodies[k].address, ())}
        written = any(_writes_floats(inst) for k in group for inst in bodies[k].code.insts)
        for k in group:
            found[k] = min(starts) if len(starts) == 1 and not written else None
    return found


def _bits(descriptor: KernelDescriptor) -> int:
    rounding = descriptor.float_round_mode_32 | descriptor.float_round_mode_16_64 << 2
    return rounding | (descriptor.float_denorm_mode_32 | descriptor.float_denorm_mode_16_64 << 2) << 4


def _writes_floats(inst: Inst) -> bool:
    if not inst.writes.sgpr >> MODE & 1 or OpFlag.INDEXES_REGISTERS in inst.op.flags:
        return False
    field = inst["simm16"].value if meaning(inst.op) in _SETS else MODE_REGISTER
    return field & 63 == MODE_REGISTER and field >> 6 & 31 < FLOAT_BITS


def computes_in(application: int | None, wanted: int | None, now: Now) -> bool:
    """Whether floats compute as ``wanted`` (None: as the application has it); ``application``: what that is."""
    own = now.get(MODE)
    if wanted is not None and own == ("mode but", _ALL, wanted):
        return True
    return own == ("reg", MODE) and wanted in (None, application)


def mode_field(inst: Inst, row: Action, now: Now) -> dict[int, Term]:
    """A field of MODE that is kept, changed, and put back: ("mode", field); MODE with a number in a field is
    ("mode but", field, number)."""
    field_of = float_field(inst)
    own = now.get(MODE)
    if field_of is None:
        return {}
    reg = None if row is Action.SETREG_IMM else inst["sdst"].reg
    if row is Action.GETREG:
        return {reg.index: ("mode", field_of)} if reg is not None and own == ("reg", MODE) else {}
    if own != ("reg", MODE) and own[:2] != ("mode but", field_of):
        return {}
    number = now.get(reg.index) if reg is not None else inst["imm"].value if row is Action.SETREG_IMM else UNKNOWN
    if number == ("mode", field_of):
        return {MODE: ("reg", MODE)}
    known = number & (2 << (field_of >> 11)) - 1 if isinstance(number, int) else UNKNOWN
    return {MODE: ("mode but", field_of, known)}
