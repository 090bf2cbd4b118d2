"""Where private memory of a wave is: the sum of two things that it is born with, half by half (AMDGPUUsage, "Flat
Scratch", "Private Segment Buffer").

In: what a wave is born with, what is known before an instruction. Out: terms of what it writes: ("private", 0) is the
low half of the sum, ("private", 1) the high one; ("resource", 0) and ("resource", 1) are those of a buffer's resource.
"""

from __future__ import annotations

from collections.abc import Mapping

from luthier_py.isa import SCC, Inst, InstructionSet
from luthier_py.isa.glue import add, add_with_carry, set_scratch_base
from luthier_py.isa.registers import SCRATCH_BASE
from luthier_py.proof.code import ones
from luthier_py.proof.meanings import Term, held
from luthier_py.proof.now import Now

Birth = Mapping[str, tuple[Term, ...]]
_STARTS = {"flat_scratch_init": "private", "private_segment_buffer": "resource"}  # names of birth, and of sums


def private_base(isa: InstructionSet, birth: Birth, inst: Inst, now: Now) -> dict[int, Term]:
    """Nothing, if the instruction makes no half and moves none to where the hardware reads it."""
    if inst.writes.sgpr >> SCRATCH_BASE:
        return _moved(isa, inst, now)
    (first, second), to = (inst.find(name) for name in ("src0", "src1")), inst.find("sdst")
    offset = birth.get("scratch_wave_offset", ())
    if to is None or to.reg is None or to.reg.dwords != 1 or first is None or second is None or first.reg is None or (
            not offset):
        return {}
    terms = tuple(held(source, 32, now.get) for source in (first, second))
    for name, made in _STARTS.items():
        start = birth.get(name, ())
        if start and terms == (start[0], offset[0]) and second.reg is not None and (
                inst.raw == add(isa, to.reg, first.reg, second.reg).raw):
            return {to.reg.index: (made, 0), SCC: (made, "carry")}
        carried = start and now.get(SCC) == (made, "carry") and terms == (start[1], 0)
        if carried and inst.raw == add_with_carry(isa, to.reg, first.reg, 0).raw:
            return {to.reg.index: (made, 1)}
    return {}


def _moved(isa: InstructionSet, inst: Inst, now: Now) -> dict[int, Term]:
    """A whole register goes into a hardware register."""
    (to,), source = ones(inst.writes.sgpr), inst.find("sdst")
    whole = source is not None and source.reg is not None and (
        inst.raw == set_scratch_base(isa, to - SCRATCH_BASE, source.reg).raw)
    return {to: now.get(source.reg.index)} if whole and source is not None and source.reg is not None else {}
