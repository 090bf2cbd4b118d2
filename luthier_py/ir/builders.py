"""Addresses made of the PC, and where they go: which calls and jumps are direct.

In: the code and blocks of one function. Out: :class:`Chain` (a s_getpc with its adds) and
:class:`Flow` (what each s_swappc and s_setpc may reach, and which chains are for nothing else).

Invariant: a chain that does not escape reaches no instruction but moves, and calls or jumps that take
exactly this chain. It is a may-analysis: a register is mapped to everything that it may hold of interest,
OTHER standing for the rest; so a call is direct only if one chain alone reaches it on every path.
It assumes of calls what the ABI says (AMDGPUUsage, "Non-Kernel Functions"): a value in s32 or above that is read
after a call is the one from before it; below, nothing is known after a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luthier_py.ir.model import Block, Instr, instr_at
from luthier_py.isa import SCC, Inst, Operand, OperandKind, OpFlag, Reg, RegFile, RegSet, sgpr
from luthier_py.isa.columns import Columns

RETURN_ADDRESS = 30  # s[30:31] at the entry of a function
KEPT_BY_CALLS = 32   # first SGPR that a caller may rely on after a call

PATIENCE = 32        # visits per block, on average, before nothing is claimed about a function

MOVES = ("S_MOV_B32", "S_MOV_B64")

OTHER = -1
RETURNS = 0          # tags: 2 * number + half; chain i has number i + 1
Tags = frozenset[int]
TagsAt = dict[int, Tags]  # SGPR -> tags; missing: only OTHER
_NOTHING: Tags = frozenset({OTHER})


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
class Flow:
    """``goes``: for each s_swappc and s_setpc. ``escaping``: indices of chains that may be used in other ways."""

    chains: tuple[Chain, ...]
    goes: Mapping[Instr, Goes]
    escaping: frozenset[int]


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
    lo: Instr | None = None
    for at in range(start + 1, stop):
        inst = code.inst(at)
        if lo is None and _adds(inst, "S_ADD_U32", low):
            lo = instr_at(code, at)
        elif lo is None and _adds(inst, "S_ADD_U64", pair):
            add = instr_at(code, at)
            return Chain(getpc, add, add, pair, (getpc.end + inst["src1"].value) % (1 << 64))
        elif lo is not None and _adds(inst, "S_ADDC_U32", high):
            addend = inst["src1"].value << 32 | lo.inst["src1"].value
            return Chain(getpc, lo, instr_at(code, at), pair, (getpc.end + addend) % (1 << 64))
        elif lo is None and inst.op.base == "S_SEXT_I32_I16" and inst["sdst"].reg == inst["src0"].reg == high:
            continue  # the upper half comes zero-extended on some targets; addresses have no more than 48 bits
        elif (inst.reads | inst.writes).overlaps(RegSet.of(pair)) or (lo and inst.writes.sgpr >> SCC & 1):
            return None
    return None


def _adds(inst: Inst, base: str, reg: Reg) -> bool:
    """Whether ``inst`` adds a constant to ``reg``."""
    return (inst.op.base == base and inst["sdst"].reg == inst["src0"].reg == reg
            and inst["src1"].kind is OperandKind.CONSTANT)


def follow(code: Columns, blocks: Sequence[Block], entries: Iterable[int], function: bool) -> Flow:
    """Where the chains of a function end up. ``function``: it has a return address."""
    if not code.flagged(OpFlag.INDIRECT | OpFlag.GETS_PC):
        return Flow((), {}, frozenset())
    chains = tuple(chain for block in blocks for chain in find_chains(code, block.start, block.stop))
    made = {chain.hi: number for number, chain in enumerate(chains)}
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
            return Flow(chains, {instr_at(code, at): nowhere for at in jumps}, frozenset(range(len(chains))))
        block = by_address[todo.pop()]
        state = dict(states[block.address])
        for instr in touching[block.address]:
            _step(state, instr, made)
        for successor in block.successors:
            if _merge(states, successor, state):
                todo.append(successor)
    return _uses(touching, chains, made, states)


def _touching(
    code: Columns, blocks: Sequence[Block], chains: Sequence[Chain], start: TagsAt
) -> dict[int, tuple[Instr, ...]]:
    """By block the instructions that touch a register in which something of interest may ever be."""
    distinct, reads, writes = code.distinct, code.distinct.masks.reads, code.distinct.masks.writes
    present = np.unique(code.kinds).tolist()
    moves = [distinct.inst(kind) for kind in present if distinct.op(kind).base in MOVES]
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


def _step(state: TagsAt, instr: Instr, made: Mapping[Instr, int]) -> None:
    """Change ``state`` from before ``instr`` to after it."""
    inst = instr.inst
    number = made.get(instr)
    if number is None and not state:
        return
    values = [state.get(reg, _NOTHING) for reg in _moved(inst)]
    if inst.op.flags & OpFlag.CALL:
        for reg in [reg for reg in state if reg < KEPT_BY_CALLS]:
            del state[reg]
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
    if inst.op.base not in MOVES:
        return range(0)
    return _sgprs(inst["src0"])


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
    touching: Mapping[int, tuple[Instr, ...]], chains: tuple[Chain, ...], made: Mapping[Instr, int],
    states: Mapping[int, TagsAt],
) -> Flow:
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
            _step(state, instr, made)
    return Flow(chains, goes, frozenset(escaping))


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
