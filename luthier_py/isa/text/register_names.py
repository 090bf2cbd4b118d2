"""Names of registers as LLVM's assembly has them on a target.

In: a Reg. Out: its name; numbers that are special registers on one target are plain SGPRs on another.
"""

from __future__ import annotations

from functools import cache

from luthier_py.isa.model.registers import FLAT_SCRATCH, M0, SPECIAL_NAMES, XNACK_MASK, Reg, RegFile
from luthier_py.isa.model.target import Target


@cache
def special_names(target: Target) -> dict[int, str]:
    """Index in the scalar file -> name, of what is not a plain SGPR on ``target``."""
    names = {index: name for index, name in SPECIAL_NAMES.items() if index <= M0 + 3 and not name.startswith("ttmp")}
    names.update({target.first_ttmp + k: f"ttmp{k}" for k in range(124 - target.first_ttmp)})
    if target.first_ttmp > 108:
        names.update({108: "tba_lo", 109: "tba_hi", 110: "tma_lo", 111: "tma_hi"})
    if not target.flat_scratch_operands:
        for index in (FLAT_SCRATCH, FLAT_SCRATCH + 1, XNACK_MASK, XNACK_MASK + 1):
            del names[index]
    return names


@cache
def register_text(target: Target, reg: Reg) -> str:
    """``v[2:3]``, ``s4``, ``vcc``: special registers have the names that ``target`` gives their numbers."""
    if reg.file is not RegFile.SGPR:
        return f"{'sva'[reg.file]}{_numbers(reg.index, reg.dwords)}"
    name = special_names(target).get(reg.index)
    if name is None:
        return f"s{_numbers(reg.index, reg.dwords)}"
    if name.startswith("ttmp"):
        return f"ttmp{_numbers(reg.index - target.first_ttmp, reg.dwords)}"
    return name if reg.dwords == 1 else name.removesuffix("_lo")


def _numbers(first: int, dwords: int) -> str:
    return str(first) if dwords == 1 else f"[{first}:{first + dwords - 1}]"
