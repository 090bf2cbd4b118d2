"""Is a Program what its model says? For tests, and between passes while something is being looked for.

In: a Program. Out: nothing, or CheckFailed that says what is broken and where. Invariant: it re-derives each
claim from bytes and instructions, and shares nothing with discovery.
"""

from __future__ import annotations

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.isa import OpFlag
from luthier_py.program.ir.model import Block, CallSite, Ending, Function, Program

STAYS = (Ending.FALLTHROUGH, Ending.BRANCH, Ending.CONDITIONAL)  # endings with successors


def verify(program: Program) -> None:
    """Raises CheckFailed at the first claim that does not hold."""
    _check_ascending(program, [function.address for function in program.functions], "functions")
    for kernel in program.kernels:
        _require(kernel.function in program.functions, "kernel body is not among the functions", kernel.function, None)
        _require(kernel.record.entry == kernel.function.address, "kernel entry", kernel.function, None)
    for function in program.functions:
        _check_function(program, function)


def _require(claim: bool, what: str, function: Function, pc: int | None) -> None:
    if not claim:
        raise CheckFailed(f"the IR is inconsistent: {what}", Location(function.name, pc))


def _check_ascending(program: Program, addresses: list[int], what: str) -> None:
    if any(a >= b for a, b in zip(addresses, addresses[1:], strict=False)):
        raise CheckFailed(f"the IR of {program.obj.name} is inconsistent: {what} do not ascend")


def _check_function(program: Program, function: Function) -> None:
    starts = {block.address for block in function.blocks}
    _require(bool(function.blocks) or function.incomplete is not None, "no blocks", function, function.address)
    _require(not starts or set(function.entries) <= starts, "an entry is not a block", function, function.address)
    _check_ascending(program, [block.address for block in function.blocks], f"blocks of {function.name}")
    for block, following in zip(function.blocks, function.blocks[1:], strict=False):
        _require(block.end <= following.address, "blocks overlap", function, following.address)
    for block in function.blocks:
        _check_bytes(program, function, block)
        _check_ending(function, block, starts)
    for site in program.calls(function):
        _check_call(program, function, site)
    for builder in function.pc_builders:
        for instr in (builder.getpc, builder.lo, builder.hi):
            _require(program.function_of(instr) is function, "an address builder lies elsewhere", function, instr.pc)


def _check_bytes(program: Program, function: Function, block: Block) -> None:
    pc = block.address
    for instr in block.instrs:
        _require(instr.pc == pc, "a gap in a block", function, instr.pc)
        _require(program.function_of(instr) is function, "an instruction is of two functions", function, instr.pc)
        _require(program.block_of(instr) is block, "an instruction is in two blocks", function, instr.pc)
        inner = OpFlag.TERMINATOR in instr.op.flags and instr != block.instrs[-1]
        _require(not inner, "control leaves a block in its middle", function, instr.pc)
        pc = instr.end
    raw = b"".join(instr.raw for instr in block.instrs)
    _require(raw == program.obj.read(block.address, len(raw)), "bytes differ from the file", function, block.address)


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
