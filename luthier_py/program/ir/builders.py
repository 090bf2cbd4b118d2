"""Addresses made of the PC, and where they go: which calls and jumps are direct.

In: the code and blocks of one function. Out: :class:`Chain` (a s_getpc with its adds) and
:class:`ChainUses` (what each s_swappc and s_setpc may reach, and which chains are for nothing else).

Invariant: a chain that does not escape reaches no instruction but moves, and calls or jumps that take
exactly this chain. What a chain adds to the PC, or takes away, are literals, or registers whose value `offsets`
computes there: its value is the same in every run. It is a may-analysis: a register is mapped to everything that it may
hold of interest, OTHER standing for the rest; so a call is direct only if one chain alone reaches it on every path. It
assumes of calls what the ABI says (AMDGPUUsage, "Non-Kernel Functions"): a value in s32 or above that is read after a
call is the one from before it. Below, compilers may rely on what a callee leaves alone, and keep values there: a
register that the callee does not touch is what it was; any other may be, or may be something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from operator import or_
from typing import TYPE_CHECKING

import numpy as np

from luthier_py.base.records import dataclass
from luthier_py.isa import SCC, Inst, Operand, OpFlag, Reg, RegFile, RegSet, sgpr
from luthier_py.isa.semantics.readers.evaluate import copies, evaluate
from luthier_py.isa.semantics.readers.numbers import UNIFORM, Known, Number, constant
from luthier_py.program.ir.model import Block, Instr, instr_at
from luthier_py.program.ir.offsets import KnownNumbers

if TYPE_CHECKING:
    from luthier_py.isa.columns import Columns

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
    """A s_getpc_b64 and the two sums that make ``value`` in ``pair``; a 64-bit add is both ``lo`` and ``hi``. They are
    differences where ``back`` says so. ``offset``: what makes the numbers of the registers that they add."""

    getpc: Instr
    lo: Instr
    hi: Instr
    pair: Reg
    value: int
    back: bool
    offset: tuple[Instr, ...]


@dataclass(frozen=True, slots=True)
class AddressFlow:
    """Where an indirect call or jump may go: to chains (by index), back to the caller, or anywhere (``other``)."""

    chains: frozenset[int]
    returns: bool
    other: bool


@dataclass(frozen=True, slots=True)
class ChainUses:
    """``goes``: the targets of each s_swappc and s_setpc. ``escaping``: indices of chains that may be used in other
    ways."""

    chains: tuple[Chain, ...]
    goes: Mapping[Instr, AddressFlow]
    escaping: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Known:
    """What following a function needs to know: its chains, which instruction completes which, and what callees touch.
    """

    chains: tuple[Chain, ...]
    made: Mapping[Instr, int]
    touched: Touched

    def find_clobbered(self, instr: Instr, state: TagsAt) -> int:
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
    for at in code.find_flagged(OpFlag.GETS_PC, start, stop):
        chain = _chain(code, start, at, stop)
        if chain is not None:
            yield chain


def _chain(code: Columns, first: int, start: int, stop: int) -> Chain | None:
    getpc, offsets = instr_at(code, start), KnownNumbers(code, first)
    pair = getpc.inst["sdst"].reg
    if pair is None:
        return None
    low, high = sgpr(pair.index), sgpr(pair.index + 1)
    lo, distance, sign = getpc, 0, 0
    for at in range(start + 1, stop):
        inst = code.inst(at)
        if not (inst.reads | inst.writes).overlaps(RegSet.of(pair)) and not (sign and inst.writes.sgpr >> SCC & 1):
            if OpFlag.CALL in inst.op.flags:
                return None
            continue
        to, summand = _in_place(inst), _Summand(inst, _other(inst, offsets, at))
        if to == pair and not sign and (whole := summand.number(pair, 1)) is not None:
            if whole != inst["src1"].value % (1 << 64):
                return None  # a difference, for which no other literal is made
            return _make_chain(getpc, (add := instr_at(code, at), add), pair, whole, 1, offsets)
        if to == low and not sign:
            found = [(each, number) for each in (1, -1) if (number := summand.number(low, each)) is not None]
            if not found:
                return None
            lo, (sign, distance) = instr_at(code, at), found[0]
        elif to == high and sign and (upper := summand.number(high, sign)) is not None:
            return _make_chain(getpc, (lo, instr_at(code, at)), pair, distance + (upper << 32), sign, offsets)
        elif to != high or sign or not _keeps(inst, high, getpc.end >> 32):
            return None  # the upper half comes zero-extended on some targets, and is extended by its sign then
    return None


def _make_chain(
    getpc: Instr, sums: tuple[Instr, Instr], pair: Reg, distance: int, sign: int, offsets: KnownNumbers
) -> Chain:
    made_by = tuple(instr_at(offsets.code, at) for at in sorted(offsets.made))
    return Chain(getpc, *sums, pair, (getpc.end + sign * distance) % (1 << 64), sign < 0, made_by)


def _in_place(inst: Inst) -> Reg | None:
    """The register that ``inst`` changes, if its first source is what it writes."""
    to, source = inst.find("sdst"), inst.find("src0")
    return to.reg if to is not None and source is not None and to.reg == source.reg else None


def _other(inst: Inst, offsets: KnownNumbers, at: int) -> dict[int, int]:
    """The second source, if it is a register with a number that is known: that number."""
    other = inst.find("src1")
    if other is None or other.reg is None or other.reg.file is not RegFile.SGPR or other.reg.dwords != 1:
        return {}
    number = offsets.number(other.reg.index, at)
    return {} if number is None else {other.reg.index: number}


def _keeps(inst: Inst, reg: Reg, value: int) -> bool:
    return _evaluate_inst(inst, {reg.index: value}) == {reg.index: value}


@dataclass(frozen=True, slots=True)
class _Summand:
    """An instruction, and the ``numbers`` of registers before it."""

    inst: Inst
    numbers: Mapping[int, int]

    def number(self, to: Reg, sign: int) -> int | None:
        """The number that it adds to ``to``, with the carry if it reads that, and leaves the carry; with a ``sign`` of
        -1, takes away with the borrow. None if it does anything else."""
        bits, carries = 32 * to.dwords, (0, 1) if self.inst.reads.sgpr >> SCC & 1 else (0,)
        whole = 1 << bits
        zero = self._sum(to, 0, 0)
        if zero is None:
            return None
        number = sign * zero[0] % whole
        for start, carry in product((0, 1, whole - 1), carries):
            total = start + sign * (number + carry)
            if self._sum(to, start, carry) != (total % whole, total // whole % 2 if to.dwords == 1 else None):
                return None
        return number

    def _sum(self, to: Reg, start: int, carry: int) -> tuple[int, int | None] | None:
        """What it makes of ``start``, and the carry that it leaves."""
        halves = {to.index + half: start >> 32 * half & _DWORD for half in range(to.dwords)}
        found = _evaluate_inst(self.inst, {**self.numbers, **halves, SCC: carry})
        if found is None or not halves.keys() <= found.keys() <= {*halves, SCC}:
            return None
        return sum(found[to.index + half] << 32 * half for half in range(to.dwords)), found.get(SCC)


def _evaluate_inst(inst: Inst, known: Mapping[int, int]) -> dict[int, int] | None:
    """What it writes, in numbers; None if that is not known."""
    def read(file: RegFile, index: int) -> Known:
        return constant(known[index]) if file is RegFile.SGPR and index in known else UNIFORM

    found = evaluate(inst, read)
    after = {index: result.constant for (_, index), result in found.items()
             if isinstance(result, Number) and result.constant is not None}
    return after if after and len(after) == len(found) else None


def follow(
    code: Columns, blocks: Sequence[Block], entries: Iterable[int], function: bool, touched: Touched,
) -> ChainUses:
    """Where the chains of a function end up. ``function``: it has a return address."""
    if not code.find_flagged(OpFlag.INDIRECT | OpFlag.GETS_PC):
        return ChainUses((), {}, frozenset())
    chains = tuple(chain for block in blocks for chain in find_chains(code, block.start, block.stop))
    known = _Known(chains, {chain.hi: number for number, chain in enumerate(chains)}, touched)
    start: TagsAt = {RETURN_ADDRESS + half: frozenset({half}) for half in (0, 1)} if function else {}
    touching = _collect_touching_instrs(code, blocks, chains, start)
    states = {entry: dict(start) for entry in entries}
    todo = sorted(states) if blocks else []
    by_address = {block.address: block for block in blocks}
    patience = PATIENCE * len(blocks)
    while todo:
        patience -= 1
        if patience < 0:
            nowhere, jumps = AddressFlow(frozenset(), False, True), code.find_flagged(OpFlag.INDIRECT)
            return ChainUses(chains, {instr_at(code, at): nowhere for at in jumps}, frozenset(range(len(chains))))
        block = by_address[todo.pop()]
        state = dict(states[block.address])
        for instr in touching[block.address]:
            _step(state, instr, known)
        for successor in block.successors:
            if _merge(states, successor, state):
                todo.append(successor)
    return _uses(touching, known, states)


def _collect_touching_instrs(
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
    values = [state.get(reg, _NOTHING) for reg in _find_copied_sgprs(inst)]
    if inst.op.flags & OpFlag.CALL:
        lost = known.find_clobbered(instr, state)
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


def _find_copied_sgprs(inst: Inst) -> range:
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
    goes: dict[Instr, AddressFlow] = {}
    escaping: set[int] = set()
    for address, instrs in touching.items():
        state = dict(states.get(address, {}))
        for instr in instrs:
            inst = instr.inst
            if inst.op.flags & OpFlag.INDIRECT:
                goes[instr] = found = _goes(inst, state)
                if found.other or found.returns or len(found.chains) > 1:
                    escaping |= found.chains
            elif not _find_copied_sgprs(inst):
                for reg, tags in state.items():
                    if inst.reads.sgpr >> reg & 1:
                        escaping |= {tag // 2 - 1 for tag in tags if tag > 1}
            _step(state, instr, known)
    return ChainUses(known.chains, goes, frozenset(escaping))


def _goes(inst: Inst, state: TagsAt) -> AddressFlow:
    source = inst.find("src0")
    registers = list(_sgprs(source)) if source is not None else []
    if len(registers) != 2:
        return AddressFlow(frozenset(), False, True)
    low, high = (state.get(reg, _NOTHING) for reg in registers)
    numbers = {tag // 2 for tag in low | high if tag != OTHER}
    exact = OTHER not in low | high and low == {2 * n for n in numbers} and high == {2 * n + 1 for n in numbers}
    restored = registers[0] == RETURN_ADDRESS and numbers <= {RETURNS}  # restored from where the function saved it
    return AddressFlow(frozenset(n - 1 for n in numbers if n), restored or RETURNS in numbers,
                       not exact and not restored)
