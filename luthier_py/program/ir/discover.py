"""Which functions some kernels reach: code object to :class:`Program`.

In: a code object and names of kernels. Out: a Program. Invariant: a function that cannot be understood whole is
`incomplete` and says why; it never hides others, and never raises. A function is lifted once, and only if it can be
reached: from a kernel, by a call, or, where there is an indirect call, by its address having been taken.

Where calls go depends on the registers that callees leave alone, and these on where calls go. So at first no callee
touches anything, and as long as some turn out to touch more, their callers are followed anew: what is found in the end
explains itself, and holds of each run from its first call on. That finds which callees there are at once, since a
register that was touched may still hold what it held.

Code is swept for many functions at a time, since arrays pay when they are long.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from luthier_py.base.errors import Location, Malformed
from luthier_py.base.records import dataclass, field, replace
from luthier_py.isa import InstructionSet, OpFlag, instruction_set
from luthier_py.isa.columns import Columns, read_columns
from luthier_py.program.ir.builders import AddressFlow, Chain, ChainUses, follow
from luthier_py.program.ir.descend import FunctionBytes, descend
from luthier_py.program.ir.extents import Extents, find_extents
from luthier_py.program.ir.model import (
    Block,
    CallSite,
    Ending,
    Function,
    Instr,
    Kernel,
    PcBuilder,
    Program,
    by_address,
    instr_at,
)
from luthier_py.program.ir.touched import EVERYTHING, collect_touched_scalars, with_callees
from luthier_py.program.ir.verifier import is_verifying, verify

if TYPE_CHECKING:
    from luthier_py.binary.loader import CodeObject, KernelRecord

SWEPT_TOGETHER = 1 << 22  # bytes
OVERLAP_LIMIT = 16   # times that code may belong to several functions, on average


@dataclass(frozen=True, slots=True)
class _Call:
    """A call before its targets are functions."""

    instr: Instr
    targets: frozenset[int]
    other: bool   # may also go to any function whose address is taken
    direct: bool
    tail: bool


@dataclass(slots=True)
class _Discovery:
    """Work in progress (mutable)."""

    obj: CodeObject
    extents: Extents
    functions: dict[int, Function] = field(default_factory=dict)
    calls: dict[int, list[_Call]] = field(default_factory=dict)
    alone: dict[int, int] = field(default_factory=dict)    # SGPRs that functions touch themselves
    touched: dict[int, int] = field(default_factory=dict)  # and with all that they call, as far as that is settled
    swept_bytes: int = 0


def lift(obj: CodeObject, kernels: Iterable[str] | None = None) -> Program:
    """Everything that ``kernels`` (default: all) may run. Invalid: there is no kernel of some name."""
    records = obj.kernels if kernels is None else tuple(obj.kernel(name) for name in dict.fromkeys(kernels))
    extents = find_extents(obj)
    found = _Discovery(obj, extents)
    todo = {record.entry: _isa(obj, record) for record in records}
    while todo:
        for code in _swept(found, todo):
            _lift_function(found, code)
        todo = _callees(found, todo)
        if not todo:
            _settle(found)
            todo = _find_indirect_callees(found)
    program = _program(found, records)
    if is_verifying():
        verify(program)
    return program


def _callees(found: _Discovery, callers: Mapping[int, InstructionSet]) -> dict[int, InstructionSet]:
    """Functions that are not lifted yet, with the instructions of who calls them."""
    callees: dict[int, InstructionSet] = {}
    for address, isa in callers.items():
        for call in found.calls[address]:
            callees.update(dict.fromkeys(call.targets, isa))
    return {address: callees[address] for address in sorted(callees) if address not in found.functions}


def _settle(found: _Discovery) -> None:
    """Follow functions anew until those that they call touch no more than was thought."""
    while True:
        callees = {address: {target for call in calls for target in call.targets}
                   for address, calls in found.calls.items() if calls}
        called = set[int]().union(*callees.values())
        alone = {address: _collect_own_touched(found, address) for address in called}
        touched = {address: mask | found.touched.get(address, 0)
                   for address, mask in with_callees(alone, callees).items()}
        more = {address for address, mask in touched.items() if mask != found.touched.get(address, 0)}
        if not more:
            return
        found.touched = touched
        for address in [address for address, each in callees.items() if each & more]:
            _follow(found, found.functions[address])


def _collect_own_touched(found: _Discovery, address: int) -> int:
    """What a function touches but for what those do that it calls, if they are known."""
    function = found.functions[address]
    if function.incomplete or _calls_others(found, address):
        return EVERYTHING
    if address not in found.alone:
        found.alone[address] = collect_touched_scalars(function.code)
    return found.alone[address]


def _calls_others(found: _Discovery, address: int) -> bool:
    """Whether a function may call one whose address is taken, whichever that is."""
    return any(call.other for call in found.calls[address])


def _find_indirect_callees(found: _Discovery) -> dict[int, InstructionSet]:
    """Functions that are not lifted yet and that calls through pointers may reach."""
    isa = next((function.isa for address, function in found.functions.items() if _calls_others(found, address)), None)
    return (
        {} if isa is None else {each: isa for each in sorted(_find_address_taken(found)) if each not in found.functions}
    )


def _find_address_taken(found: _Discovery) -> frozenset[int]:
    """Addresses of functions that function pointers may hold: of symbols, or targets of calls."""
    extents = found.extents
    return extents.pointers | {builder.value for function in found.functions.values()
                               for builder in function.pc_builders if builder.escapes
                               and (extents.is_function(builder.value) or builder.value in found.functions)}


def _swept(found: _Discovery, todo: Mapping[int, InstructionSet]) -> Iterator[FunctionBytes]:
    """The code of functions, swept in pieces of some megabytes."""
    for isa in dict.fromkeys(todo.values()):
        pieces: list[tuple[int, bytes]] = []
        size = 0
        for address in (address for address, each in todo.items() if each is isa):
            pieces.append((address, _extent(found, address)))
            size += len(pieces[-1][1])
            if size > SWEPT_TOGETHER:
                yield from _codes(isa, pieces)
                pieces, size = [], 0
        yield from _codes(isa, pieces)


def _codes(isa: InstructionSet, pieces: Sequence[tuple[int, bytes]]) -> Iterator[FunctionBytes]:
    for (address, data), columns in zip(pieces, read_columns(isa, pieces), strict=True):
        yield FunctionBytes(isa, address, data, columns)


def _extent(found: _Discovery, address: int) -> bytes:
    extents = found.extents
    size = max(extents.end(address) - address, 0)
    found.swept_bytes += size
    if found.swept_bytes > OVERLAP_LIMIT * sum(map(len, extents.text)):
        raise Malformed(f"{found.obj.name}: calls go into the middle of functions so often that it cannot be code",
                        Location(extents.name(address), address))
    return bytes(found.obj.read(address, size)) if size else b""


def _isa(obj: CodeObject, record: KernelRecord) -> InstructionSet:
    """Wave size is a property of each kernel."""
    small = record.descriptor.enable_wavefront_size32 and 32 in obj.target.wave_sizes
    return instruction_set(obj.target, 32 if small else max(obj.target.wave_sizes))


def _lift_function(found: _Discovery, swept: FunctionBytes) -> None:
    """Add one function."""
    extents, address, isa = found.extents, swept.address, swept.isa
    kernel = address in extents.kernels
    entries: tuple[int, ...] = (address,)
    second = isa.target.preload_entry
    if second and any(r.entry == address and r.descriptor.kernarg_preload_length for r in found.obj.kernels):
        entries = (address, address + second)
    descent = descend(swept, entries, kernel)
    code, blocks = (swept.columns.select_places(slice(0)), ()) if isinstance(descent, str) else descent
    problem = descent if isinstance(descent, str) else None
    _follow(found, Function(extents.name(address), address, kernel, isa, entries, code, blocks, (), problem))


def _follow(found: _Discovery, function: Function) -> None:
    """Say of a function where its calls go, from what those touch that it calls."""
    code, blocks = function.code, function.blocks
    flow = follow(code, blocks, function.entries, not function.kernel, lambda address: found.touched.get(address, 0))
    found.calls[function.address] = list(_calls(code, blocks, flow))
    problem = _problem(code, blocks, flow) if blocks else function.incomplete
    builders = tuple(_builders(blocks, flow))
    found.functions[function.address] = replace(function, pc_builders=builders, incomplete=problem)


def _problem(code: Columns, blocks: tuple[Block, ...], flow: ChainUses) -> str | None:
    """Why the function may not be edited, although all its code is known."""
    started = {chain.getpc.at for chain in flow.chains}
    unknown = [at for at in code.find_flagged(OpFlag.GETS_PC) if at not in started]
    if not unknown and not flow.goes and all(block.ending is not Ending.INDIRECT for block in blocks):
        return None
    for block in blocks:
        last = block.instrs[-1]
        if block.ending is Ending.INDIRECT:
            return f"the indirect jump at 0x{last.pc:x} may go anywhere"
        goes = flow.goes.get(last)
        if goes is not None and OpFlag.SETS_PC in last.op.flags and not _as_found(block, flow.chains, goes):
            return f"where the jump at 0x{last.pc:x} goes is not the same on all paths"
        for at in unknown:
            if block.start <= at < block.stop:
                pc = int(code.pcs[at])
                return f"the use of the PC that s_getpc_b64 at 0x{pc:x} reads is not understood"
    return None


def _as_found(block: Block, chains: tuple[Chain, ...], goes: AddressFlow) -> bool:
    """Whether the targets of a s_setpc are those that the descent found, which saw one block at a time."""
    if block.ending is Ending.RETURN:
        return not goes.chains
    values = {chains[number].value for number in goes.chains}
    return not goes.other and not goes.returns and len(values) == 1 and values >= set(block.successors)


def _calls(code: Columns, blocks: tuple[Block, ...], flow: ChainUses) -> Iterable[_Call]:
    leaving = code.find_flagged(OpFlag.CALL | OpFlag.INDIRECT)
    starts = [block.start for block in blocks] if leaving else []
    for instr in (instr_at(code, at) for at in leaving):
        goes = flow.goes.get(instr)
        if goes is not None and _is_call(blocks[bisect_right(starts, instr.at) - 1], instr, goes):
            direct = len(goes.chains) == 1 and not goes.other and not goes.chains & flow.escaping
            targets = frozenset(flow.chains[number].value for number in goes.chains)
            yield _Call(instr, targets, goes.other, direct, OpFlag.CALL not in instr.op.flags)
        elif goes is None and OpFlag.CALL in instr.op.flags:
            target = instr.inst.branch_target(instr.pc)
            yield _Call(instr, frozenset(() if target is None else (target,)), target is None, True, False)


def _is_call(block: Block, instr: Instr, goes: AddressFlow) -> bool:
    """A s_swappc, or a s_setpc that may go to another function."""
    if OpFlag.CALL in instr.op.flags or block.ending is Ending.TAIL_CALL:
        return True
    return block.ending is Ending.RETURN and goes.other


def _builders(blocks: tuple[Block, ...], flow: ChainUses) -> Iterable[PcBuilder]:
    uses: dict[int, Instr] = {}
    for instr, goes in flow.goes.items():
        for number in goes.chains - flow.escaping:
            uses.setdefault(number, instr)
    inside = {instr for block in blocks if block.ending is Ending.BRANCH for instr in block.instrs[-1:]}
    for number, chain in enumerate(flow.chains):
        use = uses.get(number)
        call, branch = (None, use) if use in inside else (use, None)
        yield PcBuilder(chain.getpc, chain.lo, chain.hi, chain.value, call, branch, chain.back, chain.offset)


def _program(found: _Discovery, records: Iterable[KernelRecord]) -> Program:
    functions = by_address(found.functions.values())
    taken = _find_address_taken(found)
    pointed = tuple(f for f in functions if f.address in taken)
    sites: dict[Function, tuple[CallSite, ...]] = {}
    for function in functions:
        sites[function] = tuple(
            CallSite(
                call.instr,
                by_address({found.functions[t] for t in call.targets} | set(pointed if call.other else ())),
                not call.direct, call.other and not pointed, call.tail,
            )
            for call in found.calls[function.address]
        )
    kernels = tuple(Kernel(r.name, r, found.functions[r.entry]) for r in records)
    isa = functions[0].isa if functions else instruction_set(found.obj.target, max(found.obj.target.wave_sizes))
    return Program(found.obj, isa, kernels, functions, taken, sites, {f.code: f for f in functions})
