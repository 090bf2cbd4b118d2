"""Machine code of one hook to a Payload: decoded, trimmed, and checked to be fit for inlining.

In: bytes of one amdgpu_cs function and where its arguments are. Out: Payload. Invariant: what could not run in the
middle of an application's kernel (stack, calls, absolute addresses, the end of the wave) is Unsupported.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from luthier_py.base.errors import HookError, Unsupported
from luthier_py.isa import MODE, NO_REGS, Inst, InstructionSet, OpFlag, Reg, RegFile, RegSet, Space
from luthier_py.isa.build import nothing
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action
from luthier_py.rewrite.jit.called import PRIVATE_RESOURCE, STACK_POINTER, in_buffers, returns, scalars, without_returns
from luthier_py.rewrite.jit.convention import Seat
from luthier_py.rewrite.jit.exec_mask import follow_exec
from luthier_py.rewrite.jit.object import Code
from luthier_py.rewrite.jit.payload import Hole, Payload, Slot
from luthier_py.rewrite.jit.python.frontend import HookIr
from luthier_py.rewrite.tool.hooks.assembly import Assembly
from luthier_py.rewrite.tool.hooks.hook import Hook, Lanes

VECTOR = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS
REFUSED = (
    (OpFlag.CALL | OpFlag.INDIRECT, "calls code outside of itself"),
    (OpFlag.END, "ends the wave"),
    (OpFlag.BARRIER, "has a barrier"),
)


def payload(hook: Hook, code: Code, ir: HookIr, isa: InstructionSet) -> Payload:
    """Check and describe the code of ``hook``, of which LLVM made ``code``."""
    called, results = ir.called, ir.results
    everything = isa.decode_all(code.code)
    begun = without_returns(everything, isa) if called else without_prologue(everything)
    own = (*begun, *scalars(results, isa)) if called else begun
    instrs = without_last_wait(own) or (nothing(isa),)  # what gives back its arguments is a call, too
    left_out = len(everything) - len(begun) - (called and returns(everything[-1]))
    _check(hook, instrs, called)
    if hook.lanes is Lanes.ACTIVE and not follow_exec(instrs, isa.wave_size).restored:
        message = "may change which lanes are active; simplify its control flow"
        raise Unsupported(f"{hook.place}: hook {hook.name} {message}")
    reads = writes = NO_REGS
    for inst in instrs:
        reads, writes = reads | inst.reads, writes | inst.writes
    _check_results(hook, ir, writes)
    return Payload(
        instrs=instrs,
        params=tuple(_slot(seat) for seat in ir.params),
        results=tuple(_slot(seat) for seat in results),
        reads=reads,
        writes=writes,
        needs_lane=hook.lanes is Lanes.ACTIVE and _needs_lane(instrs, results),
        holes=tuple(_holes(code, everything, left_out)),
        frame_bytes=code.frame_bytes,
        stack=STACK_POINTER if called else None,
        resource=PRIVATE_RESOURCE if called and in_buffers(instrs, isa) else None,
        source=code,
    )


def payload_of_text(hook: Hook, isa: InstructionSet) -> Payload:
    """What an author has written as assembly, as it is."""
    code = hook.function
    assert isinstance(code, Assembly)
    instrs = isa.decode_all(code.code)
    _check(hook, instrs, called=False)
    params, results = ([Slot(reg, reg.file is RegFile.SGPR) for reg in regs] for regs in (code.takes, code.gives))
    reads, writes = RegSet.of(*code.takes), NO_REGS
    for inst in instrs:
        reads, writes = reads | inst.reads, writes | inst.writes
    return Payload(instrs, tuple(params), tuple(results), reads, writes, needs_lane=False)


def _holes(code: Code, instrs: tuple[Inst, ...], left_out: int) -> Iterator[Hole]:
    """Fields as instructions; their numbers count from what is left of the beginning."""
    ends = {end: number for number, end in enumerate(accumulate(inst.size_bytes for inst in instrs))}
    for field in code.fields:
        number = ends[field.offset + 4]
        assert instrs[number].literal is not None
        yield Hole(number - left_out, field.position, field.added, field.high)


def without_prologue(instrs: tuple[Inst, ...]) -> tuple[Inst, ...]:
    """Remove what LLVM sets in MODE where a shader begins: the kernel chooses MODE, and continues after the hook."""
    while instrs and find_meaning(instrs[0].op) is Action.SETREG_IMM and instrs[0].writes.sgpr >> MODE & 1:
        instrs = instrs[1:]
    return instrs


def without_last_wait(instrs: tuple[Inst, ...]) -> tuple[Inst, ...]:
    """LLVM drains the memory counters at the end; only loads need that, whose registers the hook gives back."""
    while instrs and instrs[-1].op.flags & OpFlag.WAIT and _loads_are_done(instrs[:-1], instrs[-1].raw):
        instrs = instrs[:-1]
    return instrs


def _loads_are_done(instrs: tuple[Inst, ...], wait: bytes) -> bool:
    """Whether every load is followed by the same wait already, on all ways to the end."""
    last = max((i for i, inst in enumerate(instrs) if _loads(inst)), default=-1)
    if last < 0:
        return True
    waited = next((i for i, inst in enumerate(instrs) if i > last and inst.raw == wait), None)
    if waited is None:
        return False
    starts = {at: i for i, at in enumerate(accumulate((inst.size_bytes for inst in instrs), initial=0))}
    jumps = [
        (i, starts[target])
        for (at, i), inst in zip(starts.items(), instrs, strict=False)
        if (target := inst.branch_target(at)) is not None and target in starts
    ]
    return all((source < waited) == (target <= waited) for source, target in jumps)


def _loads(inst: Inst) -> bool:
    """Whether a register is written when the memory operation completes."""
    return bool(inst.op.flags & (OpFlag.VMEM | OpFlag.SMEM | OpFlag.LDS) and inst.writes)


def _check(hook: Hook, instrs: tuple[Inst, ...], called: bool) -> None:
    ends, at = set(), 0
    for inst in instrs:
        at += inst.size_bytes
        ends.add(at)
        for flags, what in REFUSED:
            if inst.op.flags & flags:
                raise Unsupported(f"{hook.place}: hook {hook.name} {what} ({inst.op.mnemonic})")
        if OpFlag.GETS_PC in inst.op.flags:
            raise Unsupported(f"{hook.place}: hook {hook.name} needs constant data or a stack ({inst.op.mnemonic})")
        if inst.op.spaces is Space.SCRATCH and not called:
            raise Unsupported(f"{hook.place}: hook {hook.name} needs a stack; use fewer values at a time")
        resumes = isinstance(hook.function, Assembly) and hook.function.resumes
        if inst.op.spaces is Space.LDS and OpFlag.MAY_STORE in inst.op.flags and not resumes:
            raise Unsupported(f"{hook.place}: hook {hook.name} changes the application's LDS ({inst.op.mnemonic})")
    at = 0
    for inst in instrs:
        target = inst.branch_target(at)
        at += inst.size_bytes
        if target is not None and target not in ends and target != 0:
            raise Unsupported(f"{hook.place}: hook {hook.name} branches out of itself ({inst.op.mnemonic})")


def _check_results(hook: Hook, ir: HookIr, writes: RegSet) -> None:
    """Check that the code writes its results: LLVM leaves out those of a hook that never returns."""
    made = writes | RegSet.of(*(_slot(seat).reg for seat in ir.params))
    if any(_slot(seat).reg not in made for seat in ir.results):
        raise HookError(f"{hook.place}: hook {hook.name} never comes to its end, so it gives no result: a loop in it "
                        "goes on for ever")


def _needs_lane(instrs: tuple[Inst, ...], results: tuple[Seat, ...]) -> bool:
    """Vector instructions do nothing when EXEC is zero: whatever scalars are made from them is then garbage."""
    vector = any(inst.op.flags & VECTOR and not inst.op.flags & OpFlag.IGNORES_EXEC for inst in instrs)
    scalars = any(seat.file is RegFile.SGPR for seat in results)
    return vector and (scalars or any(inst.op.flags & OpFlag.BRANCH for inst in instrs))


def _slot(seat: Seat) -> Slot:
    return Slot(Reg(seat.file, seat.index, seat.type.dwords), seat.file is RegFile.SGPR)
