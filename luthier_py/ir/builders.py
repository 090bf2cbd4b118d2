"""Addresses made of the PC, and where they go: which calls and jumps are direct.

In: the code and blocks of one function. Out: :class:`Chain` (a s_getpc with its adds) and
:class:`ChainUses` (what each s_swappc and s_setpc may reach, and which chains are for nothing else).

Invariant: a chain that does not escape reaches no instruction but moves, and calls or jumps that take
exactly this chain. It is a may-analysis: a register is mapped to everything that it may hold of interest,
OTHER standing for the rest; so a call is direct only if one chain alone reaches it on every path.
It assumes of calls what the ABI says (AMDGPUUsage, "Non-Kernel Functions"): a value in s32 or above that is read
after a call is the one from before it. Below, compilers know what a callee leaves alone, and keep values there: a
register that who is called does not touch is what it was; any other may be, or may be something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from luthier_py.ir.model import Block, Instr, instr_at
from luthier_py.isa import SCC, Inst, Operand, OpFlag, Reg, RegFile, RegSet, sgpr
from luthier_py.isa.columns import Columns
from luthier_py.isa.semantics.readers.evaluate import copies, evaluate
from luthier_py.isa.semantics.readers.numbers import UNIFORM, Known, Number, constant

RETURN_ADDRESS = 30  # s[30:31] at the entry of a function
KEPT_BY_CALLS = 32   # first SGPR that a caller may rely on after any call

PATIENCE = 32        # visits per block, on average, before nothing is claimed about a function

_DWORD = 0xFFFFFFFF

OTHER = -1
RETURNS = 0          # tags: 2 * number + half; chain i has number i + 1
Tags = frozenset[int]
TagsAt = dict[int, Tags]  # SGPR -> tags; missing: only OTHER
_NOTHING: Tags = frozenset({OTHER})
Touched = Callable[[int], int]  # address of a function -> SGPRs that it, or who it calls, may read or write


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """A s_getpc_b64 and the two adds that make ``value`` in ``pair``; a 64-bit add is both ``lo`` and ``hi``."""

    getpc: Instr
    lo: Instr
    hi: Instr
    pair: Reg
    value: int


@dataclass(frozen=True, slots=True)
class Goes:
    """Where an indirect call or jump may go: to chains (by index), back to the caller, or anywhere (``other``)."""

    chains: frozenset[int]
    returns: bool
    other: bool


@dataclass(frozen=True, slots=True)
class ChainUses:
    """``goes``: for each s_swappc and s_setpc. ``escaping``: indices of chains that may be used in other ways."""

    chains: tuple[Chain, ...]
    goes: Mapping[Instr, Goes]
    escaping: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Known:
    """What following a function needs to know: its chains, which instruction completes which, and what callees touch.
    """

    chains: tuple[Chain, ...]
    made: Mapping[Instr, int]
    touched: Touched

    def lost(self, instr: Instr, state: TagsAt) -> int:
        """SGPRs that need not be after a call what they were before it."""
        if OpFlag.INDIRECT in instr.op.flags:
            goes = _goes(instr.inst, state)
            targets = [self.chains[number].value for number in goes.chains]
            unknown = goes.other or goes.returns
        else:
            target = instr.inst.branch_target(instr.pc)
            targets, unknown = [] if target is None else [target], target is None
        return -1 if unknown else reduce(or_, map(self.touched, targets), 0)


def find_chains(code: Columns, start: int, stop: int) -> Iterator[Chain]:
    """Chains in straight-line code, places ``start`` to ``stop``."""
    for at in code.flagged(OpFlag.GETS_PC, start, stop):
        chain = _chain(code, at, stop)
        if chain is not None:
            yield chain


def _chain(code: Columns, start: int, stop: int) -> Chain | None:
    getpc = instr_at(code, start)
    pair = getpc.inst["sdst"].reg
    if pair is None:
        return None
    low, high = sgpr(pair.index), sgpr(pair.index + 1)
    known = {low.index: getpc.end & _DWORD, high.index: getpc.end >> 32}
    lo: Instr | None = None
    for at in range(start + 1, stop):
        inst = code.inst(at)
        if not (inst.reads | inst.writes).overlaps(RegSet.of(pair)) and not (lo and inst.writes.sgpr >> SCC & 1):
            continue
        to, number, after = _in_place(inst, known)
        whole = after.get(low.index, 0) | after.get(high.index, 0) << 32
        carried = known.get(SCC, 0) if inst.reads.sgpr >> SCC & 1 else 0
        if to == pair and lo is None and whole == (getpc.end + number) % (1 << 64):
            return Chain(getpc, add := instr_at(code, at), add, pair, whole)
        if to == low and lo is None and known[low.index] + number == (after.get(SCC, -1) << 32 | after[low.index]):
            lo = instr_at(code, at)
        elif to == high and lo is not None and after[high.index] == (known[high.index] + number + carried) & _DWORD:
            return Chain(getpc, lo, instr_at(code, at), pair, whole)
        elif not (to == high and lo is None and after == known):
            return None  # the upper half comes zero-extended on some targets, and is extended by its sign then
        known = after
    return None


def _in_place(inst: Inst, known: Mapping[int, int]) -> tuple[Reg | None, int, dict[int, int]]:
    """The register that ``inst`` changes by a constant, the constant, and what is known afterwards."""
    to, source, other = (inst.find(name) for name in ("sdst", "src0", "src1"))
    if to is None or source is None or to.reg != source.reg or other is not None and other.reg is not None:
        return None, 0, {}

    def read(file: RegFile, index: int) -> Known:
        return constant(known[index]) if file is RegFile.SGPR and index in known else UNIFORM

    found = evaluate(inst, read)
    after = {index: result.constant for (_, index), result in found.items()
             if isinstance(result, Number) and result.constant is not None}
    complete = len(after) == len(found) and found
    return to.reg if complete else None, other.value if other is not None else 0, {**known, **after}


def follow(
    code: Columns, blocks: Sequence[Block], entries: Iterable[int], function: bool, touched: Touched,
) -> ChainUses:
    """Where the chains of a function end up. ``function``: it has a return address."""
    if not code.flagged(OpFlag.INDIRECT | OpFlag.GETS_PC):
        return ChainUses((), {}, frozenset())
    chains = tuple(chain for block in blocks for chain in find_chains(code, block.start, block.stop))
    known = _Known(chains, {chain.hi: number for number, chain in enumerate(chains)}, touched)
    start: TagsAt = {RETURN_ADDRESS + half: frozenset({half}) for half in (0, 1)} if function else {}
    touching = _touching(code, blocks, chains, start)
    states = {entry: dict(start) for entry in entries}
    todo = sorted(states) if blocks else []
    by_address = {block.address: block for block in blocks}
    patience = PATIENCE * len(blocks)
    while todo:
        patience -= 1
        if patience < 0:
            nowhere, jumps = Goes(frozenset(), False, True), code.flagged(OpFlag.INDIRECT)
            return ChainUses(chains, {instr_at(code, at): nowhere for at in jumps}, frozenset(range(len(chains))))
        block = by_address[todo.pop()]
        state = dict(states[block.address])
        for instr in touching[block.address]:
            _step(state, instr, known)
        for successor in block.successors:
            if _merge(states, successor, state):
                todo.append(successor)
    return _uses(touching, known, states)


def _touching(
    code: Columns, blocks: Sequence[Block], chains: Sequence[Chain], start: TagsAt
) -> dict[int, tuple[Instr, ...]]:
    """By block the instructions that touch a register in which something of interest may ever be."""
    distinct, reads, writes = code.distinct, code.distinct.masks.reads, code.distinct.masks.writes
    present = np.unique(code.kinds).tolist()
    moves = [distinct.inst(kind) for kind in present if copies(distinct.op(kind))]
    held, before = RegSet.of(*(chain.pair for chain in chains)).sgpr | sum(1 << reg for reg in start), 0
    while held != before:
        before = held
        for move in moves:
            if move.reads.sgpr & held:
                held |= move.writes.sgpr
    touches = distinct.flags & (OpFlag.CALL | OpFlag.INDIRECT).value != 0
    touches[[kind for kind in present if (reads[kind] | writes[kind]) & held]] = True
    return {block.address: tuple(instr_at(code, at) for at in code.where(touches, block.start, block.stop))
            for block in blocks}


def _step(state: TagsAt, instr: Instr, known: _Known) -> None:
    """Change ``state`` from before ``instr`` to after it."""
    inst = instr.inst
    number = known.made.get(instr)
    if number is None and not state:
        return
    values = [state.get(reg, _NOTHING) for reg in _moved(inst)]
    if inst.op.flags & OpFlag.CALL:
        lost = known.lost(instr, state)
        for reg in [reg for reg in state if reg < KEPT_BY_CALLS and lost >> reg & 1]:
            state[reg] |= _NOTHING
    for reg in [reg for reg in state if inst.writes.sgpr >> reg & 1]:
        del state[reg]
    target = inst.find("sdst")
    if target is None or target.reg is None:
        return
    start = target.reg.index
    if number is not None:
        values = [frozenset({2 * (number + 1) + half}) for half in (0, 1)]
        start -= 2 - target.reg.dwords  # the add with carry names the upper half only
    for offset, tags in enumerate(values):
        if tags != _NOTHING:
            state[start + offset] = tags


def _moved(inst: Inst) -> range:
    """SGPRs that a plain move copies to its destination."""
    source = inst.find("src0")  # s_movk_i32 copies an immediate
    return _sgprs(source) if source is not None and copies(inst.op) else range(0)


def _sgprs(operand: Operand) -> range:
    reg = operand.reg
    if reg is None or reg.file is not RegFile.SGPR:
        return range(0)
    return range(reg.index, reg.index + reg.dwords)


def _merge(states: dict[int, TagsAt], address: int, new: TagsAt) -> bool:
    """Join ``new`` into the state at ``address``; whether that changed it."""
    old = states.get(address)
    if old is None:
        states[address] = dict(new)
        return True
    joined = {reg: old.get(reg, _NOTHING) | new.get(reg, _NOTHING) for reg in old.keys() | new.keys()}
    states[address] = joined
    return joined != old


def _uses(
    touching: Mapping[int, tuple[Instr, ...]], known: _Known, states: Mapping[int, TagsAt],
) -> ChainUses:
    goes: dict[Instr, Goes] = {}
    escaping: set[int] = set()
    for address, instrs in touching.items():
        state = dict(states.get(address, {}))
        for instr in instrs:
            inst = instr.inst
            if inst.op.flags & OpFlag.INDIRECT:
                goes[instr] = found = _goes(inst, state)
                if found.other or found.returns or len(found.chains) > 1:
                    escaping |= found.chains
            elif not _moved(inst):
                for reg, tags in state.items():
                    if inst.reads.sgpr >> reg & 1:
                        escaping |= {tag // 2 - 1 for tag in tags if tag > 1}
            _step(state, instr, known)
    return ChainUses(known.chains, goes, frozenset(escaping))


def _goes(inst: Inst, state: TagsAt) -> Goes:
    source = inst.find("src0")
    registers = list(_sgprs(source)) if source is not None else []
    if len(registers) != 2:
        return Goes(frozenset(), False, True)
    low, high = (state.get(reg, _NOTHING) for reg in registers)
    numbers = {tag // 2 for tag in low | high if tag != OTHER}
    exact = OTHER not in low | high and low == {2 * n for n in numbers} and high == {2 * n + 1 for n in numbers}
    restored = registers[0] == RETURN_ADDRESS and numbers <= {RETURNS}  # put back from where the function kept it
    return Goes(frozenset(n - 1 for n in numbers if n), restored or RETURNS in numbers, not exact and not restored)
