"""The IR for people: assembly as LLVM prints it, in blocks, with addresses and an annotator's remarks.

In: a program or function, and optionally an :class:`Annotator` (``analysis.annotate`` has one for live registers).
Out: text. Invariant: a pure function of its arguments, the same on every machine: golden tests compare it.

    vector_add:  ; kernel, 0x1900..0x1964
    .bb0:  ; 0x1900 -> .bb1 .bb2
        ; live s[4:7] v0
        0x1900  s_load_dword s0, s[4:5], 0x24
        ...
        0x192c  s_cbranch_execz 20  ; .bb2
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.program.ir.model import Block, CallSite, Ending, Function, Instr, PcBuilder, Program

Annotator = Callable[[Block, Instr | None], str]  # for a block's head (None) or one instruction; "" for nothing

ENDINGS = {
    Ending.RETURN: "returns", Ending.TAIL_CALL: "calls and returns", Ending.INDIRECT: "goes anywhere",
    Ending.END: "ends", Ending.NO_RETURN: "does not return",
}


def nothing(block: Block, instr: Instr | None) -> str:
    """The annotator that has nothing to say."""
    return ""


def format_program(program: Program, annotate: Annotator = nothing) -> str:
    """All functions of ``program``, with an empty line between two."""
    return "\n".join(format_function(program, function, annotate) for function in program.functions)


def format_function(program: Program, function: Function, annotate: Annotator = nothing) -> str:
    """One function of ``program``: a heading, then its blocks, each with its successors."""
    kind = "kernel" if function.kernel else "function"
    lines = [f"{function.name}:  ; {kind}, 0x{function.address:x}..0x{function.end:x}"]
    if function.incomplete:
        lines.append(f"    ; incomplete: {function.incomplete}")
    names = {block.address: f".bb{number}" for number, block in enumerate(function.blocks)}
    remarks = _remarks(program, function)
    for block in function.blocks:
        goes = " ".join(names[address] for address in block.successors)
        lines.append(f"{names[block.address]}:  ; 0x{block.address:x} -> {goes or ENDINGS[block.ending]}")
        lines += _comment(annotate(block, None))
        for instr in block.instrs:
            target = instr.inst.branch_target(instr.pc)
            remark = remarks.get(instr, names.get(target, "") if target is not None else "")
            text = function.isa.text(instr.inst)
            lines.append(f"    0x{instr.pc:x}  {text}" + (f"  ; {remark}" if remark else ""))
            lines += _comment(annotate(block, instr))
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return [f"    ; {text}"] if text else []


def _remarks(program: Program, function: Function) -> dict[Instr, str]:
    """What calls reach, and what addresses are built."""
    remarks = {site.instr: _call(site) for site in program.calls(function)}
    for builder in function.pc_builders:
        remarks[builder.hi] = _address(program, builder)
    return remarks


def _call(site: CallSite) -> str:
    targets = [function.name for function in site.targets] + (["unknown"] if site.unknown else [])
    return ("calls one of " if len(targets) > 1 else "calls ") + " ".join(targets)


def _address(program: Program, builder: PcBuilder) -> str:
    name = next((f.name for f in program.functions if f.address == builder.value), f"0x{builder.value:x}")
    return f"address of {name}"
