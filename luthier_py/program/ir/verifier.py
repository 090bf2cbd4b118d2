"""Is a Program what its model says? Checked behind `lift` where LUTHIER_VERIFY=1, as tests run: a failure is a bug of
this package.

In: a Program. Out: nothing, or AssertionError with function, place and fault. Each claim is derived again from bytes
and instructions, and nothing is shared with discovery:

* functions ascend; a kernel's body is one of them and begins at its entry; an entry of a function is a block.
* blocks ascend, and are all of their function's code, without gaps inside of one; control leaves one at its end only;
  their bytes are those of the file.
* successors are blocks, and fit the ending: both ways of a conditional branch, a branch's target, the next block where
  control falls through, none behind the end of a wave.
* a call is in its function, reaches functions of the program, or some that are not known; a direct one reaches one,
  where its displacement leads.
"""

from __future__ import annotations

import os

from luthier_py.base.errors import Location
from luthier_py.isa import OpFlag
from luthier_py.program.ir.model import Block, CallSite, Ending, Function, Program

VERIFY = "LUTHIER_VERIFY"
STAYS = (Ending.FALLTHROUGH, Ending.BRANCH, Ending.CONDITIONAL)  # endings with successors


def is_verifying() -> bool:
    """Whether each stage's result is to be verified, here and behind each pass of injection."""
    return os.environ.get(VERIFY) == "1"


def verify(program: Program) -> None:
    """Raises AssertionError at the first claim that does not hold."""
    _require_ascending([function.address for function in program.functions], f"functions of {program.obj.name}")
    for kernel in program.kernels:
        _require(kernel.function in program.functions, "kernel body is not among the functions", kernel.function, None)
        _require(kernel.record.entry == kernel.function.address, "kernel entry", kernel.function, None)
    for function in program.functions:
        _check_function(program, function)


def _require(claim: bool, what: str, function: Function, pc: int | None) -> None:
    if not claim:
        raise AssertionError(f"the IR is inconsistent: {what}: {Location(function.name, pc)}")


def _require_ascending(addresses: list[int], what: str) -> None:
    if any(a >= b for a, b in zip(addresses, addresses[1:], strict=False)):
        raise AssertionError(f"the IR is inconsistent: {what} do not ascend")


def _check_function(program: Program, function: Function) -> None:
    starts = {block.address for block in function.blocks}
    _require(bool(function.blocks) or function.incomplete is not None, "no blocks", function, function.address)
    _require(not starts or set(function.entries) <= starts, "an entry is not a block", function, function.address)
    _require_ascending([block.address for block in function.blocks], f"blocks of {function.name}")
    _check_code(program, function)
    for block in function.blocks:
        _check_ending(function, block, starts)
    for site in program.calls(function):
        _check_call(program, function, site)
    for builder in function.pc_builders:
        for instr in (builder.getpc, builder.lo, builder.hi):
            _require(program.function_of(instr) is function, "an address builder lies elsewhere", function, instr.pc)


def _check_code(program: Program, function: Function) -> None:
    code, at = function.code, 0
    begins, ends = code.bounds
    leaves = set(code.find_flagged(OpFlag.TERMINATOR))
    for block in function.blocks:
        _require(block.code is code and program.function_of(block.instrs[0]) is function,
                 "an instruction is of two functions", function, block.address)
        _require(block.start == at < block.stop and block.address == begins[at],
                 "an instruction is in two blocks, or in none", function, block.address)
        _require(begins[at + 1 : block.stop] == ends[at : block.stop - 1], "a gap in a block", function, block.address)
        _require(leaves.isdisjoint(range(at, block.stop - 1)), "control leaves a block in its middle", function,
                 block.address)
        raw = code.raw(at, block.stop)
        _require(raw == program.obj.read(block.address, len(raw)), "bytes differ from the file", function,
                 block.address)
        at = block.stop
    _require(at == len(code), "an instruction is in no block", function, function.address)


def _check_ending(function: Function, block: Block, starts: set[int]) -> None:
    last = block.instrs[-1]
    flags, target = last.op.flags, last.inst.branch_target(last.pc)
    _require(set(block.successors) <= starts, "a successor is not a block", function, last.pc)
    _require(bool(block.successors) == (block.ending in STAYS), "successors do not fit the ending", function, last.pc)
    falls = OpFlag.TERMINATOR not in flags or OpFlag.CONDITIONAL in flags
    stays = block.ending is not Ending.NO_RETURN
    _require(not falls or not stays or last.end in block.successors, "no way into the next block", function, last.pc)
    if OpFlag.BRANCH in flags:
        _require(target in block.successors, "a branch target is no successor", function, last.pc)
    _require((block.ending is Ending.END) == (OpFlag.END in flags), "end of the wave", function, last.pc)


def _check_call(program: Program, function: Function, site: CallSite) -> None:
    pc = site.instr.pc
    _require(program.function_of(site.instr) is function, "a call lies elsewhere", function, pc)
    _require(set(site.targets) <= set(program.functions), "a callee is not in the program", function, pc)
    _require(bool(site.targets) or site.unknown, "a call without targets", function, pc)
    _require(site.indirect or len(site.targets) == 1, "a direct call with several targets", function, pc)
    target = site.instr.inst.branch_target(pc)
    _require(target is None or target == site.targets[0].address, "a call goes elsewhere", function, pc)
