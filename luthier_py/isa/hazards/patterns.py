"""Chains of instructions that a hazard is made of, followed along code.

In: instructions in the order in which they run. Out: what must stand before the next one. Invariant: a chain of
`mitigated_hazards` is there from its first link on until something ends it for all of its registers.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache, lru_cache
from typing import TypeAlias

from luthier_py.isa.by_target import InstructionSet
from luthier_py.isa.encoding.instruction import Inst, OpInfo
from luthier_py.isa.hazards.mitigated import MITIGATED, Mitigated
from luthier_py.isa.model.registers import NO_REGS, RegSet

OpenPatterns: TypeAlias = dict[tuple[Mitigated, int, int],
                               RegSet]  # row, links made, counted since the first -> registers


@cache
def select_mitigated_hazards(isa: InstructionSet) -> tuple[Mitigated, ...]:
    """The hazards of a target and wave size."""
    return tuple(row for row in MITIGATED if row.where(isa))


def possible_patterns(isa: InstructionSet, ops: Collection[OpInfo]) -> frozenset[Mitigated]:
    """Hazards that code of these operations may have; what is settled at calls may have begun in other code."""
    def has(row: Mitigated) -> bool:
        links = row.links[1:] if row.resolved_at_calls else row.links
        return all(any(side.takes_part(op) for op in ops) for side in (*(link.side for link in links), row.consumed))

    return frozenset(row for row in select_mitigated_hazards(isa) if has(row))


@cache
def _rows(isa: InstructionSet, op: OpInfo) -> tuple[frozenset[tuple[Mitigated, int]], frozenset[Mitigated]]:
    """Links that an operation may be, by number, and hazards that it may run into."""
    rows = select_mitigated_hazards(isa)
    return (frozenset((row, k) for row in rows for k, link in enumerate(row.links) if link.side.takes_part(op)),
            frozenset(row for row in rows if row.consumed.takes_part(op)))


@cache
def begun_by(isa: InstructionSet, op: OpInfo) -> frozenset[Mitigated]:
    """Hazards whose first link an operation may be."""
    return frozenset(row for row, number in _rows(isa, op)[0] if not number)


def start_patterns(isa: InstructionSet, inst: Inst) -> OpenPatterns:
    """Chains that begin with ``inst``."""
    found: OpenPatterns = {(row, 1, 0): regs for row in begun_by(isa, inst.op)
                     if (regs := row.links[0].side.registers(inst))}
    itself = {key: regs for key, regs in found.items() if key[0].by_itself}
    return found | extend_patterns(isa, itself, inst) if itself else found


def extend_patterns(isa: InstructionSet, patterns: OpenPatterns, inst: Inst) -> OpenPatterns:
    """Those of ``patterns`` of which ``inst`` is the next link, with that link."""
    found: OpenPatterns = {}
    links = _links(isa, inst)
    for (row, made, count), regs in patterns.items() if links else ():
        if (own := links.get((row, made))) and (shared := regs & own):
            key = row, made + 1, count
            found[key] = found.get(key, NO_REGS) | shared
    return found


@lru_cache(maxsize=1 << 16)
def _links(isa: InstructionSet, inst: Inst) -> dict[tuple[Mitigated, int], RegSet]:
    """Links that ``inst`` may be behind others, by number, and its registers in them."""
    return {(row, number): regs for row, number in _rows(isa, inst.op)[0]
            if number and (regs := row.links[number].side.registers(inst))}


def joins(isa: InstructionSet, inst: Inst) -> dict[tuple[Mitigated, int], RegSet]:
    """Links that ``inst`` may be behind others, by number, and its registers in them; what would come to harm is one
    more."""
    return _links(isa, inst) | {(row, len(row.links)): regs for row, regs in _find_consumed_hazards(isa, inst).items()}


def touches(isa: InstructionSet, row: Mitigated, made: int, inst: Inst) -> bool:
    """Whether chains with so many links may be others behind ``inst``, or run into it."""
    ended, counted = _compute_link_effect(row, made, inst)
    return bool(ended or counted or (row, made) in joins(isa, inst))


def drop_ended_patterns(patterns: OpenPatterns, inst: Inst) -> OpenPatterns:
    """What ``inst`` leaves of ``patterns``, which is returned itself if that is all."""
    found, same = dict[tuple[Mitigated, int, int], RegSet](), True
    for key, regs in patterns.items():
        row, made, count = key
        ended, counted = _compute_link_effect(row, made, inst)
        if counted:
            count += counted
            key, same = (row, made, count), False
            if count > (row.links[made - 1].reach or 0):
                continue
        if ended:
            regs, same = regs - ended, False
            if not regs:
                continue
        found[key] = found[key] | regs if key in found else regs
    return patterns if same else found


def join_patterns(a: OpenPatterns, b: OpenPatterns) -> OpenPatterns:
    """What is there where paths meet; ``a`` itself if ``b`` adds nothing."""
    more = {key: regs | a.get(key, NO_REGS) for key, regs in b.items() if not regs <= a.get(key, NO_REGS)}
    return {**a, **more} if more else a


@lru_cache(maxsize=1 << 18)
def _compute_link_effect(row: Mitigated, made: int, inst: Inst) -> tuple[RegSet, int]:
    """Behind so many links: the registers for which ``inst`` ends the chain, and how much it counts."""
    link = row.links[made - 1]
    return link.ended(inst), row.counted(inst) if link.reach is not None else 0


def find_triggered_hazards(isa: InstructionSet, patterns: OpenPatterns, inst: Inst) -> set[Mitigated]:
    """Hazards that ``inst`` runs into."""
    consumed = _find_consumed_hazards(isa, inst)
    return {row for (row, made, _), regs in patterns.items()
            if made == len(row.links) and row in consumed and regs.overlaps(consumed[row])} if consumed else set()


@lru_cache(maxsize=1 << 16)
def _find_consumed_hazards(isa: InstructionSet, inst: Inst) -> dict[Mitigated, RegSet]:
    """Hazards that ``inst`` may run into, and with which registers."""
    return {row: regs for row in _rows(isa, inst.op)[1] if (regs := row.consumed.registers(inst))}


def mitigations_of(isa: InstructionSet, rows: Collection[Mitigated], inst: Inst) -> list[Inst]:
    """What must stand before ``inst``, which runs into ``rows``."""
    texts = dict.fromkeys(row.mitigation(isa, inst) for row in select_mitigated_hazards(isa) if row in rows)
    return [_parse_inst(isa, text) for mitigation in texts for text in mitigation]


@cache
def _parse_inst(isa: InstructionSet, text: str) -> Inst:
    return isa.parse(text)
