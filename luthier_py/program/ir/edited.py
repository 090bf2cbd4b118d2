"""A program in which other instructions stand for some.

In: a program, and replacements of some of its instructions. Out: the program that analyses are to see.
Invariant: all addresses, blocks and ways are those of the program; only what the instructions do is another thing. Its
code is not contiguous where sizes differ, so that nothing can be laid out from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from luthier_py.base.records import replace
from luthier_py.isa.columns import Columns, read_columns
from luthier_py.program.ir.model import Block, Function, Instr, Instrs, Program

if TYPE_CHECKING:
    from luthier_py.isa import Inst, InstructionSet


def replace_instructions(program: Program, instead: Mapping[Instr, Inst]) -> Program:
    """Functions that nothing changes in are those of the program."""
    changes: dict[Columns, dict[int, Inst]] = defaultdict(dict)
    for instr, inst in instead.items():
        changes[instr.code][instr.at] = inst
    new = {f: _with_code(f, _replace_in_code(program.isa, f.code, changes[f.code])) if f.code in changes else f
           for f in program.functions}
    sites = {new[f]: tuple(replace(site, targets=tuple(new[to] for to in site.targets)) for site in sites)
             for f, sites in program.call_sites.items()}
    functions = tuple(new[f] for f in program.functions)
    return replace(program, functions=functions, call_sites=sites, _functions={f.code: f for f in functions},
                   kernels=tuple(replace(kernel, function=new[kernel.function]) for kernel in program.kernels))


def _replace_in_code(isa: InstructionSet, code: Columns, changes: Mapping[int, Inst]) -> Columns:
    behind = np.flatnonzero(code.pcs[1:] != (code.pcs + code.sizes)[:-1]) + 1
    cuts = sorted({0, len(code), *behind.tolist(), *changes, *(at + 1 for at in changes)})
    pieces = [(int(code.pcs[start]), changes[start].raw if start in changes else code.raw(start, stop))
              for start, stop in zip(cuts, cuts[1:], strict=False)]
    found = read_columns(isa, pieces)
    pcs, kinds = (np.concatenate([getattr(each, name) for each in found]) for name in ("pcs", "kinds"))
    return Columns(found[0].distinct, pcs, kinds)


def _with_code(function: Function, code: Columns) -> Function:
    def block(old: Block) -> Block:
        return replace(old, instrs=Instrs(code, old.start, old.stop))

    return replace(function, code=code, blocks=tuple(map(block, function.blocks)))
